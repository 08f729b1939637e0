//! What is deployed on a node. Packages, code packages and service types are told as the node's hosting knows them.

use crate::cluster::{FabricName, Replica, ReplicaRef, ServiceKind};
use crate::hosting::DeploymentStatus;

/// An application on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedApplication {
    /// Name of the application.
    pub name: FabricName,
    /// Its type.
    pub type_name: String,
    /// The version of its type.
    pub type_version: String,
    /// What the node does with it.
    pub status: DeploymentStatus,
}

/// A replica or an instance on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedReplica {
    /// Its partition and its id.
    pub key: ReplicaRef,
    /// Whether the service keeps state.
    pub kind: ServiceKind,
    /// The service.
    pub service: FabricName,
    /// The type of the service.
    pub service_type: String,
    /// The service manifest.
    pub manifest_name: String,
    /// The code package that hosts it.
    pub code_package: String,
    /// Role, status, address and all else.
    pub replica: Replica,
    /// Id of the process that hosts it; `None` while none does. It is made up.
    pub process_id: Option<u64>,
}
