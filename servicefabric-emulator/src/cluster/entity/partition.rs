//! Partitions.

use std::collections::BTreeMap;

use super::{PartitionKey, Replica, ServiceKind, ServiceScale, wire_words};
use crate::cluster::{FabricName, PartitionId};
use crate::hosting::{Span, Timestamp};

/// A partition of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// The id.
    pub id: PartitionId,
    /// The service that it belongs to.
    pub service: FabricName,
    /// The kind of the service: stateless or stateful.
    pub kind: ServiceKind,
    /// The keys of the partition.
    pub information: PartitionInformation,
    /// The status.
    pub status: PartitionStatus,
    /// The target number of replicas or instances.
    pub scale: ServiceScale,
    /// The epoch of the primary. Only for stateful services.
    pub epoch: Epoch,
    /// The duration of the last quorum loss. Zero if there was none.
    pub last_quorum_loss: Span,
    /// The replicas or instances, by id.
    pub replicas: BTreeMap<i64, Replica>,
    /// The id of its creation, with which versions of answers begin.
    pub(in crate::cluster) created_as: i64,
    /// The version of the partition's resolution: it grows with each change that the naming service would
    /// return.
    pub(in crate::cluster) lookup: u64,
    /// The time since which too few replicas are up.
    pub(in crate::cluster) quorum_lost_at: Option<Timestamp>,
    /// The time at which the pending election of a primary ends.
    pub(in crate::cluster) reconfigured_at: Option<Timestamp>,
    /// The status to report in place of the real one.
    pub(in crate::cluster) status_override: Option<PartitionStatus>,
    /// The last state that was reported to the health store.
    pub(in crate::cluster) vitals: Vitals,
}

/// The failover manager's view of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) enum Vitals {
    /// No report yet.
    #[default]
    Unknown,
    /// The partition is healthy.
    Healthy,
    /// The partition has fewer replicas than its target.
    BelowTarget,
    /// Too few replicas are up.
    QuorumLoss,
}

impl Partition {
    /// The primary, if there is one.
    pub fn primary(&self) -> Option<&Replica> {
        let mut replicas = self.replicas.values();
        replicas.find(|replica| replica.role == super::ReplicaRole::Primary)
    }
}

/// The keys of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionInformation {
    /// All keys: the service has a single partition.
    Singleton,
    /// The numbers from `low` to `high`, both included.
    Int64Range {
        /// The lowest key.
        low: i64,
        /// The highest key.
        high: i64,
    },
    /// One name.
    Named(String),
}

impl PartitionInformation {
    /// Returns the word in responses.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Singleton => "Singleton",
            Self::Int64Range { .. } => "Int64Range",
            Self::Named(_) => "Named",
        }
    }

    /// Returns true if the partition has this key. `None` if keys of this kind do not belong to the partition
    /// scheme.
    pub fn has(&self, key: &PartitionKey) -> Option<bool> {
        match (self, key) {
            (Self::Singleton, PartitionKey::None) => Some(true),
            (Self::Int64Range { low, high }, PartitionKey::Int64(key)) => {
                Some(low <= key && key <= high)
            }
            (Self::Named(name), PartitionKey::Named(key)) => Some(name == key),
            _ => None,
        }
    }
}

/// The status of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionStatus {
    /// The partition can be used.
    Ready,
    /// The partition has no usable replica.
    NotReady,
    /// Too few replicas are up for writes.
    InQuorumLoss,
    /// The partition is electing a new primary.
    Reconfiguring,
    /// The partition is being deleted.
    Deleting,
}

wire_words!(PartitionStatus {
    Ready = "Ready",
    NotReady = "NotReady",
    InQuorumLoss = "InQuorumLoss",
    Reconfiguring = "Reconfiguring",
    Deleting = "Deleting",
});

/// The epoch of a primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Epoch {
    /// The number that grows with each new primary.
    pub configuration_version: i64,
    /// The number that grows when state may have been lost.
    pub data_loss_version: i64,
}
