//! The responses of the REST gateway, under their original names.
//!
//! Unknown fields are ignored, missing ones have a default, and an unknown word is kept: clusters of other
//! versions must be readable. 64-bit numbers are texts on the wire, and are read from texts and numbers. A
//! list may have at most 100,000 items.

mod application;
mod chunk;
mod health;
mod page;
mod partition;
mod property;
mod replica;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub use self::application::{Application, ApplicationType, Parameter};
pub use self::chunk::{
    ApplicationHealthChunk, Chunks, ClusterHealthChunk, PartitionHealthChunk, ReplicaHealthChunk,
    ServiceHealthChunk,
};
pub use self::health::{HealthInformation, HealthState};
pub use self::page::Page;
pub use self::partition::{Partition, PartitionInformation, PartitionKind, PartitionStatus};
pub use self::property::{Property, PropertyKind, PropertyValue};
pub use self::replica::{
    Replica, ReplicaRole, ReplicaStatus, ResolvedEndpoint, ResolvedEndpointKind, ResolvedPartition,
};
pub use self::service::{
    Extension, Service, ServiceKind, ServiceStatus, ServiceType, ServiceTypeDescription,
};
