//! The filters of one route.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use log_sink::Seldom;
use proxy_model::compiled::Route;
use proxy_model::{ClusterId, RequestHead};
use tracing::error;

use super::work::WorkFailure;
use super::{
    Filter, FilterContext, Flow, ReceivedResponse, Reply, RequestChange, RequestEdit, ResponseWork,
    Work,
};
use crate::contain::{contained, contained_call};
use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::HeaderMutations;
use crate::observe::{LOG_PAUSE, targets};

/// A filter and the name under which it was registered.
#[derive(Clone)]
pub(crate) struct NamedFilter {
    pub(crate) name: Arc<str>,
    pub(crate) filter: Arc<dyn Filter>,
}

/// The filters of one route, in order.
#[derive(Clone, Debug)]
pub(crate) struct Filters(Box<[NamedFilter]>);

/// The result of the filters for a request.
pub(crate) enum FilterDecision {
    /// All filters let the request pass.
    Pass,
    /// A filter responds. The number of filters before it.
    Reply(Reply, usize),
    /// A filter panicked. The number of filters before it.
    Failed(ForwardError, usize),
    /// A filter waits for its work. The number of filters before it.
    Wait(Work<RequestChange>, usize),
}

impl Filters {
    pub(crate) fn new(filters: Vec<NamedFilter>) -> Self {
        Self(filters.into())
    }

    /// The names of the filters, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|named| &*named.name)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The cluster that the first filter with an opinion assigns.
    ///
    /// # Errors
    ///
    /// One of them panicked.
    pub(crate) fn cluster(
        &self,
        head: &dyn RequestHead,
        route: &Route,
    ) -> Result<Option<&ClusterId>, ForwardError> {
        for named in &self.0 {
            let assigned = contained_call(|| named.filter.cluster(head, route))
                .map_err(|panicked| named.failed(&panicked.0, route))?;
            // The first filter that assigns a cluster decides.
            if assigned.is_some() {
                return Ok(assigned);
            }
        }
        Ok(None)
    }

    /// Calls the filters in order after the first `passed` ones, until one of them responds, waits or panics. `change`:
    /// the result of the work that the first of them has waited for, in place of a call.
    pub(crate) fn on_request(
        &self,
        (passed, mut change): (usize, Option<RequestChange>),
        head: &mut RequestEdit<'_>,
        context: &FilterContext<'_>,
    ) -> FilterDecision {
        for (passed, named) in self.0.iter().enumerate().skip(passed) {
            // A panic fails this request only.
            let called = contained_call(|| match change.take() {
                Some(change) => change(head),
                None => named.filter.on_request(head, context),
            });
            match called {
                Ok(Flow::Continue) => {}
                Ok(Flow::Wait(work)) => return FilterDecision::Wait(work.0, passed),
                Ok(Flow::Respond(reply)) => return FilterDecision::Reply(reply, passed),
                Err(panicked) => {
                    return FilterDecision::Failed(
                        named.failed(&panicked.0, context.route),
                        passed,
                    );
                }
            }
        }
        FilterDecision::Pass
    }

    /// Waits for the work of the filter behind the first `passed` ones.
    ///
    /// # Errors
    ///
    /// The work failed or panicked.
    pub(crate) async fn wait(
        &self,
        work: Work<RequestChange>,
        passed: usize,
        route: &Route,
    ) -> Result<RequestChange, ForwardError> {
        let failure = match contained(work).await {
            Ok(Ok(change)) => return Ok(change),
            Ok(Err(error)) => WorkFailure::Failed(error),
            Err(panicked) => WorkFailure::Panicked(panicked),
        };
        Err(self.work_failed(passed, &failure, route))
    }

    /// Calls the first `passed` filters with the response, the last one first: those that let its
    /// request pass. Counts `passed` down. Ready when the response does not have to wait any more.
    ///
    /// # Errors
    ///
    /// Fails if a filter or its work fails. The remaining filters must not be called.
    pub(crate) fn poll_response(
        &self,
        cx: &mut Context<'_>,
        passed: &mut usize,
        received: ReceivedResponse<'_>,
        (edits, work): (&mut HeaderMutations, &mut ResponseWork),
        context: &FilterContext<'_>,
    ) -> Poll<Result<(), ForwardError>> {
        loop {
            while work.is_waiting() {
                let changed = ready!(work.poll(cx)).and_then(|change| {
                    let mut head = received.edit(edits, work);
                    contained_call(|| change(&mut head)).map_err(WorkFailure::Panicked)
                });
                if let Err(failure) = changed {
                    // It is the work of the filter that was called last.
                    return Poll::Ready(Err(self.work_failed(*passed, &failure, context.route)));
                }
            }
            // Only those that saw the request, in reverse order.
            let Some(next) = passed.checked_sub(1) else {
                return Poll::Ready(Ok(()));
            };
            *passed = next;
            let Some(named) = self.0.get(next) else {
                continue;
            };
            let mut head = received.edit(edits, work);
            if let Err(panicked) = contained_call(|| named.filter.on_response(&mut head, context)) {
                return Poll::Ready(Err(named.failed(&panicked.0, context.route)));
            }
        }
    }

    /// The error of work of the filter at this position.
    fn work_failed(&self, position: usize, failure: &WorkFailure, route: &Route) -> ForwardError {
        let named = self.0.get(position);
        match failure {
            WorkFailure::Panicked(panicked) => {
                if let Some(named) = named {
                    return named.failed(&panicked.0, route);
                }
            }
            WorkFailure::Failed(error) => {
                // A service that is away must not flood the log.
                static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
                if let Some(left_out) = SELDOM.pass() {
                    let filter = named.map(|named| &*named.name);
                    error!(
                        target: targets::REQUEST,
                        route = %route.id(),
                        filter,
                        error = &**error as &dyn std::error::Error,
                        left_out,
                        "the work of a filter failed",
                    );
                }
            }
        }
        failed()
    }
}

/// The error of a request whose filter failed.
fn failed() -> ForwardError {
    ForwardError::new(
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}

impl NamedFilter {
    fn failed(&self, panic: &str, route: &Route) -> ForwardError {
        // A filter that fails at each request must not flood the log.
        static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
        if let Some(left_out) = SELDOM.pass() {
            error!(
                target: targets::REQUEST,
                route = %route.id(),
                filter = &*self.name,
                panic,
                left_out,
                "a filter panicked",
            );
        }
        failed()
    }
}

impl fmt::Debug for NamedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedFilter").field(&self.name).finish()
    }
}
