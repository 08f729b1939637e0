//! The frontends of a load balancer, and their addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::Context;
use super::super::network::requested_address;
use super::FRONTENDS;
use crate::emulator::json::{Object, children, id_of, key, name, one_of};
use crate::emulator::path::Kind;
use crate::emulator::rejection::Rejection;
use crate::emulator::store::{ProvisioningPhase, Store};

/// Returns the maximum number of frontends of a load balancer, from the limits of subscriptions:
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer>.
fn maximum(body: &Value) -> usize {
    match body["sku"]["name"].as_str() {
        Some("Basic") => 200,
        _ => 600,
    }
}

/// Checks that each frontend has one source of its address, that it exists, and that it is not in use.
pub(super) fn check(context: &Context<'_>, body: &Value) -> Result<(), Rejection> {
    let (count, maximum) = (children(body, FRONTENDS).len(), maximum(body));
    if count > maximum {
        let message = format!(
            "A load balancer of this sku can have {maximum} frontend IP configurations; this one has {count}."
        );
        return Err(Rejection::bad(
            "LoadBalancerFrontendIPConfigurationCountLimitReached",
            message,
        ));
    }
    let (mut public, mut private) = (None, None);
    let mut addresses = BTreeMap::new();
    for frontend in children(body, FRONTENDS) {
        let properties = &frontend["properties"];
        let label = format!("frontend {}", name(frontend));
        one_of(
            properties,
            "privateIPAllocationMethod",
            &["Static", "Dynamic"],
            &label,
        )?;
        let address = id_of(&properties["publicIPAddress"]);
        match (address, id_of(&properties["subnet"])) {
            (Some(address), None) => {
                public = Some(name(frontend));
                if let Some(other) = addresses.insert(key(address), name(frontend)) {
                    return Err(in_use(address, other));
                }
                check_public(context, body, frontend, address)?;
            }
            (None, Some(subnet)) => {
                private = Some(name(frontend));
                if context.store.subnet(subnet).is_none() {
                    return Err(Rejection::dangling(subnet, &context.id()));
                }
            }
            // A prefix is another owner's frontend, which stays as it is.
            (None, None) if id_of(&properties["publicIPPrefix"]).is_some() => {
                public = Some(name(frontend));
            }
            (address, _) => {
                let what = if address.is_some() { "both" } else { "neither" };
                let message = format!(
                    "{label} has {what} a public address and a subnet; it must have one of the two."
                );
                return Err(Rejection::bad("InvalidFrontendIPConfiguration", message));
            }
        }
    }
    let (Some(public), Some(private)) = (public, private) else {
        return Ok(());
    };
    let message = format!(
        "Load balancer {} cannot have frontends with public addresses ({public}) and with subnets ({private}) at the same \
         time.",
        context.id()
    );
    Err(Rejection::bad(
        "LoadBalancerFrontendsMixPublicAndPrivate",
        message,
    ))
}

fn check_public(
    context: &Context<'_>,
    body: &Value,
    frontend: &Value,
    address: &str,
) -> Result<(), Rejection> {
    let found = context.store.find(address);
    let Some(found) = found.filter(|found| found.place.kind == Kind::PublicIp) else {
        return Err(Rejection::dangling(address, &context.id()));
    };
    if region(body) != region(&found.body) {
        return Err(Rejection::dangling(address, &context.id()));
    }
    if found.state != ProvisioningPhase::Succeeded {
        let message = format!(
            "Cannot proceed with operation because resource {address} used by resource {} is not in Succeeded state. \
             Resource is in {} state.",
            context.id(),
            found.state.text()
        );
        return Err(Rejection::conflict(
            "ReferencedResourceNotProvisioned",
            message,
        ));
    }
    let skus = (&body["sku"]["name"], &found.body["sku"]["name"]);
    if skus.0 != skus.1 {
        let message = format!(
            "{} sku publicIp {address} cannot be referenced by {} sku load balancer {}.",
            skus.1,
            skus.0,
            context.id()
        );
        return Err(Rejection::bad("PublicIPAndLBSkuDoNotMatch", message));
    }
    let own = key(&format!("{}/{FRONTENDS}/{}", context.id(), name(frontend)));
    let is_other = |id: &&String| {
        // Another frontend of this load balancer may have had the address until now.
        let user = key(id);
        user != own && !user.starts_with(&(context.place.key() + "/"))
    };
    match context.references.to(&key(address)).iter().find(is_other) {
        Some(other) => Err(in_use(address, other)),
        None => Ok(()),
    }
}

/// Returns the region of a resource in the form in which Azure compares it: `West US` is `westus`.
fn region(body: &Value) -> String {
    let region = body["location"].as_str().unwrap_or_default();
    region.replace(' ', "").to_ascii_lowercase()
}

fn in_use(address: &str, by: &str) -> Rejection {
    let message = format!("Resource {address} is already allocated to resource {by}.");
    Rejection::bad("PublicIPAddressInUse", message)
}

/// Assigns addresses to frontends in subnets.
pub(super) fn allocate(context: &Context<'_>, properties: &mut Object) -> Result<(), Rejection> {
    let frontends = properties.get_mut(FRONTENDS).and_then(Value::as_array_mut);
    let mut taken: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
    let mut frontends: Vec<&mut Value> = frontends.into_iter().flatten().collect();
    // Requested addresses are assigned before arbitrary ones.
    frontends.sort_by_key(|frontend| {
        let wants = previous_address(context, frontend).is_some();
        (
            frontend["properties"]["privateIPAllocationMethod"] != "Static",
            !wants,
        )
    });
    for frontend in frontends {
        let before = previous_address(context, frontend).map(str::to_owned);
        let properties = &mut frontend["properties"];
        if properties["privateIPAllocationMethod"].is_null() {
            properties["privateIPAllocationMethod"] = json!("Dynamic");
        }
        let Some(id) = id_of(&properties["subnet"]).map(str::to_owned) else {
            continue;
        };
        let Some((_, subnet)) = context.store.subnet(&id) else {
            continue;
        };
        let taken = taken.entry(key(&id)).or_insert_with(|| {
            context
                .store
                .taken(&id, context.references, &context.place.key())
        });
        let address = if properties["privateIPAllocationMethod"] == "Static" {
            let wanted = properties["privateIPAddress"].as_str().unwrap_or_default();
            requested_address(subnet, wanted, taken)?;
            wanted.to_owned()
        } else {
            let kept = before.filter(|address| requested_address(subnet, address, taken).is_ok());
            match kept {
                Some(address) => address,
                None => Store::free_address(subnet, taken)?.to_string(),
            }
        };
        taken.extend(address.parse::<IpAddr>());
        properties["privateIPAddress"] = json!(address);
        if properties["privateIPAddressVersion"].is_null() {
            properties["privateIPAddressVersion"] = json!("IPv4");
        }
    }
    Ok(())
}

/// Returns the address that a frontend of this name had in the same subnet.
fn previous_address<'a>(context: &Context<'a>, frontend: &Value) -> Option<&'a str> {
    let before = context
        .previous
        .map(|previous| children(&previous.body, FRONTENDS))?;
    let same = before
        .iter()
        .find(|one| name(one).eq_ignore_ascii_case(name(frontend)))?;
    let (then, now) = (&same["properties"], &frontend["properties"]);
    let subnet = |properties: &Value| id_of(&properties["subnet"]).map(key);
    if subnet(then) != subnet(now) {
        return None;
    }
    then["privateIPAddress"].as_str()
}
