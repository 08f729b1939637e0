//! Instances in the form in which they are kept.

use std::collections::BTreeMap;

use crate::client::{HealthEntry, HealthStatus, ServiceWeights, TaggedAddress};

/// An instance of a service in one datacenter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceInstance {
    /// The node that it is on.
    pub node: String,
    /// The instance's id, unique on its node.
    pub id: String,
    /// The address: its own, or that of its node. May be a host name, or empty.
    pub address: String,
    /// The instance's port. 0 if it has none.
    pub port: u16,
    /// The address for other datacenters, if one is set.
    pub wan: Option<TaggedAddress>,
    /// Free text.
    pub tags: Vec<String>,
    /// Free text by key.
    pub meta: BTreeMap<String, String>,
    /// The instance's share of the requests.
    pub weights: ServiceWeights,
    /// The worst of its checks and of those of its node.
    pub status: HealthStatus,
}

impl ServiceInstance {
    fn of(mut entry: HealthEntry) -> Self {
        Self {
            address: entry.address().to_owned(),
            status: entry.status(),
            port: entry.service.port,
            wan: entry.service.tagged_addresses.remove("wan"),
            tags: entry.service.tags,
            meta: entry.service.meta,
            weights: entry.service.weights,
            id: entry.service.id,
            node: entry.node.name,
        }
    }

    /// The share of the requests that it has in its status.
    pub fn weight(&self) -> u32 {
        match self.status {
            HealthStatus::Warning => self.weights.warning,
            HealthStatus::Passing | HealthStatus::Critical | HealthStatus::Maintenance => {
                self.weights.passing
            }
        }
    }
}

/// Returns the instances of a response, in an order that does not depend on the server's.
pub(super) fn instances_of(entries: Vec<HealthEntry>) -> Vec<ServiceInstance> {
    let mut instances: Vec<_> = entries.into_iter().map(ServiceInstance::of).collect();
    instances.sort_by(|a, b| (&a.node, &a.id).cmp(&(&b.node, &b.id)));
    instances.dedup_by(|a, b| (&a.node, &a.id) == (&b.node, &b.id));
    instances
}
