//! The construction of a cluster from its description.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::date::Date;
use super::endpoint::PortPool;
use super::entity::{Node, NodeStatus};
use super::error::FabricError;
use super::identity::node_id;
use super::image_store::ImageStore;
use super::naming::{NameStore, ResolveCache};
use super::state::{Cluster, NodeEntry, ScriptedPackage, Settings};
use crate::health::{EntityKey, HealthStore, ReportQueue};
use crate::hosting::{self, HostingConfig, Timestamp};
use crate::topology::{ClusterDescription, NodeDescription, Plan, Topology, TopologyError};

/// The maximum number of seed nodes.
const SEED_NODES: usize = 5;

impl Cluster {
    /// Creates a cluster from `topology`, at moment 0. All entities exist, and everything that takes no time
    /// has happened.
    ///
    /// # Errors
    ///
    /// A [`TopologyError`] with all errors of the topology.
    pub fn new(topology: &Topology) -> Result<Self, TopologyError> {
        Self::build(topology, false, None)
    }

    /// Creates a cluster with [workloads](Self::attach_workloads) from the start: no replica is ready before
    /// its address was [published](Self::publish_address).
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_workloads(topology: &Topology) -> Result<Self, TopologyError> {
        Self::build(topology, true, None)
    }

    /// Creates a cluster with or without workloads. `ids_since` is the base date of instance ids; `None`: the
    /// start date. A rebuilt cluster needs new ids, or clients would take its instances for the old ones.
    pub(crate) fn build(
        topology: &Topology,
        workloads: bool,
        ids_since: Option<Date>,
    ) -> Result<Self, TopologyError> {
        let plan = topology.plan()?;
        let described = &topology.cluster;
        let settings = Settings {
            name: described.name.clone(),
            version: described.version.clone(),
            start: plan.start,
            ids_since: ids_since.unwrap_or(plan.start).ticks(),
            hosting: plan.hosting.clone(),
            reconfiguration_time: described.reconfiguration_time,
        };
        let mut cluster = Self {
            now: Timestamp::ZERO,
            settings,
            nodes: BTreeMap::new(),
            types: BTreeMap::new(),
            image_store: BTreeMap::new(),
            uploads: ImageStore::default(),
            applications: BTreeMap::new(),
            services: BTreeMap::new(),
            partitions: BTreeMap::new(),
            names: NameStore::default(),
            resolve_cache: ResolveCache::new(described.resolve_cache),
            health: HealthStore::new(plan.start.ticks()),
            reports: ReportQueue::new(described.health_report_interval),
            effects: Vec::new(),
            workloads,
            scripts: Vec::new(),
            timers: BTreeMap::new(),
            dirty: BTreeSet::new(),
            unplaced: BTreeSet::new(),
            everywhere: BTreeSet::new(),
            blocked: BTreeMap::new(),
            rejected: BTreeMap::new(),
            upgrades: BTreeMap::new(),
            disabling: BTreeSet::new(),
            unheard: false,
            wanted_replicas: 0,
            sequence: 0,
        };
        for (index, node) in plan.nodes.iter().enumerate() {
            cluster.add_node(index, node, described, &plan.hosting);
        }
        cluster
            .populate(plan)
            .map_err(|(at, error)| TopologyError::rejected(at, error.message))?;
        Ok(cluster)
    }

    fn add_node(
        &mut self,
        index: usize,
        described: &NodeDescription,
        cluster: &ClusterDescription,
        hosting: &HostingConfig,
    ) {
        let text = |written: &Option<String>| written.clone().unwrap_or_default();
        let name: Arc<str> = text(&described.name).into();
        let mut host = hosting::Node::new(&name, hosting.clone());
        if described.down {
            host.stop();
        }
        let node = Node {
            name: name.clone(),
            address: text(&described.address),
            node_type: text(&described.node_type),
            upgrade_domain: text(&described.upgrade_domain),
            fault_domain: text(&described.fault_domain),
            code_version: cluster.version.clone(),
            config_version: "1.0".to_owned(),
            status: if described.down {
                NodeStatus::Down
            } else {
                NodeStatus::Up
            },
            is_seed_node: index < SEED_NODES,
            id: node_id(&name),
            instance_id: self.next_instance_id(),
            up_at: (!described.down).then_some(Timestamp::ZERO),
            down_at: described.down.then_some(Timestamp::ZERO),
            deactivation: None,
            properties: described.properties.clone().into_iter().collect(),
        };
        let entry = NodeEntry {
            node,
            host,
            replicas: BTreeSet::new(),
            ports: PortPool::new(cluster.ports),
            versions: BTreeMap::new(),
            scripted: BTreeSet::new(),
        };
        self.nodes.insert(name.clone(), entry);
        self.health
            .insert(EntityKey::Node(name.clone()), Some(EntityKey::Cluster));
        self.say_node_status(&name);
    }

    /// Creates all planned entities. An error comes with its place in the topology.
    fn populate(&mut self, plan: Plan) -> Result<(), (String, FabricError)> {
        // The scripts come first, since the placements below use them.
        for script in plan.scripts {
            self.scripts.push(ScriptedPackage {
                node: script.node.map(Into::into),
                application: script.application,
                manifest: script.manifest,
                behaviour: script.behaviour,
            });
        }
        for planned in plan.types {
            let declared = planned.application_type;
            let at = format!("application type {}", declared.name);
            let key = (declared.name.clone(), declared.version.clone());
            self.image_store.insert(key, declared.clone());
            if planned.provisioned {
                self.provision_type(declared).map_err(|error| (at, error))?;
            }
        }
        for creation in plan.applications {
            let at = format!("application {}", creation.name);
            self.create_application(creation)
                .map_err(|error| (at, error))?;
        }
        for creation in plan.services {
            let at = format!("service {}", creation.name);
            // All services are placed together, at the end.
            self.add_service(creation).map_err(|error| (at, error))?;
        }
        for (name, property, value) in plan.properties {
            let at = format!("property {property} of {name}");
            self.put_property(&name, &property, value, "")
                .map_err(|error| (at, error))?;
        }
        self.settle();
        Ok(())
    }
}
