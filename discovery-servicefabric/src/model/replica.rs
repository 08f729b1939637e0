//! Replicas of stateful services and instances of stateless ones; both are called replicas here.

use serde::Deserialize;

use super::health::HealthState;
use super::partition::PartitionInformation;
use super::service::ServiceKind;
use super::wire::{self, words};

words! {
    /// The status of a replica.
    ReplicaStatus, Invalid {
        /// Not known.
        Invalid,
        /// Being filled with state.
        InBuild,
        /// Closed, and may come back.
        Standby,
        /// Working.
        Ready,
        /// Not running.
        Down,
        /// Deleted.
        Dropped,
    }
}

words! {
    /// The role of a replica of a stateful service.
    ReplicaRole, Unknown {
        /// Not known.
        Unknown,
        /// No role yet, or no longer.
        None,
        /// The replica that takes the writes.
        Primary,
        /// A replica that is being filled with state.
        IdleSecondary,
        /// A replica that has the state and follows the primary.
        ActiveSecondary,
        /// An auxiliary that is being filled.
        IdleAuxiliary,
        /// An auxiliary that follows.
        ActiveAuxiliary,
        /// The primary auxiliary.
        PrimaryAuxiliary,
    }
}

/// A replica or an instance.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "ReplicaOrInstance")]
#[non_exhaustive]
pub struct Replica {
    /// The kind of the service: stateless or stateful.
    pub service_kind: ServiceKind,
    /// The replica's id, unique in its partition only. Instances of stateless services write it as
    /// `InstanceId`.
    pub replica_id: i64,
    /// The role, for stateful services only.
    pub replica_role: ReplicaRole,
    /// The status.
    pub replica_status: ReplicaStatus,
    /// The health state.
    pub health_state: HealthState,
    /// The node that it is on.
    pub node_name: String,
    /// The address: usually a JSON text with endpoints by listener name. Empty before the replica has
    /// opened.
    pub address: String,
}

/// The wire form of a replica or an instance.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ReplicaOrInstance {
    service_kind: ServiceKind,
    #[serde(deserialize_with = "wire::optional_int64")]
    replica_id: Option<i64>,
    #[serde(deserialize_with = "wire::optional_int64")]
    instance_id: Option<i64>,
    replica_role: ReplicaRole,
    replica_status: ReplicaStatus,
    health_state: HealthState,
    #[serde(deserialize_with = "wire::nullable")]
    node_name: String,
    #[serde(deserialize_with = "wire::nullable")]
    address: String,
}

impl From<ReplicaOrInstance> for Replica {
    fn from(wire: ReplicaOrInstance) -> Self {
        let id = match wire.service_kind {
            ServiceKind::Stateless => wire.instance_id.or(wire.replica_id),
            _ => wire.replica_id.or(wire.instance_id),
        };
        Self {
            service_kind: wire.service_kind,
            replica_id: id.unwrap_or_default(),
            replica_role: wire.replica_role,
            replica_status: wire.replica_status,
            health_state: wire.health_state,
            node_name: wire.node_name,
            address: wire.address,
        }
    }
}

words! {
    /// The kind of replica that a resolved endpoint belongs to.
    ResolvedEndpointKind, Invalid {
        /// Not known.
        Invalid,
        /// An instance of a stateless service.
        Stateless,
        /// The primary.
        StatefulPrimary,
        /// A secondary.
        StatefulSecondary,
    }
}

/// An address that the naming service gives for a partition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ResolvedEndpoint {
    /// The kind of replica that it belongs to.
    pub kind: ResolvedEndpointKind,
    /// The address, in the same form as [`Replica::address`].
    #[serde(deserialize_with = "wire::nullable")]
    pub address: String,
}

/// The result of resolving a partition with the naming service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ResolvedPartition {
    /// The service.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// The identity of the partition.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_information: PartitionInformation,
    /// The endpoints of the partition.
    #[serde(deserialize_with = "wire::list")]
    pub endpoints: Vec<ResolvedEndpoint>,
    /// The version of the result. Passed to the next call, it requests a newer one.
    #[serde(deserialize_with = "wire::nullable")]
    pub version: String,
}
