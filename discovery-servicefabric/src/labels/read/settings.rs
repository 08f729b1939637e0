//! The settings for turning a service into configuration: labels specific to Service Fabric, with options
//! as defaults.

use discovery_core::labels::LabelNode;
use proxy_model::Problem;
use proxy_model::config::{HeaderMatchMode, PartitionHash, PartitionKey, RouteHeader};

use super::no_effect;
use crate::labels::endpoints::{Schemes, shortened};
use crate::labels::options::{
    LabelOptions, ListenerMode, PartitionMode, ReplicaSelection, RoleRouting,
};
use crate::model::ServiceKind;
use crate::service::ServiceDescription;

/// The combined settings of labels and options.
#[derive(Debug)]
pub(in crate::labels) struct Settings {
    pub(in crate::labels) schemes: Schemes,
    /// The listener that requests are sent to, if it is named.
    pub(in crate::labels) listener: Option<String>,
    /// The listener that probes are sent to, if it is named.
    pub(in crate::labels) health_listener: Option<String>,
    pub(in crate::labels) listeners: ListenerMode,
    pub(in crate::labels) roles: Roles,
    pub(in crate::labels) partitions: PartitionMode,
    pub(in crate::labels) key: PartitionKey,
    pub(in crate::labels) hash: PartitionHash,
    pub(in crate::labels) default_route: bool,
    pub(in crate::labels) path_prefix: bool,
    pub(in crate::labels) max_generated: usize,
}

/// The roles of replicas.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::labels) enum Roles {
    /// The selected replicas serve all requests.
    Alike(ReplicaSelection),
    /// Reads, recognized by their methods, go to secondaries.
    ByMethod,
    /// Reads, recognized by a header, go to secondaries.
    ByHeader(RouteHeader),
}

impl Settings {
    pub(super) fn read(
        backend: &LabelNode<'_>,
        service: &ServiceDescription,
        options: &LabelOptions,
    ) -> Self {
        let node = backend.child("ServiceFabric");
        let health = backend
            .child("HealthCheck")
            .child("Active")
            .child("ServiceFabric");
        let partitions = partition_mode(&node, options);
        let (key, hash) =
            key(&node).unwrap_or_else(|| (options.partition_key.clone(), options.partition_hash));
        if partitions != PartitionMode::Key && node.child("PartitionKey").exists() {
            let message = "keys are looked at with `PartitionMode` = `Key` only";
            no_effect(&node, &["PartitionKey"], message);
        }
        let listener_modes = [
            ("One", ListenerMode::One),
            ("PerListener", ListenerMode::PerListener),
        ];
        Self {
            schemes: match options.insecure_http {
                true => Schemes::All,
                false => Schemes::Secure,
            },
            listener: node.text("ListenerName"),
            health_listener: health.text("ListenerName"),
            listeners: node
                .choice("ListenerMode", &listener_modes)
                .unwrap_or(options.listener_mode),
            roles: roles(&node, service, options),
            partitions,
            key,
            hash,
            default_route: node
                .boolean("DefaultRoute")
                .unwrap_or(options.default_route),
            path_prefix: node.boolean("PathPrefix").unwrap_or(options.path_prefix),
            max_generated: options.max_generated,
        }
    }
}

fn partition_mode(node: &LabelNode<'_>, options: &LabelOptions) -> PartitionMode {
    let modes = [
        ("Merge", PartitionMode::Merge),
        ("PerPartition", PartitionMode::PerPartition),
        ("Key", PartitionMode::Key),
    ];
    node.choice("PartitionMode", &modes)
        .unwrap_or(options.partition_mode)
}

/// Reads the place of the key from the labels below `node`, if they set it.
pub(super) fn key(node: &LabelNode<'_>) -> Option<(PartitionKey, PartitionHash)> {
    let hashes = [
        ("None", PartitionHash::None),
        ("Fnv1a64", PartitionHash::Fnv1a64),
    ];
    let node = node.child("PartitionKey");
    let key = PartitionKey {
        header: node.text("Header"),
        query_parameter: node.text("Query"),
        route_value: node.text("RouteValue"),
    };
    let hash = node.choice("Hash", &hashes);
    let places = [&key.header, &key.query_parameter, &key.route_value];
    match places.into_iter().flatten().count() {
        0 => {
            if hash.is_some() {
                let message = "a hash needs a key: `Header`, `Query` or `RouteValue`";
                node.report_here("missing_partition_key", message);
            }
            None
        }
        1 => Some((key, hash.unwrap_or_default())),
        _ => {
            let message = "a key is in one place only: `Header`, `Query` or `RouteValue`";
            node.report_here("ambiguous_partition_key", message);
            Some((key, hash.unwrap_or_default()))
        }
    }
}

fn roles(node: &LabelNode<'_>, service: &ServiceDescription, options: &LabelOptions) -> Roles {
    let routings = [
        ("Off", RoleRouting::Off),
        ("Methods", RoleRouting::Methods),
        ("Header", RoleRouting::Header),
    ];
    let written = node.choice("RoleRouting", &routings);
    let routing = written.unwrap_or(options.role_routing);
    let header = read_header(&node.child("RoleRouting").child("Header"), routing);
    let selection = selection(node);
    if routing == RoleRouting::Off {
        return Roles::Alike(selection.unwrap_or(options.replica_selection));
    }
    if service.kind == ServiceKind::Stateless {
        if written.is_some() {
            no_effect(
                node,
                &["RoleRouting"],
                "instances of a stateless service have no roles",
            );
        }
        return Roles::Alike(selection.unwrap_or(options.replica_selection));
    }
    if selection.is_some() {
        let message =
            "with `RoleRouting` the primary takes the writes and active secondaries the reads";
        no_effect(node, &["StatefulReplicaSelectionMode"], message);
    }
    match routing {
        RoleRouting::Header => {
            match header.or_else(|| options.read_header.clone()) {
                Some(header) => Roles::ByHeader(header),
                None => {
                    let message = "the header that marks a read is not named";
                    let pointer = node.locate(["RoleRouting"]);
                    let problem = Problem::error(pointer, "missing_read_header", message);
                    node.report(problem.with_suggestion(
                        "add `YARP.Backend.ServiceFabric.RoleRouting.Header.Name`",
                    ));
                    // Without its header, routing by method is the safe choice: it sends no write to a secondary.
                    Roles::ByMethod
                }
            }
        }
        _ => Roles::ByMethod,
    }
}

/// Returns the header that marks a read: with one of some values, or with any value if none are given.
fn read_header(node: &LabelNode<'_>, routing: RoleRouting) -> Option<RouteHeader> {
    let name = node.text("Name");
    let values = node.list("Value");
    if routing != RoleRouting::Header && node.exists() {
        no_effect(
            node,
            &[],
            "the header is looked at with `RoleRouting` = `Header` only",
        );
    }
    let mode = match values {
        Some(_) => HeaderMatchMode::ExactHeader,
        None => HeaderMatchMode::Exists,
    };
    if name.is_none() && values.is_some() {
        node.report_here("missing_name", "a condition needs a `Name`");
    }
    Some(RouteHeader {
        name: name?,
        values,
        mode,
        is_case_sensitive: false,
    })
}

/// Reads the mode that labels choose. An unknown one is an error: any guess could send writes to
/// secondaries.
fn selection(node: &LabelNode<'_>) -> Option<ReplicaSelection> {
    const NAME: &str = "StatefulReplicaSelectionMode";
    let text = node.text(NAME)?;
    let modes = [
        ("All", ReplicaSelection::All),
        ("PrimaryOnly", ReplicaSelection::PrimaryOnly),
        ("SecondaryOnly", ReplicaSelection::SecondaryOnly),
    ];
    let found = modes
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
    if let Some(&(_, selection)) = found {
        return Some(selection);
    }
    let message = format!(
        "`{}` is not one of All, PrimaryOnly, SecondaryOnly",
        shortened(&text)
    );
    let mut problem = Problem::error(node.locate([NAME]), "unknown_selection_mode", message);
    if let Some(near) = proxy_model::nearest(text.trim(), modes.map(|(name, _)| name)) {
        problem = problem.with_suggestion(format!("did you mean `{near}`?"));
    }
    node.report(problem);
    None
}
