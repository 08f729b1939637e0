//! The hosting life cycle of one node.
//!
//! One file per concern: [`placement`] opens replicas, [`operation`] downloads and activates packages,
//! [`process`] runs their code, [`types`] registers and disables service types, [`deactivation`] removes
//! unused packages, [`upgrade`] replaces versions, [`power`] takes the node down and up. [`timers`] decides
//! the order of events.

mod clock;
mod deactivation;
mod error;
mod failing;
mod operation;
mod placement;
mod power;
mod process;
mod queries;
mod report;
mod script;
mod state;
mod stopping;
#[cfg(test)]
mod tests;
mod timers;
mod types;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::error::NodeError;
use self::report::{Log, Standing};
use self::script::PackageScript;
use self::state::{Package, Slot, TrackedApplication};
pub use self::stopping::{ABORTED_EXIT_CODE, DEACTIVATED_EXIT_CODE};
use self::timers::{TimerId, Timers};
use super::behaviour::Behaviour;
use super::config::HostingConfig;
use super::description::PackageDescription;
use super::event::{Event, Logged};
use super::key::{PackageKey, ReplicaKey};
use super::timestamp::Timestamp;

/// A node: its clock, its packages and replicas, and its log.
///
/// Nothing happens without a call, and the same calls give the same events. An instruction (such as
/// [`place`](Self::place)) takes effect at [`now`](Self::now), after everything that
/// [`advance`](Self::advance) had to do until then.
#[derive(Debug, Clone)]
pub struct Node {
    name: String,
    config: HostingConfig,
    now: Timestamp,
    up: bool,
    /// The time since which the node is up. The scans for unused packages count from it.
    started_at: Timestamp,
    descriptions: BTreeMap<(Arc<str>, Arc<str>), Arc<PackageDescription>>,
    scripts: BTreeMap<PackageKey, PackageScript>,
    applications: BTreeMap<Arc<str>, TrackedApplication>,
    packages: BTreeMap<PackageKey, Package>,
    slots: BTreeMap<ReplicaKey, Slot>,
    slots_of: BTreeMap<PackageKey, BTreeSet<ReplicaKey>>,
    health: Standing,
    timers: Timers,
    scan: Option<TimerId>,
    /// The number of processes started so far, from which their ids are derived.
    processes: u64,
    log: Log,
}

impl Node {
    /// Creates an empty node that starts at [`Timestamp::ZERO`].
    pub fn new(name: &str, config: HostingConfig) -> Self {
        Self::starting_at(name, config, Timestamp::ZERO)
    }

    /// Creates an empty node that starts later, such as one that joins a cluster. Its scans count from then.
    pub fn starting_at(name: &str, config: HostingConfig, now: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            config,
            now,
            up: true,
            started_at: now,
            descriptions: BTreeMap::new(),
            scripts: BTreeMap::new(),
            applications: BTreeMap::new(),
            packages: BTreeMap::new(),
            slots: BTreeMap::new(),
            slots_of: BTreeMap::new(),
            health: Standing::default(),
            timers: Timers::default(),
            scan: None,
            processes: 0,
            log: Log::default(),
        }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the settings.
    pub fn config(&self) -> &HostingConfig {
        &self.config
    }

    /// Returns true if the node is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Declares a package to the node. A second declaration applies to later activations, and to
    /// [`upgrade`](Self::upgrade).
    pub fn declare(&mut self, package: PackageDescription) {
        let name = (
            Arc::clone(&package.application),
            Arc::clone(&package.manifest),
        );
        self.descriptions.insert(name, Arc::new(package));
    }

    /// Removes all declarations of an application, and the scripts of its packages that are not on the node.
    /// Its replicas are closed; its packages are deactivated after their grace interval.
    pub fn forget(&mut self, application: &str) {
        let replicas: Vec<ReplicaKey> = self
            .slots
            .iter()
            .filter(|(_, slot)| *slot.placement.package.application == *application)
            .map(|(replica, _)| replica.clone())
            .collect();
        for replica in &replicas {
            self.remove_slot(replica);
        }
        self.descriptions
            .retain(|(name, _), _| **name != *application);
        let packages = &self.packages;
        self.scripts
            .retain(|key, _| *key.application != *application || packages.contains_key(key));
    }

    /// Sets the scripted behaviour of a package instance from now on. Counts of an earlier script are reset.
    /// A running process keeps its scripted end.
    pub fn script(&mut self, package: &PackageKey, behaviour: Behaviour) {
        self.scripts
            .insert(package.clone(), PackageScript::new(behaviour));
    }

    /// Takes the events since the last call. The log holds at most 65,536 events, and drops the oldest first.
    /// Call this often enough to get all.
    pub fn take_events(&mut self) -> Vec<Logged> {
        self.log.take()
    }

    /// Returns the number of events that were dropped because they were not taken in time.
    pub fn lost_events(&self) -> u64 {
        self.log.lost()
    }

    fn emit(&mut self, event: Event) {
        self.log.push(Logged {
            at: self.now,
            event,
        });
    }

    fn description(&self, package: &PackageKey) -> Result<Arc<PackageDescription>, NodeError> {
        self.descriptions
            .get(&(
                Arc::clone(&package.application),
                Arc::clone(&package.manifest),
            ))
            .cloned()
            .ok_or_else(|| NodeError::UnknownPackage {
                package: package.clone(),
            })
    }

    fn script_of(&mut self, package: &PackageKey) -> &mut PackageScript {
        // Not `entry` first: the key is cloned only for a package without a script.
        if !self.scripts.contains_key(package) {
            self.scripts
                .insert(package.clone(), PackageScript::default());
        }
        self.scripts
            .get_mut(package)
            .expect("it was just put there")
    }

    fn check_up(&self) -> Result<(), NodeError> {
        if self.up {
            return Ok(());
        }
        Err(NodeError::NodeDown {
            node: self.name.clone(),
        })
    }
}
