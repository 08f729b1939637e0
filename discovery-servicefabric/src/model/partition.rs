//! Partitions of services.

use serde::{Deserialize, Serialize};

use super::health::HealthState;
use super::service::ServiceKind;
use super::wire::{self, words};

words! {
    /// The status of a partition.
    PartitionStatus, Invalid {
        /// Not known.
        Invalid,
        /// Working.
        Ready,
        /// Too few replicas.
        NotReady,
        /// Most of its replicas are down.
        InQuorumLoss,
        /// Changing the roles of its replicas.
        Reconfiguring,
        /// Being deleted.
        Deleting,
    }
}

words! {
    /// The partitioning of a service.
    PartitionKind, Invalid {
        /// Not known.
        Invalid,
        /// Not partitioned.
        Singleton,
        /// Partitioned by ranges of numbers.
        Int64Range,
        /// Partitioned by names.
        Named,
    }
}

/// A partition of a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Partition {
    /// The kind of the service: stateless or stateful.
    pub service_kind: ServiceKind,
    /// The identity of the partition.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_information: PartitionInformation,
    /// The status of the partition.
    pub partition_status: PartitionStatus,
    /// Health of all that belongs to it.
    pub health_state: HealthState,
}

/// The identity of a partition within its service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct PartitionInformation {
    /// The partitioning of the service.
    pub service_partition_kind: PartitionKind,
    /// The partition's id, a GUID in lower case with dashes.
    #[serde(deserialize_with = "wire::nullable")]
    pub id: String,
    /// The lowest key of a range.
    #[serde(
        deserialize_with = "wire::optional_int64",
        skip_serializing_if = "Option::is_none"
    )]
    pub low_key: Option<i64>,
    /// The highest key of a range, which belongs to it.
    #[serde(
        deserialize_with = "wire::optional_int64",
        skip_serializing_if = "Option::is_none"
    )]
    pub high_key: Option<i64>,
    /// The name of a named partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
