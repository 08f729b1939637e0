//! The changes of a route to the trailers of a response.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use crate::contain::Panicked;
use crate::filter::TrailerChanges;
use crate::head::headers;
use crate::transform::TrailerPlan;

/// The changes to the trailers of a response. Most routes have none, so they take a pointer of each exchange.
#[derive(Debug, Default)]
pub(crate) struct TrailerRules(Option<Box<Rules>>);

#[derive(Debug)]
struct Rules {
    /// The changes of the route, and the status of the response.
    plan: Option<(Arc<TrailerPlan>, StatusCode)>,
    /// The changes of filters.
    own: Option<Box<TrailerChanges>>,
}

impl TrailerRules {
    /// The rules of a route with this plan for a response of this status, and those of its filters.
    #[inline]
    pub(crate) fn new(
        plan: Option<&Arc<TrailerPlan>>,
        status: StatusCode,
        own: Option<Box<TrailerChanges>>,
    ) -> Self {
        if plan.is_none() && own.is_none() {
            return Self::default();
        }
        let plan = plan.map(|plan| (Arc::clone(plan), status));
        Self(Some(Box::new(Rules { plan, own })))
    }

    /// Returns whether trailers may be added to a response that has none.
    #[inline]
    pub(crate) fn may_add(&self) -> bool {
        self.0.is_some()
    }

    /// Converts the destination's trailers to the client's. Removes an empty section.
    ///
    /// # Errors
    ///
    /// A filter panicked.
    pub(crate) fn apply(self, trailers: &mut HeaderMap) -> Result<(), Panicked> {
        headers::strip_trailers(trailers);
        let Some(rules) = self.0 else {
            return Ok(());
        };
        let Rules { plan, own } = *rules;
        if let Some(own) = own {
            own.apply(trailers)?;
            headers::strip_trailers(trailers);
        }
        if let Some((plan, status)) = plan {
            plan.apply(status, trailers);
        }
        Ok(())
    }
}
