//! Partitions of services.

use serde::{Deserialize, Serialize};

use super::health::HealthState;
use super::service::ServiceKind;
use super::wire::{self, words};

words! {
    /// What a partition is doing.
    PartitionStatus, Invalid {
        /// Not known.
        Invalid,
        /// It works.
        Ready,
        /// It has too few replicas.
        NotReady,
        /// Most of its replicas are down.
        InQuorumLoss,
        /// Its replicas are changing roles.
        Reconfiguring,
        /// It is being deleted.
        Deleting,
    }
}

words! {
    /// How a service is divided.
    PartitionKind, Invalid {
        /// Not known.
        Invalid,
        /// It is not.
        Singleton,
        /// By ranges of numbers.
        Int64Range,
        /// By names.
        Named,
    }
}

/// A partition of a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Partition {
    /// Whether the service keeps state.
    pub service_kind: ServiceKind,
    /// Which part of the service it is.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_information: PartitionInformation,
    /// What it is doing.
    pub partition_status: PartitionStatus,
    /// Health of all that belongs to it.
    pub health_state: HealthState,
}

/// Which part of a service a partition is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct PartitionInformation {
    /// How the service is divided.
    pub service_partition_kind: PartitionKind,
    /// Its id, a GUID in lower case with dashes.
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
