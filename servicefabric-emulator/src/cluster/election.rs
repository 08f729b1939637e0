//! Elections of primaries, and the quorum of replicas.

use super::effect::Effect;
use super::entity::{
    Intent, Partition, PartitionStatus, Replica, ReplicaRole, ReplicaStatus, ServiceKind,
    ServiceScale, Vitals,
};
use super::identity::{PartitionId, ReplicaRef};
use super::state::Cluster;
use super::timer::ClusterTimer;
use crate::hosting::Span;

impl Partition {
    /// Returns true if the partition has an epoch, that is, if its service is stateful.
    pub(super) fn epoch_of_stateful(&self) -> bool {
        self.kind == ServiceKind::Stateful
    }

    /// Returns true if only a minority of the members is up, so that no primary can be elected.
    fn has_lost_quorum(&self) -> bool {
        let members = || self.replicas.values().filter(|replica| replica.is_member());
        let up = members()
            .filter(|replica| replica.status != ReplicaStatus::Down)
            .count();
        let total = members().count();
        total > 0 && up < total / 2 + 1
    }

    /// Returns the replica that can become the primary next.
    fn candidate(&self) -> Option<ReplicaRef> {
        let secondaries = self.replicas.values().filter(|replica| {
            replica.role == ReplicaRole::ActiveSecondary
                && replica.status == ReplicaStatus::Ready
                && replica.intent == Intent::Stay
        });
        // The heir is the replica that a move named. Without one, the oldest secondary is chosen.
        let chosen = secondaries.min_by_key(|replica| (!replica.heir, replica.key));
        chosen.map(|replica| replica.key)
    }

    /// Returns true if the replica that is to become the primary is still being built.
    fn awaits_heir(&self) -> bool {
        self.replicas
            .values()
            .any(|replica| replica.heir && replica.role == ReplicaRole::IdleSecondary)
    }
}

impl Replica {
    /// Returns true if the replica has the state of its partition: it is a primary or an active secondary.
    fn is_member(&self) -> bool {
        matches!(
            self.role,
            ReplicaRole::Primary | ReplicaRole::ActiveSecondary
        )
    }

    /// Returns true if the replica counts towards the target size of the partition.
    pub(super) fn is_counted(&self) -> bool {
        self.intent != Intent::Leave
    }

    /// Returns true if the replica leaves and only waits for the end of its close delay.
    pub(super) fn is_drained_away(&self) -> bool {
        self.draining_until.is_some() && self.intent == Intent::Leave
    }
}

impl Cluster {
    /// Elects a new primary if none works, or the present one is about to leave.
    pub(super) fn elect(&mut self, id: PartitionId) {
        let now = self.now;
        let wait = self.settings.reconfiguration_time;
        let Some(partition) = self.partitions.get_mut(&id) else {
            return;
        };
        let primary = partition.primary();
        let settled = primary.is_some_and(|primary| {
            primary.intent == Intent::Stay && primary.status == ReplicaStatus::Ready
        });
        let candidate = partition.candidate();
        let (Some(candidate), false, false) = (candidate, settled, partition.has_lost_quorum())
        else {
            // A pending reconfiguration is no longer needed or no longer possible.
            partition.reconfigured_at = None;
            return;
        };
        // A working primary hands over at once. The absence of a lost one must be detected first.
        let works = primary.is_some_and(|primary| primary.status == ReplicaStatus::Ready);
        // The primary stays until the replica that a move builds for the role is ready.
        if works && partition.awaits_heir() {
            return;
        }
        if works || wait == Span::ZERO {
            self.promote(id, candidate);
            return;
        }
        match partition.reconfigured_at {
            Some(at) if at <= now => self.promote(id, candidate),
            Some(_) => {}
            None => {
                partition.reconfigured_at = now.after(wait);
                // The timer only marks the partition. The election then runs again and finds the moment
                // reached.
                self.plan(wait, ClusterTimer::Reconfigured(id));
            }
        }
    }

    /// Makes a secondary the primary.
    pub(super) fn promote(&mut self, id: PartitionId, key: ReplicaRef) {
        let Some(partition) = self.partitions.get_mut(&id) else {
            return;
        };
        partition.reconfigured_at = None;
        partition.epoch.configuration_version += 1;
        partition.lookup += 1;
        let former = partition.primary().map(|primary| primary.key);
        let changes = [
            (former, ReplicaRole::ActiveSecondary),
            (Some(key), ReplicaRole::Primary),
        ];
        // The effects are collected, since `partition` is borrowed until the loop ends.
        let mut told = Vec::new();
        for (changed, role) in changes {
            let Some(changed) = changed else {
                continue;
            };
            if let Some(replica) = partition.replicas.get_mut(&changed.replica) {
                replica.role = role;
                replica.heir = false;
                // A replica that is not open yet is opened with its role.
                if replica.status == ReplicaStatus::Ready {
                    told.push(Effect::Role {
                        replica: changed,
                        role,
                    });
                }
            }
        }
        for effect in told {
            self.want(effect);
        }
        self.dirty.insert(id);
    }

    /// Updates the status of a partition, and reports a change to the health store.
    pub(super) fn refresh_status(&mut self, id: PartitionId) {
        let now = self.now;
        let unplaced = self.unplaced.contains(&id);
        let Some(partition) = self.partitions.get_mut(&id) else {
            return;
        };
        let quorum_lost = partition.epoch_of_stateful() && partition.has_lost_quorum();
        match (quorum_lost, partition.quorum_lost_at) {
            (true, None) => partition.quorum_lost_at = Some(now),
            (false, Some(since)) => {
                partition.last_quorum_loss = now.since(since);
                partition.quorum_lost_at = None;
            }
            _ => {}
        }
        let ready = |replica: &Replica| replica.status == ReplicaStatus::Ready;
        let usable = match partition.scale {
            // A service with 0 instances lacks nothing.
            ServiceScale::Stateless {
                instance_count: 0, ..
            } => true,
            ServiceScale::Stateless { .. } => partition.replicas.values().any(ready),
            ServiceScale::Stateful { .. } => partition.primary().is_some_and(ready),
        };
        let status = if quorum_lost {
            PartitionStatus::InQuorumLoss
        } else if partition.reconfigured_at.is_some() {
            PartitionStatus::Reconfiguring
        } else if usable {
            PartitionStatus::Ready
        } else {
            PartitionStatus::NotReady
        };
        // An injected fault overrides the status.
        partition.status = partition.status_override.unwrap_or(status);
        let down = partition
            .replicas
            .values()
            .any(|replica| replica.status == ReplicaStatus::Down);
        let vitals = match (quorum_lost, unplaced || down) {
            (true, _) => Vitals::QuorumLoss,
            (false, true) => Vitals::BelowTarget,
            (false, false) => Vitals::Healthy,
        };
        if partition.vitals != vitals {
            partition.vitals = vitals;
            self.say_vitals(id, vitals);
        }
    }
}
