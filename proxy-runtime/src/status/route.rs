//! The state of routes.

use proxy_model::RouteId;
use proxy_model::compiled::{Route, RouteTarget};
use serde::Serialize;

use crate::state::{Generation, RouteState};

/// The state of one route.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RouteStatus {
    /// Its id.
    pub id: RouteId,
    /// Smaller is tried first.
    pub order: i32,
    /// Path template as configured; `None` matches every path.
    pub path: Option<String>,
    /// Host patterns; none match every host.
    pub hosts: Vec<String>,
    /// Methods; none match every method.
    pub methods: Vec<String>,
    /// Where its requests go; none: they get 503.
    pub clusters: Vec<RouteShare>,
    /// Why all its requests are refused, if they are.
    pub refused: Option<String>,
    /// Requests since it came.
    pub requests: u64,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
}

/// One cluster's share of a route's requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RouteShare {
    /// The cluster's id as the route names it.
    pub cluster: String,
    /// Whether the cluster exists. The share of one that does not is answered with 503.
    pub exists: bool,
    /// The share, from 0 to 1.
    pub share: f64,
}

impl RouteStatus {
    pub(crate) fn of(generation: &Generation, route: &Route, state: &RouteState) -> Self {
        let matches = &route.config().r#match;
        Self {
            id: route.id().clone(),
            order: route.order(),
            path: matches.path.clone(),
            hosts: matches.hosts.clone().unwrap_or_default(),
            methods: matches.methods.clone().unwrap_or_default(),
            clusters: shares(generation, route),
            refused: state.refusal().map(|refusal| refusal.to_string()),
            requests: state.metrics().requests(),
            per_second: state.metrics().traffic().per_second(),
        }
    }
}

fn shares(generation: &Generation, route: &Route) -> Vec<RouteShare> {
    match route.target() {
        RouteTarget::None => Vec::new(),
        RouteTarget::Missing(id) => vec![RouteShare {
            cluster: id.as_str().to_owned(),
            exists: false,
            share: 1.0,
        }],
        RouteTarget::Cluster(index) => vec![RouteShare {
            cluster: generation
                .snapshot()
                .cluster_at(*index)
                .id()
                .as_str()
                .to_owned(),
            exists: true,
            share: 1.0,
        }],
        RouteTarget::Weighted(targets) => {
            let total: u64 = targets.iter().map(|t| u64::from(t.weight())).sum();
            targets
                .iter()
                .map(|target| RouteShare {
                    cluster: target.id().as_str().to_owned(),
                    exists: target.cluster().is_some(),
                    share: f64::from(target.weight()) / total as f64,
                })
                .collect()
        }
    }
}
