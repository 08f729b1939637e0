//! The choice of a node for a replica.

use std::cmp::Reverse;
use std::sync::Arc;

use super::entity::{Intent, Node, Partition, Replica, Service};
use super::identity::{PartitionId, hash};
use super::state::Cluster;
use super::timer::ClusterTimer;
use crate::hosting::{ActivationMode, PackageKey};

impl Cluster {
    /// Returns the node for another replica of a partition: `prefer` if it may take it. Otherwise the node in
    /// the fault domain and upgrade domain with the fewest replicas of the partition, and then with the
    /// fewest replicas of all. A hash decides between equals, so that partitions do not all begin at the same
    /// node.
    pub(super) fn choose_node(
        &self,
        partition: &Partition,
        prefer: Option<&str>,
    ) -> Option<Arc<str>> {
        let service = self.services.get(&partition.service)?;
        let candidates = || {
            self.nodes
                .values()
                .filter(|entry| self.may_take(&entry.node, service, partition))
        };
        if let Some(prefer) = prefer
            && let Some(entry) = candidates().find(|entry| *entry.node.name == *prefer)
        {
            return Some(entry.node.name.clone());
        }
        let in_domain = |same: &dyn Fn(&Node) -> bool| {
            let nodes = partition.replicas.values().filter(|replica| stays(replica));
            nodes
                .filter(|replica| self.node(&replica.node).is_some_and(same))
                .count()
        };
        let best = candidates().min_by_key(|entry| {
            let node = &entry.node;
            // A salt per service spreads the services over nodes that are equal otherwise.
            let salt = hash(partition.service.as_str(), 0);
            (
                in_domain(&|other| other.fault_domain == node.fault_domain),
                in_domain(&|other| other.upgrade_domain == node.upgrade_domain),
                entry.replicas.len(),
                hash(&node.name, salt),
            )
        });
        best.map(|entry| entry.node.name.clone())
    }

    /// Returns true if a node may take a replica of a partition now.
    pub(super) fn may_take(&self, node: &Node, service: &Service, partition: &Partition) -> bool {
        let taken = partition.replicas.values();
        // A leaving instance does not block its node, so its replacement may start there.
        let mut taken = taken.filter(|replica| !replica.is_drained_away());
        node.takes_replicas()
            && service.constraint.admits(node)
            && taken.all(|replica| replica.node != node.name)
            && !self.is_blocked(&node.name, service, partition.id)
            && !self
                .rejected
                .contains_key(&(partition.id, node.name.clone()))
    }

    /// Returns true if hosting has blocked the type of a service on a node.
    fn is_blocked(&self, node: &str, service: &Service, partition: PartitionId) -> bool {
        // The key below allocates, and a blocked type is rare.
        if self.blocked.is_empty() {
            return false;
        }
        let key = package_of(service, partition).service_type(&service.type_name);
        self.blocked
            .get(&key)
            .is_some_and(|nodes| nodes.contains(node))
    }

    /// Records that a node rejects a replica of a partition for now. It is tried again later.
    pub(super) fn reject(&mut self, partition: PartitionId, node: Arc<str>) {
        self.rejected.insert((partition, node), self.now);
        let wait = self.settings.hosting.rap_message_retry_interval;
        self.plan(wait, ClusterTimer::Reconsider(partition));
        self.dirty.insert(partition);
    }

    /// Returns the replica to remove first if there are too many: one that is not open yet, then the one on
    /// the fullest node, then the youngest.
    pub(super) fn choose_victim<'a>(
        &self,
        replicas: impl Iterator<Item = &'a Replica>,
    ) -> Option<&'a Replica> {
        replicas.min_by_key(|replica| {
            let on_node = self
                .nodes
                .get(&replica.node)
                .map_or(0, |entry| entry.replicas.len());
            (
                replica.is_resolvable(),
                Reverse(on_node),
                Reverse(replica.key.replica),
            )
        })
    }
}

fn stays(replica: &Replica) -> bool {
    replica.intent != Intent::Leave && replica.draining_until.is_none()
}

/// Returns the package instance that hosts the replicas of a partition.
pub(super) fn package_of(service: &Service, partition: PartitionId) -> PackageKey {
    let (application, manifest) = (service.application.as_str(), service.manifest_name.as_str());
    match service.activation_mode {
        ActivationMode::SharedProcess => PackageKey::shared(application, manifest),
        ActivationMode::ExclusiveProcess => {
            PackageKey::exclusive(application, manifest, &partition.to_string())
        }
    }
}
