//! The failover manager: it brings every partition to its target.

use std::sync::Arc;

use super::effect::Effect;
use super::entity::{
    Intent, PartitionStatus, Replica, ReplicaRole, ReplicaStatus, ServiceKind, ServiceScale,
};
use super::error::{ErrorCode, FabricError};
use super::identity::{PartitionId, ReplicaRef};
use super::placement::package_of;
use super::state::Cluster;
use super::timer::ClusterTimer;
use crate::health::EntityKey;
use crate::hosting::{self, Placement, ReplicaKind, Span, Timestamp};

/// The maximum number of partitions to reconcile before events of hosting are handled.
const ROUND: usize = 1000;

impl Cluster {
    /// Carries out all consequences of past events that take no time.
    pub(super) fn settle(&mut self) {
        loop {
            // Hosting keeps a bounded number of events, so they are handled between batches of placements.
            for _ in 0..ROUND {
                let Some(id) = self.dirty.pop_first() else {
                    break;
                };
                self.reconcile(id);
            }
            self.hear_hosting();
            // Upgrades and deactivations read the state of replicas, so they continue after all placements.
            if self.dirty.is_empty() {
                self.go_on_with_upgrades();
                self.go_on_with_deactivations();
            }
            if !self.is_unsettled() {
                return;
            }
        }
    }

    /// Returns true if partitions wait for reconciliation, or hosting may have events.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.dirty.is_empty() || self.unheard
    }

    fn reconcile(&mut self, id: PartitionId) {
        let Some(partition) = self.partitions.get(&id) else {
            return;
        };
        // A placement below inserts the partition again if no node can take a replica.
        self.unplaced.remove(&id);
        match partition.scale {
            ServiceScale::Stateless {
                instance_count: -1, ..
            } => self.reconcile_everywhere(id),
            ServiceScale::Stateless { instance_count, .. } => {
                let target = usize::try_from(instance_count).unwrap_or(0);
                self.reconcile_instances(id, target);
            }
            ServiceScale::Stateful { target, .. } => {
                self.reconcile_replicas(id, target as usize);
                self.elect(id);
                self.let_leavers_go(id, target as usize);
            }
        }
        self.refresh_status(id);
    }

    /// Places one instance on every node that takes one, and removes all others.
    fn reconcile_everywhere(&mut self, id: PartitionId) {
        let Some(partition) = self.partitions.get(&id) else {
            return;
        };
        let Some(service) = self.services.get(&partition.service) else {
            return;
        };
        let nodes = self.nodes.values();
        let missing: Vec<Arc<str>> = nodes
            .filter(|entry| self.may_take(&entry.node, service, partition))
            .map(|entry| entry.node.name.clone())
            .collect();
        let misplaced = partition.replicas.values().filter(|replica| {
            let node = self.node(&replica.node);
            replica.is_counted() && node.is_some_and(|node| !service.constraint.admits(node))
        });
        let misplaced: Vec<ReplicaRef> = misplaced.map(|replica| replica.key).collect();
        for key in misplaced {
            self.close(key);
        }
        for node in missing {
            self.place(id, &node, ReplicaRole::None);
        }
    }

    /// Adds or removes instances of a stateless partition until it has its target number, each on a different
    /// node.
    fn reconcile_instances(&mut self, id: PartitionId, target: usize) {
        while let Some(partition) = self.partitions.get(&id) {
            let counted = || {
                partition
                    .replicas
                    .values()
                    .filter(|replica| replica.is_counted())
            };
            let count = counted().count();
            if count > target {
                let Some(victim) = self.choose_victim(counted()) else {
                    return;
                };
                let key = victim.key;
                self.close(key);
            } else if count < target {
                let Some(node) = self.choose_node(partition, None) else {
                    self.unplaced.insert(id);
                    return;
                };
                self.place(id, &node, ReplicaRole::None);
            } else {
                return;
            }
        }
    }

    /// Adds or removes replicas of a stateful partition until it has its target number, each on a different
    /// node. Waits for replicas that are down.
    fn reconcile_replicas(&mut self, id: PartitionId, target: usize) {
        while let Some(partition) = self.partitions.get(&id) {
            let counted = || {
                partition
                    .replicas
                    .values()
                    .filter(|replica| replica.is_counted())
            };
            let count = counted().count();
            if count > target {
                let secondaries = counted().filter(|replica| replica.role != ReplicaRole::Primary);
                let Some(victim) = self.choose_victim(secondaries) else {
                    return;
                };
                let key = victim.key;
                self.drop_replica(key);
            } else if count < target {
                let Some(node) = self.choose_node(partition, None) else {
                    self.unplaced.insert(id);
                    return;
                };
                // The first replica of an empty partition has no state to copy, so it starts as the primary.
                let first = partition.replicas.is_empty();
                let role = if first {
                    ReplicaRole::Primary
                } else {
                    ReplicaRole::IdleSecondary
                };
                if first {
                    self.begin_anew(id);
                }
                self.place(id, &node, role);
            } else {
                return;
            }
        }
    }

    /// Starts a partition again with its first replica. The state of former replicas is lost.
    fn begin_anew(&mut self, id: PartitionId) {
        if let Some(partition) = self.partitions.get_mut(&id)
            && partition.epoch.configuration_version > 0
        {
            // The partition had a primary before, so its data is gone. Clients see this in the data loss version.
            partition.epoch.data_loss_version += 1;
            partition.epoch.configuration_version += 1;
        }
    }

    /// Places a new replica on a node.
    pub(super) fn place(
        &mut self,
        id: PartitionId,
        node: &Arc<str>,
        role: ReplicaRole,
    ) -> Option<ReplicaRef> {
        let replica = self.next_instance_id();
        let key = ReplicaRef {
            partition: id,
            replica,
        };
        let now = self.now;
        let partition = self.partitions.get_mut(&id)?;
        let service = self.services.get(&partition.service)?;
        let package = package_of(service, id);
        let mut placement = Placement::new(hosting_key(key), package.clone(), &service.type_name);
        placement.persisted = service.has_persisted_state;
        let found = Replica {
            key,
            node: node.clone(),
            role,
            status: ReplicaStatus::InBuild,
            address: String::new(),
            activation_id: package.activation_id.to_string(),
            last_in_build: Span::ZERO,
            created_at: now,
            since: now,
            draining_until: None,
            intent: Intent::Stay,
            heir: false,
            opened: false,
            ports: Vec::new(),
            hidden_address: None,
            flapping: None,
        };
        partition.replicas.insert(replica, found);
        self.health
            .insert(EntityKey::Replica(key), Some(EntityKey::Partition(id)));
        self.say_replica_was_created(key);
        // The script must be set before hosting opens the package, since the first attempt may end at once.
        self.script_package(node, &package);
        let entry = self.nodes.get_mut(node)?;
        entry.replicas.insert(key);
        self.unheard = true;
        if entry.host.place(placement).is_err() {
            // The rejected node is left out for a while, so that the next round chooses another one.
            self.forget_replica(key);
            self.reject(id, node.clone());
            return None;
        }
        Some(key)
    }

    /// Removes a replica. An instance is drained first if its service has a close delay.
    pub(super) fn close(&mut self, key: ReplicaRef) {
        let Some(replica) = self.replica(key) else {
            return;
        };
        let service = self
            .partitions
            .get(&key.partition)
            .map(|found| &found.service);
        let delay = service.and_then(|name| self.services.get(name));
        let delay = delay.map_or(Span::ZERO, |service| service.instance_close_delay);
        match replica.draining_until {
            // A draining instance leaves lookup results at once and serves its open requests until the delay
            // ends.
            None if replica.is_resolvable() && delay != Span::ZERO => {
                self.drain(key, delay, Intent::Leave);
            }
            // The instance is already draining, maybe for an upgrade that it will not live to see.
            Some(until) if until > self.now => {
                if let Some(replica) = self.replica_mut(key) {
                    replica.intent = Intent::Leave;
                }
                self.dirty.insert(key.partition);
            }
            None | Some(_) => self.drop_replica(key),
        }
    }

    /// Removes an instance from the naming service. It is closed later.
    pub(super) fn drain(&mut self, key: ReplicaRef, delay: Span, intent: Intent) {
        // An infinite delay ends at the last moment, which never comes.
        let until = self
            .now
            .after(delay)
            .unwrap_or(Timestamp::from_millis(u64::MAX));
        let Some(partition) = self.partitions.get_mut(&key.partition) else {
            return;
        };
        let Some(replica) = partition.replicas.get_mut(&key.replica) else {
            return;
        };
        replica.draining_until = Some(until);
        replica.intent = intent;
        partition.lookup += 1;
        self.dirty.insert(key.partition);
        self.plan(delay, ClusterTimer::DrainEnd(key));
    }

    pub(super) fn end_drain(&mut self, key: ReplicaRef) {
        let Some(replica) = self.replica(key) else {
            return;
        };
        let over = replica
            .draining_until
            .is_some_and(|until| until <= self.now);
        // The upgrade closes an instance that is drained for it.
        if over && replica.intent != Intent::Upgrade {
            self.drop_replica(key);
        }
    }

    /// Closes a replica on its node and forgets it.
    pub(super) fn drop_replica(&mut self, key: ReplicaRef) {
        if let Some(replica) = self.replica(key) {
            let node = replica.node.clone();
            self.close_in_hosting(key, &node);
            self.forget_replica(key);
        }
    }

    pub(super) fn close_in_hosting(&mut self, key: ReplicaRef, node: &str) {
        if let Some(entry) = self.nodes.get_mut(node) {
            // Hosting may have forgotten the replica already, with the node.
            let _ = entry.host.close(&hosting_key(key));
            self.unheard = true;
        }
    }

    /// Forgets a replica that is no longer on its node.
    pub(super) fn forget_replica(&mut self, key: ReplicaRef) {
        self.end_workload(key, false);
        self.release_ports(key);
        let Some(partition) = self.partitions.get_mut(&key.partition) else {
            return;
        };
        let Some(replica) = partition.replicas.remove(&key.replica) else {
            return;
        };
        partition.lookup += 1;
        if let Some(entry) = self.nodes.get_mut(&replica.node) {
            entry.replicas.remove(&key);
        }
        self.health.remove(&EntityKey::Replica(key));
        self.dirty.insert(key.partition);
    }

    /// Requests the end of the workload that was opened for a replica.
    pub(super) fn end_workload(&mut self, key: ReplicaRef, aborted: bool) {
        if self.replica(key).is_some_and(|replica| replica.opened) {
            self.want(Effect::Close {
                replica: key,
                aborted,
            });
            if let Some(replica) = self.replica_mut(key) {
                replica.opened = false;
            }
        }
    }

    /// Handles a replica whose process or node has gone.
    pub(super) fn went_down(&mut self, key: ReplicaRef) {
        self.end_workload(key, true);
        self.release_ports(key);
        let now = self.now;
        let Some(partition) = self.partitions.get_mut(&key.partition) else {
            return;
        };
        let wait = self
            .services
            .get(&partition.service)
            .map(|service| service.replica_restart_wait);
        let Some(replica) = partition.replicas.get_mut(&key.replica) else {
            return;
        };
        if replica.status == ReplicaStatus::Down {
            // A timer of this outage runs already.
            return;
        }
        replica.address.clear();
        replica.hidden_address = None;
        replica.draining_until = None;
        replica.since = now;
        partition.lookup += 1;
        self.dirty.insert(key.partition);
        if replica.intent == Intent::Upgrade {
            // The replica returns by itself, in the new version.
            replica.status = ReplicaStatus::InBuild;
            return;
        }
        replica.status = ReplicaStatus::Down;
        self.plan(
            wait.unwrap_or(Span::ZERO),
            ClusterTimer::RestartWait(key, now),
        );
    }

    /// Drops a replica that went down at `since` if it is still down, and enough others are up.
    pub(super) fn end_restart_wait(&mut self, key: ReplicaRef, since: Timestamp) {
        let Some(replica) = self.replica(key) else {
            return;
        };
        if replica.status != ReplicaStatus::Down || replica.since != since {
            // The replica came up in the meantime, or the timer is that of an earlier outage.
            return;
        }
        let partition = self.partitions.get(&key.partition);
        let lost = partition.is_some_and(|found| found.status == PartitionStatus::InQuorumLoss);
        if lost {
            // Its state may be the only copy.
            let wait = Span::from_secs(60);
            self.plan(wait, ClusterTimer::RestartWait(key, since));
        } else {
            self.drop_replica(key);
        }
    }

    /// Removes leaving replicas that another one has replaced.
    fn let_leavers_go(&mut self, id: PartitionId, target: usize) {
        let Some(partition) = self.partitions.get(&id) else {
            return;
        };
        let staying = partition
            .replicas
            .values()
            .filter(|replica| replica.is_counted());
        let ready = staying
            .filter(|replica| replica.status == ReplicaStatus::Ready)
            .count();
        // The old replicas serve and hold the quorum until their replacements are ready.
        if ready < target.max(1) {
            return;
        }
        let leavers = partition.replicas.values().filter(|replica| {
            replica.intent == Intent::Leave && replica.role != ReplicaRole::Primary
        });
        let leavers: Vec<ReplicaRef> = leavers.map(|replica| replica.key).collect();
        for key in leavers {
            self.drop_replica(key);
        }
    }

    /// Reopens a replica whose state is still on its node.
    pub(super) fn place_existing(&mut self, key: ReplicaRef) {
        let Some(partition) = self.partitions.get(&key.partition) else {
            return;
        };
        let (Some(replica), Some(service)) = (
            partition.replicas.get(&key.replica),
            self.services.get(&partition.service),
        ) else {
            return;
        };
        let package = package_of(service, key.partition);
        let mut placement = Placement::new(hosting_key(key), package, &service.type_name);
        placement.persisted = service.has_persisted_state;
        let node = replica.node.clone();
        if let Some(entry) = self.nodes.get_mut(&node) {
            // A starting node reopens its own replicas, so this one may be there already.
            let _ = entry.host.place(placement.with_kind(ReplicaKind::Existing));
            self.unheard = true;
        }
    }

    pub(super) fn existing_replica(&self, key: ReplicaRef) -> Result<&Replica, FabricError> {
        self.replica(key).ok_or_else(|| {
            FabricError::new(
                ErrorCode::ReplicaDoesNotExist,
                format!(
                    "there is no replica '{}' in partition '{}'",
                    key.replica, key.partition
                ),
            )
        })
    }

    pub(super) fn replica_mut(&mut self, key: ReplicaRef) -> Option<&mut Replica> {
        let partition = self.partitions.get_mut(&key.partition)?;
        partition.replicas.get_mut(&key.replica)
    }

    /// Returns true if a partition belongs to a stateful service.
    pub(super) fn is_stateful(&self, id: PartitionId) -> bool {
        self.partitions
            .get(&id)
            .is_some_and(|found| found.kind == ServiceKind::Stateful)
    }
}

/// Returns hosting's key of a replica.
pub(super) fn hosting_key(key: ReplicaRef) -> hosting::ReplicaKey {
    hosting::ReplicaKey::new(&key.partition.to_string(), key.replica)
}

/// Returns the replica of hosting's key.
pub(super) fn replica_ref(key: &hosting::ReplicaKey) -> Option<ReplicaRef> {
    let partition = key.partition.parse().ok()?;
    Some(ReplicaRef {
        partition,
        replica: key.id,
    })
}
