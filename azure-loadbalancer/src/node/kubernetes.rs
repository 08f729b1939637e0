//! The used part of Kubernetes' `v1` `Node`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;

use super::{Node, Readiness};
use crate::resources::null_as_default;

/// A node in Kubernetes' JSON form (`kubectl get node -o json`).
#[derive(Clone, Debug, Deserialize)]
pub struct NodeDocument {
    metadata: NodeMetadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: NodeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeMetadata {
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Vec<Address>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Option<String>,
}

impl NodeDocument {
    /// Returns the time of the last change of readiness (RFC 3339), if the node is not ready now.
    ///
    /// A node without a reported readiness is not ready, since an unknown time.
    pub fn not_ready_since(&self) -> Option<Option<&str>> {
        let ready = self
            .status
            .conditions
            .iter()
            .find(|condition| condition.kind == "Ready");
        match ready {
            Some(condition) if condition.status == "True" => None,
            Some(condition) => Some(condition.last_transition_time.as_deref()),
            None => Some(None),
        }
    }

    /// Converts to a node. `not_ready_for` is the time for which it has not been ready, if it is not
    /// ([`Self::not_ready_since`]).
    pub fn into_node(self, not_ready_for: Duration) -> Node {
        let readiness = match self.not_ready_since() {
            None => Readiness::Ready,
            Some(_) => Readiness::NotReady(not_ready_for),
        };
        let internal = self
            .status
            .addresses
            .iter()
            .filter(|address| address.kind == "InternalIP");
        Node {
            name: self.metadata.name,
            labels: self.metadata.labels,
            provider_id: self.spec.provider_id.filter(|id| !id.is_empty()),
            addresses: internal
                .filter_map(|address| address.address.parse::<IpAddr>().ok())
                .collect(),
            readiness,
            ..Node::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::NodeDocument;
    use crate::node::Readiness;

    fn read(status: &str) -> NodeDocument {
        serde_json::from_value(json!({
            "metadata": {"name": "vm-0", "labels": {"node-role.kubernetes.io/control-plane": ""}},
            "spec": {"providerID": "azure:///subscriptions/s"},
            "status": {
                "addresses": [
                    {"type": "Hostname", "address": "vm-0"}, {"type": "InternalIP", "address": "10.0.0.4"}
                ],
                "conditions": [
                    {"type": "DiskPressure", "status": "False"},
                    {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
                ]
            }
        }))
        .expect("it reads")
    }

    #[test]
    fn a_ready_node_is_read() {
        let node = read("True").into_node(Duration::from_secs(9));
        assert_eq!(node.readiness, Readiness::Ready);
        assert_eq!(
            node.addresses,
            ["10.0.0.4".parse::<std::net::IpAddr>().expect("an address")]
        );
        assert!(node.is_control_plane());
        assert_eq!(
            node.provider_id.as_deref(),
            Some("azure:///subscriptions/s")
        );
    }

    #[test]
    fn a_node_is_not_ready_since_its_last_change() {
        for status in ["False", "Unknown"] {
            let document = read(status);
            assert_eq!(
                document.not_ready_since(),
                Some(Some("2026-01-01T00:00:00Z"))
            );
            let node = document.into_node(Duration::from_secs(9));
            assert_eq!(node.readiness, Readiness::NotReady(Duration::from_secs(9)));
        }
    }

    #[test]
    fn a_node_that_says_nothing_is_not_ready() {
        let document: NodeDocument =
            serde_json::from_value(json!({"metadata": {"name": "n"}})).expect("it reads");
        assert_eq!(document.not_ready_since(), Some(None));
    }
}
