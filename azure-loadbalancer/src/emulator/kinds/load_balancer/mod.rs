//! Load balancers.

mod frontends;
mod inside;
pub(super) mod pools;
mod ports;

use serde_json::{Value, json};

use super::{Context, dress_children, references_to, settle_sku};
use crate::emulator::json::{Object, children, id_of, key, name, object_at, tidy_children};
use crate::emulator::references::References;
use crate::emulator::rejection::Rejection;
use crate::emulator::store::StoredResource;

const FRONTENDS: &str = "frontendIPConfigurations";
const POOLS: &str = "backendAddressPools";
const RULES: &str = "loadBalancingRules";
const PROBES: &str = "probes";

/// The lists of children, each with the fields that the server sets.
const CHILDREN: [(&str, &[&str]); 7] = [
    (
        FRONTENDS,
        &[
            "loadBalancingRules",
            "inboundNatRules",
            "inboundNatPools",
            "outboundRules",
        ],
    ),
    (
        POOLS,
        &[
            "loadBalancingRules",
            "backendIPConfigurations",
            "outboundRules",
            "inboundNatRules",
        ],
    ),
    (RULES, &[]),
    (PROBES, &["loadBalancingRules"]),
    ("inboundNatRules", &["backendIPConfiguration"]),
    ("inboundNatPools", &[]),
    ("outboundRules", &[]),
];

pub(super) fn accept(context: &Context<'_>, body: &mut Object) -> Result<(), Rejection> {
    settle_sku(context, body, &["Basic", "Standard", "Gateway"])?;
    let properties = object_at(body, "properties")?;
    for (collection, server_set) in CHILDREN {
        tidy_children(properties, collection, server_set)?;
    }
    pools::drop_shown_members(context, properties);
    inside::fill_defaults(properties);
    let shown = Value::Object(body.clone());
    check_not_empty(context, &shown)?;
    frontends::check(context, &shown)?;
    inside::check(context, &shown)?;
    check_pools_left(context, &shown)?;
    let properties = object_at(body, "properties")?;
    frontends::allocate(context, properties)
}

/// Checks that a load balancer without frontends has no other parts.
fn check_not_empty(context: &Context<'_>, body: &Value) -> Result<(), Rejection> {
    if !children(body, FRONTENDS).is_empty() {
        return Ok(());
    }
    let message = format!(
        "Load balancer {} does not have Frontend IP Configuration. A load balancer without one is not supported.",
        context.id()
    );
    Err(Rejection::bad(
        "LoadBalancerWithoutFrontendIPCantHaveChildResources",
        message,
    ))
}

/// Checks that no pool with network interfaces or scale sets is removed.
fn check_pools_left(context: &Context<'_>, body: &Value) -> Result<(), Rejection> {
    let before = context
        .previous
        .map_or(&[][..], |previous| children(&previous.body, POOLS));
    for pool in before {
        let id = format!("{}/{POOLS}/{}", context.id(), name(pool));
        if super::has_child(body, POOLS, name(pool)) {
            continue;
        }
        if let Some(user) = context.references.to(&key(&id)).first() {
            let message =
                format!("Backend address pool {id} is in use by {user} and cannot be deleted.");
            return Err(Rejection::bad(
                "InUseBackendAddressPoolCannotBeDeleted",
                message,
            ));
        }
    }
    Ok(())
}

/// Checks that a load balancer can be deleted.
pub(in crate::emulator) fn check_delete(
    references: &References,
    resource: &StoredResource,
) -> Result<(), Rejection> {
    let scale_sets = references.models_with_pools_of(&resource.place.key());
    let instances = references
        .below(&resource.place.key())
        .map(|(_, id)| id)
        .find(|id| id.contains("/virtualMachineScaleSets/"))
        .cloned();
    let user = scale_sets.first().map(|id| (*id).to_owned()).or(instances);
    user.map_or(Ok(()), |user| {
        let message = format!(
            "Cannot delete load balancer {} since its child resources are in use by virtual machine scale set {user}.",
            resource.place.id()
        );
        Err(Rejection::bad("LoadBalancerInUseByVirtualMachineScaleSet", message))
    })
}

pub(super) fn render(references: &References, resource: &StoredResource, body: &mut Value) {
    for (collection, _) in CHILDREN {
        dress_children(resource, body, collection);
    }
    for pool in body["properties"][POOLS]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let users = references.to(&key(pool["id"].as_str().unwrap_or_default()));
        if !users.is_empty() {
            pool["properties"]["backendIPConfigurations"] = references_to(users);
            pools::show_members(pool, users);
        }
    }
    let uses = inside::uses(body);
    for collection in [FRONTENDS, POOLS, PROBES] {
        for child in body["properties"][collection]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let id = key(child["id"].as_str().unwrap_or_default());
            for (by, users) in uses.get(&id).into_iter().flatten() {
                child["properties"][*by] = references_to(users);
            }
        }
    }
    body["properties"]["resourceGuid"] = json!(resource_guid(resource));
}

/// Returns a GUID that depends on the name only.
fn resource_guid(resource: &StoredResource) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in resource.place.key().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!(
        "{:08x}-0000-4000-8000-{:012x}",
        hash >> 32,
        hash & 0xffff_ffff
    )
}

/// Returns the child of this load balancer that a reference names.
fn resolve<'a>(
    context: &Context<'_>,
    body: &'a Value,
    collection: &str,
    reference: &Value,
) -> Option<&'a Value> {
    let id = key(id_of(reference)?);
    let prefix = key(&format!("{}/{collection}/", context.id())) + "/";
    let wanted = id.strip_prefix(&prefix)?;
    children(body, collection)
        .iter()
        .find(|child| name(child).eq_ignore_ascii_case(wanted))
}
