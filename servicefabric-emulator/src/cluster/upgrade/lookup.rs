//! Lookups for an upgrade: versions, packages, nodes, replicas.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::applications::descriptions;
use crate::cluster::identity::ReplicaRef;
use crate::cluster::name::FabricName;
use crate::cluster::placement::package_of;
use crate::cluster::state::Cluster;
use crate::hosting::{DeploymentStatus, PackageDescription, PackageKey, Span};

impl Cluster {
    /// Returns the target version of an upgrade, and the packages that nodes get for it.
    pub(super) fn target_of(&self, name: &FabricName) -> Option<(String, Vec<PackageDescription>)> {
        let target = self.upgrades.get(name)?.target().to_owned();
        let type_name = self.applications.get(name)?.type_name.clone();
        let declared = self.types.get(&(type_name, target.clone()))?;
        Some((target, descriptions(name, declared)))
    }

    /// Returns the names of the manifests that differ between the two versions.
    pub(super) fn changed_packages(&self, name: &FabricName) -> BTreeSet<Arc<str>> {
        let both = self.upgrades.get(name).zip(self.applications.get(name));
        let Some((run, application)) = both else {
            return BTreeSet::new();
        };
        let described = |version: &str| {
            let declared = self
                .types
                .get(&(application.type_name.clone(), version.to_owned()));
            declared
                .map(|declared| descriptions(name, declared))
                .unwrap_or_default()
        };
        let (old, new) = (described(&run.from), described(&run.to));
        let changed = new.iter().filter(|description| !old.contains(description));
        changed
            .map(|description| description.manifest.clone())
            .collect()
    }

    /// Returns the packages on a node that are not in the target version yet. A domain that is rolled back
    /// before its switch has none.
    pub(super) fn stale_packages(&self, name: &FabricName, node: &str) -> BTreeSet<PackageKey> {
        let Some((_, wanted)) = self.target_of(name) else {
            return BTreeSet::new();
        };
        let Some(entry) = self.nodes.get(node) else {
            return BTreeSet::new();
        };
        let changed = self.changed_packages(name);
        let deployed = entry.host.packages(name.as_str()).into_iter();
        let stale = deployed.filter(|package| {
            let current = wanted
                .iter()
                .find(|found| found.manifest == package.key.manifest);
            let same = current.is_some_and(|found| found.version == package.version);
            changed.contains(&package.key.manifest)
                && (!same || package.status != DeploymentStatus::Active)
        });
        stale.map(|package| package.key).collect()
    }

    pub(super) fn nodes_of_domain(&self, domain: &str) -> BTreeSet<Arc<str>> {
        let nodes = self
            .nodes
            .values()
            .filter(|entry| entry.node.upgrade_domain == domain);
        nodes.map(|entry| entry.node.name.clone()).collect()
    }

    pub(super) fn replicas_of_application(
        &self,
        name: &FabricName,
        on: impl Fn(&Arc<str>) -> bool,
    ) -> Vec<ReplicaRef> {
        let nodes = self.nodes.values().filter(|entry| on(&entry.node.name));
        let keys = nodes.flat_map(|entry| entry.replicas.iter().copied());
        let of_application = keys.filter(|key| {
            let service = self
                .partitions
                .get(&key.partition)
                .map(|found| &found.service);
            service.is_some_and(|service| service.is_below(name) && self.belongs(service, name))
        });
        of_application.collect()
    }

    fn belongs(&self, service: &FabricName, application: &FabricName) -> bool {
        self.services
            .get(service)
            .is_some_and(|found| found.application == *application)
    }

    pub(super) fn package_and_delay(&self, key: ReplicaRef) -> Option<(PackageKey, Span)> {
        let service = self
            .services
            .get(&self.partitions.get(&key.partition)?.service)?;
        Some((
            package_of(service, key.partition),
            service.instance_close_delay,
        ))
    }
}
