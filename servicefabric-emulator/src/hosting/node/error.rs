//! The errors of a node.

use crate::hosting::key::{PackageKey, ProcessKey, ReplicaKey};

/// The reason why a node rejects a request. The node is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node is down.
    #[error("node {node} is down")]
    NodeDown {
        /// The node.
        node: String,
    },
    /// The package was not declared.
    #[error("package {package} was not declared")]
    UnknownPackage {
        /// The package.
        package: PackageKey,
    },
    /// No code package of the package hosts the type.
    #[error("no code package of {package} hosts the service type {service_type}")]
    UnknownType {
        /// The package.
        package: PackageKey,
        /// The type.
        service_type: String,
    },
    /// The replica is already on the node.
    #[error("replica {replica} is already on the node")]
    ReplicaExists {
        /// The replica.
        replica: ReplicaKey,
    },
    /// The node has no such replica.
    #[error("replica {replica} is not on the node")]
    UnknownReplica {
        /// The replica.
        replica: ReplicaKey,
    },
    /// The code package has no process now.
    #[error("{process} is not running")]
    NotRunning {
        /// The code package.
        process: ProcessKey,
    },
}
