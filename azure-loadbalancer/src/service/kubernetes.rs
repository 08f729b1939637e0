//! The used part of Kubernetes' `v1` `Service`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Service, ServiceKey, ServicePort};
use crate::naming;
use crate::resources::null_as_default;

/// The finalizer that Kubernetes' service controller puts on services with a load balancer.
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

#[derive(Deserialize)]
pub(super) struct ServiceDocument {
    metadata: ServiceMetadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ServiceSpec,
    /// The status. An invalid one does not make the service unreadable.
    #[serde(default)]
    status: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceMetadata {
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    namespace: String,
    #[serde(default, deserialize_with = "null_as_default")]
    uid: String,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: BTreeMap<String, String>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    #[serde(default, deserialize_with = "null_as_default")]
    finalizers: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    ports: Vec<Port>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    load_balancer_source_ranges: Vec<String>,
    session_affinity: Option<String>,
    external_traffic_policy: Option<String>,
    load_balancer_class: Option<String>,
    health_check_node_port: Option<u16>,
    #[serde(deserialize_with = "null_as_default")]
    ip_families: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    name: Option<String>,
    protocol: Option<String>,
    port: u16,
    node_port: Option<u16>,
    app_protocol: Option<String>,
}

impl From<ServiceDocument> for Service {
    fn from(document: ServiceDocument) -> Self {
        let ServiceDocument {
            metadata,
            spec,
            status,
        } = document;
        let namespace = match metadata.namespace {
            namespace if namespace.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        let key = ServiceKey::new(namespace, metadata.name);
        let is = |text: &Option<String>, value: &str| text.as_deref() == Some(value);
        let unreadable = naming::check_uid(&metadata.uid).err();
        Self {
            key,
            uid: metadata.uid,
            annotations: metadata.annotations,
            ports: spec.ports.into_iter().map(ServicePort::from).collect(),
            load_balancer_ip: spec.load_balancer_ip.filter(|ip| !ip.trim().is_empty()),
            source_ranges: spec.load_balancer_source_ranges,
            client_affinity: is(&spec.session_affinity, "ClientIP"),
            local_traffic_only: is(&spec.external_traffic_policy, "Local"),
            health_check_node_port: spec.health_check_node_port.filter(|port| *port != 0),
            load_balancer_class: spec.load_balancer_class.filter(|class| !class.is_empty()),
            load_balanced: is(&spec.kind, "LoadBalancer"),
            deleting: metadata.deletion_timestamp.is_some(),
            published: published(&status),
            ip_families: spec.ip_families,
            has_finalizer: metadata.finalizers.iter().any(|one| one == FINALIZER),
            unreadable,
        }
    }
}

fn published(status: &Value) -> Option<Vec<String>> {
    let status = status.as_object()?;
    let ingress = status.get("loadBalancer").map(|told| &told["ingress"]);
    let entries = ingress.and_then(Value::as_array).into_iter().flatten();
    let shown = entries.map(|entry| entry["ip"].as_str().or_else(|| entry["hostname"].as_str()));
    Some(
        shown
            .map(|text| text.unwrap_or_default().to_owned())
            .collect(),
    )
}

impl From<Port> for ServicePort {
    fn from(port: Port) -> Self {
        Self {
            name: port.name,
            protocol: port.protocol.unwrap_or_else(|| "TCP".to_owned()),
            port: port.port,
            node_port: port.node_port.filter(|port| *port != 0),
            app_protocol: port.app_protocol,
        }
    }
}
