use std::error::Error;
use std::path::Path;

use azure_loadbalancer::arm::{ReqwestTransport, RetryPolicy};
use azure_loadbalancer::config::{LeftAddresses, OrphanPolicy};
use azure_loadbalancer::sources::kubernetes::{KubernetesClient, KubernetesError};
use azure_loadbalancer::sources::{FileSource, FromDocument, Source, read_documents};
use azure_loadbalancer::{Config, Node, Service};
use program_kit::{Failure, read};
use serde_json::Value;

use super::cli::{Inputs, Members};

/// What is wanted.
pub(super) struct Wanted {
    pub(super) config: Config,
    pub(super) services: Vec<Service>,
    pub(super) nodes: Vec<Node>,
}

impl Wanted {
    /// Reads services and, where members of pools matter, nodes.
    pub(super) async fn read(inputs: &Inputs, members: Option<&Members>) -> Result<Self, Failure> {
        let config = config(inputs, members)?;
        if let Some(client) = kubernetes(inputs)? {
            let (mut services, mut nodes) = (client.services(), client.nodes());
            return Ok(Self {
                config,
                services: first(&mut services).await?,
                nodes: match members {
                    Some(_) => first(&mut nodes).await?,
                    None => Vec::new(),
                },
            });
        }
        let nodes = members.and_then(|members| members.nodes.as_deref());
        Ok(Self {
            config,
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

pub(super) fn config(inputs: &Inputs, members: Option<&Members>) -> Result<Config, Failure> {
    let path = inputs.config.as_path();
    let text = read(path)?;
    let fail = |error: &dyn Error| Failure::new(format!("{}: {error}", path.display()));
    let unreadable = |error: serde_json::Error| {
        let hint = "`azure-loadbalancer schema` prints what it may have";
        Failure::new(format!("{}: {error}; {hint}", path.display()))
    };
    let mut config: Config = serde_json::from_str(&text).map_err(unreadable)?;
    let written: Value = serde_json::from_str(&text).map_err(unreadable)?;
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
    Ok(config)
}

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
