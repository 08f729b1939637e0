//! Deployed applications and replicas of a node. Packages, code packages and service types are the types of
//! hosting.

use crate::cluster::{FabricName, Replica, ReplicaRef, ServiceKind};
use crate::hosting::DeploymentStatus;

/// An application on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedApplication {
    /// Name of the application.
    pub name: FabricName,
    /// The name of the application type.
    pub type_name: String,
    /// The version of its type.
    pub type_version: String,
    /// The status of the deployment.
    pub status: DeploymentStatus,
}

/// A replica or an instance on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedReplica {
    /// The ids of the partition and the replica.
    pub key: ReplicaRef,
    /// The kind of the service: stateless or stateful.
    pub kind: ServiceKind,
    /// The service.
    pub service: FabricName,
    /// The type of the service.
    pub service_type: String,
    /// The service manifest.
    pub manifest_name: String,
    /// The code package that hosts it.
    pub code_package: String,
    /// The role, status, address and other properties.
    pub replica: Replica,
    /// The synthetic id of the process that hosts it. `None` without a process.
    pub process_id: Option<u64>,
}
