//! The predicted effect of a write on a snapshot.

use std::collections::HashMap;

use super::{Operation, Snapshot};
use crate::resources::{ArmId, LoadBalancer, NetworkProfile, PublicIpAddress, SubResource};

/// Changes a snapshot as the resource manager would. A value that it alone chooses, the address of a new
/// public address or of a frontend, is a text that names it.
pub(super) fn apply(snapshot: &mut Snapshot, operation: &Operation) {
    match operation {
        Operation::PutPublicIp { resource, .. } => put_public_ip(snapshot, resource),
        Operation::DeletePublicIp { id, .. } => {
            let addresses = &mut snapshot.public_ips;
            addresses.retain(|address| address.id.as_ref() != Some(id));
        }
        Operation::PutLoadBalancer { resource, .. } => {
            let mut resource = (**resource).clone();
            fill_in(&mut resource);
            match find(&mut snapshot.load_balancers, |one| one.id == resource.id) {
                Some(existing) => *existing = resource,
                None => snapshot.load_balancers.push(resource),
            }
            refer_back(snapshot);
        }
        Operation::DeleteLoadBalancer { id, .. } => delete_load_balancer(snapshot, id),
        Operation::PutSecurityGroup { resource, .. } => {
            snapshot.security_group = Some((**resource).clone());
        }
        Operation::PutNetworkInterface { resource, .. } => {
            let existing = find(&mut snapshot.network_interfaces, |one| {
                one.id == resource.id
            });
            if let Some(existing) = existing {
                existing.clone_from(resource);
            }
        }
        Operation::PutPool { resource, .. } => {
            let on = resource.id.as_ref().and_then(ArmId::parent);
            let balancer = find(&mut snapshot.load_balancers, |one| one.id == on);
            let pool = balancer.and_then(|balancer| {
                find(&mut balancer.properties.backend_address_pools, |pool| {
                    pool.is_named(&resource.name)
                })
            });
            if let Some(pool) = pool {
                pool.properties.clone_from(&resource.properties);
            }
        }
        Operation::PutScaleSet { resource, .. } => {
            if let Some(existing) = find(&mut snapshot.scale_sets, |one| one.id == resource.id) {
                existing.clone_from(resource);
            }
        }
        Operation::UpgradeScaleSetInstances { id, instance_ids } => {
            upgrade(snapshot, id, |instance| instance_ids.contains(instance));
        }
    }
}

fn find<T>(list: &mut [T], is: impl Fn(&T) -> bool) -> Option<&mut T> {
    list.iter_mut().find(|one| is(one))
}

fn put_public_ip(snapshot: &mut Snapshot, resource: &PublicIpAddress) {
    match find(&mut snapshot.public_ips, |one| one.id == resource.id) {
        Some(existing) => existing.clone_from(resource),
        None => {
            let mut resource = resource.clone();
            let address = format!("the address of {}", resource.name);
            resource.properties.ip_address.get_or_insert(address);
            snapshot.public_ips.push(resource);
        }
    }
}

/// Fills in the addresses that the resource manager chooses, and ids.
fn fill_in(balancer: &mut LoadBalancer) {
    let Some(id) = balancer.id.clone() else {
        return;
    };
    for frontend in &mut balancer.properties.frontend_ip_configurations {
        let own = id.child("frontendIPConfigurations", &frontend.name);
        frontend.id.get_or_insert(own);
        let properties = &mut frontend.properties;
        if properties.subnet.is_some() && properties.private_ip_address.is_none() {
            let address = format!("the address of frontend {}", frontend.name);
            properties.private_ip_address = Some(address);
        }
    }
}

/// Updates the references from public addresses to the frontends that use them.
fn refer_back(snapshot: &mut Snapshot) {
    let mut users: HashMap<ArmId, ArmId> = HashMap::new();
    for balancer in &snapshot.load_balancers {
        for frontend in &balancer.properties.frontend_ip_configurations {
            let reference = frontend.properties.public_ip_address.as_ref();
            let public = reference.and_then(|reference| reference.id.clone());
            if let (Some(public), Some(own)) = (public, frontend.id.clone()) {
                users.insert(public, own);
            }
        }
    }
    for address in &mut snapshot.public_ips {
        let user = address.id.as_ref().and_then(|id| users.get(id)).cloned();
        let configuration = &mut address.properties.ip_configuration;
        let stranger = configuration.as_ref().and_then(|user| user.id.as_ref());
        let is_balancer = |id: &ArmId| id.segment("loadBalancers").is_some();
        if user.is_some() || stranger.is_some_and(is_balancer) {
            *configuration = user.map(SubResource::to);
        }
    }
}

/// Deletes a load balancer, and with it the memberships in its pools.
fn delete_load_balancer(snapshot: &mut Snapshot, id: &ArmId) {
    let balancers = &mut snapshot.load_balancers;
    balancers.retain(|balancer| balancer.id.as_ref() != Some(id));
    for interface in &mut snapshot.network_interfaces {
        for configuration in &mut interface.properties.ip_configurations {
            let pools = &mut configuration.properties.load_balancer_backend_address_pools;
            pools.retain(|pool| !pool.id.as_ref().is_some_and(|pool| pool.is_within(id)));
        }
    }
    refer_back(snapshot);
}

/// Applies the pools of a scale set's model to its machines.
fn upgrade(snapshot: &mut Snapshot, id: &ArmId, is_upgraded: impl Fn(&str) -> bool) {
    let mut sets = snapshot.scale_sets.iter();
    let Some(set) = sets.find(|set| set.id.as_ref() == Some(id)) else {
        return;
    };
    let model: &NetworkProfile = &set.properties.virtual_machine_profile.network_profile;
    for instance in &mut snapshot.scale_set_instances {
        let own = instance.id.as_ref().filter(|own| own.is_within(id));
        if own.is_some_and(|own| is_upgraded(own.name())) {
            let properties = &mut instance.properties;
            if let Some(profile) = &mut properties.network_profile_configuration {
                profile.clone_from(model);
            }
            if properties.latest_model_applied.is_some() {
                properties.latest_model_applied = Some(true);
            }
        }
    }
}
