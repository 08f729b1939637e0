//! Compiled routes.

use std::sync::Arc;
use std::time::Duration;

use super::cluster::ClusterIndex;
use super::partitions::Partitions;
use super::policies::ChosenPolicy;
use super::reply::{FixedResponse, Redirect};
use super::source::RouteSource;
use crate::config::RouteConfig;
use crate::id::{ClusterId, RouteId};
use crate::matching::RouteMatcher;
use crate::transform::Transforms;

/// Position of a route in its snapshot's list, which is in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteIndex(pub u32);

/// A route: its criteria, and the handling of matching requests.
#[derive(Clone, Debug)]
pub struct Route {
    pub(crate) source: RouteSource,
    pub(crate) order: i32,
    pub(crate) matcher: RouteMatcher,
    pub(crate) target: RouteTarget,
    pub(crate) transforms: Transforms,
    pub(crate) body_limit: BodyLimit,
    pub(crate) strict_paths: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) timeout_includes_body: bool,
    pub(crate) filters: Box<[Arc<str>]>,
    pub(crate) layers: Box<[Arc<str>]>,
    pub(crate) policies: Box<[ChosenPolicy]>,
}

impl Route {
    /// The route's id, unique in the snapshot.
    pub fn id(&self) -> &RouteId {
        self.source.id()
    }

    /// The configuration that it was made from.
    pub fn config(&self) -> &RouteConfig {
        self.source.config()
    }

    /// Smaller is tried first.
    pub fn order(&self) -> i32 {
        self.order
    }

    /// The criteria that requests must meet.
    pub fn matcher(&self) -> &RouteMatcher {
        &self.matcher
    }

    /// The target of its requests.
    pub fn target(&self) -> &RouteTarget {
        &self.target
    }

    /// Changes to requests and responses.
    pub fn transforms(&self) -> &Transforms {
        &self.transforms
    }

    /// The largest request body.
    pub fn body_limit(&self) -> BodyLimit {
        self.body_limit
    }

    /// Returns true if the route takes only requests whose path all programs interpret alike.
    pub fn has_strict_paths(&self) -> bool {
        self.strict_paths
    }

    /// The longest that a request may take until its response begins: that of the route, or of its timeout policy.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns true if the [timeout](Self::timeout) ends with the exchange, and not with the head of the response.
    pub fn timeout_includes_body(&self) -> bool {
        self.timeout_includes_body
    }

    /// The program's filters, in order, by the names under which they were registered.
    pub fn filters(&self) -> &[Arc<str>] {
        &self.filters
    }

    /// The program's tower layers, the outermost first, by the names under which they were registered.
    pub fn layers(&self) -> &[Arc<str>] {
        &self.layers
    }

    /// The policies of the route, in the order in which a request meets them: CORS, authorization, the rate limiter of
    /// all routes, and the route's own one.
    pub fn policies(&self) -> &[ChosenPolicy] {
        &self.policies
    }
}

/// The target of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// Nowhere: the route names no cluster. Requests get 503.
    None,
    /// Nowhere: the cluster that the route names does not exist. Requests get 503.
    Missing(ClusterId),
    /// One cluster.
    Cluster(ClusterIndex),
    /// Several clusters by weight. The weights' sum is greater than 0.
    Weighted(Box<[WeightedTarget]>),
    /// Several clusters by a key that requests carry. Requests that belong to none get 400.
    Partitioned(Box<Partitions>),
    /// Nowhere: clients are sent to another URL.
    Redirect(Box<Redirect>),
    /// Nowhere: clients get a fixed response.
    Respond(Box<FixedResponse>),
}

impl RouteTarget {
    /// Returns true if the route has a local reply.
    pub fn is_reply(&self) -> bool {
        matches!(self, Self::Redirect(_) | Self::Respond(_))
    }
}

/// One cluster's share of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedTarget {
    pub(crate) id: ClusterId,
    pub(crate) cluster: Option<ClusterIndex>,
    pub(crate) weight: u32,
}

impl WeightedTarget {
    /// The cluster's id as the route names it.
    pub fn id(&self) -> &ClusterId {
        &self.id
    }

    /// The cluster, if it exists.
    pub fn cluster(&self) -> Option<ClusterIndex> {
        self.cluster
    }

    /// The cluster's share, relative to the sum of all weights of the route.
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

/// The largest request body of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BodyLimit {
    /// The limit of the server.
    #[default]
    Server,
    /// No limit.
    Unlimited,
    /// The limit of the route in bytes.
    Bytes(u64),
}
