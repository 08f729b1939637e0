//! What is served: immutable, shared by all subscribers, versioned by content.
//!
//! A version is a hash of what it names. Replicas and restarts therefore agree, and a subscriber that reconnects is sent only
//! what differs.

mod resource;
mod set;
mod subscription;

pub use self::resource::{Bodies, Resource};
pub use self::set::ResourceSet;
pub use self::subscription::Subscription;
pub use xds_types::{ForeignVersion, ResourceType, Version};

use std::sync::Arc;

/// Everything that is served at one time.
///
/// A load assignment is called as its cluster: that is how the server knows for which clusters there is none, and which go
/// with a cluster that is removed.
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

    /// This snapshot with the resources of one type replaced.
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
