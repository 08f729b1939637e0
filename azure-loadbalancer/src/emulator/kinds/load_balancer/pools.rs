//! Members of pools: addresses, or network interfaces, but not both in one pool.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::Context;
use super::POOLS;
use crate::emulator::json::{Object, id_of, key, name};
use crate::emulator::rejection::Rejection;

/// The code of the rejection. Azure rejects this as well, but the code is invented.
pub(in crate::emulator) const MIXED: &str = "BackendAddressPoolMixesAddressesAndInterfaces";

const ADDRESSES: &str = "loadBalancerBackendAddresses";

/// Returns the members of a pool that are network interfaces.
fn interfaces<'c>(context: &'c Context<'_>, pool: &Value) -> &'c [String] {
    let id = format!("{}/{POOLS}/{}", context.id(), name(pool));
    context.references.to(&key(&id))
}

/// Removes the members that are only rendered: those of a pool of network interfaces, which have a name and
/// no address.
pub(super) fn drop_shown_members(context: &Context<'_>, properties: &mut Object) {
    let pools = properties.get_mut(POOLS).and_then(Value::as_array_mut);
    for pool in pools.into_iter().flatten() {
        if interfaces(context, pool).is_empty() {
            continue;
        }
        if let Some(members) = pool["properties"][ADDRESSES].as_array_mut() {
            members.retain(|member| !member["properties"]["ipAddress"].is_null());
        }
    }
}

/// Renders the members of a pool of network interfaces like Azure: each with a name and without an address.
pub(super) fn show_members(pool: &mut Value, users: &[String]) {
    let members = users.iter().map(|user| {
        let mut segments = user.rsplit('/');
        let configuration = segments.next().unwrap_or_default();
        let interface = segments.nth(1).unwrap_or_default();
        json!({ "name": format!("{interface}_{configuration}"), "properties": {} })
    });
    pool["properties"][ADDRESSES] = members.collect();
}

/// Returns true if the members of a pool are addresses.
pub(in crate::emulator) fn has_addresses(pool: &Value) -> bool {
    pool["properties"][ADDRESSES]
        .as_array()
        .is_some_and(|members| !members.is_empty())
}

/// Checks the addresses of a pool of addresses.
pub(super) fn check(context: &Context<'_>, pool: &Value) -> Result<(), Rejection> {
    let properties = &pool["properties"];
    let addresses = properties["loadBalancerBackendAddresses"].as_array();
    let has_addresses = addresses.is_some_and(|addresses| !addresses.is_empty());
    if has_addresses && let Some(user) = interfaces(context, pool).first() {
        let message = format!(
            "Pool {} has network interfaces as members, {user} among them, and cannot have addresses as well; migrateToIpBased changes that.",
            name(pool)
        );
        return Err(Rejection::bad(MIXED, message));
    }
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for address in addresses.into_iter().flatten() {
        let label = format!("backend address {} of pool {}", name(address), name(pool));
        let invalid =
            |why: &str| Rejection::bad("InvalidBackendAddress", format!("{label} {why}."));
        let inner = &address["properties"];
        if name(address).is_empty() || !names.insert(name(address).to_ascii_lowercase()) {
            return Err(invalid("needs a name of its own"));
        }
        let ip = inner["ipAddress"]
            .as_str()
            .and_then(|text| text.parse::<IpAddr>().ok());
        if !ip.is_some_and(|ip| seen.insert(ip)) {
            return Err(invalid("needs an IP address of its own"));
        }
        let network = id_of(&inner["virtualNetwork"])
            .or_else(|| id_of(&properties["virtualNetwork"]))
            .or_else(|| id_of(&inner["subnet"]));
        let Some(network) = network else {
            return Err(invalid("has no virtual network, and neither has its pool"));
        };
        if context.store.find(network).is_none() && context.store.subnet(network).is_none() {
            return Err(Rejection::dangling(network, &context.id()));
        }
    }
    Ok(())
}
