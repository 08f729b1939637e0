//! The health reports of the cluster's system services.
//!
//! Each system service has its own source: the failover manager speaks of nodes, services and partitions, the
//! cluster manager of applications, the reconfiguration agent of replicas. Hosting speaks for itself.

use std::sync::Arc;

use super::entity::{NodeStatus, Vitals};
use super::identity::{PartitionId, ReplicaRef};
use super::name::FabricName;
use super::state::Cluster;
use crate::health::{EntityKey, HealthReport, HealthState};

const FAILOVER: &str = "System.FM";
const CLUSTER: &str = "System.CM";
const AGENT: &str = "System.RA";
const PLACEMENT: &str = "System.RAP";

impl Cluster {
    fn say(&mut self, key: &EntityKey, report: HealthReport) {
        self.health.apply_report(key, report, self.now, self.now);
    }

    pub(super) fn say_node_status(&mut self, node: &Arc<str>) {
        let Some(status) = self.node(node).map(|node| node.status) else {
            return;
        };
        let (state, sentence) = match status {
            NodeStatus::Down => (HealthState::Error, "Fabric node is down."),
            _ => (HealthState::Ok, "Fabric node is up."),
        };
        let report = HealthReport::new(FAILOVER, "State", state).with_description(sentence);
        self.say(&EntityKey::Node(node.clone()), report);
    }

    pub(super) fn say_application_was_created(&mut self, name: &FabricName) {
        let report = HealthReport::new(CLUSTER, "State", HealthState::Ok)
            .with_description("Application has been created.");
        self.say(&EntityKey::Application(name.clone()), report);
    }

    pub(super) fn say_service_was_created(&mut self, name: &FabricName) {
        let report = HealthReport::new(FAILOVER, "State", HealthState::Ok)
            .with_description("Service has been created.");
        self.say(&EntityKey::Service(name.clone()), report);
    }

    pub(super) fn say_vitals(&mut self, id: PartitionId, vitals: Vitals) {
        let (state, sentence) = match vitals {
            Vitals::Unknown => return,
            Vitals::Healthy => (HealthState::Ok, "Partition is healthy."),
            Vitals::BelowTarget => (
                HealthState::Warning,
                "Partition is below target replica or instance count.",
            ),
            Vitals::QuorumLoss => (HealthState::Error, "Partition is in quorum loss."),
        };
        let report = HealthReport::new(FAILOVER, "State", state).with_description(sentence);
        self.say(&EntityKey::Partition(id), report);
    }

    pub(super) fn say_replica_was_created(&mut self, key: ReplicaRef) {
        let report = HealthReport::new(AGENT, "State", HealthState::Ok)
            .with_description("Replica has been created.");
        self.say(&EntityKey::Replica(key), report);
    }

    /// Withdraws the reports about failures to open a replica of the partition.
    pub(super) fn say_replica_is_open(&mut self, key: ReplicaRef) {
        let partition = EntityKey::Partition(key.partition);
        self.health
            .withdraw(&partition, PLACEMENT, "ReplicaOpenStatus");
    }

    /// Reports that a replica could not be opened. The report is about the partition, since the replica is
    /// dropped.
    pub(super) fn say_open_failed(&mut self, id: PartitionId, key: ReplicaRef, reason: &str) {
        let shown: String = reason.chars().take(1000).collect();
        let sentence = format!("Replica {} could not be opened: {shown}", key.replica);
        let report = HealthReport::new(PLACEMENT, "ReplicaOpenStatus", HealthState::Warning)
            .with_description(sentence);
        self.say(&EntityKey::Partition(id), report);
    }
}
