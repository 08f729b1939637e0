//! The health of a whole cluster, which names every replica.

use serde::Deserialize;

use super::health::HealthState;
use super::wire;
use crate::calls::ServiceReplicas;

/// The health of a cluster with the requested entities.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ClusterHealthChunk {
    /// Health of the cluster.
    pub health_state: HealthState,
    /// The cluster's applications, if the response contains them.
    pub application_health_state_chunks: Option<Chunks<ApplicationHealthChunk>>,
}

/// Entities of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    rename_all = "PascalCase",
    default,
    bound(deserialize = "T: Deserialize<'de>")
)]
#[non_exhaustive]
pub struct Chunks<T> {
    /// Total number of items. It may be larger than the number that fits into a response.
    #[serde(deserialize_with = "wire::optional_int64")]
    pub total_count: Option<i64>,
    /// The items that fit.
    #[serde(deserialize_with = "wire::list")]
    pub items: Vec<T>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            total_count: None,
            items: Vec::new(),
        }
    }
}

impl<T> Chunks<T> {
    /// Returns true if no item was left out.
    pub fn is_whole(&self) -> bool {
        self.total_count
            .is_none_or(|total| usize::try_from(total).is_ok_and(|total| total <= self.items.len()))
    }
}

/// The health of an application.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ApplicationHealthChunk {
    /// The application's name.
    #[serde(deserialize_with = "wire::nullable")]
    pub application_name: String,
    /// The application's services.
    #[serde(deserialize_with = "wire::nullable")]
    pub service_health_state_chunks: Chunks<ServiceHealthChunk>,
}

/// The health of a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ServiceHealthChunk {
    /// The service's name.
    #[serde(deserialize_with = "wire::nullable")]
    pub service_name: String,
    /// The service's partitions.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_health_state_chunks: Chunks<PartitionHealthChunk>,
}

/// The health of a partition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct PartitionHealthChunk {
    /// The partition's id.
    #[serde(deserialize_with = "wire::nullable")]
    pub partition_id: String,
    /// The partition's replicas.
    #[serde(deserialize_with = "wire::nullable")]
    pub replica_health_state_chunks: Chunks<ReplicaHealthChunk>,
}

/// The health of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ReplicaHealthChunk {
    /// The id of the replica or instance.
    #[serde(deserialize_with = "wire::int64")]
    pub replica_or_instance_id: i64,
    /// The replica's health.
    pub health_state: HealthState,
}

impl ClusterHealthChunk {
    /// The query for every replica. Each level is listed only on request.
    pub const QUERY: &str = concat!(
        r#"{"ApplicationFilters":[{"HealthStateFilter":65535,"ServiceFilters":[{"HealthStateFilter":65535,"#,
        r#""PartitionFilters":[{"HealthStateFilter":65535,"ReplicaFilters":[{"HealthStateFilter":65535}]}]}]}]}"#
    );

    /// Returns the ids of all replicas, sorted by service. `None` if the response does not list all of
    /// them.
    pub fn replica_ids(&self) -> Option<Vec<ServiceReplicas>> {
        let applications = self.application_health_state_chunks.as_ref()?;
        let mut services = Vec::new();
        for application in whole(applications)? {
            for service in whole(&application.service_health_state_chunks)? {
                let mut partitions = Vec::new();
                for partition in whole(&service.partition_health_state_chunks)? {
                    let replicas = whole(&partition.replica_health_state_chunks)?
                        .iter()
                        .map(|replica| replica.replica_or_instance_id)
                        .collect();
                    partitions.push((partition.partition_id.clone(), replicas));
                }
                services.push(ServiceReplicas::new(
                    service.service_name.clone(),
                    partitions,
                ));
            }
        }
        services.sort_unstable_by(|a, b| a.service.cmp(&b.service));
        Some(services)
    }
}

fn whole<T>(chunks: &Chunks<T>) -> Option<&[T]> {
    chunks.is_whole().then_some(chunks.items.as_slice())
}
