//! Replicas of stateful services and instances of stateless ones; both are called replicas here.

use serde::Deserialize;

use super::health::HealthState;
use super::partition::PartitionInformation;
use super::service::ServiceKind;
use super::wire::{self, words};

words! {
    /// What a replica is doing.
    ReplicaStatus, Invalid {
        /// Not known.
        Invalid,
        /// It is being filled with state.
        InBuild,
        /// It has closed and may come back.
        Standby,
        /// It works.
        Ready,
        /// It is not running.
        Down,
        /// It is gone.
        Dropped,
    }
}

words! {
    /// What a replica of a stateful service is for.
    ReplicaRole, Unknown {
        /// Not known.
        Unknown,
        /// Nothing yet, or nothing any more.
        None,
        /// It takes the writes.
        Primary,
        /// It is being filled with state.
        IdleSecondary,
        /// It has the state and follows the primary.
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
    /// Whether the service keeps state.
    pub service_kind: ServiceKind,
    /// Its id, unique in its partition only. Instances of stateless services write it as `InstanceId`.
    pub replica_id: i64,
    /// What it is for; of stateful services only.
    pub replica_role: ReplicaRole,
    /// What it is doing.
    pub replica_status: ReplicaStatus,
    /// How well it is.
    pub health_state: HealthState,
    /// The node that it is on.
    pub node_name: String,
    /// Where it listens: usually a JSON text with endpoints by listener name, empty before it has opened.
    pub address: String,
}

/// The same on the wire.
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
    /// Whom a resolved endpoint belongs to.
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
    /// Whom it belongs to.
    pub kind: ResolvedEndpointKind,
    /// The same text as [`Replica::address`].
    #[serde(deserialize_with = "wire::nullable")]
    pub address: String,
}

/// What the naming service says about a partition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ResolvedPartition {
    /// The service.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// Which part of the service it is.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_information: PartitionInformation,
    /// Where it can be reached.
    #[serde(deserialize_with = "wire::list")]
    pub endpoints: Vec<ResolvedEndpoint>,
    /// Which state of the naming service this is. Given back with the next question, it asks for a newer one.
    #[serde(deserialize_with = "wire::nullable")]
    pub version: String,
}
