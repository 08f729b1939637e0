use serde::Serialize;

use crate::cluster::{
    Partition, PartitionId, PartitionInformation, Replica, ResolvedPartition, ServiceKind,
    ServiceScale,
};
use crate::gateway::emulator::Dialect;
use crate::gateway::wire::{ApiVersion, print_duration, text};

/// `StatelessServicePartitionInfo`, `StatefulServicePartitionInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PartitionInfo<'a> {
    service_kind: &'static str,
    partition_information: InformationInfo<'a>,
    #[serde(flatten)]
    scale: PartitionScaleInfo,
    health_state: &'static str,
    partition_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_epoch: Option<EpochInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_configuration_epoch: Option<EpochInfo>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PartitionScaleInfo {
    #[serde(rename_all = "PascalCase")]
    Stateless {
        instance_count: i32,
        min_instance_count: u32,
        min_instance_percentage: u32,
    },
    #[serde(rename_all = "PascalCase")]
    Stateful {
        target_replica_set_size: u32,
        min_replica_set_size: u32,
        auxiliary_replica_count: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_quorum_loss_duration: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_quorum_loss_duration_in_seconds: Option<String>,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EpochInfo {
    configuration_version: String,
    data_loss_version: String,
}

/// `PartitionInformation`.
#[derive(Debug, Serialize)]
#[serde(tag = "ServicePartitionKind", rename_all_fields = "PascalCase")]
enum InformationInfo<'a> {
    Singleton {
        id: String,
    },
    Int64Range {
        id: String,
        low_key: String,
        high_key: String,
    },
    Named {
        id: String,
        name: &'a str,
    },
}

impl<'a> InformationInfo<'a> {
    fn new(id: PartitionId, information: &'a PartitionInformation) -> Self {
        let id = text(id);
        match information {
            PartitionInformation::Singleton => Self::Singleton { id },
            PartitionInformation::Int64Range { low, high } => Self::Int64Range {
                id,
                low_key: text(low),
                high_key: text(high),
            },
            PartitionInformation::Named(name) => Self::Named { id, name },
        }
    }
}

impl<'a> PartitionInfo<'a> {
    pub(crate) fn new(
        partition: &'a Partition,
        health_state: &'static str,
        version: ApiVersion,
        dialect: Dialect,
    ) -> Self {
        let lost = partition.last_quorum_loss;
        let (loss, loss_in_seconds) = match dialect {
            Dialect::Current => (Some(print_duration(lost)), None),
            Dialect::Runtime64 => (None, Some(text(lost.as_millis() / 1_000))),
        };
        let scale = match partition.scale {
            ServiceScale::Stateless {
                instance_count,
                min_instance_count,
            } => PartitionScaleInfo::Stateless {
                instance_count,
                min_instance_count,
                min_instance_percentage: 0,
            },
            ServiceScale::Stateful { target, min } => PartitionScaleInfo::Stateful {
                target_replica_set_size: target,
                min_replica_set_size: min,
                auxiliary_replica_count: 0,
                last_quorum_loss_duration: loss,
                last_quorum_loss_duration_in_seconds: loss_in_seconds,
            },
        };
        let epoch = (partition.kind == ServiceKind::Stateful).then(|| EpochInfo {
            configuration_version: text(partition.epoch.configuration_version),
            data_loss_version: text(partition.epoch.data_loss_version),
        });
        let (primary_epoch, current_configuration_epoch) = if version >= ApiVersion::V6_4 {
            (epoch, None)
        } else {
            (None, epoch)
        };
        Self {
            service_kind: partition.kind.as_str(),
            partition_information: InformationInfo::new(partition.id, &partition.information),
            scale,
            health_state,
            partition_status: partition.status.as_str(),
            primary_epoch,
            current_configuration_epoch,
        }
    }
}

/// `StatelessServiceInstanceInfo`, `StatefulServiceReplicaInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ReplicaInfo<'a> {
    service_kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_role: Option<&'static str>,
    replica_status: &'static str,
    health_state: &'static str,
    node_name: &'a str,
    address: &'a str,
    last_in_build_duration_in_seconds: String,
}

impl<'a> ReplicaInfo<'a> {
    pub(crate) fn new(kind: ServiceKind, replica: &'a Replica, health_state: &'static str) -> Self {
        let stateful = kind == ServiceKind::Stateful;
        let id = text(replica.key.replica);
        Self {
            service_kind: kind.as_str(),
            replica_id: stateful.then(|| id.clone()),
            instance_id: (!stateful).then_some(id),
            replica_role: stateful.then(|| replica.role.as_str()),
            replica_status: replica.status.as_str(),
            health_state,
            node_name: &replica.node,
            address: &replica.address,
            last_in_build_duration_in_seconds: text(replica.last_in_build.as_millis() / 1_000),
        }
    }
}

/// `ResolvedServicePartition`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ResolvedPartitionInfo<'a> {
    name: &'a str,
    partition_information: InformationInfo<'a>,
    endpoints: Vec<ResolvedEndpointInfo<'a>>,
    version: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ResolvedEndpointInfo<'a> {
    kind: &'static str,
    address: &'a str,
}

impl<'a> ResolvedPartitionInfo<'a> {
    pub(crate) fn new(resolved: &'a ResolvedPartition) -> Self {
        Self {
            name: resolved.service.as_str(),
            partition_information: InformationInfo::new(resolved.partition, &resolved.information),
            endpoints: resolved
                .endpoints
                .iter()
                .map(|endpoint| ResolvedEndpointInfo {
                    kind: endpoint.kind.as_str(),
                    address: &endpoint.address,
                })
                .collect(),
            version: &resolved.version,
        }
    }
}
