//! Nodes.

use std::sync::Arc;

use super::wire_words;
use crate::hosting::Timestamp;

/// A machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The name, e.g. `_Node_0`.
    pub name: Arc<str>,
    /// The address or host name.
    pub address: String,
    /// The node type that it belongs to.
    pub node_type: String,
    /// The upgrade domain: nodes that are upgraded at the same time.
    pub upgrade_domain: String,
    /// The fault domain: nodes that may fail together.
    pub fault_domain: String,
    /// Version of the runtime.
    pub code_version: String,
    /// Version of the cluster's configuration.
    pub config_version: String,
    /// The status, including deactivation.
    pub status: NodeStatus,
    /// True if the node is a seed node.
    pub is_seed_node: bool,
    /// Id: 32 hexadecimal digits.
    pub id: String,
    /// The id of the present life of the node, which changes with each restart.
    pub instance_id: i64,
    /// The time since which the node is up. `None` while it is down.
    pub up_at: Option<Timestamp>,
    /// The time since which the node is down. `None` while it is up.
    pub down_at: Option<Timestamp>,
    /// The request that deactivated the node. `None` if it is active.
    pub deactivation: Option<Deactivation>,
    /// The properties for placement constraints, besides `NodeType` and `NodeName`.
    pub properties: Vec<(String, String)>,
}

impl Node {
    /// Returns true if replicas may be placed on the node.
    pub fn takes_replicas(&self) -> bool {
        self.status == NodeStatus::Up && self.deactivation.is_none()
    }
}

/// A deactivation, in progress or complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deactivation {
    /// The intent of the request.
    pub intent: DeactivationIntent,
    /// True if all replicas have been moved away or closed.
    pub completed: bool,
    /// The time of the request.
    pub since: Timestamp,
}

/// The intent of a deactivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeactivationIntent {
    /// The node takes no new replicas, and keeps those that it has.
    Pause,
    /// The node returns soon with its state; persisted replicas remain assigned to it.
    Restart,
    /// The node returns without its state.
    RemoveData,
    /// The node does not return.
    RemoveNode,
}

wire_words!(DeactivationIntent {
    Pause = "Pause",
    Restart = "Restart",
    RemoveData = "RemoveData",
    RemoveNode = "RemoveNode",
});

/// The status of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeStatus {
    /// The node runs.
    Up,
    /// The node does not run.
    Down,
    /// The node is being activated.
    Enabling,
    /// The node is being deactivated.
    Disabling,
    /// The node is deactivated.
    Disabled,
}

wire_words!(NodeStatus {
    Up = "Up",
    Down = "Down",
    Enabling = "Enabling",
    Disabling = "Disabling",
    Disabled = "Disabled",
});

/// The nodes that a list includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeStatusFilter {
    /// All nodes of the cluster: `default` and `all`.
    #[default]
    All,
    /// The nodes of one status.
    Only(NodeStatus),
    /// No node: `unknown` and `removed`, which nodes of this cluster never are.
    Nothing,
}

impl NodeStatusFilter {
    /// Parses the word of a request, in any case. `None` for an unknown one.
    pub fn from_word(word: &str) -> Option<Self> {
        if word.eq_ignore_ascii_case("default") || word.eq_ignore_ascii_case("all") {
            return Some(Self::All);
        }
        if word.eq_ignore_ascii_case("unknown") || word.eq_ignore_ascii_case("removed") {
            return Some(Self::Nothing);
        }
        NodeStatus::from_word(word).map(Self::Only)
    }

    /// Returns true if a node of this status belongs to the list.
    pub fn admits(self, status: NodeStatus) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == status,
            Self::Nothing => false,
        }
    }
}
