//! Nodes: the machines behind services, as plain data.

mod kubernetes;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

pub use self::kubernetes::NodeDocument;

/// A machine behind services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name, unique within the cluster.
    pub name: String,
    /// The labels; see [`labels`].
    pub labels: BTreeMap<String, String>,
    /// The id of its machine, `azure:///subscriptions/…`. Without it the machine is the one with the node's
    /// name.
    pub provider_id: Option<String>,
    /// The addresses within the virtual network.
    pub addresses: Vec<IpAddr>,
    /// The readiness.
    pub readiness: Readiness,
    /// True if the node accepts packets for its own address only. Kubernetes nodes also accept packets for
    /// load balancer addresses (through kube-proxy), which services get unless they disable floating
    /// addresses.
    pub own_address_only: bool,
    /// The reason why the rest of the document could not be read. The node keeps its current memberships
    /// then.
    pub unreadable: Option<String>,
}

impl Node {
    /// Creates a ready node with one address.
    pub fn new(name: impl Into<String>, address: IpAddr) -> Self {
        Self {
            name: name.into(),
            addresses: vec![address],
            ..Self::default()
        }
    }

    /// Creates a node from a document that cannot be read. `None` if it has no name.
    pub(crate) fn of_unreadable(document: &serde_json::Value, why: &str) -> Option<Self> {
        let (metadata, spec) = (&document["metadata"], &document["spec"]);
        let name = metadata["name"].as_str().filter(|name| !name.is_empty())?;
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let provider_id = spec["providerID"].as_str().filter(|id| !id.is_empty());
        Some(Self {
            name: name.to_owned(),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            provider_id: provider_id.map(str::to_owned),
            readiness: Readiness::NotReady(Duration::MAX),
            unreadable: Some(why.to_owned()),
            ..Self::default()
        })
    }

    /// Returns true if the node runs the control plane, by any of the labels that have been in use for that.
    pub fn is_control_plane(&self) -> bool {
        self.labels.contains_key(labels::CONTROL_PLANE)
            || self.labels.contains_key(labels::MASTER)
            || self.labels.get(labels::OLD_ROLE).map(String::as_str) == Some("master")
    }
}

/// The readiness of a node.
///
/// The planner has no clock: the reader of nodes adds the time for which one has not been ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// The node is ready.
    #[default]
    Ready,
    /// The node has not been ready for this time.
    NotReady(Duration),
}

/// The labels of nodes that this crate uses.
pub mod labels {
    /// The label of nodes that run the control plane.
    pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// The label of control-plane nodes until Kubernetes 1.24.
    pub const MASTER: &str = "node-role.kubernetes.io/master";
    /// The label of control-plane nodes in the first versions, with value `master`.
    pub const OLD_ROLE: &str = "kubernetes.io/role";
    /// The label with the resource group of the node's machine. Nodes of another group take no part.
    pub const RESOURCE_GROUP: &str = "kubernetes.azure.com/resource-group";
    /// The label with value `false` on nodes that are not machines of Azure.
    pub const MANAGED: &str = "kubernetes.azure.com/managed";
    /// The label of nodes that take no part.
    pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
}
