//! Services.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{PartitionInformation, wire_words};
use crate::cluster::constraint::Constraint;
use crate::cluster::{FabricName, PartitionId};
use crate::hosting::{ActivationMode, Span, Timestamp};

/// A service: one named instance of a [`ServiceType`](super::ServiceType).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// The name, e.g. `fabric:/Shop/Web`.
    pub name: FabricName,
    /// The application that it belongs to.
    pub application: FabricName,
    /// The name of the service type.
    pub type_name: String,
    /// The service manifest that declares its type.
    pub manifest_name: String,
    /// The version of that manifest.
    pub manifest_version: String,
    /// The kind: stateless or stateful.
    pub kind: ServiceKind,
    /// True if the state outlives the process.
    pub has_persisted_state: bool,
    /// The status.
    pub status: ServiceStatus,
    /// The partition scheme.
    pub scheme: PartitionScheme,
    /// The target number of replicas or instances of each partition.
    pub scale: ServiceScale,
    /// The placement constraints. Empty: any node.
    pub placement_constraints: String,
    /// The activation mode. In exclusive mode each replica has a package activation, and so a process, of its
    /// own.
    pub activation_mode: ActivationMode,
    /// The time for which an instance stays reachable after the naming service has dropped it.
    pub instance_close_delay: Span,
    /// The time to wait for a replica that is down before it is replaced.
    pub replica_restart_wait: Span,
    /// The name in the cluster's DNS service. Empty: none.
    pub dns_name: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// Ids of its partitions, sorted.
    pub partitions: BTreeSet<PartitionId>,
    /// The listeners of its replicas, which are the keys of their addresses.
    pub listeners: Vec<String>,
    /// Partitions by the lowest of their keys, or by their names.
    pub(in crate::cluster) by_key: PartitionIndex,
    /// The parsed constraints.
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

    /// Returns the only partition that can have the key. The caller checks if it does.
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

/// The kind of a service: stateless or stateful.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// All instances are alike.
    #[default]
    Stateless,
    /// The replicas keep state, and one replica of each partition is the primary.
    Stateful,
}

wire_words!(ServiceKind {
    Stateless = "Stateless",
    Stateful = "Stateful",
});

/// The status of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    /// The service runs.
    Active,
    /// The application of the service is being upgraded.
    Upgrading,
    /// The service is being deleted.
    Deleting,
    /// The service is being created.
    Creating,
    /// The service could not be created.
    Failed,
}

wire_words!(ServiceStatus {
    Active = "Active",
    Upgrading = "Upgrading",
    Deleting = "Deleting",
    Creating = "Creating",
    Failed = "Failed",
});

/// The target number of replicas or instances of each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceScale {
    /// The scale of a stateless service.
    Stateless {
        /// The number of instances; -1 for one on every node.
        instance_count: i32,
        /// The number of instances that suffice while nodes are being deactivated.
        min_instance_count: u32,
    },
    /// The scale of a stateful service.
    Stateful {
        /// The number of replicas.
        target: u32,
        /// The number of replicas below which the partition takes no writes.
        min: u32,
    },
}

/// The partition scheme of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionScheme {
    /// One partition for the whole service.
    Singleton,
    /// Ranges of numbers.
    Int64Range {
        /// The lowest key.
        low: i64,
        /// The highest key.
        high: i64,
        /// The number of ranges.
        count: u32,
    },
    /// Names.
    Named(Vec<String>),
}

impl PartitionScheme {
    /// Returns the number of partitions.
    pub fn count(&self) -> usize {
        match self {
            Self::Singleton => 1,
            Self::Int64Range { count, .. } => *count as usize,
            Self::Named(names) => names.len(),
        }
    }
}

/// The key that selects a partition of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionKey {
    /// No key, for a service with a single partition.
    None,
    /// A number.
    Int64(i64),
    /// A name.
    Named(String),
}
