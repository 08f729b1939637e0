//! Nodes: stop, start, deactivation and activation.

use std::sync::Arc;

use super::entity::{
    Deactivation, DeactivationIntent, Intent, NodeStatus, ReplicaRole, ReplicaStatus,
};
use super::error::{ErrorCode, FabricError};
use super::identity::ReplicaRef;
use super::state::{Cluster, NodeEntry};

impl Cluster {
    /// Deactivates a node in good order: instances are drained, primaries hand over, and replicas move if the
    /// intent implies that their state will be lost. With [`Pause`](DeactivationIntent::Pause) all replicas
    /// stay, and no new ones are placed. The node is `Disabling` until that is done, then `Disabled`.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deactivate_node(
        &mut self,
        node: &str,
        intent: DeactivationIntent,
    ) -> Result<(), FabricError> {
        let now = self.now;
        let entry = self.existing_node(node)?;
        let name = entry.node.name.clone();
        entry.node.deactivation = Some(Deactivation {
            intent,
            completed: false,
            since: now,
        });
        if entry.node.status != NodeStatus::Down {
            entry.node.status = NodeStatus::Disabling;
        }
        let keys: Vec<ReplicaRef> = entry.replicas.iter().copied().collect();
        self.disabling.insert(name);
        // A paused node keeps its replicas and only takes no new ones.
        if intent != DeactivationIntent::Pause {
            for key in keys {
                self.evacuate(key, intent);
            }
        }
        self.settle();
        Ok(())
    }

    fn evacuate(&mut self, key: ReplicaRef, intent: DeactivationIntent) {
        if !self.is_stateful(key.partition) {
            // Another node can run an instance at once, since it has no state.
            self.close(key);
            return;
        }
        let Some(partition) = self.partitions.get(&key.partition) else {
            return;
        };
        let service = self.services.get(&partition.service);
        let persisted = service.is_some_and(|service| service.has_persisted_state);
        if let Some(replica) = self.replica_mut(key) {
            replica.intent = Intent::Leave;
        }
        self.dirty.insert(key.partition);
        if intent == DeactivationIntent::Restart && persisted {
            // Its state stays on the node, so the replica only goes down; a primary hands over before.
            self.elect(key.partition);
            if let Some(replica) = self.replica_mut(key) {
                // Only the election needed the intent to leave. The replica returns to this node.
                replica.intent = Intent::Stay;
                let node = replica.node.clone();
                self.went_down(key);
                self.close_in_hosting(key, &node);
            }
        }
    }

    /// Checks if nodes that are being deactivated are empty.
    pub(super) fn go_on_with_deactivations(&mut self) {
        let nodes: Vec<Arc<str>> = self.disabling.iter().cloned().collect();
        for name in nodes {
            let Some(entry) = self.nodes.get(&name) else {
                self.disabling.remove(&name);
                continue;
            };
            let paused = entry
                .node
                .deactivation
                .is_some_and(|found| found.intent == DeactivationIntent::Pause);
            let mut replicas = entry.replicas.iter().filter_map(|key| self.replica(*key));
            // A replica that is down keeps its state on the node and does not delay the operation.
            if !paused && replicas.any(|replica| replica.status != ReplicaStatus::Down) {
                continue;
            }
            self.disabling.remove(&name);
            if let Some(entry) = self.nodes.get_mut(&name) {
                if let Some(deactivation) = &mut entry.node.deactivation {
                    deactivation.completed = true;
                }
                if entry.node.status == NodeStatus::Disabling {
                    entry.node.status = NodeStatus::Disabled;
                }
            }
        }
    }

    /// Lets a deactivated node take replicas again. Replicas whose state is still on it return.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn activate_node(&mut self, node: &str) -> Result<(), FabricError> {
        let entry = self.existing_node(node)?;
        let name = entry.node.name.clone();
        entry.node.deactivation = None;
        if entry.node.status != NodeStatus::Down {
            entry.node.status = NodeStatus::Up;
        }
        self.disabling.remove(&name);
        self.bring_back(&name);
        self.settle();
        Ok(())
    }

    /// Lets replicas that were to leave a node stay, and reopens those that were on it, if the node is up.
    fn bring_back(&mut self, node: &str) {
        let Some(entry) = self
            .nodes
            .get(node)
            .filter(|entry| entry.node.takes_replicas())
        else {
            return;
        };
        let keys: Vec<ReplicaRef> = entry.replicas.iter().copied().collect();
        for key in keys {
            let Some(replica) = self.replica_mut(key) else {
                continue;
            };
            // A replica that only waited for its replacement may stay. A draining instance goes on leaving.
            let leaves = replica.intent == Intent::Leave && replica.draining_until.is_none();
            if leaves {
                replica.intent = Intent::Stay;
                self.dirty.insert(key.partition);
            }
            if self
                .replica(key)
                .is_some_and(|replica| replica.status == ReplicaStatus::Down)
            {
                self.place_existing(key);
            }
        }
        self.retry_unplaced();
    }

    /// Takes a node down, as if its machine had lost power. Does nothing if it is down.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn stop_node(&mut self, node: &str) -> Result<(), FabricError> {
        let now = self.now;
        let entry = self.existing_node(node)?;
        if entry.node.status == NodeStatus::Down {
            return Ok(());
        }
        let name = entry.node.name.clone();
        entry.node.status = NodeStatus::Down;
        entry.node.up_at = None;
        entry.node.down_at = Some(now);
        entry.host.stop();
        let keys: Vec<ReplicaRef> = entry.replicas.iter().copied().collect();
        self.unheard = true;
        for key in keys {
            let service = self
                .partitions
                .get(&key.partition)
                .map(|found| &found.service);
            let service = service.and_then(|name| self.services.get(name));
            if service.is_some_and(|service| service.has_persisted_state) {
                self.went_down(key);
            } else {
                // Without persisted state, nothing of the replica outlives its process.
                self.end_workload(key, true);
                self.forget_replica(key);
            }
        }
        self.undeploy_all(&name);
        self.say_node_status(&name);
        self.settle();
        Ok(())
    }

    /// Brings a node up again. Does nothing if it is up.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn start_node(&mut self, node: &str) -> Result<(), FabricError> {
        let now = self.now;
        let life = self.next_instance_id();
        let entry = self.existing_node(node)?;
        if entry.node.status != NodeStatus::Down {
            return Ok(());
        }
        let name = entry.node.name.clone();
        entry.node.status = match entry.node.deactivation {
            Some(Deactivation {
                completed: true, ..
            }) => NodeStatus::Disabled,
            Some(_) => NodeStatus::Disabling,
            None => NodeStatus::Up,
        };
        // Clients detect a restart by the new instance id.
        entry.node.instance_id = life;
        entry.node.up_at = Some(now);
        entry.node.down_at = None;
        entry.host.start();
        self.unheard = true;
        self.say_node_status(&name);
        self.bring_back(&name);
        self.settle();
        Ok(())
    }

    /// Restarts a node at the same moment. `instance_id` is the intended life of the node; 0: the present
    /// one.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`; `FABRIC_E_INSTANCE_ID_MISMATCH` when the node has another life by now.
    pub fn restart_node(&mut self, node: &str, instance_id: i64) -> Result<(), FabricError> {
        let entry = self.existing_node(node)?;
        // Instance id 0 matches every run of the node.
        if instance_id != 0 && instance_id != entry.node.instance_id {
            return Err(FabricError::new(
                ErrorCode::InstanceIdMismatch,
                format!(
                    "node '{node}' has the instance id {}",
                    entry.node.instance_id
                ),
            ));
        }
        self.stop_node(node)?;
        self.start_node(node)
    }

    pub(super) fn existing_node(&mut self, node: &str) -> Result<&mut NodeEntry, FabricError> {
        self.nodes.get_mut(node).ok_or_else(|| no_node(node))
    }

    /// Hands a primary over to a secondary on another node that `admits`, if there is one.
    pub(super) fn hand_over(&mut self, key: ReplicaRef, admits: impl Fn(&str) -> bool) {
        let Some(partition) = self.partitions.get(&key.partition) else {
            return;
        };
        let is_primary = partition
            .primary()
            .is_some_and(|primary| primary.key == key);
        let heir = partition.replicas.values().find(|replica| {
            replica.role == ReplicaRole::ActiveSecondary
                && replica.status == ReplicaStatus::Ready
                && replica.intent == Intent::Stay
                && admits(&replica.node)
        });
        if let Some(heir) = heir.filter(|_| is_primary).map(|heir| heir.key) {
            self.promote(key.partition, heir);
        }
    }
}

pub(super) fn no_node(node: &str) -> FabricError {
    let shown: String = node.chars().take(120).collect();
    FabricError::new(
        ErrorCode::NodeNotFound,
        format!("there is no node '{shown}'"),
    )
}
