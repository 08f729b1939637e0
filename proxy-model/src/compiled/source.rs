//! The place in the configuration that a compiled value came from.
//!
//! Compiled values share one configuration and remember their place in it, so that nothing is kept twice. A value
//! that outlives its snapshot keeps that configuration alive.

use std::fmt;
use std::sync::Arc;

use crate::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use crate::id::{ClusterId, DestinationId, RouteId};

/// A route's place.
#[derive(Clone)]
pub(crate) struct RouteSource {
    config: Arc<ProxyConfig>,
    route: usize,
}

impl RouteSource {
    /// Returns the place of the route at position `route`, if there is one.
    pub(crate) fn new(config: &Arc<ProxyConfig>, route: usize) -> Option<Self> {
        config.routes.get_index(route)?;
        Some(Self {
            config: Arc::clone(config),
            route,
        })
    }

    pub(crate) fn id(&self) -> &RouteId {
        self.entry().0
    }

    pub(crate) fn config(&self) -> &RouteConfig {
        self.entry().1
    }

    fn entry(&self) -> (&RouteId, &RouteConfig) {
        let entry = self.config.routes.get_index(self.route);
        entry.expect("`new` found it, and what is shared does not change")
    }
}

impl fmt::Debug for RouteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.id(), f)
    }
}

/// A cluster's place.
#[derive(Clone)]
pub(crate) struct ClusterSource {
    config: Arc<ProxyConfig>,
    cluster: usize,
}

impl ClusterSource {
    /// Returns the place of the cluster at position `cluster`, if there is one.
    pub(crate) fn new(config: &Arc<ProxyConfig>, cluster: usize) -> Option<Self> {
        config.clusters.get_index(cluster)?;
        Some(Self {
            config: Arc::clone(config),
            cluster,
        })
    }

    pub(crate) fn id(&self) -> &ClusterId {
        self.entry().0
    }

    pub(crate) fn config(&self) -> &ClusterConfig {
        self.entry().1
    }

    fn entry(&self) -> (&ClusterId, &ClusterConfig) {
        let entry = self.config.clusters.get_index(self.cluster);
        entry.expect("`new` found it, and what is shared does not change")
    }
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.id(), f)
    }
}

/// A destination's place.
#[derive(Clone)]
pub(crate) struct DestinationSource {
    cluster: ClusterSource,
    destination: usize,
}

impl DestinationSource {
    /// Returns the place of the destination at position `destination` of `cluster`, if there is one.
    pub(crate) fn new(cluster: &ClusterSource, destination: usize) -> Option<Self> {
        cluster.config().destinations.get_index(destination)?;
        Some(Self {
            cluster: cluster.clone(),
            destination,
        })
    }

    pub(crate) fn id(&self) -> &DestinationId {
        self.entry().0
    }

    pub(crate) fn config(&self) -> &DestinationConfig {
        self.entry().1
    }

    fn entry(&self) -> (&DestinationId, &DestinationConfig) {
        let destinations = &self.cluster.config().destinations;
        let entry = destinations.get_index(self.destination);
        entry.expect("`new` found it, and what is shared does not change")
    }
}

impl fmt::Debug for DestinationSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.id(), f)
    }
}
