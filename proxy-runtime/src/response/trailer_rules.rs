//! The changes of a route to the trailers of a response.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use crate::head::headers;
use crate::transform::TrailerPlan;

/// The changes of a route to the trailers of a response.
#[derive(Debug, Default)]
pub(crate) struct TrailerRules(Option<(Arc<TrailerPlan>, StatusCode)>);

impl TrailerRules {
    /// The rules of a route with this plan for a response of this status.
    #[inline]
    pub(crate) fn new(plan: Option<&Arc<TrailerPlan>>, status: StatusCode) -> Self {
        Self(plan.map(|plan| (Arc::clone(plan), status)))
    }

    /// Returns whether trailers may be added to a response that has none.
    #[inline]
    pub(crate) fn may_add(&self) -> bool {
        self.0.is_some()
    }

    /// Converts the destination's trailers to the client's. Removes an empty section.
    pub(crate) fn apply(&self, trailers: &mut HeaderMap) {
        headers::strip_trailers(trailers);
        if let Some((plan, status)) = &self.0 {
            plan.apply(*status, trailers);
        }
    }
}
