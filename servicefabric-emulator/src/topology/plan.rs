//! The conversion of a description to the checked parts of a cluster.

use std::collections::BTreeMap;

use super::error::Problems;
use super::{NodeDescription, NodesDescription, Topology, TopologyError};
use crate::cluster::{
    ApplicationCreation, ApplicationType, Date, FabricName, PropertyValue, ServiceCreation,
};
use crate::hosting::{Behaviour, HostingConfig};

/// The default start date of a cluster's clock.
const DEFAULT_START: &str = "2026-01-01T00:00:00Z";

/// The maximum number of nodes of a cluster.
const MAX_NODES: usize = 1000;

/// The checked parts of a cluster.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) start: Date,
    pub(crate) nodes: Vec<NodeDescription>,
    pub(crate) hosting: HostingConfig,
    pub(crate) types: Vec<PlannedType>,
    pub(crate) applications: Vec<ApplicationCreation>,
    pub(crate) services: Vec<ServiceCreation>,
    pub(crate) properties: Vec<(FabricName, String, PropertyValue)>,
    pub(crate) scripts: Vec<PlannedScript>,
}

/// An application type.
#[derive(Debug)]
pub(crate) struct PlannedType {
    pub(crate) application_type: ApplicationType,
    pub(crate) provisioned: bool,
}

/// The scripted behaviour of a package.
#[derive(Debug)]
pub(crate) struct PlannedScript {
    pub(crate) node: Option<String>,
    pub(crate) application: Option<FabricName>,
    pub(crate) manifest: String,
    pub(crate) behaviour: Behaviour,
}

impl Topology {
    /// Checks everything that [`Cluster::new`](crate::cluster::Cluster::new) needs.
    ///
    /// # Errors
    ///
    /// All errors.
    pub fn check(&self) -> Result<(), TopologyError> {
        self.plan().map(drop)
    }

    /// Checks the topology and returns the parts of the cluster.
    pub(crate) fn plan(&self) -> Result<Plan, TopologyError> {
        let mut problems = Problems::default();
        let start = self.start(&mut problems);
        let nodes = self.planned_nodes(&mut problems);
        let hosting = super::hosting::config(&self.hosting, &mut problems);
        let types = super::application_type::plan(&self.application_types, &mut problems);
        let by_name = index(&types);
        let deployed =
            super::application::plan(&self.applications, &by_name, nodes.len(), &mut problems);
        let scripts = super::behaviour::plan(self, &nodes, &by_name, &deployed, &mut problems);
        problems.into_result()?;
        Ok(Plan {
            start,
            nodes,
            hosting,
            types,
            applications: deployed.applications,
            services: deployed.services,
            properties: deployed.properties,
            scripts,
        })
    }

    fn start(&self, problems: &mut Problems) -> Date {
        let start = self.cluster.start.as_deref().unwrap_or(DEFAULT_START);
        Date::parse(start).unwrap_or_else(|| {
            problems.add(
                "cluster.start",
                format!("`{start}` is not a date"),
                "write for example 2026-01-01T00:00:00Z",
            );
            Date::EPOCH
        })
    }

    /// Returns every node, with all defaults filled in.
    fn planned_nodes(&self, problems: &mut Problems) -> Vec<NodeDescription> {
        let described = match &self.cluster.nodes {
            NodesDescription::Count(count) => {
                vec![NodeDescription::default(); (*count as usize).min(MAX_NODES + 1)]
            }
            NodesDescription::List(nodes) => nodes.clone(),
        };
        if described.is_empty() || described.len() > MAX_NODES {
            let count = self.cluster.nodes.count();
            problems.add(
                "cluster.nodes",
                format!("a cluster has 1 to {MAX_NODES} nodes, not {count}"),
                "",
            );
            return Vec::new();
        }
        let (first, last) = self.cluster.ports;
        if first == 0 || first > last {
            problems.add(
                "cluster.ports",
                format!("{first} to {last} is not a range of ports"),
                "write for example [20000, 29999]",
            );
        }
        let mut nodes: Vec<NodeDescription> = Vec::new();
        let mut names = BTreeMap::new();
        for (index, node) in described.into_iter().enumerate() {
            let node = node.filled(index);
            let name = node.name.clone().unwrap_or_default();
            if name.is_empty()
                || name.len() > 256
                || name.contains(['/', '~'])
                || name.contains(char::is_control)
            {
                problems.add(
                    format!("cluster.nodes[{index}].name"),
                    format!("`{name}` cannot be the name of a node"),
                    "write for example _Node_0",
                );
            }
            if let Some(other) = names.insert(name.clone(), index) {
                problems.add(
                    format!("cluster.nodes[{index}].name"),
                    format!("`{name}` is the name of node {other} too"),
                    "give each node a name of its own",
                );
            }
            nodes.push(node);
        }
        nodes
    }
}

impl NodeDescription {
    /// Fills in the defaults of a node at this index of the list.
    fn filled(mut self, index: usize) -> Self {
        let domain = index % 5;
        let (third, fourth) = ((index + 4) / 256, (index + 4) % 256);
        self.name.get_or_insert_with(|| format!("_Node_{index}"));
        self.address
            .get_or_insert_with(|| format!("10.0.{third}.{fourth}"));
        self.node_type.get_or_insert_with(|| "Node".to_owned());
        self.upgrade_domain
            .get_or_insert_with(|| domain.to_string());
        self.fault_domain
            .get_or_insert_with(|| format!("fd:/{domain}"));
        self
    }
}

/// The application types by name, with their versions in the order of the file.
pub(super) type TypesByName<'a> = BTreeMap<&'a str, Vec<&'a PlannedType>>;

fn index(types: &[PlannedType]) -> TypesByName<'_> {
    let mut by_name = TypesByName::new();
    for planned in types {
        by_name
            .entry(&planned.application_type.name)
            .or_default()
            .push(planned);
    }
    by_name
}
