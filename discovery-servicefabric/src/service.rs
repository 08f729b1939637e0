//! A service as discovery has read it, before it becomes configuration.

use std::sync::Arc;

use discovery_core::Labels;

use crate::model::{PartitionInformation, Replica, ServiceKind};

/// The complete description of a service, from which its configuration is made.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceDescription {
    /// The service's name: `fabric:/Shop/Web`.
    pub name: Arc<str>,
    /// Name of its application: `fabric:/Shop`.
    pub application: Arc<str>,
    /// Type of its application.
    pub application_type: Arc<str>,
    /// The service's type.
    pub service_type: Arc<str>,
    /// The kind of the service: stateless or stateful.
    pub kind: ServiceKind,
    /// The service's labels, with parameters replaced and overrides applied.
    pub labels: Arc<Labels>,
    /// The service's partitions, sorted: ranges by their lowest key, named ones by name.
    pub partitions: Vec<PartitionDescription>,
}

/// A partition with its replicas.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PartitionDescription {
    /// The identity of the partition.
    pub information: PartitionInformation,
    /// The partition's replicas in every status, sorted by id.
    pub replicas: Vec<Replica>,
}

impl ServiceDescription {
    /// Creates a service of this name with these labels and partitions, without further data.
    pub fn new(
        name: impl Into<Arc<str>>,
        kind: ServiceKind,
        labels: impl Into<Arc<Labels>>,
        partitions: Vec<PartitionDescription>,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            labels: labels.into(),
            partitions,
            ..Self::default()
        }
    }
}

impl PartitionDescription {
    /// Creates a partition with these replicas.
    pub fn new(information: PartitionInformation, replicas: Vec<Replica>) -> Self {
        Self {
            information,
            replicas,
        }
    }
}
