//! The filters of one route.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use log_sink::Seldom;
use proxy_model::compiled::Route;
use proxy_model::{ClusterId, RequestHead};
use tracing::error;

use super::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use crate::contain::contained_call;
use crate::error::{ForwardError, ForwardErrorKind};
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
#[derive(Debug)]
pub(crate) enum FilterDecision {
    /// All filters let the request pass.
    Pass,
    /// A filter responds. The number of filters before it.
    Reply(Reply, usize),
    /// A filter panicked. The number of filters before it.
    Failed(ForwardError, usize),
}

impl Filters {
    pub(crate) fn new(filters: Vec<NamedFilter>) -> Self {
        Self(filters.into())
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

    /// Calls the filters in order, until one of them responds or panics.
    pub(crate) fn on_request(
        &self,
        head: &mut RequestEdit<'_>,
        context: &FilterContext<'_>,
    ) -> FilterDecision {
        for (passed, named) in self.0.iter().enumerate() {
            // A panic fails this request only.
            match contained_call(|| named.filter.on_request(head, context)) {
                Ok(Flow::Continue) => {}
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

    /// Calls the first `passed` filters with the response, the last one first: those that let its
    /// request pass.
    ///
    /// # Errors
    ///
    /// Fails if a filter panics. The remaining filters are not called.
    pub(crate) fn on_response(
        &self,
        passed: usize,
        head: &mut ResponseEdit<'_>,
        context: &FilterContext<'_>,
    ) -> Result<(), ForwardError> {
        // Only those that saw the request, in reverse order.
        for named in self.0.iter().take(passed).rev() {
            contained_call(|| named.filter.on_response(head, context))
                .map_err(|panicked| named.failed(&panicked.0, context.route))?;
        }
        Ok(())
    }
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
        ForwardError::new(
            ForwardErrorKind::Extension,
            StatusCode::INTERNAL_SERVER_ERROR,
        )
    }
}

impl fmt::Debug for NamedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedFilter").field(&self.name).finish()
    }
}
