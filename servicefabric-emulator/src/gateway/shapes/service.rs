use serde::Serialize;

use crate::cluster::{PartitionScheme, Service, ServiceKind, ServiceScale};
use crate::gateway::wire::{ApiVersion, id_of, text};
use crate::hosting::ActivationMode;

/// `StatelessServiceInfo`, `StatefulServiceInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ServiceInfo<'a> {
    id: String,
    service_kind: &'static str,
    name: &'a str,
    type_name: &'a str,
    manifest_version: &'a str,
    health_state: &'static str,
    service_status: &'static str,
    is_service_group: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_persisted_state: Option<bool>,
}

impl<'a> ServiceInfo<'a> {
    pub(crate) fn new(
        service: &'a Service,
        health_state: &'static str,
        version: ApiVersion,
    ) -> Self {
        let stateful = service.kind == ServiceKind::Stateful;
        Self {
            id: id_of(&service.name, version),
            service_kind: service.kind.as_str(),
            name: service.name.as_str(),
            type_name: &service.type_name,
            manifest_version: &service.manifest_version,
            health_state,
            service_status: service.status.as_str(),
            is_service_group: false,
            has_persisted_state: stateful.then_some(service.has_persisted_state),
        }
    }
}

/// `StatelessServiceDescription`, `StatefulServiceDescription`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ServiceDescriptionInfo<'a> {
    service_kind: &'static str,
    application_name: &'a str,
    service_name: &'a str,
    service_type_name: &'a str,
    partition_description: SchemeInfo<'a>,
    placement_constraints: &'a str,
    correlation_scheme: [&'static str; 0],
    service_load_metrics: [&'static str; 0],
    service_placement_policies: [&'static str; 0],
    is_default_move_cost_specified: bool,
    service_package_activation_mode: ActivationMode,
    service_dns_name: &'a str,
    scaling_policies: [&'static str; 0],
    #[serde(flatten)]
    scale: ScaleInfo,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ScaleInfo {
    #[serde(rename_all = "PascalCase")]
    Stateless {
        instance_count: i32,
        min_instance_count: u32,
        flags: u32,
        instance_close_delay_duration_seconds: u64,
    },
    #[serde(rename_all = "PascalCase")]
    Stateful {
        target_replica_set_size: u32,
        min_replica_set_size: u32,
        has_persisted_state: bool,
        flags: u32,
        replica_restart_wait_duration_seconds: u64,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "PartitionScheme", rename_all_fields = "PascalCase")]
enum SchemeInfo<'a> {
    Singleton,
    UniformInt64Range {
        count: u32,
        low_key: String,
        high_key: String,
    },
    Named {
        count: usize,
        names: &'a [String],
    },
}

/// The bit of `Flags` for the delay before an instance is closed.
const CLOSE_DELAY_FLAG: u32 = 4;
/// The bit of `Flags` for the wait for a replica that is down.
const RESTART_WAIT_FLAG: u32 = 1;

impl<'a> ServiceDescriptionInfo<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        let scale = match service.scale {
            ServiceScale::Stateless {
                instance_count,
                min_instance_count,
            } => ScaleInfo::Stateless {
                instance_count,
                min_instance_count,
                flags: CLOSE_DELAY_FLAG,
                instance_close_delay_duration_seconds: service.instance_close_delay.as_millis()
                    / 1_000,
            },
            ServiceScale::Stateful { target, min } => ScaleInfo::Stateful {
                target_replica_set_size: target,
                min_replica_set_size: min,
                has_persisted_state: service.has_persisted_state,
                flags: RESTART_WAIT_FLAG,
                replica_restart_wait_duration_seconds: service.replica_restart_wait.as_millis()
                    / 1_000,
            },
        };
        let partition_description = match &service.scheme {
            PartitionScheme::Singleton => SchemeInfo::Singleton,
            PartitionScheme::Int64Range { low, high, count } => SchemeInfo::UniformInt64Range {
                count: *count,
                low_key: text(low),
                high_key: text(high),
            },
            PartitionScheme::Named(names) => SchemeInfo::Named {
                count: names.len(),
                names,
            },
        };
        Self {
            service_kind: service.kind.as_str(),
            application_name: service.application.as_str(),
            service_name: service.name.as_str(),
            service_type_name: &service.type_name,
            partition_description,
            placement_constraints: &service.placement_constraints,
            correlation_scheme: [],
            service_load_metrics: [],
            service_placement_policies: [],
            is_default_move_cost_specified: false,
            service_package_activation_mode: service.activation_mode,
            service_dns_name: &service.dns_name,
            scaling_policies: [],
            scale,
        }
    }
}
