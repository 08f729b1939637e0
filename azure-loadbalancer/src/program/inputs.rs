use std::error::Error;
use std::path::Path;
use std::time::Duration;

use azure_loadbalancer::arm::{ReqwestTransport, RetryPolicy};
use azure_loadbalancer::config::{LeftAddresses, OrphanPolicy};
use azure_loadbalancer::sources::kubernetes::{KubernetesClient, KubernetesError};
use azure_loadbalancer::sources::{FileSource, FromDocument, Source, read_documents};
use azure_loadbalancer::text::{Documents, Misread, read_value};
use azure_loadbalancer::{Config, Node, Service};
use program_kit::{Failure, read};
use serde_json::Value;

use super::cli::{Inputs, MembersArgs};
use super::identity::FileIdentity;
use super::nodes_from::NodesFrom;

/// The inputs of a plan.
pub(super) struct PlanInputs {
    pub(super) settings: Settings,
    pub(super) services: Vec<Service>,
    pub(super) nodes: Vec<Node>,
}

impl PlanInputs {
    /// Reads services and, if members of pools matter, nodes.
    pub(super) async fn read(
        inputs: &Inputs,
        members: Option<&MembersArgs>,
    ) -> Result<Self, Failure> {
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
        let services = inputs.services.as_deref().map_or_else(none, documents)?;
        let nodes = match members {
            None => Vec::new(),
            Some(members) => match NodesFrom::of(members)? {
                Some(source) => source.once().await?,
                None => members.nodes.as_deref().map_or_else(none, documents)?,
            },
        };
        Ok(Self {
            settings,
            services,
            nodes,
        })
    }
}

/// Returns the first state of an API server, with as many attempts as a read of Azure. The source waits
/// between them.
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

/// Returns the client of the API server, if one was named.
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

/// The sources of services and of nodes.
pub(super) type Sources = (Box<dyn Source<Service>>, Box<dyn Source<Node>>);

/// Returns the sources: followed files, and a discovered cluster.
pub(super) fn files(inputs: &Inputs, members: &MembersArgs) -> Result<Sources, Failure> {
    let missing = || Failure::new("--services and --nodes are missing");
    let services = inputs.services.as_ref().ok_or_else(missing)?;
    let nodes: Box<dyn Source<Node>> = match NodesFrom::of(members)? {
        Some(source) => source.follow(),
        None => Box::new(FileSource::new(members.nodes.as_ref().ok_or_else(missing)?)),
    };
    Ok((Box::new(FileSource::new(services)), nodes))
}

/// The settings from the configuration file.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) identity: FileIdentity,
    /// The text of the file, or of a later one that was invalid, so that each is reported once.
    text: String,
}

impl Settings {
    /// Records another text as read, without using it.
    pub(super) fn pass_over(&mut self, other: Self) {
        self.text = other.text;
    }
}

pub(super) fn settings(
    inputs: &Inputs,
    members: Option<&MembersArgs>,
) -> Result<Settings, Failure> {
    let text = read(&inputs.config)?;
    parsed(text, inputs, members)
}

/// Returns the present configuration if it has changed and is not being written.
pub(super) async fn again(
    inputs: &Inputs,
    members: &MembersArgs,
    now: &Settings,
) -> Result<Option<Settings>, Failure> {
    let text = read(&inputs.config)?;
    if text == now.text {
        return Ok(None);
    }
    tokio::time::sleep(RELOOK).await;
    match read(&inputs.config)? == text {
        true => parsed(text, inputs, Some(members)).map(Some),
        // A follower reads the file once it is complete.
        false => Ok(None),
    }
}

/// Waits for a changed and valid configuration. A partly written one may be valid, so two reads in a row must
/// be equal.
pub(super) async fn changed(inputs: &Inputs, members: &MembersArgs, now: &Settings) -> Settings {
    let mut last = now.text.clone();
    let mut seen = None;
    loop {
        tokio::time::sleep(RELOOK).await;
        let path = inputs.config.clone();
        // File access can block, or hang on a network drive.
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        let Ok(Ok(text)) = text else {
            seen = None;
            continue;
        };
        let is_confirmed = seen.replace(text.clone()).as_ref() == Some(&text);
        if text == last || !is_confirmed {
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

fn parsed(
    text: String,
    inputs: &Inputs,
    members: Option<&MembersArgs>,
) -> Result<Settings, Failure> {
    let path = inputs.config.as_path();
    let file = path.display();
    let documents = Documents::read(&text);
    let documents =
        documents.map_err(|error| Failure::new(format!("{file}: {error}; {SCHEMA_HINT}")))?;
    let [written] = documents.all() else {
        let count = documents.all().len();
        return Err(Failure::new(format!(
            "{file}: a configuration is one document, and this is {count}"
        )));
    };
    if !written.is_object() {
        return Err(Failure::new(format!(
            "{file}: a configuration is an object; {SCHEMA_HINT}"
        )));
    }
    // The place and the message.
    let placed = |path: &[String], what: String| {
        let line = documents.line_of(0, path).filter(|_| !path.is_empty());
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        Failure::new(format!("{file}{line}: {what}"))
    };
    let misread = |error: Misread| {
        let why = error.to_string();
        // An error about several keys names the main one first.
        let named = why.split_once(": ").map(|(key, _)| vec![key.to_owned()]);
        let named =
            named.filter(|named| error.path().is_empty() && written.get(&named[0]).is_some());
        let path = named.unwrap_or_else(|| error.path().to_vec());
        placed(&path, format!("{why}; {SCHEMA_HINT}"))
    };
    let mut config: Config = read_value(written).map_err(misread)?;
    let identity: FileIdentity = read_value(written).map_err(misread)?;
    for (key, known) in misspelt(written) {
        tracing::warn!(%file, "{key:?} is ignored; is {known:?} meant?");
    }
    config
        .validate()
        .map_err(|error| placed(&[error.field.to_owned()], error.to_string()))?;
    // A truncated file, or the API server of another cluster, must not remove everything.
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

/// Returns unknown keys that resemble known ones. Others are ignored: a cloud-config file of Kubernetes has
/// many that do not concern this program.
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

/// The maximum number of letters by which an unknown key may differ from the known one that it resembles.
const NEAR: usize = 2;
/// The keys of Kubernetes' file that differ by no more.
const OF_KUBERNETES: [&str; 5] = [
    "primaryAvailabilitySetName",
    "primaryScaleSetName",
    "excludeMasterFromStandardLb",
    "disableOutboundSnat",
    "vmType",
];
/// The hint for a configuration that cannot be read.
const SCHEMA_HINT: &str = "`azure-loadbalancer schema` prints its keys";
/// The interval at which the configuration file is checked.
const RELOOK: Duration = Duration::from_secs(1);

fn documents<T: FromDocument>(path: &Path) -> Result<Vec<T>, Failure> {
    let text = read(path)?;
    read_documents(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Reads resources as `GET /emulator/resources` writes them, or a plain list.
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
            "{}: expected a list of resources, or an object with one as `value`",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "subscriptionId: s\nresourceGroup: g\nlocation: westeurope\nclusterName: shop\nvnetName: net\n";

    #[tokio::test(start_paused = true)]
    async fn a_configuration_that_is_being_written_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("azure.yaml");
        let write = |more: &str| std::fs::write(&config, format!("{WHOLE}{more}")).unwrap();
        let inputs = Inputs {
            config: config.clone(),
            services: None,
            kubernetes: None,
        };
        let members = MembersArgs {
            nodes: None,
            nodes_from: None,
            nodes_cluster: None,
            remove_orphans: false,
            delete_left_addresses: false,
        };
        write("securityGroupName: before\n");
        let now = settings(&inputs, Some(&members)).unwrap();
        // Both a follower and a new leader find half of a new file.
        for is_followed in [true, false] {
            write("");
            let whole = async {
                let looks = if is_followed { 3 } else { 1 };
                tokio::time::sleep(RELOOK * looks / 2).await;
                write("securityGroupName: after\n");
                std::future::pending::<()>().await;
            };
            let taken = async {
                match is_followed {
                    true => Some(changed(&inputs, &members, &now).await),
                    false => again(&inputs, &members, &now).await.unwrap(),
                }
            };
            let taken = tokio::select! {
                taken = taken => taken,
                () = whole => None,
            };
            let name = taken.map(|settings| settings.config.security_group_name);
            let expected = is_followed.then(|| Some("after".to_owned()));
            assert_eq!(name, expected);
        }
        let taken = again(&inputs, &members, &now).await.unwrap();
        assert!(taken.is_some(), "it is whole");
        write("securityGroupName: before\n");
        let taken = again(&inputs, &members, &now).await.unwrap();
        assert!(taken.is_none(), "it is what is in force");
    }
}
