//! The cluster of a topology, and its nodes.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::hosting::Span;

/// The cluster itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ClusterDescription {
    /// The name. Default: `local`.
    pub name: String,
    /// The version of the runtime that the cluster reports. Default: `9.1.2277.9590`.
    pub version: String,
    /// The date at which the clock begins: an ISO 8601 date in UTC. Default: `2026-01-01T00:00:00Z`; in the
    /// program, unless time stands still, the present.
    pub start: Option<String>,
    /// The nodes: a number, or a list. Default: 5.
    pub nodes: NodesDescription,
    /// The first and the last port for endpoints without a fixed one. Default: 20000 to 29999.
    pub ports: (u16, u16),
    /// The interval at which health reports that are not immediate reach the store. 0: at once. Default: 30
    /// s.
    pub health_report_interval: Span,
    /// The maximum age of cached answers of the naming service. 0: no cache; infinite: until a client
    /// requests a newer answer. Default: 10 s.
    pub resolve_cache: Span,
    /// The duration of an election of a primary. Default: 0.
    pub reconfiguration_time: Span,
}

impl Default for ClusterDescription {
    fn default() -> Self {
        Self {
            name: "local".to_owned(),
            version: "9.1.2277.9590".to_owned(),
            start: None,
            nodes: NodesDescription::Count(5),
            ports: (20_000, 29_999),
            health_report_interval: Span::from_secs(30),
            resolve_cache: Span::from_secs(10),
            reconfiguration_time: Span::ZERO,
        }
    }
}

/// The nodes: their number, or a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NodesDescription {
    /// A number of nodes, with the names `_Node_0`, `_Node_1`, …, spread over five fault and upgrade domains.
    Count(u32),
    /// The list of nodes.
    List(Vec<NodeDescription>),
}

impl NodesDescription {
    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::List(nodes) => nodes.len(),
        }
    }
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeDescription {
    /// The name. Default: `_Node_` and its number.
    pub name: Option<String>,
    /// The address. Default: `10.0.0.4` for the first, `10.0.0.5` for the next…
    pub address: Option<String>,
    /// The node type, which constraints call `NodeType`. Default: `Node`.
    pub node_type: Option<String>,
    /// The upgrade domain. Default: the number of the node, modulo five.
    pub upgrade_domain: Option<String>,
    /// The fault domain. Default: `fd:/` and the number of the node, modulo five.
    pub fault_domain: Option<String>,
    /// The properties for placement constraints.
    pub properties: IndexMap<String, String>,
    /// True if the node is down at the beginning. Default: false.
    pub down: bool,
}
