//! The changes of a route to the trailers of a response.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use proxy_model::Snapshot;
use proxy_model::compiled::RouteIndex;
use proxy_model::transform::HeaderCopy;

use crate::head::headers;
use crate::transform::apply_to_trailers;

/// What a route does to the trailers of a response.
#[derive(Debug, Default)]
pub(crate) struct TrailerRules(Option<Box<Rules>>);

#[derive(Debug)]
struct Rules {
    snapshot: Arc<Snapshot>,
    route: RouteIndex,
    status: StatusCode,
}

impl TrailerRules {
    pub(crate) fn new(snapshot: &Arc<Snapshot>, route: RouteIndex, status: StatusCode) -> Self {
        let transforms = snapshot.route_at(route).transforms();
        let changes_nothing =
            transforms.trailers().is_empty() && *transforms.trailers_copy() == HeaderCopy::All;
        Self((!changes_nothing).then(|| {
            Box::new(Rules {
                snapshot: Arc::clone(snapshot),
                route,
                status,
            })
        }))
    }

    /// Returns whether trailers may be added to a response that has none.
    pub(crate) fn may_add(&self) -> bool {
        self.0.is_some()
    }

    /// Makes of the destination's trailers those that the client gets. Empty ones are none.
    pub(crate) fn apply(&self, trailers: &mut HeaderMap) {
        headers::strip_trailers(trailers);
        if let Some(rules) = &self.0 {
            let route = rules.snapshot.route_at(rules.route);
            apply_to_trailers(route.transforms(), rules.status, trailers);
        }
    }
}
