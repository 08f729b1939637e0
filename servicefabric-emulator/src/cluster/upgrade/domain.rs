//! One domain of an upgrade: drain, hand over, switch, and check that all is ready again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{UpgradeDomainState, UpgradePhase};
use crate::cluster::entity::{Intent, NodeStatus, ReplicaStatus};
use crate::cluster::identity::ReplicaRef;
use crate::cluster::name::FabricName;
use crate::cluster::state::Cluster;
use crate::cluster::timer::ClusterTimer;
use crate::hosting::{PackageKey, Span};

impl Cluster {
    pub(super) fn begin_domain(&mut self, name: &FabricName, domain: &str) {
        self.set_domain_state(name, domain, UpgradeDomainState::InProgress);
        let now = self.now;
        if let Some(upgrade) = self.upgrade_mut(name) {
            upgrade.domain_started_at = now;
            upgrade.domain_finished_at = None;
        }
        let nodes = self.nodes_of_domain(domain);
        let stale: BTreeMap<Arc<str>, BTreeSet<PackageKey>> = nodes
            .iter()
            .map(|node| (node.clone(), self.stale_packages(name, node)))
            .collect();
        let mut longest = Span::ZERO;
        for key in self.replicas_of_application(name, |node| nodes.contains(node)) {
            let Some((package, delay)) = self.package_and_delay(key) else {
                continue;
            };
            // A replica that already runs the wanted version has nothing to hand over and is not drained.
            let waits = self.replica(key).is_some_and(|replica| {
                stale
                    .get(&replica.node)
                    .is_some_and(|found| found.contains(&package))
            });
            if !waits {
                continue;
            }
            // A primary moves to another domain, since all nodes of this one switch together.
            self.hand_over(key, |node| !nodes.contains(node));
            if self
                .replica(key)
                .is_some_and(|replica| replica.is_resolvable())
                && delay != Span::ZERO
            {
                self.drain(key, delay, Intent::Upgrade);
                longest = longest.max(delay);
            }
        }
        // The instances of a domain drain together, so the longest delay counts.
        if longest == Span::ZERO {
            self.switch_domain(name, domain);
        } else {
            let token = self.enter_phase(name, UpgradePhase::Draining);
            self.plan(longest, ClusterTimer::UpgradeWait(name.clone(), token));
        }
        let token = self.next_sequence();
        let Some(run) = self.upgrades.get_mut(name) else {
            return;
        };
        run.domain_timer = token;
        // A rollback has no time limit, since nothing else is left to do. An infinite limit sets no timer.
        let limit = if run.back {
            Span::INFINITE
        } else {
            run.domain_timeout
        };
        self.plan(limit, ClusterTimer::UpgradeTimeout(name.clone(), token));
    }

    /// Switches the packages of a domain to the other version.
    pub(super) fn switch_domain(&mut self, name: &FabricName, domain: &str) {
        self.enter_phase(name, UpgradePhase::Opening);
        let Some((target, wanted)) = self.target_of(name) else {
            return;
        };
        for node in self.nodes_of_domain(domain) {
            let stale = self.stale_packages(name, &node);
            let Some(entry) = self.nodes.get_mut(&node) else {
                continue;
            };
            for description in &wanted {
                entry.host.declare(description.clone());
            }
            entry.versions.insert(name.clone(), target.clone());
            self.mark_replicas(name, &node, &stale);
            if let Some(entry) = self.nodes.get_mut(&node) {
                for package in &stale {
                    // The node is up, so it has packages.
                    let _ = entry.host.upgrade(package);
                }
            }
        }
        self.unheard = true;
    }

    /// Marks replicas of upgraded packages as waiting for the new version. Replicas of other packages that
    /// were drained return to service.
    fn mark_replicas(&mut self, name: &FabricName, node: &Arc<str>, stale: &BTreeSet<PackageKey>) {
        for key in self.replicas_of_application(name, |on| on == node) {
            let package = self.package_and_delay(key).map(|(package, _)| package);
            let waits = package.is_some_and(|package| stale.contains(&package));
            let Some(replica) = self.replica_mut(key) else {
                continue;
            };
            match (replica.intent, waits) {
                (Intent::Stay, true) if replica.status != ReplicaStatus::Down => {
                    replica.intent = Intent::Upgrade;
                }
                (Intent::Upgrade, false) => self.keep(key),
                _ => {}
            }
        }
    }

    /// Returns the drained replicas of a package that could not be upgraded to service, in the old version.
    /// The domain still waits for the new one.
    pub(in crate::cluster) fn return_to_service(&mut self, node: &Arc<str>, package: &PackageKey) {
        let Some(entry) = self.nodes.get(node) else {
            return;
        };
        let on_node: Vec<ReplicaRef> = entry.replicas.iter().copied().collect();
        for key in on_node {
            let same = self
                .package_and_delay(key)
                .is_some_and(|(found, _)| found == *package);
            let Some(partition) = self.partitions.get_mut(&key.partition).filter(|_| same) else {
                continue;
            };
            let replica = partition.replicas.get_mut(&key.replica);
            if let Some(replica) = replica.filter(|found| found.intent == Intent::Upgrade) {
                replica.draining_until = None;
                partition.lookup += 1;
                self.dirty.insert(key.partition);
            }
        }
    }

    /// Cancels the upgrade of a replica: it stays as it is and is in service again.
    pub(super) fn keep(&mut self, key: ReplicaRef) {
        if let Some(replica) = self.replica_mut(key) {
            replica.intent = Intent::Stay;
            replica.draining_until = None;
            if let Some(partition) = self.partitions.get_mut(&key.partition) {
                partition.lookup += 1;
            }
            self.dirty.insert(key.partition);
        }
    }

    /// Returns true if every replica of the application in a domain is ready in the new version.
    pub(super) fn is_domain_ready(&self, name: &FabricName, domain: &str) -> bool {
        let nodes = self.nodes_of_domain(domain);
        let keys = self.replicas_of_application(name, |node| nodes.contains(node));
        keys.into_iter()
            .filter_map(|key| self.replica(key))
            .all(|replica| {
                let works =
                    replica.status == ReplicaStatus::Ready && replica.intent != Intent::Upgrade;
                let node = self.node(&replica.node);
                let is_away = node.is_some_and(|node| {
                    // A replica on a deactivated node returns in the new version.
                    let down = replica.status == ReplicaStatus::Down && !node.takes_replicas();
                    node.status == NodeStatus::Down || down
                });
                works || is_away || replica.intent == Intent::Leave
            })
    }
}
