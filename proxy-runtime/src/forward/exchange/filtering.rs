//! The filters of a route around one request.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode};
use tokio::time::Instant;

use super::body::Body;
use super::connect::Unconnected;
use super::downstream::Downstream;
use super::failure::ResponseFailure;
use super::resolved_route::ResolvedRoute;
use crate::connection::ConnectionInfo;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::filter::{
    FilterDecision, ReceivedResponse, Reply, RequestChange, RequestEdit, ResponseWork,
    TrailerChanges, Work,
};
use crate::forward::response::{own, shown_response};
use crate::head::{ErrorForm, HeaderMutations, ResponseNotes};
use crate::http1::{HeadTable, RawResponse};
use crate::local_pool::{LocalPool, Recycle};
use crate::policy::{self, Decide, PolicyDecision, Waiting};
use crate::progress::within;
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
    /// The work of the filters on the response that is not done yet.
    work: ResponseWork,
    /// The changes of the response that were decided with the request, while its filters wait.
    notes: ResponseNotes,
    /// The progress of the destination's response.
    response: ResponseStage,
    /// The time when the destination's response arrived, if filters have let it wait.
    answered: Option<Instant>,
    /// The form of errors that the client prefers.
    form: ErrorForm,
}

/// The progress of a destination's response through the filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseStage {
    #[default]
    Unseen,
    /// The response to which filters are called. It may wait for their work.
    Seen(StatusCode),
    /// All filters were called.
    Changed,
}

/// A wait before a request is forwarded.
pub(crate) enum RequestWait {
    /// A policy waits for its decision.
    Policy(Waiting),
    /// A filter waits for its work. The number of filters before it.
    Filter(Work<RequestChange>, usize),
}

/// The result of a wait.
pub(crate) enum Waited {
    Policy(Decide),
    Filter(RequestChange),
}

impl RequestWait {
    /// Waits until `due` for the decision.
    ///
    /// # Errors
    ///
    /// The work failed or took too long.
    pub(crate) async fn until(
        self,
        due: Option<Instant>,
        route: &ResolvedRoute<'_>,
    ) -> Result<Waited, ForwardError> {
        match self {
            Self::Policy(waiting) => within(due, policy::wait(route.route, waiting))
                .await
                .map(Waited::Policy),
            Self::Filter(work, passed) => {
                let Some(filters) = route.filters() else {
                    return Err(too_late());
                };
                let mut is_late = true;
                let work = async {
                    let waited = filters.wait(work, passed, route.route).await;
                    is_late = false;
                    waited
                };
                let waited = within(due, work).await;
                // The time was the filter's, not that of a destination.
                let waited = waited.map_err(|error| if is_late { too_late() } else { error });
                waited.map(Waited::Filter)
            }
        }
    }
}

/// The error of work of a filter that takes too long.
fn too_late() -> ForwardError {
    ForwardError::new(ForwardErrorKind::Extension, StatusCode::GATEWAY_TIMEOUT)
}

impl Filtering {
    /// Calls the route's policies and then its filters with the request.
    ///
    /// # Errors
    ///
    /// One of them waits, replied or panicked.
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
            None => filtered.filter(route, down, None),
            Some(policies) => {
                let connection = down.connection();
                let judge =
                    |head: &mut RequestEdit<'_>| policies.judge(head, route.route, connection);
                filtered.judge(route, down, judge)
            }
        };
        (Self(Some(filtered)), said)
    }

    /// Continues after a policy or a filter has decided.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub(crate) fn resume<D: Downstream>(
        &mut self,
        waited: Waited,
        route: &ResolvedRoute<'_>,
        down: &D,
    ) -> Result<(), Unconnected> {
        let filtered = self.0.get_or_insert_default();
        match waited {
            Waited::Policy(decide) => filtered.judge(route, down, |head| decide(head, route.route)),
            Waited::Filter(change) => filtered.filter(route, down, Some(change)),
        }
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

    /// Ready when the filters have seen the destination's response, which can be forwarded, and changed it.
    ///
    /// # Errors
    ///
    /// A filter or its work failed, or the received part of the body is malformed: the client can still get an error.
    #[inline]
    pub(crate) fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        route: &ResolvedRoute<'_>,
        connection: impl FnOnce() -> ConnectionInfo,
        status: StatusCode,
        received: Received<'_>,
    ) -> Poll<Result<(), ResponseFailure>> {
        match self.0.as_deref_mut() {
            None => Poll::Ready(Ok(())),
            Some(filtered) => filtered.poll_response(cx, route, connection, status, received),
        }
    }

    /// The changes of the destination's response, if filters have seen it, and those of its trailers.
    #[inline]
    pub(crate) fn changes(&mut self) -> (Option<&HeaderMutations>, Option<Box<TrailerChanges>>) {
        match self.0.as_deref_mut() {
            None => (None, None),
            Some(filtered) => filtered.changes(),
        }
    }

    /// The time when the destination's response arrived, if filters have let it wait.
    #[inline]
    pub(crate) fn answered(&self) -> Option<Instant> {
        self.0.as_deref()?.answered
    }

    /// The status of the destination's response while it waits for the work of a filter.
    pub(crate) fn waits_with(&self) -> Option<StatusCode> {
        match self.0.as_deref()?.response {
            ResponseStage::Seen(status) => Some(status),
            ResponseStage::Unseen | ResponseStage::Changed => None,
        }
    }

    /// Returns a local reply after response filters and the route's transforms, and the error of a filter. `None` if
    /// the client leaves while a filter waits. `due`: the time by which the filters have to be done, if there is one.
    /// `is_watched`: the client's connection may be read.
    #[cold]
    pub(crate) async fn local_reply<D: Downstream>(
        &mut self,
        route: &ResolvedRoute<'_>,
        down: &mut D,
        (due, is_watched): (Option<Instant>, bool),
        reply: LocalReply,
    ) -> Option<(Parts, Bytes, Option<ForwardErrorKind>)> {
        let form = self.0.as_deref().map(|filtered| filtered.form);
        let errors = route.service.shared().errors(form.unwrap_or_default());
        let mut response = match reply {
            LocalReply::Status(status) => own(status, None, &errors),
            LocalReply::Filter(reply) => reply.into_response(&errors).map(ProxyBody::text),
        };
        if let Some(filtered) = self.0.as_deref_mut() {
            // Cancels what was left to do with the destination's response.
            filtered.work = ResponseWork::default();
        }
        let mut failed = None;
        if let Some(filtered) = self
            .0
            .as_deref_mut()
            .filter(|filtered| filtered.sees_replies())
        {
            let connection = down.connection();
            let changing = within(due, filtered.change_reply(route, connection, &mut response));
            // Most replies wait for nothing.
            let changed = Box::pin(down.unless_gone(is_watched, changing)).await?;
            if let Err(error) = changed {
                // A filter may have failed halfway through its changes, so none of them is sent.
                let error = match error.kind() == ForwardErrorKind::Extension {
                    true => error,
                    false => too_late(),
                };
                response = own(error.status(), None, &errors);
                failed = Some(error.kind());
            }
        }
        let changed = shown_response(response, ResponseNotes::default(), route.plan);
        let (head, mut body) = changed.into_parts();
        Some((head, body.take_text(), failed))
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
                self.filter(route, down, None)
            }
            PolicyDecision::Respond(reply) => Err(Unconnected::Replied(Box::new(reply))),
            PolicyDecision::Wait(waiting) => Err(Unconnected::Waits(RequestWait::Policy(waiting))),
        }
    }

    /// Calls the route's filters that have not passed the request. `change`: the result of the work of the first of
    /// them.
    fn filter<D: Downstream>(
        &mut self,
        route: &ResolvedRoute<'_>,
        down: &D,
        change: Option<RequestChange>,
    ) -> Result<(), Unconnected> {
        let Some(filters) = route.filters() else {
            return Ok(());
        };
        let context = route.filter_context(down.connection());
        let from = (self.passed, change);
        let verdict = down.show_request(&mut self.edits, |head| {
            filters.on_request(from, head, &context)
        });
        let (passed, said) = match verdict {
            FilterDecision::Pass => (filters.len(), Ok(())),
            // Filters behind the one that replied have not seen the request, and see no response.
            FilterDecision::Reply(reply, passed) => {
                (passed, Err(Unconnected::Replied(Box::new(reply))))
            }
            FilterDecision::Failed(error, passed) => (passed, Err(Unconnected::Failed(error))),
            FilterDecision::Wait(work, passed) => (
                passed,
                Err(Unconnected::Waits(RequestWait::Filter(work, passed))),
            ),
        };
        self.passed = passed;
        said
    }

    /// See [`Filtering::poll_response`].
    #[cold]
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        route: &ResolvedRoute<'_>,
        connection: impl FnOnce() -> ConnectionInfo,
        status: StatusCode,
        (buffer, response, table): Received<'_>,
    ) -> Poll<Result<(), ResponseFailure>> {
        if self.response == ResponseStage::Unseen {
            // Only filters that have seen the request see its response.
            if self.passed == 0 && !self.edits.has_notes() {
                return Poll::Ready(Ok(()));
            }
            // Checked first, so that filters see only responses that clients get.
            let body = &buffer[response.head_length()..];
            let followed = Body::of_response(response.framing()).follow(
                body,
                &response_limits(),
                &mut HeadTable::default(),
            );
            if followed.is_err() {
                return Poll::Ready(Err(ResponseFailure::BrokenBody(status)));
            }
            // The request head is already written.
            self.notes = self.edits.take_notes();
            self.edits.clear();
            self.response = ResponseStage::Seen(status);
        }
        if let Some(filters) = route.filters() {
            let received = ReceivedResponse::of_raw(status, buffer, table);
            let context = route.filter_context(connection());
            let changes = (&mut self.edits, &mut self.work);
            let shown = filters.poll_response(cx, &mut self.passed, received, changes, &context);
            if shown.is_pending() {
                // The wait is not the destination's.
                self.answered.get_or_insert_with(Instant::now);
            }
            if ready!(shown).is_err() {
                self.stop_response();
                return Poll::Ready(Err(ResponseFailure::Extension(status)));
            }
        }
        self.edits.make_noted(std::mem::take(&mut self.notes));
        self.response = ResponseStage::Changed;
        Poll::Ready(Ok(()))
    }

    /// Forgets a response, so that no filter sees another one.
    fn stop_response(&mut self) {
        self.passed = 0;
        self.work = ResponseWork::default();
        self.notes = ResponseNotes::default();
        self.response = ResponseStage::Changed;
    }

    #[cold]
    fn changes(&mut self) -> (Option<&HeaderMutations>, Option<Box<TrailerChanges>>) {
        match self.response {
            ResponseStage::Changed => (Some(&self.edits), self.work.take_trailers()),
            ResponseStage::Unseen | ResponseStage::Seen(_) => (None, None),
        }
    }

    /// Returns true if something changes local replies.
    fn sees_replies(&self) -> bool {
        self.passed > 0 || self.edits.has_notes() || !self.notes.is_empty()
    }

    /// Calls the filters with a local reply, which takes the place of the destination's response.
    async fn change_reply(
        &mut self,
        route: &ResolvedRoute<'_>,
        connection: ConnectionInfo,
        response: &mut Response<ProxyBody>,
    ) -> Result<(), ForwardError> {
        let notes = match self.edits.has_notes() {
            true => self.edits.take_notes(),
            // They were taken for a response that filters have waited with.
            false => std::mem::take(&mut self.notes),
        };
        let mut edits = HeaderMutations::default();
        // Each filter sees one response: those that see this one have not seen another.
        let mut passed = std::mem::take(&mut self.passed);
        if let Some(filters) = route.filters() {
            let context = route.filter_context(connection);
            let (status, work) = (response.status(), &mut self.work);
            let headers = response.headers();
            poll_fn(|cx| {
                let received = ReceivedResponse::of_http(status, headers);
                filters.poll_response(cx, &mut passed, received, (&mut edits, work), &context)
            })
            .await?;
        }
        edits.make_noted(notes);
        edits.apply_to(response.headers_mut());
        Ok(())
    }
}

/// The content of a local reply.
#[derive(Debug)]
pub(crate) enum LocalReply {
    Status(StatusCode),
    /// The reply of a filter.
    Filter(Box<Reply>),
}

/// The buffer, the head and the fields of a received response.
pub(crate) type Received<'a> = (&'a [u8], &'a RawResponse, &'a HeadTable);

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
    filtered.work = ResponseWork::default();
    filtered.notes = ResponseNotes::default();
    filtered.response = ResponseStage::Unseen;
    filtered.answered = None;
    filtered.form = ErrorForm::default();
    SPARE.keep(filtered);
}
