use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::VirtualHost;

use super::unknown::UnknownZones;

/// Who wants resources to be served: a service of a source. It is what is quarantined, and what keeps a last good form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The source that knows it.
    pub source: Arc<str>,
    /// Its name there.
    pub service: Arc<str>,
}

impl Owner {
    /// The service of that name in that source.
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

/// What one service wants to be served.
///
/// Where endpoints and routes come from depends on how they are asked for, and is filled in for each
/// [`Subscription`](crate::snapshot::Subscription): in a cluster of type `EDS` whose `eds_config` is absent, and in a
/// connection manager of a listener whose `rds` has no `config_source`. What is there stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceResources {
    /// Whose they are.
    pub owner: Owner,
    /// Its clusters.
    pub clusters: Vec<Cluster>,
    /// The endpoints of its clusters of type `EDS`. A cluster without an assignment is served with an empty one, since it
    /// would not get ready otherwise, unless its endpoints are [not known](Self::unknown_endpoints).
    pub assignments: Vec<ClusterLoadAssignment>,
    /// Its clusters of whose endpoints not all are known at the moment, and where they are not. There they keep those that they
    /// had; of one that has none at all no client is told that there are none.
    pub unknown_endpoints: BTreeMap<String, UnknownZones>,
    /// Whether not all of it is known at the moment. If it was served before, everything but endpoints stays as it was.
    pub is_partial: bool,
    /// Its part of the route configuration, which is one for all services.
    pub virtual_hosts: Vec<VirtualHost>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
    /// How often those who poll with REST ask for its endpoints. `None`: [`AssembleOptions::refresh_delay`].
    ///
    /// [`AssembleOptions::refresh_delay`]: super::AssembleOptions::refresh_delay
    pub refresh_delay: Option<Duration>,
}

impl ServiceResources {
    /// Nothing yet.
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
