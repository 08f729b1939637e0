//! Virtual networks and their subnets.

use ipnet::IpNet;
use serde_json::Value;

use super::{Context, dress_children, has_child, references_to};
use crate::emulator::json::{Object, children, id_of, key, name, object_at, tidy_children};
use crate::emulator::references::References;
use crate::emulator::rejection::Rejection;
use crate::emulator::store::{Store, StoredResource};

pub(super) fn accept(context: &Context<'_>, body: &mut Object) -> Result<(), Rejection> {
    let properties = object_at(body, "properties")?;
    tidy_children(properties, "subnets", &["ipConfigurations"])?;
    let body = Value::Object(body.clone());
    for subnet in children(&body, "subnets") {
        check_subnet(context, subnet)?;
    }
    let gone = |subnet: &&Value| !has_child(&body, "subnets", name(subnet));
    let before = context
        .previous
        .map_or(&[][..], |previous| children(&previous.body, "subnets"));
    for subnet in before.iter().filter(gone) {
        let id = format!("{}/subnets/{}", context.id(), name(subnet));
        if let Some(user) = context.references.to(&key(&id)).first() {
            let message = format!(
                "Subnet {} is in use by {user} and cannot be deleted.",
                name(subnet)
            );
            return Err(Rejection::bad("InUseSubnetCannotBeDeleted", message));
        }
    }
    Ok(())
}

fn check_subnet(context: &Context<'_>, subnet: &Value) -> Result<(), Rejection> {
    let properties = &subnet["properties"];
    let texts = properties["addressPrefixes"]
        .as_array()
        .into_iter()
        .flatten();
    let texts: Vec<_> = texts
        .chain([&properties["addressPrefix"]])
        .filter_map(Value::as_str)
        .collect();
    // A prefix has no bits set after its length.
    let is_network = |text: &&str| text.parse::<IpNet>().is_ok_and(|net| net.trunc() == net);
    if texts.is_empty() || !texts.iter().all(is_network) {
        let message = format!("Subnet {} has no valid address prefix.", name(subnet));
        return Err(Rejection::bad("NetcfgInvalidSubnet", message));
    }
    match id_of(&properties["networkSecurityGroup"]) {
        Some(group) if context.store.find(group).is_none() => {
            Err(Rejection::dangling(group, &context.id()))
        }
        _ => Ok(()),
    }
}

pub(super) fn render(references: &References, resource: &StoredResource, body: &mut Value) {
    dress_children(resource, body, "subnets");
    for subnet in body["properties"]["subnets"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let users = references.to(&key(subnet["id"].as_str().unwrap_or_default()));
        if !users.is_empty() {
            subnet["properties"]["ipConfigurations"] = references_to(users);
        }
    }
}

/// Returns the requested address in a subnet, if it is available.
pub(super) fn requested_address(
    subnet: &Value,
    wanted: &str,
    taken: &std::collections::BTreeSet<std::net::IpAddr>,
) -> Result<(), Rejection> {
    let address = wanted.parse().ok();
    let inside = |address: std::net::IpAddr| {
        Store::prefixes(subnet)
            .iter()
            .any(|net| net.contains(&address))
    };
    match address {
        Some(address) if !inside(address) => Err(Rejection::bad(
            "PrivateIPAddressNotInSubnet",
            format!(
                "Private static IP address {wanted} does not belong to the range of subnet {}.",
                name(subnet)
            ),
        )),
        Some(address) if taken.contains(&address) => Err(Rejection::bad(
            "PrivateIPAddressIsAllocated",
            format!(
                "IP address {wanted} is already allocated to another resource in subnet {}.",
                name(subnet)
            ),
        )),
        Some(_) => Ok(()),
        None => Err(Rejection::bad(
            "InvalidIPAddress",
            format!("`{wanted}` is not an IP address."),
        )),
    }
}
