//! Services.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{PartitionInformation, wire_words};
use crate::cluster::constraint::Constraint;
use crate::cluster::{FabricName, PartitionId};
use crate::hosting::{ActivationMode, Moment, Span};

/// A service: one named instance of a [`ServiceType`](super::ServiceType).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// Its name, e.g. `fabric:/Shop/Web`.
    pub name: FabricName,
    /// The application that it belongs to.
    pub application: FabricName,
    /// Its type.
    pub type_name: String,
    /// The service manifest that declares its type.
    pub manifest_name: String,
    /// The version of that manifest.
    pub manifest_version: String,
    /// Whether it keeps state.
    pub kind: ServiceKind,
    /// Whether its state outlives the process.
    pub has_persisted_state: bool,
    /// What is going on with it.
    pub status: ServiceStatus,
    /// How it is divided.
    pub scheme: PartitionScheme,
    /// How many replicas or instances each partition is to have.
    pub scale: ServiceScale,
    /// Which nodes it may be on; empty for any.
    pub placement_constraints: String,
    /// Whether each of its replicas has a package activation, and so a process, of its own.
    pub activation_mode: ActivationMode,
    /// How long an instance is still reachable after it was taken out of the naming service.
    pub instance_close_delay: Span,
    /// How long a replica that is down is waited for before another one takes its place.
    pub replica_restart_wait: Span,
    /// The name that the DNS service of the cluster has for it; empty for none.
    pub dns_name: String,
    /// When it was created.
    pub created_at: Moment,
    /// Ids of its partitions, sorted.
    pub partitions: BTreeSet<PartitionId>,
    /// The listeners that its replicas open, and so the keys of their addresses.
    pub listeners: Vec<String>,
    /// Partitions by the lowest of their keys, or by their names.
    pub(in crate::cluster) by_key: PartitionIndex,
    /// The constraints, as they are judged.
    pub(in crate::cluster) constraint: Constraint,
}

/// Finds the partition that has a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) struct PartitionIndex {
    singleton: Option<PartitionId>,
    by_low_key: BTreeMap<i64, PartitionId>,
    by_name: BTreeMap<String, PartitionId>,
}

impl PartitionIndex {
    pub(in crate::cluster) fn insert(&mut self, id: PartitionId, keys: &PartitionInformation) {
        match keys {
            PartitionInformation::Singleton => self.singleton = Some(id),
            PartitionInformation::Int64Range { low, .. } => {
                self.by_low_key.insert(*low, id);
            }
            PartitionInformation::Named(name) => {
                self.by_name.insert(name.clone(), id);
            }
        }
    }

    /// The partition that may have the key; whether it has it is for the caller to see.
    pub(in crate::cluster) fn candidate(&self, key: &PartitionKey) -> Option<PartitionId> {
        match key {
            PartitionKey::None => self.singleton,
            PartitionKey::Int64(key) => {
                self.by_low_key.range(..=key).next_back().map(|(_, id)| *id)
            }
            PartitionKey::Named(name) => self.by_name.get(name).copied(),
        }
    }
}

/// Whether a service keeps state.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// Its instances are all alike.
    #[default]
    Stateless,
    /// Its replicas keep state; one of each partition is the primary.
    Stateful,
}

wire_words!(ServiceKind {
    Stateless = "Stateless",
    Stateful = "Stateful",
});

/// The status of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    /// It runs.
    Active,
    /// Its application is being upgraded.
    Upgrading,
    /// It is being deleted.
    Deleting,
    /// It is being created.
    Creating,
    /// It could not be created.
    Failed,
}

wire_words!(ServiceStatus {
    Active = "Active",
    Upgrading = "Upgrading",
    Deleting = "Deleting",
    Creating = "Creating",
    Failed = "Failed",
});

/// How many replicas or instances each partition is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceScale {
    /// Of a stateless service.
    Stateless {
        /// The number of instances; -1 for one on every node.
        instance_count: i32,
        /// So many are enough while nodes are being taken out.
        min_instance_count: u32,
    },
    /// Of a stateful service.
    Stateful {
        /// The number of replicas.
        target: u32,
        /// Below this many, the partition does not take writes.
        min: u32,
    },
}

/// How a service is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionScheme {
    /// Not at all.
    Singleton,
    /// Into ranges of numbers.
    Int64Range {
        /// The lowest key.
        low: i64,
        /// The highest key.
        high: i64,
        /// The number of ranges.
        count: u32,
    },
    /// By names.
    Named(Vec<String>),
}

impl PartitionScheme {
    /// How many partitions there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Singleton => 1,
            Self::Int64Range { count, .. } => *count as usize,
            Self::Named(names) => names.len(),
        }
    }
}

/// The key by which a partition of a service is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionKey {
    /// None, for a service that is not divided.
    None,
    /// A number.
    Int64(i64),
    /// A name.
    Named(String),
}
