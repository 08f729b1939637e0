//! What a cluster wants done outside of it.

use std::sync::Arc;

use super::entity::{EndpointResource, PartitionInformation, ReplicaRole, ServiceKind};
use super::identity::ReplicaRef;
use super::name::FabricName;

/// Something that a real workload has to do. Without workloads there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// A replica is to be opened: its listeners have to listen. With
    /// [workloads](super::Cluster::attach_workloads) it is not ready before
    /// [`publish_address`](super::Cluster::publish_address) was called for it.
    Open(OpenedReplica),
    /// A replica is closed, or its process or node is gone: what was opened for it has to end.
    Close {
        /// The replica.
        replica: ReplicaRef,
        /// Whether it ended all at once, as by a crash. Otherwise it may finish what it does.
        aborted: bool,
    },
    /// The role of a replica changed.
    Role {
        /// The replica.
        replica: ReplicaRef,
        /// The role that it has now.
        role: ReplicaRole,
    },
}

/// A replica that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedReplica {
    /// The replica.
    pub replica: ReplicaRef,
    /// Which part of its service its partition is.
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
    /// The version of the code that runs.
    pub code_version: String,
    /// Whether the service keeps state.
    pub kind: ServiceKind,
    /// Its role when it is opened.
    pub role: ReplicaRole,
    /// What it is to listen on; a port is set when the manifest fixes it.
    pub listeners: Vec<EndpointResource>,
}
