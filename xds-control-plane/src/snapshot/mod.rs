//! The snapshot to serve: immutable, shared by all subscribers, versioned by content.
//!
//! A version is a hash of the content. Replicas and restarts therefore agree, and a reconnecting subscriber
//! gets only the differences.

mod resource;
mod set;
mod subscription;

pub use self::resource::{Bodies, Resource};
pub use self::set::ResourceSet;
pub use self::subscription::Subscription;
pub use xds_types::{ForeignVersion, ResourceType, Version};

use std::sync::Arc;

/// All resources that are served at one time.
///
/// A load assignment has the name of its cluster. By this the server knows the clusters without one, and
/// the assignments that are removed with a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    listeners: Arc<ResourceSet>,
    routes: Arc<ResourceSet>,
    clusters: Arc<ResourceSet>,
    endpoints: Arc<ResourceSet>,
}

impl Snapshot {
    /// The resources of one type.
    #[must_use]
    pub fn resources(&self, resource_type: ResourceType) -> &Arc<ResourceSet> {
        match resource_type {
            ResourceType::Listener => &self.listeners,
            ResourceType::Route => &self.routes,
            ResourceType::Cluster => &self.clusters,
            ResourceType::Endpoint => &self.endpoints,
        }
    }

    /// Returns the snapshot with the resources of one type replaced.
    #[must_use]
    pub fn with(mut self, resource_type: ResourceType, set: Arc<ResourceSet>) -> Self {
        let slot = match resource_type {
            ResourceType::Listener => &mut self.listeners,
            ResourceType::Route => &mut self.routes,
            ResourceType::Cluster => &mut self.clusters,
            ResourceType::Endpoint => &mut self.endpoints,
        };
        *slot = set;
        self
    }
}
