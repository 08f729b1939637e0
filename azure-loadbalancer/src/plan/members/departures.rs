//! The network interfaces that leave pools.

use std::collections::{BTreeMap, BTreeSet};

use super::first_interface;
use crate::node::Readiness;
use crate::plan::cluster_state::ClusterState;
use crate::plan::machines::{self, Machines, NodeMachine};
use crate::resources::ArmId;

/// The state of a node, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NodeState {
    /// The node is excluded.
    Excluded,
    /// The node has not been ready for too long.
    NotReady,
    /// The node may be a member.
    There,
}

/// Returns the interfaces whose nodes are no longer members.
///
/// While no node takes part, only excluded nodes leave: a controller that sees no node has more often lost
/// its own view. A machine without a node leaves only if every node has a machine; otherwise the list and the
/// machines disagree about names.
pub(super) fn of<'a>(world: &ClusterState<'a>, machines: &Machines<'a>) -> BTreeSet<&'a ArmId> {
    let mut states: BTreeMap<&ArmId, NodeState> = BTreeMap::new();
    let mut has_all_machines = true;
    let mut is_anybody_there = false;
    for node in &world.nodes {
        let state = match node.readiness {
            _ if !machines::takes_part(world.config, node) => NodeState::Excluded,
            _ if node.unreadable.is_some() => NodeState::There,
            Readiness::Ready => NodeState::There,
            Readiness::NotReady(since) if since < world.config.not_ready_grace => NodeState::There,
            Readiness::NotReady(_) => NodeState::NotReady,
        };
        let is_known = node.unreadable.is_none() && state == NodeState::There;
        match machines.machine(node) {
            Some(NodeMachine::Single(machine)) => {
                is_anybody_there |= is_known;
                let reference = first_interface(machine);
                if let Some(id) = reference.and_then(|reference| reference.id.as_ref()) {
                    let known = states.entry(id).or_insert(state);
                    *known = state.max(*known);
                }
            }
            Some(NodeMachine::OfScaleSet(_)) => is_anybody_there |= is_known,
            None => has_all_machines &= state == NodeState::Excluded,
        }
    }
    let mut gone = BTreeSet::new();
    for machine in &world.snapshot.virtual_machines {
        let reference = first_interface(machine);
        let Some(id) = reference.and_then(|reference| reference.id.as_ref()) else {
            continue;
        };
        let leaves = match states.get(id) {
            Some(NodeState::There) => false,
            Some(NodeState::NotReady) => is_anybody_there,
            Some(NodeState::Excluded) => true,
            None => is_anybody_there && has_all_machines,
        };
        if leaves {
            gone.insert(id);
        }
    }
    gone
}
