use serde::{Deserialize, Serialize};

use super::health::word;
use crate::cluster::FabricName;
use crate::gateway::wire::{ApiError, text};
use crate::health::{
    ApplicationChunk, ApplicationFilter, ChunkQuery, ClusterHealthChunk, DeployedApplicationChunk,
    DeployedApplicationFilter, NodeFilter, PackageFilter, PartitionChunk, PartitionFilter,
    ReplicaFilter, ServiceChunk, ServiceFilter, StateFilter,
};

/// `ClusterHealthChunk`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ClusterHealthChunkInfo {
    health_state: &'static str,
    node_health_state_chunks: List<ChunkEntry>,
    application_health_state_chunks: List<ChunkEntry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct List<T> {
    /// The total count. Only at the top level.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<usize>,
    items: Vec<T>,
}

/// An entity and its children. Members that its kind does not have are omitted.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChunkEntry {
    health_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_type_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_or_instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_manifest_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_package_activation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_health_state_chunks: Option<List<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_health_state_chunks: Option<List<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_health_state_chunks: Option<List<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed_application_health_state_chunks: Option<List<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed_service_package_health_state_chunks: Option<List<Self>>,
}

fn list<T>(items: &[T], entry: impl Fn(&T) -> ChunkEntry) -> List<ChunkEntry> {
    List {
        total_count: None,
        items: items.iter().map(entry).collect(),
    }
}

fn counted<T>(items: &[T], entry: impl Fn(&T) -> ChunkEntry) -> List<ChunkEntry> {
    List {
        total_count: Some(items.len()),
        ..list(items, entry)
    }
}

impl From<&ClusterHealthChunk> for ClusterHealthChunkInfo {
    fn from(chunk: &ClusterHealthChunk) -> Self {
        Self {
            health_state: word(chunk.state),
            node_health_state_chunks: counted(&chunk.nodes, |node| ChunkEntry {
                health_state: word(node.state),
                node_name: Some(node.name.clone()),
                ..ChunkEntry::default()
            }),
            application_health_state_chunks: counted(&chunk.applications, application),
        }
    }
}

fn application(chunk: &ApplicationChunk) -> ChunkEntry {
    ChunkEntry {
        health_state: word(chunk.state),
        application_name: Some(text(&chunk.name)),
        application_type_name: Some(chunk.type_name.clone()),
        service_health_state_chunks: Some(list(&chunk.services, service)),
        deployed_application_health_state_chunks: Some(list(
            &chunk.deployed_applications,
            deployed_application,
        )),
        ..ChunkEntry::default()
    }
}

fn service(chunk: &ServiceChunk) -> ChunkEntry {
    ChunkEntry {
        health_state: word(chunk.state),
        service_name: Some(text(&chunk.name)),
        partition_health_state_chunks: Some(list(&chunk.partitions, partition)),
        ..ChunkEntry::default()
    }
}

fn partition(chunk: &PartitionChunk) -> ChunkEntry {
    ChunkEntry {
        health_state: word(chunk.state),
        partition_id: Some(text(chunk.id)),
        replica_health_state_chunks: Some(list(&chunk.replicas, |replica| ChunkEntry {
            health_state: word(replica.state),
            replica_or_instance_id: Some(text(replica.id)),
            ..ChunkEntry::default()
        })),
        ..ChunkEntry::default()
    }
}

fn deployed_application(chunk: &DeployedApplicationChunk) -> ChunkEntry {
    ChunkEntry {
        health_state: word(chunk.state),
        node_name: Some(chunk.node.clone()),
        deployed_service_package_health_state_chunks: Some(list(&chunk.packages, |package| {
            ChunkEntry {
                health_state: word(package.state),
                service_manifest_name: Some(package.manifest.clone()),
                service_package_activation_id: Some(package.activation_id.clone()),
                ..ChunkEntry::default()
            }
        })),
        ..ChunkEntry::default()
    }
}

/// `ClusterHealthChunkQueryDescription`. Its policies are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, expecting = "an object")]
pub(crate) struct ChunkQueryBody {
    node_filters: Option<Vec<FilterBody>>,
    application_filters: Option<Vec<FilterBody>>,
}

/// A filter of any kind. Members that its kind does not have are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, expecting = "an object")]
struct FilterBody {
    health_state_filter: u32,
    node_name_filter: Option<String>,
    application_name_filter: Option<String>,
    application_type_name_filter: Option<String>,
    service_name_filter: Option<String>,
    partition_id_filter: Option<String>,
    replica_or_instance_id_filter: Option<String>,
    service_manifest_name_filter: Option<String>,
    service_package_activation_id_filter: Option<String>,
    service_filters: Option<Vec<Self>>,
    deployed_application_filters: Option<Vec<Self>>,
    partition_filters: Option<Vec<Self>>,
    replica_filters: Option<Vec<Self>>,
    deployed_service_package_filters: Option<Vec<Self>>,
}

/// Returns the filters of one kind. Absent means none.
fn filters<T>(
    bodies: Option<Vec<FilterBody>>,
    read: impl Fn(FilterBody) -> Result<T, ApiError>,
) -> Result<Vec<T>, ApiError> {
    bodies.unwrap_or_default().into_iter().map(read).collect()
}

/// Returns the text, or `None` if it is empty.
fn said(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

impl TryFrom<ChunkQueryBody> for ChunkQuery {
    type Error = ApiError;

    fn try_from(body: ChunkQueryBody) -> Result<Self, ApiError> {
        Ok(Self {
            nodes: filters(body.node_filters, |body| {
                Ok(NodeFilter {
                    state: StateFilter::from_bits(body.health_state_filter),
                    name: said(body.node_name_filter),
                })
            })?,
            applications: filters(body.application_filters, application_filter)?,
        })
    }
}

fn application_filter(body: FilterBody) -> Result<ApplicationFilter, ApiError> {
    Ok(ApplicationFilter {
        state: StateFilter::from_bits(body.health_state_filter),
        name: name(body.application_name_filter)?,
        type_name: said(body.application_type_name_filter),
        services: filters(body.service_filters, service_filter)?,
        deployed_applications: filters(
            body.deployed_application_filters,
            deployed_application_filter,
        )?,
    })
}

fn service_filter(body: FilterBody) -> Result<ServiceFilter, ApiError> {
    Ok(ServiceFilter {
        state: StateFilter::from_bits(body.health_state_filter),
        name: name(body.service_name_filter)?,
        partitions: filters(body.partition_filters, partition_filter)?,
    })
}

fn partition_filter(body: FilterBody) -> Result<PartitionFilter, ApiError> {
    let id = said(body.partition_id_filter)
        .map(|id| id.parse())
        .transpose()?;
    Ok(PartitionFilter {
        state: StateFilter::from_bits(body.health_state_filter),
        id,
        replicas: filters(body.replica_filters, |body| {
            let id = said(body.replica_or_instance_id_filter)
                .map(|id| crate::gateway::wire::parse_replica_id(&id))
                .transpose()?;
            Ok(ReplicaFilter {
                state: StateFilter::from_bits(body.health_state_filter),
                id,
            })
        })?,
    })
}

fn deployed_application_filter(body: FilterBody) -> Result<DeployedApplicationFilter, ApiError> {
    Ok(DeployedApplicationFilter {
        state: StateFilter::from_bits(body.health_state_filter),
        node: said(body.node_name_filter),
        packages: filters(body.deployed_service_package_filters, |body| {
            Ok(PackageFilter {
                state: StateFilter::from_bits(body.health_state_filter),
                manifest: said(body.service_manifest_name_filter),
                activation_id: body.service_package_activation_id_filter,
            })
        })?,
    })
}

fn name(text: Option<String>) -> Result<Option<FabricName>, ApiError> {
    Ok(said(text)
        .map(|text| FabricName::parse(&text))
        .transpose()?)
}
