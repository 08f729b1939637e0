//! The entities that have health.

use std::fmt;
use std::sync::Arc;

use crate::cluster::{FabricName, PartitionId, ReplicaRef};
use crate::hosting::PackageKey;

/// An entity of the cluster that has health.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKey {
    /// The cluster.
    Cluster,
    /// A node, by its name.
    Node(Arc<str>),
    /// An application.
    Application(FabricName),
    /// A service.
    Service(FabricName),
    /// A partition.
    Partition(PartitionId),
    /// A replica or an instance.
    Replica(ReplicaRef),
    /// An application on a node.
    DeployedApplication {
        /// The application.
        application: FabricName,
        /// The node.
        node: Arc<str>,
    },
    /// A service package on a node.
    DeployedServicePackage {
        /// The package and its activation.
        package: PackageKey,
        /// The node.
        node: Arc<str>,
    },
}

impl EntityKey {
    /// Returns the kind of the entity.
    pub fn kind(&self) -> EntityKind {
        match self {
            Self::Cluster => EntityKind::Cluster,
            Self::Node(_) => EntityKind::Node,
            Self::Application(_) => EntityKind::Application,
            Self::Service(_) => EntityKind::Service,
            Self::Partition(_) => EntityKind::Partition,
            Self::Replica(_) => EntityKind::Replica,
            Self::DeployedApplication { .. } => EntityKind::DeployedApplication,
            Self::DeployedServicePackage { .. } => EntityKind::DeployedServicePackage,
        }
    }
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => write!(f, "the cluster"),
            Self::Node(name) => write!(f, "node '{name}'"),
            Self::Application(name) => write!(f, "application '{name}'"),
            Self::Service(name) => write!(f, "service '{name}'"),
            Self::Partition(id) => write!(f, "partition '{id}'"),
            Self::Replica(key) => {
                write!(
                    f,
                    "replica '{}' of partition '{}'",
                    key.replica, key.partition
                )
            }
            Self::DeployedApplication { application, node } => {
                write!(f, "application '{application}' on node '{node}'")
            }
            Self::DeployedServicePackage { package, node } => {
                write!(f, "service package '{package}' on node '{node}'")
            }
        }
    }
}

/// A kind of entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKind {
    /// The cluster.
    Cluster,
    /// Nodes.
    Node,
    /// Applications.
    Application,
    /// Services.
    Service,
    /// Partitions.
    Partition,
    /// Replicas and instances.
    Replica,
    /// Applications on a node.
    DeployedApplication,
    /// Service packages on a node.
    DeployedServicePackage,
}

impl EntityKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Cluster,
        Self::Node,
        Self::Application,
        Self::Service,
        Self::Partition,
        Self::Replica,
        Self::DeployedApplication,
        Self::DeployedServicePackage,
    ];

    /// Returns the word in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Node => "Node",
            Self::Application => "Application",
            Self::Service => "Service",
            Self::Partition => "Partition",
            Self::Replica => "Replica",
            Self::DeployedApplication => "DeployedApplication",
            Self::DeployedServicePackage => "DeployedServicePackage",
        }
    }
}
