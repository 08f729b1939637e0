//! The cluster's pool of a load balancer, and its members if they are addresses.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Draft;
use crate::config::PoolMembership;
use crate::naming;
use crate::node::{Node, Readiness};
use crate::plan::cluster_state::{ClusterState, SubjectIndex};
use crate::plan::placement::Placed;
use crate::plan::{Warning, machines};
use crate::resources::{
    BackendAddress, BackendAddressPool, BackendAddressPoolProperties, BackendAddressProperties,
    LoadBalancer, SubResource,
};

/// Creates the pool, if any service is on the load balancer. Other pools stay.
pub(super) fn ensure(
    world: &ClusterState<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
) {
    let wanted = residents.iter().any(|(_, placed)| placed.later.is_none());
    let pools = &mut draft.resource.properties.backend_address_pools;
    let cluster = &world.config.cluster_name;
    if wanted && !pools.iter().any(|pool| pool.is_named(cluster)) {
        let properties = BackendAddressPoolProperties::default();
        pools.push(BackendAddressPool::named(cluster, properties));
        draft.touch(None, "the pool of the cluster is added");
    }
}

/// Sets the addresses of the pool to those of the nodes. Existing entries keep their order.
pub(super) fn members(
    world: &ClusterState<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    ours: bool,
    warnings: &mut BTreeSet<Warning>,
) {
    let by_address = world.config.backend_pool_type == PoolMembership::Address;
    // A plan for one service only concerns its load balancer.
    let concerned = !residents.is_empty() || (ours && world.request.only.is_none());
    if draft.is_deleted() || !concerned {
        return;
    }
    if let Some(what) = other_kind(world, &draft.resource) {
        // Azure rejects a load balancer with such a mixture, which would block all services.
        let service = None;
        warnings.insert(Warning { service, what });
        return;
    }
    if !by_address {
        return;
    }
    let changed_before = draft.is_changed();
    let cluster = &world.config.cluster_name;
    let network = world.config.virtual_network_id();
    let pools = &mut draft.resource.properties.backend_address_pools;
    let Some(pool) = pools.iter_mut().find(|pool| pool.is_named(cluster)) else {
        return;
    };
    let properties = &mut pool.properties;
    let kept = world.kept_members();
    let mut desired = addresses(world, properties, &kept, warnings);
    let mut addresses = properties
        .load_balancer_backend_addresses
        .take()
        .unwrap_or_default();
    // Existing entries are kept as they are, including fields that this crate does not know.
    addresses.retain(|entry| {
        let address = entry
            .properties
            .ip_address
            .as_deref()
            .and_then(|text| text.parse().ok());
        let lower = entry.name.to_ascii_lowercase();
        let wanted = desired.get(&lower);
        let stays = kept.contains(&lower)
            || (address.is_some() && wanted.map(|(_, wanted)| *wanted) == address);
        if stays {
            desired.remove(&lower);
        }
        stays
    });
    addresses.extend(desired.into_values().map(|(name, address)| {
        let ip_address = Some(address.to_string());
        let properties = BackendAddressProperties {
            ip_address,
            ..BackendAddressProperties::default()
        };
        BackendAddress::named(name, properties)
    }));
    // Azure needs the virtual network only for a pool with addresses.
    if !addresses.is_empty()
        && !SubResource::leads_to(properties.virtual_network.as_ref(), &network)
    {
        properties.virtual_network = Some(SubResource::to(network));
    }
    let before = draft.current.and_then(|current| {
        let mut pools = current.properties.backend_address_pools.iter();
        let pool = pools.find(|pool| pool.is_named(cluster))?;
        pool.properties.load_balancer_backend_addresses.as_ref()
    });
    let count = addresses.len();
    draft.members = different(before.map_or(&[][..], Vec::as_slice), &addresses);
    // An absent list stays absent: writing an empty one would be a change.
    if before.is_some() || !addresses.is_empty() {
        properties.load_balancer_backend_addresses = Some(addresses);
    }
    draft.pool_only = !changed_before && draft.is_changed();
    if let Some(what) = without_nodes(world, &draft.resource, count) {
        let service = None;
        warnings.insert(Warning { service, what });
    }
}

/// Returns a warning about a pool with rules but without nodes.
fn without_nodes(
    world: &ClusterState<'_>,
    balancer: &LoadBalancer,
    members: usize,
) -> Option<String> {
    if balancer.properties.load_balancing_rules.is_empty() {
        return None;
    }
    let cluster = &world.config.cluster_name;
    let pool = format!("pool {cluster} of load balancer {}", balancer.name);
    let why = machines::nobody(world.nodes.len());
    if members == 0 {
        return Some(format!(
            "{pool} has no member, since {why}: no node answers for its services"
        ));
    }
    let until = match world.config.empty_grace {
        Some(grace) => format!("for {} s (emptyGraceSeconds)", grace.as_secs()),
        None => "until one does".to_owned(),
    };
    let keeps = world.keeps_last_members();
    keeps.then(|| format!("{pool} keeps its members ({members}) {until}, although {why}"))
}

/// Returns the lower-case names of the entries that differ between two lists, or are only in one.
fn different(before: &[BackendAddress], after: &[BackendAddress]) -> BTreeSet<String> {
    fn by_name(entries: &[BackendAddress]) -> BTreeMap<String, &BackendAddress> {
        let named = entries.iter();
        named
            .map(|entry| (entry.name.to_ascii_lowercase(), entry))
            .collect()
    }
    let (before, after) = (by_name(before), by_name(after));
    let names = before.keys().chain(after.keys());
    let different = names.filter(|name| before.get(*name) != after.get(*name));
    different.cloned().collect()
}

/// Returns a warning if the members of the cluster's pool are of another kind than configured. A pool of
/// network interfaces also lists its members, by name and without an address.
pub(in crate::plan) fn other_kind(
    world: &ClusterState<'_>,
    balancer: &LoadBalancer,
) -> Option<String> {
    let cluster = &world.config.cluster_name;
    let mut pools = balancer.properties.backend_address_pools.iter();
    let pool = &pools.find(|pool| pool.is_named(cluster))?.properties;
    let mut entries = pool.load_balancer_backend_addresses.iter().flatten();
    let has_addresses = entries.any(|entry| entry.properties.ip_address.is_some());
    let interfaces = pool.other.get("backendIPConfigurations");
    let has_interfaces = interfaces
        .and_then(serde_json::Value::as_array)
        .is_some_and(|interfaces| !interfaces.is_empty());
    let (has, remedy) = match world.config.backend_pool_type {
        PoolMembership::Address if has_interfaces && !has_addresses => (
            "network interfaces",
            "write backendPoolType nodeIPConfiguration, or have Azure change the pool with migrateToIpBased",
        ),
        PoolMembership::NetworkInterface if has_addresses => (
            "addresses",
            "write backendPoolType nodeIP, or empty the pool",
        ),
        PoolMembership::Address | PoolMembership::NetworkInterface => return None,
    };
    Some(format!(
        "the members of pool {cluster} of load balancer {} are {has} and stay as they are; {remedy}",
        balancer.name
    ))
}

/// Returns the lower-case names of entries, each with its address. A member that is not ready stays one for a
/// while.
///
/// A pool has an address once: Azure rejects the whole load balancer otherwise. A ready node has precedence
/// over one that is not, which may linger after another machine has got its address; then a member has
/// precedence.
fn addresses(
    world: &ClusterState<'_>,
    pool: &BackendAddressPoolProperties,
    kept: &BTreeSet<String>,
    warnings: &mut BTreeSet<Warning>,
) -> BTreeMap<String, (String, IpAddr)> {
    let is_member = |node: &Node| {
        let name = naming::backend_address(&node.name);
        let entries = pool.load_balancer_backend_addresses.iter().flatten();
        entries.into_iter().any(|entry| entry.is_named(&name))
    };
    let held = &world.request.held_members;
    let takes_part = |node: &&&Node| {
        machines::takes_part(world.config, node)
            && !held.contains(&naming::backend_address(&node.name).to_ascii_lowercase())
            && match node.readiness {
                Readiness::Ready => true,
                Readiness::NotReady(since) => {
                    since < world.config.not_ready_grace && is_member(node)
                }
            }
    };
    let mut nodes: Vec<_> = world.nodes.iter().filter(takes_part).collect();
    nodes.sort_by_key(|node| (node.readiness, !is_member(node), &node.name));
    let mut by_address = BTreeMap::<IpAddr, &str>::new();
    // The address of a kept member is given to no other node.
    for entry in pool.load_balancer_backend_addresses.iter().flatten() {
        let address = entry.properties.ip_address.as_deref();
        if let (true, Some(Ok(address))) = (
            kept.contains(&entry.name.to_ascii_lowercase()),
            address.map(str::parse),
        ) {
            by_address.insert(address, &entry.name);
        }
    }
    let mut entries = BTreeMap::new();
    for node in nodes {
        let Some(address) = node.addresses.iter().find(|address| address.is_ipv4()) else {
            // Backends of a load balancer are IPv4 here.
            continue;
        };
        let name = naming::backend_address(&node.name);
        if let Some(first) = by_address.get(address) {
            warnings.insert(Warning {
                service: None,
                what: format!(
                    "node {} is no member of pools: {first} has its address {address}",
                    node.name
                ),
            });
        } else if let Entry::Vacant(entry) = entries.entry(name.to_ascii_lowercase()) {
            by_address.insert(*address, &node.name);
            entry.insert((name, *address));
        }
    }
    entries
}
