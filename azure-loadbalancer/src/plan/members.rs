//! The membership of network interfaces and scale sets in pools.

use std::collections::{BTreeMap, BTreeSet};

mod departures;

use super::balancer::{self, Draft, Drafts};
use super::cluster_state::ClusterState;
use super::machines::{self, Machines, NodeMachine};
use super::placement::{self, Placement};
use super::request::Balancers;
use crate::config::{Edition, PoolMembership};
use crate::naming;
use crate::node::{Node, Readiness};
use crate::resources::{
    ArmId, InterfaceIpConfiguration, IpConfigurationModel, NetworkInterface, NetworkProfile,
    ProvisioningState, ScaleSet, ScaleSetInstance, SubResource, VirtualMachine,
    VmInterfaceReference,
};

/// The changes of network interfaces and scale sets.
#[derive(Debug, Default)]
pub(super) struct MemberChanges<'a> {
    /// The network interfaces that join pools.
    pub(super) interfaces: BTreeMap<ArmId, Change<'a, NetworkInterface>>,
    /// The scale sets whose model joins or leaves pools.
    pub(super) scale_sets: BTreeMap<ArmId, Change<'a, ScaleSet>>,
    /// The machines of scale sets that differ from the model.
    pub(super) upgrades: BTreeMap<ArmId, BTreeSet<String>>,
    /// The scale sets that must leave before a load balancer is deleted.
    pub(super) leaving: BTreeSet<ArmId>,
}

/// The present and planned state of a resource.
#[derive(Debug)]
pub(super) struct Change<'a, T> {
    pub(super) current: &'a T,
    pub(super) resource: T,
    /// The pools that are joined or left.
    pub(super) pools: BTreeSet<ArmId>,
}

pub(super) fn build<'a>(
    world: &ClusterState<'a>,
    placement: &Placement,
    drafts: &Drafts<'a>,
) -> MemberChanges<'a> {
    let mut members = MemberChanges::default();
    // Pools of addresses list their members themselves, so machines need no change.
    if world.config.backend_pool_type != PoolMembership::NetworkInterface
        || world.request.classes.load_balancers != Balancers::All
    {
        return members;
    }
    let machines = Machines::of(world);
    let departures = departures::of(world, &machines);
    for draft in &drafts.drafts {
        if draft.is_deleted() {
            members.leave(world, &draft.id);
        } else if is_concerned(world, placement, draft) {
            let pool = draft
                .id
                .child("backendAddressPools", &world.config.cluster_name);
            for node in &world.nodes {
                members.join(world, &machines, node, draft, &pool);
            }
            // A plan for one service must not remove the members of others. The edition of 2018 never removed
            // any.
            if world.config.edition == Edition::Current && world.request.only.is_none() {
                members.let_go(world, &departures, &pool);
            }
        }
    }
    members
}

fn is_concerned(world: &ClusterState<'_>, placement: &Placement, draft: &Draft<'_>) -> bool {
    let has_resident = || {
        let mut placed = placement.values();
        placed.any(|placed| placed.later.is_none() && draft.resource.is_named(&placed.balancer))
    };
    let has_pool = world.is_ours(&draft.resource);
    let is_other_kind = balancer::members_of_other_kind(world, &draft.resource).is_some();
    has_pool && !is_other_kind && (world.request.only.is_none() || has_resident())
}

impl<'a> MemberChanges<'a> {
    fn join(
        &mut self,
        world: &ClusterState<'a>,
        machines: &Machines<'a>,
        node: &Node,
        draft: &Draft<'_>,
        pool: &ArmId,
    ) {
        let is_ready = node.readiness == Readiness::Ready && node.unreadable.is_none();
        if !machines::takes_part(world.config, node) || !is_ready {
            return;
        }
        // A basic load balancer belongs to one set of machines, and only their nodes may join.
        if !world.config.is_standard() {
            let internal = naming::is_internal(&draft.resource.name);
            let own = machines
                .set_of(node)
                .map(|set| placement::balancer_of(world, &set, internal));
            if !own.is_some_and(|own| draft.resource.is_named(&own)) {
                return;
            }
        }
        match machines.machine(node) {
            Some(NodeMachine::Single(machine)) => self.join_interface(world, machine, pool),
            Some(NodeMachine::OfScaleSet(instance)) => self.join_scale_set(world, instance, pool),
            None => {}
        }
    }

    fn join_interface(&mut self, world: &ClusterState<'a>, machine: &VirtualMachine, pool: &ArmId) {
        let Some(reference) = first_interface(machine) else {
            return;
        };
        let interfaces = &world.snapshot.network_interfaces;
        let Some(interface) = interfaces
            .iter()
            .find(|i| i.id.is_some() && i.id == reference.id)
        else {
            return;
        };
        // Kubernetes' provider skips interfaces whose last write failed, too.
        let failed = interface.properties.provisioning_state == Some(ProvisioningState::Failed);
        let Some(id) = interface.id.clone().filter(|_| !failed) else {
            return;
        };
        // An earlier pool of this plan may have changed the interface already: continue from that change.
        let change = self.interfaces.get(&id);
        let mut resource = change.map_or_else(|| interface.clone(), |c| c.resource.clone());
        let configurations = &mut resource.properties.ip_configurations;
        let Some(configuration) = primary_mut(configurations) else {
            return;
        };
        let pools = &mut configuration.properties.load_balancer_backend_address_pools;
        if !add(world, pools, pool) {
            return;
        }
        let entry = self.interfaces.entry(id).or_insert_with(|| Change {
            current: interface,
            resource: interface.clone(),
            pools: BTreeSet::new(),
        });
        entry.resource = resource;
        entry.pools.insert(pool.clone());
    }

    /// Removes the interfaces of departed nodes from a pool.
    fn let_go(&mut self, world: &ClusterState<'a>, gone: &BTreeSet<&ArmId>, pool: &ArmId) {
        for interface in &world.snapshot.network_interfaces {
            let Some(id) = interface.id.as_ref().filter(|id| gone.contains(id)) else {
                continue;
            };
            // The interface may already join another pool in this plan: continue from that change.
            let change = self.interfaces.get(id);
            let mut resource = change.map_or_else(|| interface.clone(), |c| c.resource.clone());
            let mut has_left = false;
            for configuration in &mut resource.properties.ip_configurations {
                let pools = &mut configuration.properties.load_balancer_backend_address_pools;
                let before = pools.len();
                pools.retain(|reference| reference.id.as_ref() != Some(pool));
                has_left |= pools.len() != before;
            }
            if !has_left {
                continue;
            }
            let entry = self.interfaces.entry(id.clone());
            let entry = entry.or_insert_with(|| Change {
                current: interface,
                resource: interface.clone(),
                pools: BTreeSet::new(),
            });
            entry.resource = resource;
            entry.pools.insert(pool.clone());
        }
    }

    fn join_scale_set(
        &mut self,
        world: &ClusterState<'a>,
        instance: &ScaleSetInstance,
        pool: &ArmId,
    ) {
        let Some((set, id)) = scale_set_of(world, instance) else {
            return;
        };
        let Some(instance_id) = instance.id.as_ref().map(|id| id.name().to_owned()) else {
            return;
        };
        let change = self.scale_sets.get(&id);
        // The machines of one set share a model, so only the first of them changes it, but each needs an
        // upgrade.
        let joins_already = change.is_some_and(|change| change.pools.contains(pool));
        let mut resource = change.map_or_else(|| set.clone(), |c| c.resource.clone());
        let profile = &mut resource.properties.virtual_machine_profile.network_profile;
        let Some(configuration) = primary_model(profile) else {
            return;
        };
        let pools = &mut configuration.properties.load_balancer_backend_address_pools;
        let model_has = pools
            .iter()
            .any(|reference| reference.id.as_ref() == Some(pool));
        if !joins_already && add(world, pools, pool) {
            let entry = self.scale_sets.entry(id.clone()).or_insert_with(|| Change {
                current: set,
                resource: set.clone(),
                pools: BTreeSet::new(),
            });
            entry.resource = resource;
            entry.pools.insert(pool.clone());
            self.upgrades.entry(id).or_default().insert(instance_id);
        } else if joins_already || (model_has && lacks(instance, pool)) {
            // The model already has the pool, and this machine lags behind it.
            self.upgrades.entry(id).or_default().insert(instance_id);
        }
    }

    /// Lets scale sets leave the pools of a load balancer before it is deleted.
    fn leave(&mut self, world: &ClusterState<'a>, balancer: &ArmId) {
        for set in &world.snapshot.scale_sets {
            let Some(id) = &set.id else { continue };
            let change = self.scale_sets.get(id);
            let mut resource = change.map_or_else(|| set.clone(), |c| c.resource.clone());
            let left = remove(
                &mut resource.properties.virtual_machine_profile.network_profile,
                balancer,
            );
            let instances = world
                .snapshot
                .scale_set_instances
                .iter()
                .filter(|instance| {
                    instance
                        .id
                        .as_ref()
                        .is_some_and(|instance| instance.is_within(id))
                        && (!left.is_empty() || belongs_to(instance, balancer))
                });
            // Machines may still be in the pool although the model has already left it.
            let instances: BTreeSet<_> = instances
                .filter_map(|i| Some(i.id.as_ref()?.name().to_owned()))
                .collect();
            if left.is_empty() && instances.is_empty() {
                continue;
            }
            self.leaving.insert(id.clone());
            if !instances.is_empty() {
                self.upgrades
                    .entry(id.clone())
                    .or_default()
                    .extend(instances);
            }
            if !left.is_empty() {
                let entry = self.scale_sets.entry(id.clone()).or_insert_with(|| Change {
                    current: set,
                    resource: set.clone(),
                    pools: BTreeSet::new(),
                });
                entry.resource = resource;
                entry.pools.extend(left);
            }
        }
    }
}

/// Adds a pool, unless it, or one of another load balancer of the same kind, is present: Azure allows a
/// machine in one standard load balancer of each kind.
fn add(world: &ClusterState<'_>, pools: &mut Vec<SubResource>, pool: &ArmId) -> bool {
    let kind = |pool: &ArmId| naming::is_internal(pool.parent().as_ref().map_or("", ArmId::name));
    let ids = || pools.iter().filter_map(|reference| reference.id.as_ref());
    let elsewhere = |id: &ArmId| {
        world.config.is_standard() && kind(id) == kind(pool) && id.parent() != pool.parent()
    };
    if ids().any(|id| id == pool || elsewhere(id)) {
        return false;
    }
    pools.push(SubResource::to(pool.clone()));
    true
}

/// Returns the primary network interface of a machine, which is the member of pools.
fn first_interface(machine: &VirtualMachine) -> Option<&VmInterfaceReference> {
    let references = &machine.properties.network_profile.network_interfaces;
    first(references, |reference| reference.properties.primary)
}

/// Returns the one that is marked as primary, or the only one.
fn first<T>(all: &[T], is_primary: impl Fn(&T) -> Option<bool>) -> Option<&T> {
    match all {
        // A single one need not be marked as primary.
        [only] => Some(only),
        several => several.iter().find(|one| is_primary(one) == Some(true)),
    }
}

fn primary_mut(all: &mut [InterfaceIpConfiguration]) -> Option<&mut InterfaceIpConfiguration> {
    match all {
        [only] => Some(only),
        several => several
            .iter_mut()
            .find(|one| one.properties.primary == Some(true)),
    }
}

fn primary_model(profile: &mut NetworkProfile) -> Option<&mut IpConfigurationModel> {
    let interface = match profile.network_interface_configurations.as_mut_slice() {
        [only] => only,
        several => several
            .iter_mut()
            .find(|one| one.properties.primary == Some(true))?,
    };
    match interface.properties.ip_configurations.as_mut_slice() {
        [only] => Some(only),
        several => several
            .iter_mut()
            .find(|one| one.properties.primary == Some(true)),
    }
}

fn scale_set_of<'a>(
    world: &ClusterState<'a>,
    instance: &ScaleSetInstance,
) -> Option<(&'a ScaleSet, ArmId)> {
    let of = instance.id.as_ref()?.parent()?;
    let set = world
        .snapshot
        .scale_sets
        .iter()
        .find(|set| set.id.as_ref() == Some(&of))?;
    Some((set, of))
}

/// Returns all pools of a scale set's machine, if it lists them.
fn pools_of(instance: &ScaleSetInstance) -> Option<impl Iterator<Item = &ArmId>> {
    let profile = instance.properties.network_profile_configuration.as_ref()?;
    let interfaces = profile.network_interface_configurations.iter();
    Some(
        interfaces
            .flat_map(|interface| &interface.properties.ip_configurations)
            .flat_map(|configuration| &configuration.properties.load_balancer_backend_address_pools)
            .filter_map(|reference| reference.id.as_ref()),
    )
}

/// Returns true if a machine has not yet taken over a pool from its scale set's model.
fn lacks(instance: &ScaleSetInstance, pool: &ArmId) -> bool {
    match pools_of(instance) {
        Some(mut pools) => !pools.any(|id| id == pool),
        // Without a network profile, only the flag shows that the machine lags behind its model.
        None => instance.properties.latest_model_applied == Some(false),
    }
}

fn belongs_to(instance: &ScaleSetInstance, balancer: &ArmId) -> bool {
    pools_of(instance).is_some_and(|mut pools| pools.any(|id| id.is_within(balancer)))
}

/// Removes all pools of a load balancer from a model.
fn remove(profile: &mut NetworkProfile, balancer: &ArmId) -> BTreeSet<ArmId> {
    let mut left = BTreeSet::new();
    for interface in &mut profile.network_interface_configurations {
        for configuration in &mut interface.properties.ip_configurations {
            configuration
                .properties
                .load_balancer_backend_address_pools
                .retain(|reference| {
                    let within = reference.id.as_ref().filter(|id| id.is_within(balancer));
                    left.extend(within.cloned());
                    within.is_none()
                });
        }
    }
    left
}
