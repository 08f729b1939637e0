//! The state of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::date::Date;
use super::effect::Effect;
use super::endpoint::PortPool;
use super::entity::{Application, ApplicationType, Node, Partition, Service};
use super::identity::{PartitionId, ReplicaRef, instance_id};
use super::image_store::ImageStore;
use super::name::FabricName;
use super::naming::{NameStore, ResolveCache};
use super::timer::ClusterTimer;
use super::upgrade::UpgradeRun;
use crate::health::{HealthStore, ReportQueue};
use crate::hosting::{self, Behaviour, HostingConfig, PackageKey, Span, Timestamp, TypeKey};

/// A cluster. See the [module](super).
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(super) now: Timestamp,
    pub(super) settings: Settings,
    pub(super) nodes: BTreeMap<Arc<str>, NodeEntry>,
    /// Application types by name and version.
    pub(super) types: BTreeMap<(String, String), ApplicationType>,
    /// Application types that can be provisioned, by name and version.
    pub(super) image_store: BTreeMap<(String, String), ApplicationType>,
    /// The files that clients have uploaded.
    pub(super) uploads: ImageStore,
    pub(super) applications: BTreeMap<FabricName, Application>,
    pub(super) services: BTreeMap<FabricName, Service>,
    pub(super) partitions: BTreeMap<PartitionId, Partition>,
    pub(super) names: NameStore,
    pub(super) resolve_cache: ResolveCache,
    pub(super) health: HealthStore,
    pub(super) reports: ReportQueue,
    pub(super) effects: Vec<Effect>,
    /// True if real workloads outside the cluster publish the addresses.
    pub(super) workloads: bool,
    /// The scripts, oldest first. Later ones take precedence.
    pub(super) scripts: Vec<ScriptedPackage>,
    /// The pending timers, by time and order of creation.
    pub(super) timers: BTreeMap<(Timestamp, u64), ClusterTimer>,
    /// The partitions to reconcile.
    pub(super) dirty: BTreeSet<PartitionId>,
    /// Partitions for which no node was found.
    pub(super) unplaced: BTreeSet<PartitionId>,
    /// Partitions with an instance on every node.
    pub(super) everywhere: BTreeSet<PartitionId>,
    /// The nodes that hosting has blocked for a service type.
    pub(super) blocked: BTreeMap<TypeKey, BTreeSet<Arc<str>>>,
    /// The nodes that have rejected a replica of a partition, and the time.
    pub(super) rejected: BTreeMap<(PartitionId, Arc<str>), Timestamp>,
    /// The upgrades in progress.
    pub(super) upgrades: BTreeMap<FabricName, UpgradeRun>,
    /// Nodes that are being deactivated.
    pub(super) disabling: BTreeSet<Arc<str>>,
    /// True if hosting may have events to handle.
    pub(super) unheard: bool,
    /// The number of replicas and instances that all services together need.
    pub(super) wanted_replicas: usize,
    /// The counter that ids are derived from.
    pub(super) sequence: u64,
}

/// The settings that stay fixed for the life of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) start: Date,
    /// The base of instance ids: steps of 100 ns since 1601.
    pub(super) ids_since: i64,
    pub(super) hosting: HostingConfig,
    pub(super) reconfiguration_time: Span,
}

/// A node and the replicas on it.
#[derive(Clone, Debug)]
pub(super) struct NodeEntry {
    pub(super) node: Node,
    pub(super) host: hosting::Node,
    pub(super) replicas: BTreeSet<ReplicaRef>,
    pub(super) ports: PortPool,
    /// The version of the application type that was declared to the node, by application.
    pub(super) versions: BTreeMap<FabricName, String>,
    /// The packages whose behaviour was scripted.
    pub(super) scripted: BTreeSet<PackageKey>,
}

/// A scripted behaviour of a package.
#[derive(Clone, Debug)]
pub(super) struct ScriptedPackage {
    /// The node; `None`: all.
    pub(super) node: Option<Arc<str>>,
    /// The application; `None`: all.
    pub(super) application: Option<FabricName>,
    /// The service manifest.
    pub(super) manifest: String,
    pub(super) behaviour: Behaviour,
}

impl Cluster {
    /// The name of the cluster.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the version of the runtime that the cluster reports, e.g. `9.1.2277.9590`.
    pub fn version(&self) -> &str {
        &self.settings.version
    }

    /// The date of a moment.
    pub fn date(&self, moment: Timestamp) -> Date {
        self.settings.start.plus(moment)
    }

    /// The settings of hosting.
    pub fn hosting_config(&self) -> &HostingConfig {
        &self.settings.hosting
    }

    /// Takes the requests to real workloads since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Adds a request to real workloads. Without workloads it is dropped, since no one would take it.
    pub(super) fn want(&mut self, effect: Effect) {
        if self.workloads {
            self.effects.push(effect);
        }
    }

    /// Returns a new id for an instance, a replica, or the life of a node.
    pub(super) fn next_instance_id(&mut self) -> i64 {
        let sequence = self.next_sequence();
        instance_id(self.settings.ids_since, sequence)
    }

    /// Returns the next number from which an id is derived.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
