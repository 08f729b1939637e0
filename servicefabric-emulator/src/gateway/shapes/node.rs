use serde::Serialize;

use crate::cluster::{Deactivation, Node};
use crate::gateway::wire::{ClockStart, text};
use crate::hosting::Timestamp;

/// `NodeInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NodeInfo<'a> {
    name: &'a str,
    #[serde(rename = "IpAddressOrFQDN")]
    address: &'a str,
    #[serde(rename = "Type")]
    node_type: &'a str,
    code_version: &'a str,
    config_version: &'a str,
    node_status: &'static str,
    node_up_time_in_seconds: String,
    health_state: &'static str,
    is_seed_node: bool,
    upgrade_domain: &'a str,
    fault_domain: &'a str,
    id: NodeId<'a>,
    instance_id: String,
    node_deactivation_info: NodeDeactivationInfo,
    is_stopped: bool,
    node_down_time_in_seconds: String,
    node_up_at: String,
    node_down_at: String,
    node_tags: [&'static str; 0],
    is_node_by_node_upgrade_in_progress: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeId<'a> {
    id: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeDeactivationInfo {
    node_deactivation_intent: &'static str,
    node_deactivation_status: &'static str,
    node_deactivation_task: Vec<DeactivationTask>,
    pending_safety_checks: [&'static str; 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeactivationTask {
    node_deactivation_task_id: DeactivationTaskId,
    node_deactivation_intent: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeactivationTaskId {
    id: &'static str,
    node_deactivation_task_type: &'static str,
}

impl<'a> NodeInfo<'a> {
    pub(crate) fn new(
        node: &'a Node,
        health_state: &'static str,
        now: Timestamp,
        epoch: ClockStart,
    ) -> Self {
        let seconds_since = |since: Option<Timestamp>| {
            text(since.map_or(0, |since| now.since(since).as_millis() / 1_000))
        };
        Self {
            name: &node.name,
            address: &node.address,
            node_type: &node.node_type,
            code_version: &node.code_version,
            config_version: &node.config_version,
            node_status: node.status.as_str(),
            node_up_time_in_seconds: seconds_since(node.up_at),
            health_state,
            is_seed_node: node.is_seed_node,
            upgrade_domain: &node.upgrade_domain,
            fault_domain: &node.fault_domain,
            id: NodeId { id: &node.id },
            instance_id: text(node.instance_id),
            node_deactivation_info: NodeDeactivationInfo::new(node.deactivation.as_ref()),
            is_stopped: false,
            node_down_time_in_seconds: seconds_since(node.down_at),
            node_up_at: epoch.date_or_never(node.up_at),
            node_down_at: epoch.date_or_never(node.down_at),
            node_tags: [],
            is_node_by_node_upgrade_in_progress: false,
        }
    }
}

impl NodeDeactivationInfo {
    fn new(deactivation: Option<&Deactivation>) -> Self {
        let Some(deactivation) = deactivation else {
            return Self {
                node_deactivation_intent: "Invalid",
                node_deactivation_status: "None",
                node_deactivation_task: Vec::new(),
                pending_safety_checks: [],
            };
        };
        let intent = deactivation.intent.as_str();
        Self {
            node_deactivation_intent: intent,
            node_deactivation_status: if deactivation.completed {
                "Completed"
            } else {
                "SafetyCheckInProgress"
            },
            node_deactivation_task: vec![DeactivationTask {
                node_deactivation_task_id: DeactivationTaskId {
                    id: "Client",
                    node_deactivation_task_type: "Client",
                },
                node_deactivation_intent: intent,
            }],
            pending_safety_checks: [],
        }
    }
}
