//! Nodes: the machines that answer for services, as plain data.

mod kubernetes;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

pub use self::kubernetes::NodeDocument;

/// A machine that answers for services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique within the cluster.
    pub name: String,
    /// What is said about it; see [`labels`].
    pub labels: BTreeMap<String, String>,
    /// `azure:///subscriptions/…`, the id of its machine. Without it the machine is the one with the node's name.
    pub provider_id: Option<String>,
    /// Where it is reached within the virtual network.
    pub addresses: Vec<IpAddr>,
    /// Whether it can answer.
    pub readiness: Readiness,
}

impl Node {
    /// A node that is ready, with one address.
    pub fn new(name: impl Into<String>, address: IpAddr) -> Self {
        Self {
            name: name.into(),
            addresses: vec![address],
            ..Self::default()
        }
    }

    /// Whether the node runs the control plane of a cluster, by any of the labels that were in use for that.
    pub fn is_control_plane(&self) -> bool {
        self.labels.contains_key(labels::CONTROL_PLANE)
            || self.labels.contains_key(labels::MASTER)
            || self.labels.get(labels::OLD_ROLE).map(String::as_str) == Some("master")
    }
}

/// Whether a node can answer.
///
/// The planner has no clock: who reads nodes says for how long one has not been ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// It can.
    #[default]
    Ready,
    /// It cannot, for so long.
    NotReady(Duration),
}

/// Labels that are looked at.
pub mod labels {
    /// The node runs the control plane.
    pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// The same, until Kubernetes 1.24.
    pub const MASTER: &str = "node-role.kubernetes.io/master";
    /// The same, with value `master`, in the first versions.
    pub const OLD_ROLE: &str = "kubernetes.io/role";
    /// The resource group of the node's machine; nodes of another group take no part.
    pub const RESOURCE_GROUP: &str = "kubernetes.azure.com/resource-group";
    /// `false`: the node's machine is not one of Azure's.
    pub const MANAGED: &str = "kubernetes.azure.com/managed";
    /// Whoever has it takes no part.
    pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
}
