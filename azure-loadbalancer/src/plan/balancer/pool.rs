//! The cluster's pool of a load balancer, and its members if they are addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Draft;
use crate::config::PoolMembership;
use crate::node::{Node, Readiness};
use crate::plan::machines;
use crate::plan::placement::Placed;
use crate::plan::world::{SubjectIndex, World};
use crate::resources::{
    BackendAddress, BackendAddressPool, BackendAddressPoolProperties, BackendAddressProperties,
    SubResource,
};

/// Makes the pool, if anybody is on the load balancer. Pools of others stay.
pub(super) fn ensure(
    world: &World<'_>,
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

/// Makes the addresses of the pool those of the nodes. What is there already stays in its order.
pub(super) fn members(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    ours: bool,
) {
    let by_address = world.config.backend_pool_type == PoolMembership::Address;
    // Where one service is asked about, only its load balancer is looked at.
    let concerned = !residents.is_empty() || (ours && world.request.only.is_none());
    if !by_address || draft.is_deleted() || !concerned {
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
    let mut desired = addresses(world, properties);
    let mut addresses = properties
        .load_balancer_backend_addresses
        .take()
        .unwrap_or_default();
    addresses.retain(|entry| {
        let address = entry
            .properties
            .ip_address
            .as_deref()
            .and_then(|text| text.parse().ok());
        let wanted = desired.get(&entry.name.to_ascii_lowercase());
        let stays = address.is_some() && wanted.map(|(_, wanted)| *wanted) == address;
        if stays {
            desired.remove(&entry.name.to_ascii_lowercase());
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
    if !addresses.is_empty()
        && !SubResource::leads_to(properties.virtual_network.as_ref(), &network)
    {
        properties.virtual_network = Some(SubResource::to(network));
    }
    let absent = draft
        .current
        .and_then(|current| {
            let pools = &current.properties.backend_address_pools;
            pools.iter().find(|pool| pool.is_named(cluster))
        })
        .is_none_or(|pool| pool.properties.load_balancer_backend_addresses.is_none());
    if !(absent && addresses.is_empty()) {
        properties.load_balancer_backend_addresses = Some(addresses);
    }
    draft.pool_only = !changed_before && draft.is_changed();
}

/// The nodes by lower-case name, each with its address. A node that is not ready is a member for a while if it is one already.
fn addresses(
    world: &World<'_>,
    pool: &BackendAddressPoolProperties,
) -> BTreeMap<String, (String, IpAddr)> {
    let is_member = |node: &Node| {
        let entries = pool.load_balancer_backend_addresses.iter().flatten();
        entries.into_iter().any(|entry| entry.is_named(&node.name))
    };
    let takes_part = |node: &&&Node| {
        machines::takes_part(world, node)
            && match node.readiness {
                Readiness::Ready => true,
                Readiness::NotReady(since) => {
                    since < world.config.not_ready_grace && is_member(node)
                }
            }
    };
    let nodes = world.nodes.iter().filter(takes_part);
    nodes
        .filter_map(|node| {
            let address = node.addresses.iter().find(|address| address.is_ipv4())?;
            Some((
                node.name.to_ascii_lowercase(),
                (node.name.clone(), *address),
            ))
        })
        .collect()
}
