//! The labels of YARP's Service Fabric integration and of its successor, with extensions.

use std::sync::Arc;

use discovery_core::LabelsParser;
use discovery_core::labels::{LabelNode, LabelRules, LabelTree};
use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, Snapshot, nearest, pointer_to};

use super::options::LabelOptions;
use super::{ParsedService, layout, read};
use crate::service::ServiceDescription;

/// The prefix of all keys, in any case.
pub(super) const PREFIX: &str = "YARP.";

/// Maximum number of bytes of one service's labels, keys and values together, overrides included. The time
/// to read them grows with it, and services are read one after another.
const MAX_BYTES: usize = 256 << 10;

/// The dialect of YARP: `YARP.Enable`, `YARP.Backend.*`, `YARP.Routes.<name>.*`.
///
/// All labels are in the reference page `docs/servicefabric-labels.md`. One service becomes one cluster
/// with its replicas as destinations, and its routes. Labels and [`LabelOptions`] can make it several
/// clusters: one for each partition, listener or role.
///
/// The prefix matches in any case; the rest of a key exactly. An unknown label is a warning with the name
/// that was probably intended. Problems point at labels, all of a service at once. With an error, the
/// configuration is empty, so that the runner keeps the last known good one.
///
/// ```
/// use discovery_core::{Labels, LabelsParser};
/// use discovery_servicefabric::labels::YarpLabels;
/// use discovery_servicefabric::model::{PartitionInformation, Replica, ReplicaStatus, ServiceKind};
/// use discovery_servicefabric::{PartitionDescription, ServiceDescription};
/// use proxy_model::{ClusterId, DestinationId};
///
/// let labels: Labels = [("YARP.Enable", "true"), ("YARP.Routes.main.Path", "/{**rest}")]
///     .map(|(key, value)| (key.to_owned(), value.to_owned()))
///     .into();
/// let mut instance = Replica::default();
/// instance.replica_id = 101;
/// instance.replica_status = ReplicaStatus::Ready;
/// instance.address = r#"{"Endpoints":{"web":"https://10.0.0.1:443"}}"#.to_owned();
/// let mut information = PartitionInformation::default();
/// information.id = "p1".to_owned();
/// let partition = PartitionDescription::new(information, vec![instance]);
/// let service =
///     ServiceDescription::new("fabric:/Shop/Web", ServiceKind::Stateless, labels, vec![partition]);
///
/// let parsed = YarpLabels::default().parse("fabric:/Shop/Web", &service);
/// let config = parsed.config.expect("it is enabled");
/// let cluster = &config.clusters[&ClusterId::from("fabric:/Shop/Web")];
/// assert_eq!(cluster.destinations[&DestinationId::from("p1/101")].address, "https://10.0.0.1/");
/// assert_eq!(config.routes[0].r#match.path.as_deref(), Some("/{**rest}"));
/// ```
#[derive(Clone, Debug)]
pub struct YarpLabels {
    rules: LabelRules,
    options: LabelOptions,
    unsupported: Option<Unsupported>,
}

/// A check for the settings of a configuration that a proxy does not support.
pub(crate) type Unsupported = fn(&Snapshot) -> Problems;

impl YarpLabels {
    /// Creates the dialect, with `options` for services whose labels do not override them.
    pub fn new(options: LabelOptions) -> Self {
        let rules = LabelRules::new(PREFIX)
            .with_ignore_key_case(false)
            .with_unknown(options.unknown_labels)
            .with_malformed(options.unknown_labels)
            .with_alias("Backend.Healthcheck", "Backend.HealthCheck")
            .with_alias(
                "Backend.SessionAffinity.Mode",
                "Backend.SessionAffinity.Policy",
            )
            .with_alias(
                "Backend.HttpRequest.Timeout",
                "Backend.HttpRequest.ActivityTimeout",
            );
        Self {
            rules,
            options,
            unsupported: None,
        }
    }

    /// Sets the check for settings that the proxy does not support. Each label that uses one gets a
    /// warning. `proxy_runtime::unsupported` is such a function. Default: all settings are supported.
    #[must_use]
    pub fn with_unsupported(mut self, unsupported: fn(&Snapshot) -> Problems) -> Self {
        self.unsupported = Some(unsupported);
        self
    }

    /// The options for settings that labels leave open.
    pub fn options(&self) -> &LabelOptions {
        &self.options
    }
}

impl Default for YarpLabels {
    fn default() -> Self {
        Self::new(LabelOptions::default())
    }
}

impl LabelsParser<ServiceDescription, ParsedService> for YarpLabels {
    fn parse(&self, _: &str, service: &ServiceDescription) -> ParsedService {
        let tree = LabelTree::new(&service.labels, &self.rules);
        let root = tree.root();
        if let Err(reason) = enabled(&root, service) {
            return ParsedService {
                problems: reason.into_iter().collect(),
                ..ParsedService::default()
            };
        }
        if let Err(problem) = check_size(service) {
            return ParsedService {
                config: Some(Arc::default()),
                problems: [problem].into_iter().collect(),
                ..ParsedService::default()
            };
        }
        for key in service.labels.keys().filter(|key| has_prefix(key)) {
            if let Some(problem) = read::nameless_route(key, PREFIX) {
                root.report(problem);
            }
        }
        let labelled = read::read(&tree, service, &self.options, self.unsupported);
        let (config, mut replicas) = layout::lay_out(&root, service, &labelled, !tree.has_errors());
        let problems = tree.finish();
        let mut config = match problems.has_errors() {
            true => ProxyConfig::default(),
            false => config,
        };
        // They are kept, for each of tens of thousands of services.
        config.shrink_to_fit();
        replicas.shrink_to_fit();
        ParsedService {
            config: Some(Arc::new(config)),
            problems,
            replicas,
        }
    }
}

fn has_prefix(key: &str) -> bool {
    key.get(..PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// Rejects labels that would take too long to read.
fn check_size(service: &ServiceDescription) -> Result<(), Problem> {
    let own = service.labels.iter().filter(|(key, _)| has_prefix(key));
    let bytes: usize = own.map(|(key, value)| key.len() + value.len()).sum();
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("the labels of the service have {bytes} bytes, more than {MAX_BYTES}");
    let problem = Problem::error("", "labels_too_large", message);
    Err(problem
        .with_suggestion("properties of the service's name count, too, if they override labels"))
}

/// Checks that the service opted in to be served. If not, returns a hint for its owner where there is one.
fn enabled(root: &LabelNode<'_>, service: &ServiceDescription) -> Result<(), Option<Problem>> {
    const MESSAGE: &str = "the service is not served, since `YARP.Enable` is not `true`";
    if let Some(value) = root.raw("Enable") {
        let value = value.trim();
        if value.eq_ignore_ascii_case("true") {
            return Ok(());
        }
        // A parameter that is not set leaves nothing, which is a way to switch a service off.
        let is_meant = value.is_empty() || value.eq_ignore_ascii_case("false");
        let pointer = root.locate(["Enable"]);
        return Err((!is_meant).then(|| Problem::warning(pointer, "not_enabled", MESSAGE)));
    }
    let mut own = service.labels.keys().filter(|key| has_prefix(key));
    let is_near = |key: &&String| nearest(&key[PREFIX.len()..], ["Enable"]).is_some();
    let misspelt = own.clone().find(is_near);
    let Some(key) = misspelt.or_else(|| own.next()) else {
        return Err(None);
    };
    let problem = Problem::warning(pointer_to("", key), "not_enabled", MESSAGE);
    Err(Some(match misspelt {
        Some(_) => problem.with_suggestion("did you mean `YARP.Enable`?"),
        None => problem,
    }))
}
