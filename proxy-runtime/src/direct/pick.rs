//! The choice of a destination without a request to it.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use proxy_model::compiled::{Cluster, ClusterIndex, Destination, Route, RouteIndex};

use crate::Proxy;
use crate::cluster::Picked;
use crate::exchange::pick;
use crate::forward::plan;
use crate::head::HttpHead;
use crate::state::Generation;

/// A destination that [`Proxy::pick`] picked. It counts as one request in flight there until this is dropped.
#[must_use = "dropped at once, it counts nothing"]
pub struct PickedDestination {
    generation: Arc<Generation>,
    route: RouteIndex,
    cluster: ClusterIndex,
    picked: Picked,
}

impl Proxy {
    /// Picks the destination for a request without sending it, for programs that redirect clients, or forward by
    /// other means. Matching, canaries, partitions, session affinity, health and balancing are those of requests.
    /// Policies, layers and filters of the route are not called: the program must reject what they would reject.
    ///
    /// # Errors
    ///
    /// The status that a client would get: no route matches, or there is no destination.
    pub fn pick(&self, request: &Parts) -> Result<PickedDestination, StatusCode> {
        let shared = self.shared();
        let generation = shared.load_full();
        let head = HttpHead::new(request);
        let route = plan::find_route(&generation, &head).map_err(|unrouted| unrouted.status())?;
        let snapshot = generation.snapshot();
        let failed = |error: crate::ForwardError| error.status();
        let cluster = plan::find_cluster(
            snapshot.route_at(route),
            generation.route(route),
            (snapshot, None),
            &head,
            shared.random(),
        )
        .map_err(failed)?;
        let state = generation.cluster(cluster);
        let picked = pick(state, snapshot.cluster_at(cluster), &head).map_err(failed)?;
        Ok(PickedDestination {
            generation,
            route,
            cluster,
            picked,
        })
    }
}

impl PickedDestination {
    /// The route that matched.
    pub fn route(&self) -> &Route {
        self.generation.snapshot().route_at(self.route)
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        self.generation.snapshot().cluster_at(self.cluster)
    }

    /// The destination.
    pub fn destination(&self) -> &Destination {
        &self.cluster().destinations()[self.picked.index.0 as usize]
    }
}

impl fmt::Debug for PickedDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PickedDestination")
            .field("route", self.route().id())
            .field("cluster", self.cluster().id())
            .field("destination", self.destination().id())
            .finish()
    }
}
