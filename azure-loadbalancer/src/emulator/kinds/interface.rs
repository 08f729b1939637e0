//! Network interfaces.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Context;
use super::load_balancer::pools::{MIXED, has_addresses};
use super::network::requested_address;
use crate::emulator::json::{
    Object, children, id_of, key, last_segment, name, object_at, tidy_children,
};
use crate::emulator::rejection::Rejection;
use crate::emulator::store::Store;

pub(super) fn accept(context: &Context<'_>, body: &mut Object) -> Result<(), Rejection> {
    let properties = object_at(body, "properties")?;
    tidy_children(properties, "ipConfigurations", &[])?;
    if let Some(group) = properties.get("networkSecurityGroup").and_then(id_of)
        && context.store.find(group).is_none()
    {
        return Err(Rejection::dangling(group, &context.id()));
    }
    let configurations = properties
        .get_mut("ipConfigurations")
        .and_then(Value::as_array_mut);
    let mut own = BTreeSet::new();
    let configurations = configurations.map_or(&mut [][..], Vec::as_mut_slice);
    choose_primary(configurations);
    for configuration in configurations {
        let name = name(configuration).to_owned();
        let Some(properties) = configuration["properties"].as_object_mut() else {
            continue;
        };
        check_pools(context, properties)?;
        allocate(context, &name, properties, &mut own)?;
    }
    Ok(())
}

/// Marks the primary IP configuration: the first, unless another is marked.
fn choose_primary(configurations: &mut [Value]) {
    let is_primary = |one: &Value| one["properties"]["primary"] == true;
    // The first configuration is primary if none is requested to be.
    let chosen = configurations.iter().position(is_primary).unwrap_or(0);
    for (position, configuration) in configurations.iter_mut().enumerate() {
        if let Some(properties) = configuration["properties"].as_object_mut() {
            let primary = properties.entry("primary").or_insert(Value::Null);
            if primary.is_null() {
                *primary = json!(position == chosen);
            }
        }
    }
}

/// Assigns an IP configuration its address: the requested one, the former one, or a free one.
fn allocate(
    context: &Context<'_>,
    name: &str,
    properties: &mut Object,
    own: &mut BTreeSet<std::net::IpAddr>,
) -> Result<(), Rejection> {
    let Some(id) = properties.get("subnet").and_then(id_of).map(str::to_owned) else {
        let message = format!("The IP configuration {name} has no subnet.");
        return Err(Rejection::bad("SubnetRequired", message));
    };
    let Some((_, subnet)) = context.store.subnet(&id) else {
        return Err(Rejection::dangling(&id, &context.id()));
    };
    let mut taken = context
        .store
        .taken(&id, context.references, &context.place.key());
    taken.extend(own.iter());
    let method = properties
        .entry("privateIPAllocationMethod")
        .or_insert_with(|| json!("Dynamic"));
    let is_static = method == "Static";
    let address = properties.get("privateIPAddress").and_then(Value::as_str);
    let address = match address {
        Some(address) if is_static => {
            requested_address(subnet, address, &taken)?;
            address.to_owned()
        }
        // A dynamic address stays as long as possible.
        Some(address) if requested_address(subnet, address, &taken).is_ok() => address.to_owned(),
        _ => Store::free_address(subnet, &taken)?.to_string(),
    };
    own.extend(address.parse::<std::net::IpAddr>());
    properties.insert("privateIPAddress".to_owned(), json!(address));
    properties
        .entry("privateIPAddressVersion")
        .or_insert_with(|| json!("IPv4"));
    Ok(())
}

/// Checks that the pools that an interface joins exist.
pub(super) fn check_pools(context: &Context<'_>, properties: &Object) -> Result<(), Rejection> {
    let pools = properties
        .get("loadBalancerBackendAddressPools")
        .and_then(Value::as_array);
    for pool in pools.into_iter().flatten().filter_map(id_of) {
        let lower = key(pool);
        let found = lower
            .rsplit_once("/backendaddresspools/")
            .and_then(|(balancer, _)| {
                let balancer = context.store.get(balancer)?;
                let mut pools = children(&balancer.body, "backendAddressPools").iter();
                pools.find(|one| name(one).eq_ignore_ascii_case(last_segment(pool)))
            });
        let Some(found) = found else {
            return Err(Rejection::dangling(pool, &context.id()));
        };
        if has_addresses(found) {
            let message = format!(
                "Pool {pool} has addresses as members and cannot have network interfaces as well."
            );
            return Err(Rejection::bad(MIXED, message));
        }
    }
    Ok(())
}
