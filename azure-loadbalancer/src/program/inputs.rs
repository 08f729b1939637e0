use std::error::Error;
use std::path::Path;
use std::time::Duration;

use azure_loadbalancer::arm::{ReqwestTransport, RetryPolicy};
use azure_loadbalancer::config::{LeftAddresses, OrphanPolicy};
use azure_loadbalancer::sources::kubernetes::{KubernetesClient, KubernetesError};
use azure_loadbalancer::sources::{FileSource, FromDocument, Source, read_documents};
use azure_loadbalancer::{Config, Node, Service};
use program_kit::{Failure, read};
use serde_json::Value;

use super::cli::{Inputs, Members};
use super::identity::FileIdentity;

/// What is wanted.
pub(super) struct Wanted {
    pub(super) settings: Settings,
    pub(super) services: Vec<Service>,
    pub(super) nodes: Vec<Node>,
}

impl Wanted {
    /// Reads services and, where members of pools matter, nodes.
    pub(super) async fn read(inputs: &Inputs, members: Option<&Members>) -> Result<Self, Failure> {
        let settings = settings(inputs, members)?;
        if let Some(client) = kubernetes(inputs)? {
            let (mut services, mut nodes) = (client.services(), client.nodes());
            return Ok(Self {
                settings,
                services: first(&mut services).await?,
                nodes: match members {
                    Some(_) => first(&mut nodes).await?,
                    None => Vec::new(),
                },
            });
        }
        let nodes = members.and_then(|members| members.nodes.as_deref());
        Ok(Self {
            settings,
            services: inputs.services.as_deref().map_or_else(none, documents)?,
            nodes: nodes.map_or_else(none, documents)?,
        })
    }
}

/// The first state of an API server, with as many tries as a read of Azure has. The source waits between them.
async fn first<T>(source: &mut dyn Source<T>) -> Result<Vec<T>, Failure> {
    let mut tries = RetryPolicy::default().tries;
    loop {
        let error = match source.next().await {
            Ok(state) => return Ok(state),
            Err(error) => error,
        };
        let cause = error
            .source()
            .and_then(|cause| cause.downcast_ref::<KubernetesError>());
        tries = tries.saturating_sub(1);
        if tries == 0 || !cause.is_some_and(KubernetesError::is_retriable) {
            return Err(Failure::from_error(&error));
        }
        let cause = cause.map(ToString::to_string);
        tracing::warn!(%error, cause, "it is tried again");
    }
}

fn none<T>() -> Result<Vec<T>, Failure> {
    Ok(Vec::new())
}

/// The client of the API server, if one was named.
pub(super) fn kubernetes(
    inputs: &Inputs,
) -> Result<Option<KubernetesClient<ReqwestTransport>>, Failure> {
    let client = match inputs.kubernetes.as_deref() {
        None => return Ok(None),
        Some("in-cluster") => KubernetesClient::in_cluster(),
        Some(address) => {
            let transport = ReqwestTransport::new().map_err(|error| Failure::from_error(&error))?;
            KubernetesClient::new(transport, address)
        }
    };
    client
        .map(Some)
        .map_err(|error| Failure::from_error(&error))
}

/// Files that are followed.
pub(super) fn files(
    inputs: &Inputs,
    members: &Members,
) -> Result<(FileSource<Service>, FileSource<Node>), Failure> {
    match (&inputs.services, &members.nodes) {
        (Some(services), Some(nodes)) => Ok((FileSource::new(services), FileSource::new(nodes))),
        _ => Err(Failure::new("--services and --nodes are missing")),
    }
}

/// What the configuration says.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) identity: FileIdentity,
    /// Its text.
    text: String,
}

pub(super) fn settings(inputs: &Inputs, members: Option<&Members>) -> Result<Settings, Failure> {
    let text = read(&inputs.config)?;
    parsed(text, inputs, members)
}

/// Waits until the configuration has changed into another one that can be used.
pub(super) async fn changed(inputs: &Inputs, members: &Members, now: &Settings) -> Settings {
    let mut last = now.text.clone();
    loop {
        tokio::time::sleep(RELOOK).await;
        let path = inputs.config.clone();
        // Disks block, and those on a network may hang.
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let Ok(Ok(text)) = text else {
            continue;
        };
        if text == last {
            continue;
        }
        last.clone_from(&text);
        match parsed(text, inputs, Some(members)) {
            Ok(settings) => return settings,
            Err(failure) => {
                tracing::error!(%failure, "the configuration has changed and cannot be used; the last one stays in force");
            }
        }
    }
}

fn parsed(text: String, inputs: &Inputs, members: Option<&Members>) -> Result<Settings, Failure> {
    let path = inputs.config.as_path();
    // Editors of Windows write a mark in front.
    let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let fail = |error: &dyn Error| Failure::new(format!("{}: {error}", path.display()));
    let unreadable = |error: serde_json::Error| {
        let hint = "`azure-loadbalancer schema` prints what it may have";
        Failure::new(format!("{}: {error}; {hint}", path.display()))
    };
    let mut config: Config = serde_json::from_str(plain).map_err(unreadable)?;
    let written: Value = serde_json::from_str(plain).map_err(unreadable)?;
    let identity: FileIdentity = serde_json::from_str(plain).map_err(unreadable)?;
    for (key, known) in misspelt(&written) {
        tracing::warn!(file = %path.display(), "{key:?} is ignored; is {known:?} meant?");
    }
    config.validate().map_err(|error| fail(&error))?;
    // A file that is too short, or another cluster's API server than was meant, must not take everything down.
    if members.is_some_and(|members| members.remove_orphans) {
        config.orphans = OrphanPolicy::Remove;
    } else if written.get("orphans").is_none_or(Value::is_null) {
        config.orphans = OrphanPolicy::Report;
    }
    if members.is_some_and(|members| members.delete_left_addresses) {
        config.left_addresses = LeftAddresses::Delete;
    } else if written.get("leftAddresses").is_none_or(Value::is_null) {
        config.left_addresses = LeftAddresses::Keep;
    }
    Ok(Settings {
        config,
        identity,
        text,
    })
}

/// Keys that are not known and look like one that is. Others are left alone: a cloud-config file of Kubernetes has many that are
/// nothing to this program.
fn misspelt(written: &Value) -> Vec<(&String, String)> {
    let schema: Value =
        serde_json::from_str(include_str!("../../schema/config.schema.json")).unwrap_or_default();
    let known = schema["properties"].as_object();
    let known: Vec<_> = known.into_iter().flatten().map(|(key, _)| key).collect();
    let keys = written.as_object().into_iter().flatten();
    let unknown =
        keys.filter(|(key, _)| !known.contains(key) && !OF_KUBERNETES.contains(&key.as_str()));
    unknown
        .filter_map(|(key, _)| {
            let near = known.iter().filter(|one| {
                !written
                    .as_object()
                    .is_some_and(|all| all.contains_key(**one))
            });
            let near = near.map(|one| {
                (
                    strsim::osa_distance(&key.to_lowercase(), &one.to_lowercase()),
                    one,
                )
            });
            let (distance, one) = near.min()?;
            (distance <= NEAR).then(|| (key, (**one).clone()))
        })
        .collect()
}

/// By how many letters a key may differ from one that is known to be taken for it.
const NEAR: usize = 2;
/// Keys of Kubernetes' file that differ by no more.
const OF_KUBERNETES: [&str; 5] = [
    "primaryAvailabilitySetName",
    "primaryScaleSetName",
    "excludeMasterFromStandardLb",
    "disableOutboundSnat",
    "vmType",
];
/// How often the configuration is looked at.
const RELOOK: Duration = Duration::from_secs(1);

fn documents<T: FromDocument>(path: &Path) -> Result<Vec<T>, Failure> {
    let text = read(path)?;
    read_documents(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Resources as `GET /emulator/resources` writes them, or a plain list.
pub(super) fn resources(path: &Path) -> Result<Vec<Value>, Failure> {
    let text = read(path)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let list = match value {
        Value::Object(mut object) => object.remove("value").unwrap_or(Value::Null),
        other => other,
    };
    match list {
        Value::Array(resources) => Ok(resources),
        _ => Err(Failure::new(format!(
            "{}: a list of resources is wanted, or an object with one as `value`",
            path.display()
        ))),
    }
}
