//! Requests of a cluster to real workloads outside of it.

use std::sync::Arc;

use super::entity::{EndpointResource, PartitionInformation, ReplicaRole, ServiceKind};
use super::identity::ReplicaRef;
use super::name::FabricName;

/// A request to a real workload. Clusters without workloads produce none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// A replica opens, and its listeners have to listen. With [workloads](super::Cluster::attach_workloads)
    /// it is ready only after [`publish_address`](super::Cluster::publish_address).
    Open(OpenedReplica),
    /// A replica has closed, or its process or node has gone. Its workload has to end.
    Close {
        /// The replica.
        replica: ReplicaRef,
        /// True if the replica ended abruptly, as by a crash. False if it may finish its work.
        aborted: bool,
    },
    /// The role of a replica changed.
    Role {
        /// The replica.
        replica: ReplicaRef,
        /// The new role.
        role: ReplicaRole,
    },
}

/// A replica to open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedReplica {
    /// The replica.
    pub replica: ReplicaRef,
    /// The part of the service that the partition covers.
    pub partition: PartitionInformation,
    /// The node that it is on.
    pub node: Arc<str>,
    /// Address of that node.
    pub node_address: String,
    /// The service.
    pub service: FabricName,
    /// The type of the service.
    pub service_type: String,
    /// The application.
    pub application: FabricName,
    /// The version of the running code.
    pub code_version: String,
    /// The kind of the service: stateless or stateful.
    pub kind: ServiceKind,
    /// The role of the replica when it opens.
    pub role: ReplicaRole,
    /// The endpoints to listen on. A port is set if the manifest fixes it.
    pub listeners: Vec<EndpointResource>,
}
