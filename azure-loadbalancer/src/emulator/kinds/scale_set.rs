//! Virtual machine scale sets: a model, and instances that are upgraded on request.

use serde_json::{Value, json};

use super::Context;
use super::interface::check_pools;
use crate::emulator::json::{Object, name, object_at};
use crate::emulator::rejection::Rejection;
use crate::emulator::store::StoredResource;

/// The maximum number of instances of a scale set.
const MAX_INSTANCES: u64 = 1_000;
/// The property that holds the instances. Clients do not see it.
const INSTANCES: &str = "emulatedInstances";

pub(super) fn accept(context: &Context<'_>, body: &mut Object) -> Result<(), Rejection> {
    let capacity = body
        .get("sku")
        .and_then(|sku| sku["capacity"].as_u64())
        .unwrap_or(0);
    if capacity > MAX_INSTANCES {
        let message = format!("A scale set can have {MAX_INSTANCES} instances, not {capacity}.");
        return Err(Rejection::bad("InvalidParameter", message));
    }
    let properties = object_at(body, "properties")?;
    // Only the emulator sets the instances.
    properties.remove(INSTANCES);
    let profile = properties
        .get("virtualMachineProfile")
        .cloned()
        .unwrap_or(Value::Null);
    for (_, configuration) in configurations(&profile) {
        if let Some(properties) = configuration["properties"].as_object() {
            check_pools(context, properties)?;
        }
    }
    // Running instances keep their state until they are upgraded; new ones get the model.
    let mut kept = context.previous.map(instances).unwrap_or_default().to_vec();
    kept.truncate(usize::try_from(capacity).unwrap_or(usize::MAX));
    for id in u64::try_from(kept.len()).unwrap_or(u64::MAX)..capacity {
        kept.push(json!({ "instanceId": id.to_string(), "properties": follow(&profile) }));
    }
    for instance in &mut kept {
        let is_latest =
            follow(&profile)["networkProfile"] == instance["properties"]["networkProfile"];
        instance["properties"]["latestModelApplied"] = json!(is_latest);
    }
    properties.insert(INSTANCES.to_owned(), Value::Array(kept));
    Ok(())
}

/// Returns the properties that an instance takes from the model.
fn follow(profile: &Value) -> Value {
    json!({ "networkProfile": profile["networkProfile"], "latestModelApplied": true })
}

/// Applies the model to instances: the named ones, or all with `*`.
pub(in crate::emulator) fn upgrade(
    resource: &mut StoredResource,
    ids: &Value,
) -> Result<(), Rejection> {
    let Some(ids) = ids["instanceIds"].as_array() else {
        let message = "Required parameter 'instanceIds' is missing (null).";
        return Err(Rejection::bad("InvalidParameter", message));
    };
    let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
    let profile = resource.body["properties"]["virtualMachineProfile"].clone();
    let known: Vec<String> = instances(resource)
        .iter()
        .filter_map(|instance| instance["instanceId"].as_str().map(str::to_owned))
        .collect();
    if let Some(stranger) = ids
        .iter()
        .find(|id| **id != "*" && !known.iter().any(|one| one == *id))
    {
        let message = format!(
            "The provided instanceId {stranger} is not an active Virtual Machine Scale Set VM instanceId."
        );
        return Err(Rejection::bad("InvalidParameter", message));
    }
    for instance in resource.body["properties"][INSTANCES]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let id = instance["instanceId"].as_str().unwrap_or_default();
        if ids.contains(&"*") || ids.contains(&id) {
            instance["properties"] = follow(&profile);
        }
    }
    Ok(())
}

/// Returns the instances.
pub(in crate::emulator) fn instances(resource: &StoredResource) -> &[Value] {
    resource.body["properties"][INSTANCES]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// Returns the IP configurations of a model or an instance, each with the name of its interface.
pub(in crate::emulator) fn configurations(profile: &Value) -> Vec<(&str, &Value)> {
    let interfaces = profile["networkProfile"]["networkInterfaceConfigurations"].as_array();
    let interfaces = interfaces.into_iter().flatten();
    interfaces
        .flat_map(|interface| {
            let list = interface["properties"]["ipConfigurations"].as_array();
            list.into_iter()
                .flatten()
                .map(move |one| (name(interface), one))
        })
        .collect()
}

/// Returns an instance in the form for clients.
pub(in crate::emulator) fn render_instance(resource: &StoredResource, instance: &Value) -> Value {
    let id = instance["instanceId"].as_str().unwrap_or_default();
    let place = &resource.place;
    json!({
        "id": format!("{}/virtualMachines/{id}", place.id()),
        "name": format!("{}_{id}", place.name),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "instanceId": id,
        "location": resource.body["location"],
        "properties": {
            "latestModelApplied": instance["properties"]["latestModelApplied"],
            "networkProfileConfiguration": instance["properties"]["networkProfile"],
            "provisioningState": resource.state.text(),
        },
    })
}

/// The network interfaces of an instance.
pub(in crate::emulator) fn render_interfaces(
    resource: &StoredResource,
    instance: &Value,
) -> Vec<Value> {
    let id = instance["instanceId"].as_str().unwrap_or_default();
    let base = format!(
        "{}/virtualMachines/{id}/networkInterfaces",
        resource.place.id()
    );
    let interfaces =
        instance["properties"]["networkProfile"]["networkInterfaceConfigurations"].as_array();
    let interfaces = interfaces.into_iter().flatten().map(|interface| {
        let mut shown = json!({
            "id": format!("{base}/{}", name(interface)),
            "name": name(interface),
            "properties": interface["properties"],
        });
        for one in shown["properties"]["ipConfigurations"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            one["id"] = json!(format!(
                "{base}/{}/ipConfigurations/{}",
                name(interface),
                name(one)
            ));
        }
        shown
    });
    interfaces.collect()
}

pub(super) fn render(body: &mut Value) {
    if let Some(properties) = body["properties"].as_object_mut() {
        properties.remove(INSTANCES);
    }
}
