//! The filters of a route around one request.

use bytes::Bytes;
use http::StatusCode;
use http::response::Parts;

use super::body::Body;
use super::connect::Unconnected;
use super::downstream::Downstream;
use super::failure::ResponseFailure;
use super::resolved_route::ResolvedRoute;
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::filter::{FilterDecision, Reply, RequestEdit, ResponseEdit};
use crate::forward::response::{own, shown_response};
use crate::head::{ErrorForm, HeaderMutations};
use crate::http1::{HeadTable, RawResponse};
use crate::local_pool::{LocalPool, Recycle};
use crate::policy::{self, Decide, PolicyDecision};
use crate::response::ProxyBody;
use crate::trace::RequestTrace;
use crate::upstream::response_limits;

/// The number of states that a thread keeps.
const MOST: usize = 1024;

thread_local! {
    static SPARE: LocalPool<Box<Filtered>, MOST> = const { LocalPool::new() };
}

/// The state of the route's policies and filters for one request; empty for most routes.
#[derive(Debug, Default)]
pub(crate) struct Filtering(Option<Box<Filtered>>);

/// Reused by the thread, so that filters need no allocation, and requests without filters no
/// memory.
#[derive(Debug, Default)]
struct Filtered {
    /// The changes to the request, later those to the response.
    edits: HeaderMutations,
    /// The number of filters that passed the request and have not seen its response.
    passed: usize,
    /// The form of errors that the client prefers.
    form: ErrorForm,
}

impl Filtering {
    /// Calls the route's policies and then its filters with the request.
    ///
    /// # Errors
    ///
    /// A policy waits, or one of them replied or panicked.
    #[cold]
    pub(crate) fn ask<D: Downstream>(
        route: &ResolvedRoute<'_>,
        down: &D,
    ) -> (Self, Result<(), Unconnected>) {
        let mut filtered = SPARE.acquire().unwrap_or_default();
        if route.negotiates_errors() {
            // The head is gone when a destination fails.
            filtered.form = down.show_request(&mut filtered.edits, |head| {
                ErrorForm::of(head.header_values("accept"))
            });
        }
        let said = match route.policies() {
            None => filtered.filter(route, down),
            Some(policies) => {
                let connection = down.connection();
                let judge =
                    |head: &mut RequestEdit<'_>| policies.judge(head, route.route, connection);
                filtered.judge(route, down, judge)
            }
        };
        (Self(Some(filtered)), said)
    }

    /// Continues after a policy has decided.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub(crate) fn resume<D: Downstream>(
        &mut self,
        decide: Decide,
        route: &ResolvedRoute<'_>,
        down: &D,
    ) -> Result<(), Unconnected> {
        let filtered = self.0.get_or_insert_default();
        filtered.judge(route, down, |head| decide(head, route.route))
    }

    /// Adds the fields of the trace to the changes.
    #[cold]
    pub(crate) fn trace(&mut self, trace: &mut RequestTrace) {
        let filtered = self
            .0
            .get_or_insert_with(|| SPARE.acquire().unwrap_or_default());
        trace.write(&mut filtered.edits);
    }

    /// The changes to the request, if there are any.
    #[inline]
    pub(crate) fn edits(&self) -> Option<&HeaderMutations> {
        let filtered = self.0.as_deref()?;
        Some(&filtered.edits).filter(|edits| !edits.is_empty())
    }

    /// The filters that must see the destination's response, if there are any.
    #[inline]
    pub(crate) fn shown<'e>(
        &'e mut self,
        route: &'e ResolvedRoute<'_>,
        connection: impl FnOnce() -> ConnectionInfo,
    ) -> Option<Shown<'e>> {
        // Only filters that have seen the request see its response.
        let filtered = self
            .0
            .as_deref_mut()
            .filter(|filtered| filtered.passed > 0 || filtered.edits.has_notes())?;
        Some(Shown {
            filtered,
            route,
            connection: connection(),
        })
    }

    /// Returns a local reply after response filters and the route's transforms.
    #[cold]
    pub(crate) fn local_reply(
        &mut self,
        route: &ResolvedRoute<'_>,
        connection: ConnectionInfo,
        reply: LocalReply,
    ) -> (Parts, Bytes) {
        let filtered = self.0.as_deref_mut().map(|filtered| {
            let notes = filtered.edits.take_notes();
            // Each filter sees one response: the reply takes the place of the destination's.
            let passed = std::mem::take(&mut filtered.passed);
            (passed, (notes, filtered.form))
        });
        let (passed, told) = filtered.unzip();
        let (notes, form) = told.unzip();
        let errors = route.service.shared().errors(form.unwrap_or_default());
        let response = match reply {
            LocalReply::Status(status) => own(status, None, &errors),
            LocalReply::Filter(reply) => reply.into_response(&errors).map(ProxyBody::text),
        };
        let context = route.filter_context(connection);
        let filters = route.filters().zip(passed);
        let filters = filters.map(|(filters, passed)| (filters, passed, &context));
        let notes = notes.unwrap_or_default();
        let shown = shown_response(response, filters, notes, route.plan, &errors);
        let (head, mut body) = shown.into_parts();
        (head, body.take_text())
    }
}

impl Filtered {
    /// Calls the route's policies, and then its filters.
    fn judge<D: Downstream>(
        &mut self,
        route: &ResolvedRoute<'_>,
        down: &D,
        judge: impl FnOnce(&mut RequestEdit<'_>) -> PolicyDecision,
    ) -> Result<(), Unconnected> {
        let edits = &mut self.edits;
        let called = policy::call(route.route, || down.show_request(edits, judge));
        match called.map_err(Unconnected::Failed)? {
            PolicyDecision::Pass => {
                // Permits of policies last as long as the response, which may outlive the exchange.
                down.hold(&mut self.edits);
                self.filter(route, down)
            }
            PolicyDecision::Respond(reply) => Err(Unconnected::Replied(Box::new(reply))),
            PolicyDecision::Wait(waiting) => Err(Unconnected::Waits(waiting)),
        }
    }

    /// Calls the route's filters.
    fn filter<D: Downstream>(
        &mut self,
        route: &ResolvedRoute<'_>,
        down: &D,
    ) -> Result<(), Unconnected> {
        let Some(filters) = route.filters() else {
            return Ok(());
        };
        let context = route.filter_context(down.connection());
        let verdict = down.show_request(&mut self.edits, |head| filters.on_request(head, &context));
        let (passed, said) = match verdict {
            FilterDecision::Pass => (filters.len(), Ok(())),
            // Filters behind the one that replied have not seen the request, and see no response.
            FilterDecision::Reply(reply, passed) => {
                (passed, Err(Unconnected::Replied(Box::new(reply))))
            }
            FilterDecision::Failed(error, passed) => (passed, Err(Unconnected::Failed(error))),
        };
        self.passed = passed;
        said
    }
}

/// The content of a local reply.
#[derive(Debug)]
pub(crate) enum LocalReply {
    Status(StatusCode),
    /// The reply of a filter.
    Filter(Box<Reply>),
}

/// The filters that must see a destination's response.
pub(crate) struct Shown<'e> {
    filtered: &'e mut Filtered,
    route: &'e ResolvedRoute<'e>,
    connection: ConnectionInfo,
}

/// The buffer, the head and the fields of a received response.
pub(crate) type Received<'a> = (&'a [u8], &'a RawResponse, &'a HeadTable);

/// Calls filters with a response that can be forwarded, and returns their changes.
#[cold]
pub(crate) fn show<'e>(
    shown: Shown<'e>,
    status: StatusCode,
    (buffer, response, table): Received<'_>,
) -> Result<&'e HeaderMutations, ResponseFailure> {
    // Checked first, so that filters see only responses that clients get.
    let body = &buffer[response.head_length()..];
    let followed = Body::of_response(response.framing()).follow(
        body,
        &response_limits(),
        &mut HeadTable::default(),
    );
    if followed.is_err() {
        return Err(ResponseFailure::BrokenBody(status));
    }
    let edits = shown.show(status, buffer, table);
    edits.map_err(|_| ResponseFailure::Extension(status))
}

impl<'e> Shown<'e> {
    /// Calls the filters with the response head, and returns their changes.
    ///
    /// # Errors
    ///
    /// A filter panicked. The filters see no response to this request any more.
    #[cold]
    pub(crate) fn show(
        self,
        status: StatusCode,
        buffer: &[u8],
        table: &HeadTable,
    ) -> Result<&'e HeaderMutations, ForwardError> {
        let Filtered { edits, passed, .. } = self.filtered;
        let passed = std::mem::take(passed);
        // The request head is already written.
        let notes = edits.take_notes();
        edits.clear();
        if let Some(filters) = self.route.filters() {
            let mut head = ResponseEdit::of_raw(status, buffer, table, edits);
            let context = self.route.filter_context(self.connection);
            filters.on_response(passed, &mut head, &context)?;
        }
        edits.make_noted(notes);
        Ok(edits)
    }
}

/// Recycles the state, however the request ended.
impl Drop for Filtering {
    #[inline]
    fn drop(&mut self) {
        if let Some(filtered) = self.0.take() {
            release(filtered);
        }
    }
}

#[cold]
fn release(mut filtered: Box<Filtered>) {
    filtered.edits.clear();
    // Permits are returned now, and not when the state is used again.
    drop(filtered.edits.take_held());
    filtered.passed = 0;
    filtered.form = ErrorForm::default();
    SPARE.keep(filtered);
}
