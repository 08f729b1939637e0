//! The filters of a route around one request, over heads as they are in their buffers.

use bytes::Bytes;
use http::StatusCode;
use http::response::Parts;

use super::connect::Unconnected;
use super::downstream::Downstream;
use super::resolved_route::ResolvedRoute;
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::filter::{Filters, Reply, ResponseEdit, Verdict};
use crate::forward::{own_response, shown_response};
use crate::head::HeadEdits;
use crate::http1::HeadTable;
use crate::response::ProxyBody;
use crate::spare::{Lend, Spare};

/// As many as requests are under way at a time on a busy thread.
const MOST: usize = 1024;

thread_local! {
    static SPARE: Spare<Box<Filtered>, MOST> = const { Spare::new() };
}

/// What the filters of its route make of one request and its response. Most routes have none.
#[derive(Debug, Default)]
pub(super) struct Filtering(Option<Box<Filtered>>);

/// Lent by the thread, so that filters cost no allocation, and requests without them no room.
#[derive(Debug, Default)]
struct Filtered {
    /// What they change: of the request, and when that is on its way, of the response.
    edits: HeadEdits,
    /// The first so many have let the request pass, and have not been shown its response.
    passed: usize,
}

impl Filtering {
    /// Shows the request to the filters of its route.
    ///
    /// # Errors
    ///
    /// One of them answers it, or panicked.
    #[cold]
    pub(super) fn ask<D: Downstream>(
        filters: &Filters,
        route: &ResolvedRoute<'_>,
        down: &D,
    ) -> (Self, Result<(), Unconnected>) {
        let mut filtered = SPARE.lend().unwrap_or_default();
        let context = route.filter_context(down.state().info);
        let verdict = down.show_request(&mut filtered.edits, |head| {
            filters.on_request(head, &context)
        });
        let (passed, said) = match verdict {
            Verdict::Pass => (filters.len(), Ok(())),
            Verdict::Reply(reply, passed) => (passed, Err(Unconnected::Replied(Box::new(reply)))),
            Verdict::Failed(error, passed) => (passed, Err(Unconnected::Failed(error))),
        };
        filtered.passed = passed;
        (Self(Some(filtered)), said)
    }

    /// What they change of the request, if they do.
    #[inline]
    pub(super) fn edits(&self) -> Option<&HeadEdits> {
        let filtered = self.0.as_deref()?;
        Some(&filtered.edits).filter(|edits| !edits.is_empty())
    }

    /// To show them the response that a destination makes.
    #[inline]
    pub(super) fn shown<'e>(
        &'e mut self,
        route: &'e ResolvedRoute<'_>,
        connection: &'e ConnectionInfo,
    ) -> Option<Shown<'e>> {
        let filtered = self
            .0
            .as_deref_mut()
            .filter(|filtered| filtered.passed > 0)?;
        Some(Shown {
            filtered,
            route,
            connection,
        })
    }

    /// The response that no destination made, after those that are to be shown it, and after the route's changes.
    #[cold]
    pub(super) fn answer(
        &mut self,
        route: &ResolvedRoute<'_>,
        connection: ConnectionInfo,
        answer: Answer,
    ) -> (Parts, Bytes) {
        let passed = self
            .0
            .as_deref_mut()
            .map(|filtered| std::mem::take(&mut filtered.passed));
        let response = match answer {
            Answer::Status(status) => own_response(status),
            Answer::Reply(reply) => reply.into_response().map(ProxyBody::text),
        };
        let filters = route.filters().zip(passed);
        let context = route.filter_context(connection);
        let shown = shown_response(response, filters, context, route.route.transforms());
        let (head, mut body) = shown.into_parts();
        (head, body.take_text())
    }
}

/// What the proxy says itself.
#[derive(Debug)]
pub(super) enum Answer {
    Status(StatusCode),
    /// A filter says it.
    Reply(Box<Reply>),
}

/// A destination's response, to be shown to filters.
pub(super) struct Shown<'e> {
    filtered: &'e mut Filtered,
    route: &'e ResolvedRoute<'e>,
    connection: &'e ConnectionInfo,
}

impl<'e> Shown<'e> {
    /// What they change of a response.
    ///
    /// # Errors
    ///
    /// One of them panicked; they see no response to this request any more.
    #[cold]
    pub(super) fn show(
        self,
        status: StatusCode,
        buffer: &[u8],
        table: &HeadTable,
    ) -> Result<&'e HeadEdits, ForwardError> {
        let Filtered { edits, passed } = self.filtered;
        let passed = std::mem::take(passed);
        // The request is on its way.
        edits.clear();
        if let Some(filters) = self.route.filters() {
            let mut head = ResponseEdit::of_raw(status, buffer, table, edits);
            let context = self.route.filter_context(*self.connection);
            filters.on_response(passed, &mut head, &context)?;
        }
        Ok(edits)
    }
}

/// What was lent goes back to the thread, however the request ended.
impl Drop for Filtering {
    #[inline]
    fn drop(&mut self) {
        if let Some(filtered) = self.0.take() {
            give_back(filtered);
        }
    }
}

#[cold]
fn give_back(mut filtered: Box<Filtered>) {
    filtered.edits.clear();
    filtered.passed = 0;
    SPARE.keep(filtered);
}
