//! The cluster of a service.

use discovery_core::labels::{LabelNode, read_cluster};
use proxy_model::config::{ClusterConfig, DestinationConfig, Metadata, SessionAffinityConfig};
use proxy_model::{ClusterId, MAX_PRIORITY, Problem, same_id};

use super::require_values;
use super::settings::{Roles, Settings};
use crate::service::ServiceDescription;

/// The longest id of a cluster, in bytes. Ids of the service's routes and clusters begin with it.
const MAX_ID: usize = 1024;

/// The default name of the affinity cookie for labels of preview10, whose names differ.
const AFFINITY_COOKIE: &str = ".Yarp.ReverseProxy.Affinity";
const AFFINITY_HEADER: &str = "X-Yarp-Proxy-Affinity";

/// The id that labels choose, or else the service's name.
pub(super) fn id(backend: &LabelNode<'_>, service: &ServiceDescription) -> ClusterId {
    let Some(id) = backend.text("BackendId") else {
        return ClusterId::new(&*service.name);
    };
    if id.len() > MAX_ID || id.contains(char::is_control) {
        let message =
            format!("the id of a cluster has at most {MAX_ID} bytes and no control characters");
        backend.report_error("BackendId", "invalid_backend_id", message);
    }
    ClusterId::from(id)
}

/// The cluster without its destinations.
pub(super) fn read(backend: &LabelNode<'_>, service: &ServiceDescription) -> ClusterConfig {
    let mut cluster = read_cluster(backend);
    let health = backend.child("HealthCheck");
    for section in [
        health.child("Active"),
        health.child("Passive"),
        backend.child("SessionAffinity"),
    ] {
        require_values(&section, &["Enabled"]);
    }
    let settings = backend.child("SessionAffinity");
    if let Some(affinity) = &mut cluster.session_affinity {
        complete_affinity(&settings, affinity);
    }
    let client = backend.child("HttpClient");
    if client.raw("ActivityContextHeaders").is_some() {
        let message = "which headers of a trace are passed on is decided by the program";
        let pointer = client.locate(["ActivityContextHeaders"]);
        client.report(Problem::warning(pointer, "unsupported_label", message));
    }
    let metadata = cluster.metadata.get_or_insert_default();
    add_origin(metadata, service);
    cluster
}

/// Adds the origin of a cluster, under the keys of the successor of YARP's integration.
fn add_origin(metadata: &mut Metadata, service: &ServiceDescription) {
    for (key, value) in [
        ("__SF.ApplicationTypeName", &service.application_type),
        ("__SF.ApplicationName", &service.application),
        ("__SF.ServiceTypeName", &service.service_type),
        ("__SF.ServiceName", &service.name),
    ] {
        set(metadata, key, value);
    }
}

/// Sets a value that is known better than from labels, replacing it in any spelling.
pub(in crate::labels) fn set(metadata: &mut Metadata, key: &str, value: &str) {
    metadata.retain(|written, _| !same_id(written, key));
    metadata.insert(key.to_owned(), value.to_owned());
}

/// Fills in what preview10 wrote in other places, or left to defaults.
fn complete_affinity(node: &LabelNode<'_>, affinity: &mut SessionAffinityConfig) {
    for (key, value) in node.map("Settings").iter().flatten() {
        if key == "CustomHeaderName" {
            affinity
                .affinity_key_name
                .get_or_insert_with(|| value.clone());
            continue;
        }
        let pointer = node.locate(["Settings"].into_iter().chain(key.split('.')));
        let message = format!("`{key}` is not a setting of affinity that is known");
        let problem = Problem::warning(pointer, "unknown_label", message);
        node.report(
            problem.with_suggestion("settings are `CustomHeaderName`; cookies have `Cookie.*`"),
        );
    }
    if affinity.enabled == Some(true) && affinity.affinity_key_name.is_none() {
        let header = affinity
            .policy
            .as_deref()
            .is_some_and(|policy| same_id(policy, "CustomHeader"));
        let name = if header {
            AFFINITY_HEADER
        } else {
            AFFINITY_COOKIE
        };
        affinity.affinity_key_name = Some(name.to_owned());
    }
}

/// Returns the settings that all destinations share.
pub(super) fn destination(node: &LabelNode<'_>, settings: &Settings) -> DestinationConfig {
    let priority = node.integer("Priority");
    let highest = match settings.roles {
        Roles::Alike(_) => MAX_PRIORITY,
        // The primary comes after the secondaries.
        Roles::ByMethod | Roles::ByHeader(_) => MAX_PRIORITY - 1,
    };
    if priority.is_some_and(|priority| priority > highest) {
        let message = format!("the tier is larger than {highest}");
        node.report_error("Priority", "out_of_range", message);
    }
    DestinationConfig {
        weight: node.integer("Weight"),
        priority,
        zone: node.text("Zone"),
        host: node.text("Host"),
        metadata: node.map("Metadata"),
        ..DestinationConfig::default()
    }
}
