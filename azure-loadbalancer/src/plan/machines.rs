//! The machines of nodes, and their sets.

use std::collections::{BTreeSet, HashMap};

use super::cluster_state::ClusterState;
use crate::config::{Config, PoolMembership};
use crate::node::{Node, Readiness, labels};
use crate::resources::{ArmId, ScaleSetInstance, VirtualMachine};

/// The machine of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeMachine<'a> {
    /// A single machine.
    Single(&'a VirtualMachine),
    /// A machine of a scale set, whose id is included.
    OfScaleSet(&'a ScaleSetInstance),
}

/// The machines of the nodes.
#[derive(Debug)]
pub(super) struct Machines<'a> {
    by_id: HashMap<&'a ArmId, NodeMachine<'a>>,
    by_name: HashMap<String, &'a VirtualMachine>,
}

impl<'a> Machines<'a> {
    pub(super) fn of(world: &ClusterState<'a>) -> Self {
        let snapshot = world.snapshot;
        let mut by_id = HashMap::new();
        let mut by_name = HashMap::new();
        for machine in &snapshot.virtual_machines {
            if let Some(id) = &machine.id {
                by_id.insert(id, NodeMachine::Single(machine));
            }
            by_name.insert(machine.name.to_ascii_lowercase(), machine);
        }
        for instance in &snapshot.scale_set_instances {
            if let Some(id) = &instance.id {
                by_id.insert(id, NodeMachine::OfScaleSet(instance));
            }
        }
        Self { by_id, by_name }
    }

    /// Returns the machine of a node: by its provider id, else by its name.
    pub(super) fn machine(&self, node: &Node) -> Option<NodeMachine<'a>> {
        let by_id = node
            .provider_id
            .as_deref()
            .map(|id| ArmId::new(id.strip_prefix("azure://").unwrap_or(id)))
            .and_then(|id| self.by_id.get(&id).copied());
        by_id.or_else(|| {
            let machine = self.by_name.get(&node.name.to_ascii_lowercase())?;
            Some(NodeMachine::Single(machine))
        })
    }

    /// Returns the set of a node's machine, in lower case since Azure varies the case of names.
    pub(super) fn set_of(&self, node: &Node) -> Option<String> {
        match self.machine(node)? {
            NodeMachine::Single(machine) => {
                let set = machine.properties.availability_set.as_ref()?.id.as_ref()?;
                Some(set.name().to_ascii_lowercase())
            }
            NodeMachine::OfScaleSet(instance) => {
                let id = instance.id.as_ref()?;
                id.segment("virtualMachineScaleSets")
                    .map(str::to_ascii_lowercase)
            }
        }
    }
}

/// Returns the reason why pools get no members although `known` nodes are known.
pub(super) fn nobody(known: usize) -> String {
    match known {
        0 => "no node is known".to_owned(),
        count => format!(
            "none of {count} known nodes takes part (not ready, excluded by a label, rejected, or without an IPv4 address)"
        ),
    }
}

/// Returns true if a node takes part, whatever the load balancer.
pub(super) fn takes_part(config: &Config, node: &Node) -> bool {
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let elsewhere = label(labels::RESOURCE_GROUP)
        .is_some_and(|group| !group.eq_ignore_ascii_case(&config.resource_group));
    let unmanaged = label(labels::MANAGED).is_some_and(|value| value.eq_ignore_ascii_case("false"));
    let control_plane =
        config.is_standard() && config.exclude_master_from_standard_lb && node.is_control_plane();
    !elsewhere && !unmanaged && !control_plane && !node.labels.contains_key(labels::EXCLUDED)
}

/// Returns true if a node has no address that pools of addresses could have, although it may be a member. Where
/// it is one it stays one: addresses do not vanish from machines.
pub(super) fn has_no_address(config: &Config, node: &Node) -> bool {
    let is_there = match node.readiness {
        Readiness::Ready => true,
        Readiness::NotReady(since) => since < config.not_ready_grace,
    };
    config.backend_pool_type == PoolMembership::Address
        && node.unreadable.is_none()
        && is_there
        && takes_part(config, node)
        && !node.addresses.iter().any(|address| address.is_ipv4())
}

/// Returns true if a node may be a member of a pool. A node that is not ready may stay one, but not become
/// one.
pub(super) fn can_be_member(config: &Config, node: &Node, is_member: bool) -> bool {
    let is_there = match node.readiness {
        Readiness::Ready => true,
        Readiness::NotReady(since) => is_member && since < config.not_ready_grace,
    };
    let has_address = match config.backend_pool_type {
        PoolMembership::Address => node.addresses.iter().any(|address| address.is_ipv4()),
        PoolMembership::NetworkInterface => true,
    };
    takes_part(config, node) && is_there && has_address && node.unreadable.is_none()
}

/// Returns the sets of the machines that run no control plane, or the name of a node without a set.
pub(super) fn sets(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
) -> (BTreeSet<String>, Option<String>) {
    let mut sets = BTreeSet::new();
    let mut without = None;
    for node in &world.nodes {
        if node.is_control_plane() || !takes_part(world.config, node) {
            continue;
        }
        match machines.set_of(node) {
            Some(set) => {
                sets.insert(set);
            }
            None => without = without.or_else(|| Some(node.name.clone())),
        }
    }
    (sets, without)
}
