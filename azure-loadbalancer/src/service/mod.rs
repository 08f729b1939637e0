//! Services: what is to be reachable through a load balancer, as plain data.

mod kubernetes;
#[cfg(feature = "kube")]
pub(crate) use self::kubernetes::FINALIZER;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::naming;

/// Which service: its namespace and its name. Written `namespace/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: String,
    /// The name within it.
    pub name: String,
}

impl ServiceKey {
    /// The key of these two.
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

/// A text is not `namespace/name`.
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

/// A service. It is read from the JSON that Kubernetes has for it (`kubectl get service -o json`); what is not of use here is
/// ignored.
///
/// Annotations are not looked at before a plan is made, so that a mistake in one service is that service's alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "kubernetes::ServiceDocument")]
pub struct Service {
    /// Which service.
    pub key: ServiceKey,
    /// What all names of its resources are made of, so it must be unique and never change. Kubernetes gives a UUID, and a document
    /// with anything else is refused: what a service leaves is known to be this crate's by that form alone. Empty: it is made of the cluster's name and the key, so that a service which is deleted and created again keeps its names.
    pub uid: String,
    /// What else is asked for; the keys are in [`crate::annotations::keys`].
    pub annotations: BTreeMap<String, String>,
    /// What is to be reachable.
    pub ports: Vec<ServicePort>,
    /// The address to use; empty or absent: any.
    pub load_balancer_ip: Option<String>,
    /// Who may connect, as networks; none: everybody, from the internet or, if internal, from the virtual network.
    pub source_ranges: Vec<String>,
    /// Whether a client stays with a backend (`sessionAffinity: ClientIP`).
    pub client_affinity: bool,
    /// Whether only nodes with an instance of the service take part (`externalTrafficPolicy: Local`).
    pub local_traffic_only: bool,
    /// Where nodes tell whether they have an instance, if only those take part.
    pub health_check_node_port: Option<u16>,
    /// Which controller is asked (`spec.loadBalancerClass`); see [`Config::load_balancer_class`](crate::Config::load_balancer_class).
    pub load_balancer_class: Option<String>,
    /// Whether a load balancer is asked for at all (`type: LoadBalancer`).
    pub load_balanced: bool,
    /// Whether the service is going away (`metadata.deletionTimestamp`).
    pub deleting: bool,
    /// Where its status says that it is reached: addresses, or names of the DNS where it has no address. Nothing if there was no
    /// status.
    pub published: Option<Vec<String>>,
    /// The versions of the internet protocol that it is to have (`spec.ipFamilies`), the first one first; none: IPv4.
    pub ip_families: Vec<String>,
    /// Whether it has Kubernetes' finalizer for load balancers, so that it is not gone before its resources are.
    pub has_finalizer: bool,
    /// Why the rest of it could not be read. What it has stays as it is then.
    pub unreadable: Option<String>,
}

impl Service {
    /// A load-balanced service without ports and without a UID of its own.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            key: ServiceKey::new(namespace, name),
            load_balanced: true,
            ..Self::default()
        }
    }

    /// The UID that its names in a cluster are made of.
    pub fn uid_in(&self, cluster: &str) -> Cow<'_, str> {
        match self.uid.as_str() {
            "" => naming::uid_of(&self.key, cluster).into(),
            uid => uid.into(),
        }
    }

    /// What is known of a service whose document cannot be read; nothing without a name.
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

    /// Whether the service is to be reachable through a load balancer.
    pub fn is_wanted(&self) -> bool {
        self.load_balanced && !self.deleting
    }
}

/// A port of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name, if there are several.
    pub name: Option<String>,
    /// `TCP` or `UDP`; others are refused when a plan is made.
    pub protocol: String,
    /// Where the load balancer is reached.
    pub port: u16,
    /// Where every node is reached for this port.
    pub node_port: Option<u16>,
    /// What is spoken, such as `http`.
    pub app_protocol: Option<String>,
}

impl ServicePort {
    /// A TCP port.
    pub fn tcp(port: u16, node_port: u16) -> Self {
        Self::new("TCP", port, node_port)
    }

    /// A UDP port.
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
