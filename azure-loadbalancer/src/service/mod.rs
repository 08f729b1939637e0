//! Services to be reachable through a load balancer, as plain data.

mod kubernetes;
#[cfg(feature = "kube")]
pub(crate) use self::kubernetes::FINALIZER;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::naming;

/// The key of a service: its namespace and its name. Written `namespace/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: String,
    /// The name within the namespace.
    pub name: String,
}

impl ServiceKey {
    /// Creates a key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The error of a text that is not `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a service: write namespace/name")]
pub struct NotAServiceKey(pub String);

impl FromStr for ServiceKey {
    type Err = NotAServiceKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self::new(namespace, name))
            }
            _ => Err(NotAServiceKey(text.to_owned())),
        }
    }
}

impl Serialize for ServiceKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServiceKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A service. It is read from the JSON of Kubernetes (`kubectl get service -o json`); unused fields are
/// ignored.
///
/// Annotations are parsed only when a plan is made, so that a mistake affects only its own service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "kubernetes::ServiceDocument")]
pub struct Service {
    /// The key.
    pub key: ServiceKey,
    /// The UID from which all names of its resources are derived, so it must be unique and never change.
    /// Kubernetes assigns a UUID. A document with anything else is rejected, and so is a service of an
    /// [`Executor`](crate::Executor), because orphans are recognised by that form alone. Empty: derived from the
    /// cluster's name and the key, so that a service that is deleted and created again keeps its names.
    pub uid: String,
    /// The annotations; the keys are in [`crate::annotations::keys`].
    pub annotations: BTreeMap<String, String>,
    /// The ports.
    pub ports: Vec<ServicePort>,
    /// The requested address. Empty or absent: any.
    pub load_balancer_ip: Option<String>,
    /// The networks that may connect. Empty: all, from the internet or, if internal, from the virtual
    /// network.
    pub source_ranges: Vec<String>,
    /// True if a client stays with a backend (`sessionAffinity: ClientIP`).
    pub client_affinity: bool,
    /// True if only nodes with an instance of the service take part (`externalTrafficPolicy: Local`).
    pub local_traffic_only: bool,
    /// The port at which nodes report if they have an instance, if only those take part.
    pub health_check_node_port: Option<u16>,
    /// The class, which names the responsible controller (`spec.loadBalancerClass`); see
    /// [`Config::load_balancer_class`](crate::Config::load_balancer_class).
    pub load_balancer_class: Option<String>,
    /// True if the service requests a load balancer (`type: LoadBalancer`).
    pub load_balanced: bool,
    /// True if the service is being deleted (`metadata.deletionTimestamp`).
    pub deleting: bool,
    /// The addresses in its status, or DNS names where it has no address. `None` if there was no status.
    pub published: Option<Vec<String>>,
    /// The requested IP versions (`spec.ipFamilies`), in order of preference. Empty: IPv4.
    pub ip_families: Vec<String>,
    /// True if the service has Kubernetes' finalizer for load balancers, so that it is not gone before its
    /// resources are.
    pub has_finalizer: bool,
    /// The reason why the rest of the document could not be read. Its resources stay as they are then.
    pub unreadable: Option<String>,
}

impl Service {
    /// Creates a load-balanced service without ports and without its own UID.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            key: ServiceKey::new(namespace, name),
            load_balanced: true,
            ..Self::default()
        }
    }

    /// Returns the UID from which its names in a cluster are derived.
    pub fn uid_in(&self, cluster: &str) -> Cow<'_, str> {
        match self.uid.as_str() {
            "" => naming::uid_of(&self.key, cluster).into(),
            uid => uid.into(),
        }
    }

    /// Creates a service from a document that cannot be read. `None` if it has no name.
    pub(crate) fn of_unreadable(document: &serde_json::Value, why: &str) -> Option<Self> {
        let (metadata, spec) = (&document["metadata"], &document["spec"]);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = metadata["namespace"].as_str().unwrap_or("default");
        let name = metadata["name"].as_str().filter(|name| !name.is_empty())?;
        Some(Self {
            key: ServiceKey::new(namespace, name),
            uid: text(&metadata["uid"]),
            load_balancer_class: Some(text(&spec["loadBalancerClass"]))
                .filter(|class| !class.is_empty()),
            load_balanced: spec["type"] == "LoadBalancer",
            deleting: !metadata["deletionTimestamp"].is_null(),
            unreadable: Some(why.to_owned()),
            ..Self::default()
        })
    }

    /// Returns true if the service requests a load balancer.
    pub fn is_wanted(&self) -> bool {
        self.load_balanced && !self.deleting
    }
}

/// A port of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePort {
    /// The name, if there are several ports.
    pub name: Option<String>,
    /// `TCP` or `UDP`. A plan rejects any other protocol.
    pub protocol: String,
    /// The port of the load balancer.
    pub port: u16,
    /// The port of every node for this port.
    pub node_port: Option<u16>,
    /// The application protocol, such as `http`.
    pub app_protocol: Option<String>,
}

impl ServicePort {
    /// Creates a TCP port.
    pub fn tcp(port: u16, node_port: u16) -> Self {
        Self::new("TCP", port, node_port)
    }

    /// Creates a UDP port.
    pub fn udp(port: u16, node_port: u16) -> Self {
        Self::new("UDP", port, node_port)
    }

    fn new(protocol: &str, port: u16, node_port: u16) -> Self {
        Self {
            protocol: protocol.to_owned(),
            port,
            node_port: Some(node_port),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
