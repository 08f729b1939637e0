use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::VirtualHost;

use super::unknown::UnknownZones;

/// The owner of resources: a service of a source. Quarantine and last known good form apply to an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The source that has the service.
    pub source: Arc<str>,
    /// The service's name in that source.
    pub service: Arc<str>,
}

impl Owner {
    /// Creates the owner for a service of a source.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, service: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            service: service.into(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.service)
    }
}

/// The resources that one service requests to be served.
///
/// The source of endpoints and routes depends on the [`Subscription`](crate::snapshot::Subscription), and
/// is filled in for each: in a cluster of type `EDS` without `eds_config`, and in a connection manager of a
/// listener whose `rds` has no `config_source`. Existing values stay unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceResources {
    /// The owner.
    pub owner: Owner,
    /// The service's clusters.
    pub clusters: Vec<Cluster>,
    /// The endpoints of the clusters of type `EDS`. A cluster without an assignment is served with an empty
    /// one, since it would not get ready otherwise. The exception are clusters with [unknown
    /// endpoints](Self::unknown_endpoints).
    pub assignments: Vec<ClusterLoadAssignment>,
    /// The clusters whose endpoints are not fully known at the moment, with the datacenters concerned.
    /// There they keep their earlier endpoints; if there are none, no client receives an empty assignment.
    pub unknown_endpoints: BTreeMap<String, UnknownZones>,
    /// True if the resources are not fully known at the moment. If the service was served before,
    /// everything but endpoints stays unchanged.
    pub is_partial: bool,
    /// The service's part of the route configuration, which is one for all services.
    pub virtual_hosts: Vec<VirtualHost>,
    /// The service's listeners.
    pub listeners: Vec<Listener>,
    /// The interval at which REST clients poll its endpoints. `None` for
    /// [`ResourceOptions::refresh_delay`].
    ///
    /// [`ResourceOptions::refresh_delay`]: super::ResourceOptions::refresh_delay
    pub refresh_delay: Option<Duration>,
}

impl ServiceResources {
    /// Creates empty resources.
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            clusters: Vec::new(),
            assignments: Vec::new(),
            unknown_endpoints: BTreeMap::new(),
            is_partial: false,
            virtual_hosts: Vec::new(),
            listeners: Vec::new(),
            refresh_delay: None,
        }
    }
}
