use serde::Serialize;

use crate::cluster::{DeployedApplication, DeployedReplica, ServiceKind};
use crate::gateway::emulator::Dialect;
use crate::gateway::wire::{ApiVersion, ClockStart, id_of, text};
use crate::hosting::{
    DeployedCodePackage, DeployedEntryPoint, DeployedPackage, DeployedServiceType,
    DeploymentStatus, EntryPointStatistics, EntryPointStatus, HostType, TypeStatus,
};

/// The root of the directories on a node. They do not exist.
const ROOT: &str = "/mnt/sfroot";

/// `DeployedApplicationInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeployedApplicationInfo {
    id: String,
    name: String,
    type_name: String,
    type_version: String,
    status: DeploymentStatus,
    work_directory: String,
    log_directory: String,
    temp_directory: String,
    health_state: &'static str,
}

impl DeployedApplicationInfo {
    /// Creates the JSON, with a health state if it was requested.
    pub(crate) fn new(
        application: &DeployedApplication,
        health_state: Option<&'static str>,
        node: &str,
        version: ApiVersion,
    ) -> Self {
        let directory = |kind: &str| {
            let id = id_of(&application.name, version);
            format!("{ROOT}/{node}/{id}/{kind}")
        };
        Self {
            id: id_of(&application.name, version),
            name: text(&application.name),
            type_name: application.type_name.clone(),
            type_version: application.type_version.clone(),
            status: application.status,
            work_directory: directory("work"),
            log_directory: directory("log"),
            temp_directory: directory("temp"),
            health_state: health_state.unwrap_or("Unknown"),
        }
    }
}

/// `DeployedServicePackageInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeployedServicePackageInfo<'a> {
    name: &'a str,
    version: &'a str,
    status: DeploymentStatus,
    service_package_activation_id: &'a str,
}

impl<'a> From<&'a DeployedPackage> for DeployedServicePackageInfo<'a> {
    fn from(package: &'a DeployedPackage) -> Self {
        Self {
            name: &package.key.manifest,
            version: &package.version,
            status: package.status,
            service_package_activation_id: &package.key.activation_id,
        }
    }
}

/// `DeployedServiceTypeInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeployedServiceTypeInfo<'a> {
    service_type_name: &'a str,
    service_manifest_name: &'a str,
    code_package_name: &'a str,
    status: &'static str,
    service_package_activation_id: &'a str,
}

impl<'a> DeployedServiceTypeInfo<'a> {
    /// Creates the JSON. Some gateways use another word for `Enabled`.
    pub(crate) fn new(service_type: &'a DeployedServiceType, enabled: &'static str) -> Self {
        Self {
            service_type_name: &service_type.service_type,
            service_manifest_name: &service_type.package.manifest,
            code_package_name: &service_type.code_package,
            status: match service_type.status {
                TypeStatus::Enabled | TypeStatus::DisableScheduled => enabled,
                TypeStatus::Disabled => "Disabled",
                TypeStatus::Registered => "Registered",
            },
            service_package_activation_id: &service_type.package.activation_id,
        }
    }
}

/// `DeployedCodePackageInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeployedCodePackageInfo<'a> {
    name: &'a str,
    version: &'a str,
    service_manifest_name: &'a str,
    service_package_activation_id: &'a str,
    host_type: HostType,
    host_isolation_mode: &'static str,
    status: DeploymentStatus,
    run_frequency_interval: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_setup_entry_point: Option<bool>,
    setup_entry_point: Option<EntryPointInfo<'a>>,
    main_entry_point: EntryPointInfo<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EntryPointInfo<'a> {
    entry_point_location: &'a str,
    process_id: String,
    run_as_user_name: &'static str,
    code_package_entry_point_statistics: EntryPointStatisticsInfo,
    status: EntryPointStatus,
    next_activation_time: String,
    instance_id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EntryPointStatisticsInfo {
    last_exit_code: String,
    last_activation_time: String,
    last_exit_time: String,
    last_successful_activation_time: String,
    last_successful_exit_time: String,
    activation_count: String,
    activation_failure_count: String,
    continuous_activation_failure_count: String,
    exit_count: String,
    exit_failure_count: String,
    continuous_exit_failure_count: String,
}

impl<'a> DeployedCodePackageInfo<'a> {
    pub(crate) fn new(
        package: &'a DeployedCodePackage,
        dialect: Dialect,
        epoch: ClockStart,
    ) -> Self {
        Self {
            name: &package.name,
            version: &package.version,
            service_manifest_name: &package.package.manifest,
            service_package_activation_id: &package.package.activation_id,
            host_type: package.host_type,
            host_isolation_mode: "None",
            status: package.status,
            run_frequency_interval: "0",
            has_setup_entry_point: (dialect == Dialect::Runtime64)
                .then_some(package.setup.is_some()),
            setup_entry_point: package
                .setup
                .as_ref()
                .map(|setup| EntryPointInfo::new(setup, epoch)),
            main_entry_point: EntryPointInfo::new(&package.main, epoch),
        }
    }
}

impl<'a> EntryPointInfo<'a> {
    fn new(entry_point: &'a DeployedEntryPoint, epoch: ClockStart) -> Self {
        Self {
            entry_point_location: &entry_point.location,
            process_id: text(entry_point.process_id.unwrap_or(0)),
            run_as_user_name: "",
            code_package_entry_point_statistics: EntryPointStatisticsInfo::new(
                &entry_point.statistics,
                epoch,
            ),
            status: entry_point.status,
            next_activation_time: epoch.date_or_never(entry_point.next_activation),
            instance_id: text(entry_point.instance_id),
        }
    }
}

impl EntryPointStatisticsInfo {
    fn new(statistics: &EntryPointStatistics, epoch: ClockStart) -> Self {
        Self {
            last_exit_code: text(statistics.last_exit_code),
            last_activation_time: epoch.date_or_never(statistics.last_activation),
            last_exit_time: epoch.date_or_never(statistics.last_exit),
            last_successful_activation_time: epoch
                .date_or_never(statistics.last_successful_activation),
            last_successful_exit_time: epoch.date_or_never(statistics.last_successful_exit),
            activation_count: text(statistics.activation_count),
            activation_failure_count: text(statistics.activation_failure_count),
            continuous_activation_failure_count: text(
                statistics.continuous_activation_failure_count,
            ),
            exit_count: text(statistics.exit_count),
            exit_failure_count: text(statistics.exit_failure_count),
            continuous_exit_failure_count: text(statistics.continuous_exit_failure_count),
        }
    }
}

/// `DeployedStatelessServiceInstanceInfo`, `DeployedStatefulServiceReplicaInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeployedReplicaInfo<'a> {
    service_kind: &'static str,
    service_name: &'a str,
    service_type_name: &'a str,
    service_manifest_name: &'a str,
    code_package_name: &'a str,
    partition_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_role: Option<&'static str>,
    replica_status: &'static str,
    address: &'a str,
    service_package_activation_id: &'a str,
    host_process_id: String,
}

impl<'a> From<&'a DeployedReplica> for DeployedReplicaInfo<'a> {
    fn from(replica: &'a DeployedReplica) -> Self {
        let stateful = replica.kind == ServiceKind::Stateful;
        let id = text(replica.key.replica);
        Self {
            service_kind: replica.kind.as_str(),
            service_name: replica.service.as_str(),
            service_type_name: &replica.service_type,
            service_manifest_name: &replica.manifest_name,
            code_package_name: &replica.code_package,
            partition_id: text(replica.key.partition),
            replica_id: stateful.then(|| id.clone()),
            instance_id: (!stateful).then_some(id),
            replica_role: stateful.then(|| replica.replica.role.as_str()),
            replica_status: replica.replica.status.as_str(),
            address: &replica.replica.address,
            service_package_activation_id: &replica.replica.activation_id,
            host_process_id: text(replica.process_id.unwrap_or(0)),
        }
    }
}
