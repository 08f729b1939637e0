//! The configuration as a person or a discoverer writes it: YARP's section `ReverseProxy`, with extensions.
//!
//! These types are plain data with public fields. They can hold invalid values, which
//! [`Snapshot::compile`](crate::Snapshot::compile) reports. A field that is `None` was not written, which
//! is not always the same as its default.

mod affinity;
mod cluster;
mod forwarder;
mod health;
mod http_client;
mod partitions;
mod policies;
mod reply;
mod route;

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;

pub use self::affinity::{AffinityCookieConfig, SessionAffinityConfig};
pub use self::cluster::{ClusterConfig, DestinationConfig};
pub use self::forwarder::{ForwarderRequestConfig, HttpVersion, VersionPolicy};
pub use self::health::{
    ActiveHealthCheckConfig, AgentCheckConfig, HealthCheckConfig, PassiveHealthCheckConfig,
};
pub use self::http_client::{ClientCertificateConfig, HttpClientConfig, WebProxyConfig};
pub use self::partitions::{PartitionHash, PartitionKey, PartitionedCluster, PartitionedClusters};
pub use self::policies::{PolicyConfig, PolicyConfigs, PolicyKind};
pub use self::reply::{RedirectConfig, RespondConfig};
pub use self::route::{
    HeaderMatchMode, QueryMatchMode, RouteConfig, RouteHeader, RouteMatch, RouteQueryParameter,
    WeightedCluster,
};
use crate::id::{ClusterId, RouteId};

/// Free text by key, kept in the order written.
pub type Metadata = IndexMap<String, String>;

/// One transform: a small map with a key that selects its kind, as in YARP. Keys are compared ignoring
/// case.
pub type TransformConfig = IndexMap<String, String>;

/// Routes and clusters by id, in the order written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ProxyConfig {
    /// The routes that requests are matched against.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub routes: IndexMap<RouteId, RouteConfig>,
    /// The clusters that matched requests are sent to.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub clusters: IndexMap<ClusterId, ClusterConfig>,
    /// The policies that routes choose by name. A program reads them from a section of their own; they are no part of
    /// the JSON of this section.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub policies: Arc<PolicyConfigs>,
}

impl ProxyConfig {
    /// Frees the unused capacity of its maps, which for a single route or cluster is larger than the used
    /// one. For configuration that is kept without further changes.
    pub fn shrink_to_fit(&mut self) {
        for route in self.routes.values_mut() {
            for transform in route.transforms.iter_mut().flatten() {
                transform.shrink_to_fit();
            }
            if let Some(metadata) = &mut route.metadata {
                metadata.shrink_to_fit();
            }
        }
        for cluster in self.clusters.values_mut() {
            for destination in cluster.destinations.values_mut() {
                if let Some(metadata) = &mut destination.metadata {
                    metadata.shrink_to_fit();
                }
            }
            cluster.destinations.shrink_to_fit();
            if let Some(metadata) = &mut cluster.metadata {
                metadata.shrink_to_fit();
            }
        }
        self.routes.shrink_to_fit();
        self.clusters.shrink_to_fit();
    }
}
