//! The events of hosting and their effects on the cluster.

use std::sync::Arc;

use super::entity::{Intent, ReplicaRole};
use super::failover::replica_ref;
use super::identity::ReplicaRef;
use super::name::FabricName;
use super::state::Cluster;
use crate::health::{EntityKey, HealthReport};
use crate::hosting::{
    self, DeactivationTarget, Event, HealthEntity, PackageKey, Rejection, SOURCE, TypeKey,
};

impl Cluster {
    /// Handles the events of the nodes since the last call.
    pub(super) fn hear_hosting(&mut self) {
        self.unheard = false;
        // The handlers change the nodes, so the events are collected first.
        let mut heard = Vec::new();
        for (name, entry) in &mut self.nodes {
            let events = entry.host.take_events();
            heard.extend(
                events
                    .into_iter()
                    .map(|logged| (name.clone(), logged.event)),
            );
        }
        for (node, event) in heard {
            self.on_event(&node, event);
        }
    }

    fn on_event(&mut self, node: &Arc<str>, event: Event) {
        match event {
            Event::ReplicaOpened { replica, .. } => self.on_opened(node, &replica),
            Event::ReplicaDown { replica, .. } => {
                if let Some(key) = replica_ref(&replica) {
                    self.on_down(key);
                }
            }
            Event::PlacementRejected { replica, reason } => {
                // A stopped node loses its replicas in `stop_node`, so its rejections add nothing.
                if let Some(key) =
                    replica_ref(&replica).filter(|_| reason != Rejection::NodeStopped)
                {
                    self.on_rejected(node, key);
                }
            }
            Event::TypeDisabled { service_type } => {
                self.blocked
                    .entry(service_type)
                    .or_default()
                    .insert(node.clone());
            }
            Event::TypeEnabled { service_type } => self.unblock(node, &service_type),
            Event::ApplicationActivated { application } => {
                self.deploy_application(node, &application)
            }
            Event::AttemptStarted { package, .. } => self.deploy_package(node, &package),
            Event::UpgradeAbandoned { package, .. } => self.return_to_service(node, &package),
            Event::Deactivated { target } => self.undeploy(node, &target),
            Event::OperationAbandoned { package, .. } => self.on_abandoned(node, package),
            Event::Health {
                entity,
                property,
                report,
            } => {
                self.on_health(node, entity, &property, report);
            }
            _ => {}
        }
    }

    fn on_opened(&mut self, node: &Arc<str>, replica: &hosting::ReplicaKey) {
        let known = replica_ref(replica);
        let known = known.filter(|key| self.replica(*key).is_some_and(|found| found.node == *node));
        match known {
            Some(key) => self.open(key),
            // The replica was dropped while its node was down.
            None => {
                if let Some(entry) = self.nodes.get_mut(node) {
                    let _ = entry.host.close(replica);
                    self.unheard = true;
                }
            }
        }
    }

    /// Handles the loss of a replica's process.
    fn on_down(&mut self, key: ReplicaRef) {
        let Some(replica) = self.replica(key) else {
            return;
        };
        let service = self
            .partitions
            .get(&key.partition)
            .map(|found| &found.service);
        let service = service.and_then(|name| self.services.get(name));
        let comes_back = service.is_some_and(|service| service.has_persisted_state);
        let upgraded = replica.intent == Intent::Upgrade;
        if upgraded && !self.is_stateful(key.partition) {
            self.replace_upgraded(key);
            return;
        }
        if comes_back || upgraded {
            self.went_down(key);
            return;
        }
        // A replica without persisted state returns as a new one. Its node is preferred, since the process
        // restarts there.
        let node = replica.node.clone();
        let leaving = replica.intent == Intent::Leave;
        self.end_workload(key, true);
        self.close_in_hosting(key, &node);
        self.forget_replica(key);
        if leaving {
            return;
        }
        let Some(partition) = self.partitions.get(&key.partition) else {
            return;
        };
        let chosen = self
            .choose_node(partition, Some(&node))
            .filter(|chosen| *chosen == node);
        if let Some(node) = chosen {
            let stateful = self.is_stateful(key.partition);
            let role = if stateful {
                ReplicaRole::IdleSecondary
            } else {
                ReplicaRole::None
            };
            self.place(key.partition, &node, role);
        }
    }

    /// Replaces an instance whose process has made way for another version. The new instance, with a new id,
    /// waits for that version.
    fn replace_upgraded(&mut self, key: ReplicaRef) {
        let Some(node) = self.replica(key).map(|replica| replica.node.clone()) else {
            return;
        };
        self.end_workload(key, true);
        self.close_in_hosting(key, &node);
        self.forget_replica(key);
        let placed = self.place(key.partition, &node, ReplicaRole::None);
        if let Some(instance) = placed.and_then(|placed| self.replica_mut(placed)) {
            instance.intent = Intent::Upgrade;
        }
    }

    fn on_rejected(&mut self, node: &Arc<str>, key: ReplicaRef) {
        if self
            .replica(key)
            .is_some_and(|replica| replica.node == *node)
        {
            self.end_workload(key, true);
            self.forget_replica(key);
            self.reject(key.partition, node.clone());
        }
    }

    fn unblock(&mut self, node: &str, service_type: &TypeKey) {
        let Some(nodes) = self.blocked.get_mut(service_type) else {
            return;
        };
        nodes.remove(node);
        if nodes.is_empty() {
            self.blocked.remove(service_type);
        }
        self.retry_unplaced();
    }

    /// Retries all partitions without a node for a replica.
    pub(super) fn retry_unplaced(&mut self) {
        self.dirty.extend(self.unplaced.iter().copied());
        self.dirty.extend(self.everywhere.iter().copied());
    }

    fn deploy_application(&mut self, node: &Arc<str>, application: &str) {
        if let Ok(name) = FabricName::parse(application) {
            let key = EntityKey::DeployedApplication {
                application: name.clone(),
                node: node.clone(),
            };
            self.health.insert(key, Some(EntityKey::Application(name)));
        }
    }

    fn deploy_package(&mut self, node: &Arc<str>, package: &PackageKey) {
        let Ok(application) = FabricName::parse(&package.application) else {
            return;
        };
        self.deploy_application(node, &package.application);
        let key = EntityKey::DeployedServicePackage {
            package: package.clone(),
            node: node.clone(),
        };
        let above = EntityKey::DeployedApplication {
            application,
            node: node.clone(),
        };
        self.health.insert(key, Some(above));
    }

    /// Handles an abandoned operation. Its package is gone as well, unless the operation was the download of
    /// an upgrade, or a new operation has begun already.
    fn on_abandoned(&mut self, node: &Arc<str>, package: PackageKey) {
        let deployed = self.nodes.get(node).is_some_and(|entry| {
            let packages = entry.host.packages(&package.application);
            packages.iter().any(|found| found.key == package)
        });
        if !deployed {
            self.undeploy(node, &DeactivationTarget::Package(package));
        }
    }

    fn undeploy(&mut self, node: &Arc<str>, target: &DeactivationTarget) {
        match target {
            DeactivationTarget::Application(name) => {
                if let Ok(application) = FabricName::parse(name) {
                    let node = node.clone();
                    self.health
                        .remove(&EntityKey::DeployedApplication { application, node });
                }
            }
            DeactivationTarget::Package(package) => {
                let key = EntityKey::DeployedServicePackage {
                    package: package.clone(),
                    node: node.clone(),
                };
                self.health.remove(&key);
            }
        }
    }

    fn on_health(
        &mut self,
        node: &Arc<str>,
        entity: HealthEntity,
        property: &str,
        report: hosting::HealthReport,
    ) {
        let key = match entity {
            HealthEntity::DeployedApplication(name) => {
                let Ok(application) = FabricName::parse(&name) else {
                    return;
                };
                // A withdrawn report may concern an entity that has gone together with its node.
                if matches!(report, hosting::HealthReport::State { .. }) {
                    self.deploy_application(node, &name);
                }
                EntityKey::DeployedApplication {
                    application,
                    node: node.clone(),
                }
            }
            HealthEntity::DeployedServicePackage(package) => {
                if matches!(report, hosting::HealthReport::State { .. }) {
                    self.deploy_package(node, &package);
                }
                EntityKey::DeployedServicePackage {
                    package,
                    node: node.clone(),
                }
            }
        };
        match report {
            hosting::HealthReport::Removed => self.health.withdraw(&key, SOURCE, property),
            hosting::HealthReport::State { state, description } => {
                let report =
                    HealthReport::new(SOURCE, property, state).with_description(description);
                self.health.apply_report(&key, report, self.now, self.now);
            }
        }
    }

    /// Removes everything that was deployed on a node from the health store.
    pub(super) fn undeploy_all(&mut self, node: &Arc<str>) {
        let names: Vec<FabricName> = self.applications.keys().cloned().collect();
        for application in names {
            let node = node.clone();
            self.health
                .remove(&EntityKey::DeployedApplication { application, node });
        }
        for nodes in self.blocked.values_mut() {
            nodes.remove(node);
        }
        self.blocked.retain(|_, nodes| !nodes.is_empty());
    }

    /// Sends a node the scripted behaviour of a package, if there is one and the node does not have it yet.
    pub(super) fn script_package(&mut self, node: &Arc<str>, package: &PackageKey) {
        let Some(entry) = self.nodes.get_mut(node) else {
            return;
        };
        if self.scripts.is_empty() || !entry.scripted.insert(package.clone()) {
            // A second script would start the behaviour over.
            return;
        }
        // The last matching script wins.
        let mut scripts = self.scripts.iter().rev();
        let script = scripts.find(|script| {
            script.node.as_ref().is_none_or(|wanted| wanted == node)
                && script.manifest == *package.manifest
                && script
                    .application
                    .as_ref()
                    .is_none_or(|name| name.as_str() == &*package.application)
        });
        if let Some(script) = script {
            entry.host.script(package, script.behaviour.clone());
        }
    }

    /// Returns true if hosting has a replica.
    #[cfg(test)]
    pub(super) fn is_hosted(&self, key: ReplicaRef) -> bool {
        let wanted = super::failover::hosting_key(key);
        let mut nodes = self.nodes.values();
        nodes.any(|entry| {
            entry
                .host
                .replicas()
                .iter()
                .any(|found| found.placement.replica == wanted)
        })
    }
}
