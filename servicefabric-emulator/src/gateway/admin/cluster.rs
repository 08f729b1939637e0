use indexmap::IndexMap;
use serde::Deserialize;

use super::body::present;
use crate::cluster::{
    ErrorCode, FabricName, PartitionStatus, ServiceKind, ServiceUpdate, UpgradeMode, UpgradeRequest,
};
use crate::gateway::calls::Call;
use crate::gateway::wire::{Answer, ApiError};
use crate::hosting::{PackageKey, Span};

pub(super) fn stop_node(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let node = call.node();
    call.cluster.stop_node(&node)?;
    Ok(Answer::done())
}

pub(super) fn start_node(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let node = call.node();
    call.cluster.start_node(&node)?;
    Ok(Answer::done())
}

/// The default exit code of a crashed process.
const CRASH: i32 = 1;

#[derive(Deserialize)]
#[serde(
    rename_all = "PascalCase",
    deny_unknown_fields,
    expecting = "an object with Application, Manifest and CodePackage"
)]
struct Crash {
    application: String,
    manifest: String,
    code_package: String,
    #[serde(default)]
    activation_id: String,
    #[serde(default = "crash_code")]
    exit_code: i32,
}

fn crash_code() -> i32 {
    CRASH
}

pub(super) fn crash(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Crash = call.json()?;
    let application = FabricName::parse(&wanted.application)?;
    // The shared package has an empty activation id.
    let process = PackageKey::exclusive(
        application.as_str(),
        &wanted.manifest,
        &wanted.activation_id,
    )
    .process(&wanted.code_package);
    let node = call.node();
    call.cluster
        .crash_code_package(&node, &process, wanted.exit_code)?;
    Ok(Answer::done())
}

pub(super) fn scale(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Count"
    )]
    struct Scale {
        count: i32,
    }
    let Scale { count } = call.json()?;
    let name = call.name("service")?;
    let service = call.cluster.service(&name).ok_or_else(|| {
        ApiError::new(
            ErrorCode::ServiceDoesNotExist,
            format!("there is no service '{name}'"),
        )
    })?;
    let update = match service.kind {
        ServiceKind::Stateless => ServiceUpdate {
            instance_count: Some(count),
            ..ServiceUpdate::default()
        },
        ServiceKind::Stateful => ServiceUpdate {
            target_replica_set_size: Some(u32::try_from(count).map_err(|_| {
                ApiError::invalid(format!("a stateful service cannot have {count} replicas"))
            })?),
            ..ServiceUpdate::default()
        },
    };
    call.cluster.update_service(&name, update)?;
    Ok(Answer::done())
}

#[derive(Deserialize)]
#[serde(
    rename_all = "PascalCase",
    deny_unknown_fields,
    expecting = "an object with Version"
)]
struct UpgradeBody {
    version: String,
    /// The parameters to upgrade to. Default: those of the application.
    #[serde(default)]
    parameters: Option<IndexMap<String, String>>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    wait: Span,
}

pub(super) fn upgrade(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: UpgradeBody = call.json()?;
    let name = call.name("application")?;
    let mode = match wanted.mode.as_deref() {
        None => UpgradeMode::UnmonitoredAuto,
        Some(word) => UpgradeMode::from_word(word).ok_or_else(|| {
            ApiError::invalid(format!(
                "Mode is `{word}`, but must be UnmonitoredAuto, UnmonitoredManual or Monitored"
            ))
        })?,
    };
    // Without parameters, the application keeps its own.
    let parameters = wanted.parameters.unwrap_or_else(|| {
        call.cluster
            .application(&name)
            .map(|application| application.parameters.clone())
            .unwrap_or_default()
    });
    let request = UpgradeRequest::new(&wanted.version)
        .with_parameters(parameters)
        .with_mode(mode)
        .with_wait(wanted.wait);
    call.cluster.upgrade_application(&name, request)?;
    Ok(Answer::done())
}

pub(super) fn partition_status(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Status"
    )]
    struct Status {
        #[serde(deserialize_with = "present")]
        status: Option<String>,
    }
    // The body may be `null`, which ends the override.
    let wanted: Option<Status> = call.json()?;
    let status = wanted
        .and_then(|wanted| wanted.status)
        .map(|word| {
            PartitionStatus::from_word(&word)
                .ok_or_else(|| ApiError::invalid(format!("`{word}` is no status of a partition")))
        })
        .transpose()?;
    let partition = call.partition()?;
    call.cluster.override_partition_status(partition, status)?;
    Ok(Answer::done())
}

pub(super) fn drain(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with For"
    )]
    struct Drain {
        r#for: Span,
    }
    let wanted: Drain = call.json()?;
    let replica = call.replica()?;
    call.cluster.drain_instance(replica, wanted.r#for)?;
    Ok(Answer::done())
}

pub(super) fn address(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Address"
    )]
    struct Address {
        #[serde(deserialize_with = "present")]
        address: Option<String>,
    }
    let wanted: Option<Address> = call.json()?;
    let address = wanted.and_then(|wanted| wanted.address);
    let replica = call.replica()?;
    call.cluster.override_address(replica, address.as_deref())?;
    Ok(Answer::done())
}

pub(super) fn flap(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Every"
    )]
    struct Flap {
        every: Span,
    }
    let wanted: Flap = call.json()?;
    let replica = call.replica()?;
    call.cluster.flap_address(replica, wanted.every)?;
    Ok(Answer::done())
}
