//! A cluster: nodes, applications, services, partitions and replicas, in virtual time.
//!
//! [`Cluster`] is a value. It does nothing by itself: [`advance`](Cluster::advance) moves its time, and
//! [`next_due`](Cluster::next_due) returns the time of the next event. The same calls give the same cluster,
//! including every id.
//!
//! ```
//! use servicefabric_emulator::cluster::{Cluster, PageRequest};
//! use servicefabric_emulator::hosting::Timestamp;
//! use servicefabric_emulator::topology::Topology;
//!
//! let topology = Topology::from_toml(r#"
//!     [[application_types]]
//!     name = "ShopType"
//!     service_types.WebType = {}
//!     [applications.Shop]
//!     type = "ShopType"
//!     services.Web = { type = "WebType", instances = 3 }
//! "#)?;
//! let mut cluster = Cluster::new(&topology)?;
//! cluster.advance(Timestamp::from_secs(1));
//! let page = cluster.applications(None, &PageRequest::default());
//! assert_eq!(page.items[0].name.as_str(), "fabric:/Shop");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | entities | [`Node`], [`ApplicationType`], [`Application`], [`Service`], [`Partition`], [`Replica`]: what there is |
//! | hosting | one [`hosting::Node`](crate::hosting::Node) for each node: packages, processes, crashes, back-off |
//! | placement | which node takes a replica: few of the partition in a fault domain, few replicas on the node |
//! | failover | replaces what is gone, promotes secondaries, follows changed counts |
//! | naming | names, properties, and where a partition answers |
//! | health | reports, and what follows from them |

mod applications;
mod build;
mod constraint;
mod date;
mod deployed;
mod effect;
mod election;
mod endpoint;
mod entity;
mod error;
mod failover;
mod faults;
mod host;
mod identity;
mod image_store;
mod manifest;
mod name;
mod naming;
mod nodes;
mod package;
mod page;
mod placement;
mod read;
mod replicas;
mod request;
mod services;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timer;
mod types;
mod upgrade;
mod vitals;

pub(crate) use self::constraint::check_constraints;
pub use self::date::Date;
pub use self::effect::{Effect, OpenedReplica};
pub use self::entity::{
    Application, ApplicationStatus, ApplicationType, ApplicationTypeStatus, ApplicationUpgrade,
    CodePackage, Deactivation, DeactivationIntent, DeployedApplication, DeployedReplica,
    EndpointResource, Epoch, Extension, FailureAction, FailureReason, Node, NodeStatus,
    NodeStatusFilter, Partition, PartitionInformation, PartitionKey, PartitionScheme,
    PartitionStatus, Replica, ReplicaRole, ReplicaStatus, Service, ServiceKind, ServiceManifest,
    ServiceScale, ServiceStatus, ServiceType, UpgradeDomainProgress, UpgradeDomainState,
    UpgradeMode, UpgradeState,
};
pub use self::error::{ErrorCode, FabricError};
pub use self::identity::{PartitionId, ReplicaRef};
pub use self::image_store::{StoredContent, StoredFile};
pub(crate) use self::manifest::labels_xml;
pub use self::name::FabricName;
pub use self::naming::{
    BatchOutcome, EndpointKind, Property, PropertyOperation, PropertyResult, PropertyValue,
    ResolvedEndpoint, ResolvedPartition, SubNames,
};
pub use self::package::{
    APPLICATION_MANIFEST, DefaultService, MAX_MANIFEST, PackageError, SERVICE_MANIFEST,
};
pub use self::page::{Page, PageRequest};
pub use self::request::{ApplicationCreation, ServiceCreation, ServiceUpdate, UpgradeRequest};
pub(crate) use self::services::{MAX_REPLICAS, check_scheme, wanted_replicas};
pub use self::state::Cluster;
