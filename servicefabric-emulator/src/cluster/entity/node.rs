//! Nodes.

use std::sync::Arc;

use super::wire_words;
use crate::hosting::Moment;

/// A machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its name, e.g. `_Node_0`.
    pub name: Arc<str>,
    /// Address or host name under which it is reached.
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
    /// Whether it is up, and whether it takes replicas.
    pub status: NodeStatus,
    /// Whether it takes part in keeping the cluster together.
    pub is_seed_node: bool,
    /// Id: 32 hexadecimal digits.
    pub id: String,
    /// Id of the present life of the node: another one after each restart.
    pub instance_id: i64,
    /// Since when it has been up; `None` while it is down.
    pub up_at: Option<Moment>,
    /// Since when it has been down; `None` while it is up.
    pub down_at: Option<Moment>,
    /// What was asked for when it was deactivated; `None` when it was not.
    pub deactivation: Option<Deactivation>,
    /// Properties that placement constraints can ask for, besides `NodeType` and `NodeName`.
    pub properties: Vec<(String, String)>,
}

impl Node {
    /// Whether replicas may be placed on it.
    pub fn takes_replicas(&self) -> bool {
        self.status == NodeStatus::Up && self.deactivation.is_none()
    }
}

/// A deactivation that is under way, or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deactivation {
    /// Why it was asked for.
    pub intent: DeactivationIntent,
    /// Whether everything has been moved away or closed.
    pub completed: bool,
    /// When it was asked for.
    pub since: Moment,
}

/// Why a node is deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeactivationIntent {
    /// It takes nothing new, and keeps what it has.
    Pause,
    /// It comes back soon with its state: persisted replicas stay its own.
    Restart,
    /// It comes back without its state.
    RemoveData,
    /// It does not come back.
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
    /// It runs.
    Up,
    /// It does not run.
    Down,
    /// It is being activated.
    Enabling,
    /// It is being deactivated.
    Disabling,
    /// It is deactivated.
    Disabled,
}

wire_words!(NodeStatus {
    Up = "Up",
    Down = "Down",
    Enabling = "Enabling",
    Disabling = "Disabling",
    Disabled = "Disabled",
});

/// Which nodes a list is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeStatusFilter {
    /// All that the cluster has: `default` and `all`.
    #[default]
    All,
    /// Those of one status.
    Only(NodeStatus),
    /// None: `unknown` and `removed`, which nodes of this cluster never are.
    Nothing,
}

impl NodeStatusFilter {
    /// Reads the word of a request, in any case; `None` for another one.
    pub fn from_word(word: &str) -> Option<Self> {
        if word.eq_ignore_ascii_case("default") || word.eq_ignore_ascii_case("all") {
            return Some(Self::All);
        }
        if word.eq_ignore_ascii_case("unknown") || word.eq_ignore_ascii_case("removed") {
            return Some(Self::Nothing);
        }
        NodeStatus::from_word(word).map(Self::Only)
    }

    /// Whether a node of this status belongs to the list.
    pub fn admits(self, status: NodeStatus) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == status,
            Self::Nothing => false,
        }
    }
}
