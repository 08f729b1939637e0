//! Injected faults, and settings for tests.

use std::sync::Arc;

use super::entity::PartitionStatus;
use super::error::FabricError;
use super::identity::PartitionId;
use super::name::FabricName;
use super::nodes::no_node;
use super::state::{Cluster, ScriptedPackage};
use crate::health::{EntityKey, HealthReport};
use crate::hosting::{Behaviour, PackageKey, Span};

/// The maximum number of scripts.
const MAX_SCRIPTS: usize = 10_000;

impl Cluster {
    /// Shows a partition in this status in place of the real one. `None` ends the override. Nothing else
    /// changes.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_PARTITION_NOT_FOUND`.
    pub fn override_partition_status(
        &mut self,
        partition: PartitionId,
        status: Option<PartitionStatus>,
    ) -> Result<(), FabricError> {
        self.existing_partition(partition)?;
        if let Some(found) = self.partitions.get_mut(&partition) {
            found.status_override = status;
        }
        self.dirty.insert(partition);
        self.settle();
        Ok(())
    }

    /// Sets the maximum age of cached answers of [`resolve`](Self::resolve). Zero disables the cache; with an
    /// infinite age an answer is reused until a client challenges it.
    pub fn set_resolve_cache(&mut self, age: Span) {
        self.resolve_cache.set_age(age);
    }

    /// Sets the interval at which health reports that are not immediate reach the store. Zero: at once.
    pub fn set_health_report_interval(&mut self, interval: Span) {
        self.reports.set_interval(interval);
    }

    /// Sets the behaviour of a package from now on, on one node or on all. It applies to all instances of the
    /// package, whatever their activation id.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`; `E_INVALIDARG` if there are too many scripts.
    pub fn script(
        &mut self,
        node: Option<&str>,
        package: &PackageKey,
        behaviour: Behaviour,
    ) -> Result<(), FabricError> {
        if let Some(node) = node {
            self.node(node).ok_or_else(|| no_node(node))?;
        }
        if self.scripts.len() >= MAX_SCRIPTS {
            return Err(FabricError::invalid_argument(format!(
                "{MAX_SCRIPTS} behaviours were scripted already"
            )));
        }
        let application = FabricName::parse(&package.application)?;
        let node: Option<Arc<str>> = node.map(Into::into);
        for entry in self.nodes.values_mut() {
            if node.as_ref().is_some_and(|node| *node != entry.node.name) {
                continue;
            }
            // Existing instances change their behaviour at once; later ones get it when they are placed.
            let same = |found: &PackageKey| {
                found.application == package.application && found.manifest == package.manifest
            };
            entry.scripted.retain(|found| !same(found));
            let present = entry
                .host
                .packages(&package.application)
                .into_iter()
                .map(|found| found.key);
            for found in present.filter(same) {
                entry.host.script(&found, behaviour.clone());
                entry.scripted.insert(found);
            }
        }
        self.scripts.push(ScriptedPackage {
            node,
            application: Some(application),
            manifest: package.manifest.to_string(),
            behaviour,
        });
        Ok(())
    }

    /// Takes a health report of a client. Unless it is immediate, it takes effect with the next batch. A
    /// report about an unknown entity is accepted, and then dropped.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for an empty source or property and for a source `System.…`,
    /// `FABRIC_E_HEALTH_STALE_REPORT`, `FABRIC_E_HEALTH_MAX_REPORTS_REACHED`, `FABRIC_E_VALUE_TOO_LARGE`.
    pub fn report_health(
        &mut self,
        entity: EntityKey,
        report: HealthReport,
        immediate: bool,
    ) -> Result<(), FabricError> {
        let report = report.checked()?;
        self.reports
            .report(&mut self.health, entity, report, immediate, self.now)
    }
}
