//! The rules of each kind of resource: validation of writes, and rendering of reads.

mod interface;
pub(super) mod load_balancer;
mod network;
pub(super) mod public_ip;
pub(super) mod scale_set;
mod security_group;
mod security_rule;
mod service_tags;

use serde_json::{Value, json};

use super::json::{Object, children, drop_nulls, name, object_at};
use super::path::{Kind, ResourcePath};
use super::references::References;
use super::rejection::Rejection;
use super::store::{Store, StoredResource};

/// The maximum number of tags of a resource:
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations>.
const MOST_TAGS: usize = 50;

/// The context that a write is validated against.
pub(super) struct Context<'a> {
    pub(super) store: &'a Store,
    pub(super) references: &'a References,
    pub(super) place: &'a ResourcePath,
    pub(super) previous: Option<&'a StoredResource>,
}

impl Context<'_> {
    /// Returns the id of the written resource.
    pub(super) fn id(&self) -> String {
        self.place.id()
    }
}

/// Validates a written resource, and adds defaults and immediately allocated values.
pub(super) fn accept(context: &Context<'_>, mut body: Object) -> Result<Value, Rejection> {
    // The server sets these fields.
    for key in ["id", "name", "type", "etag"] {
        body.remove(key);
    }
    drop_nulls(&mut body);
    let location = body
        .get("location")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if location.is_empty() {
        let message = "The location property is required for this definition.";
        return Err(Rejection::bad("LocationRequired", message));
    }
    if let Some(previous) = context.previous {
        let before = previous.body["location"].as_str().unwrap_or_default();
        if !before.eq_ignore_ascii_case(location) {
            let message = format!(
                "The resource '{}' already exists in location '{before}'. A resource with the same name cannot be created in \
                 location '{location}'.",
                context.place.name
            );
            return Err(Rejection::conflict("InvalidResourceLocation", message));
        }
    }
    let tags = body
        .get("tags")
        .and_then(Value::as_object)
        .map_or(0, |tags| tags.len());
    if tags > MOST_TAGS {
        let message = format!("A resource has {MOST_TAGS} tags at most; this one has {tags}.");
        return Err(Rejection::bad("TooManyTags", message));
    }
    let properties = object_at(&mut body, "properties")?;
    drop_nulls(properties);
    for key in ["provisioningState", "resourceGuid"] {
        properties.remove(key);
    }
    match context.place.kind {
        Kind::LoadBalancer => load_balancer::accept(context, &mut body)?,
        Kind::PublicIp => public_ip::accept(context, &mut body)?,
        Kind::SecurityGroup => security_group::accept(&mut body)?,
        Kind::VirtualNetwork => network::accept(context, &mut body)?,
        Kind::Interface => interface::accept(context, &mut body)?,
        Kind::ScaleSet => scale_set::accept(context, &mut body)?,
        Kind::Machine => {}
    }
    Ok(Value::Object(body))
}

/// Returns a resource in the form for clients.
pub(super) fn render(references: &References, resource: &StoredResource) -> Value {
    let place = &resource.place;
    let mut body = resource.body.clone();
    body["id"] = json!(place.id());
    body["name"] = json!(place.name);
    body["type"] = json!(format!(
        "{}/{}",
        place.kind.provider(),
        place.kind.segment()
    ));
    // Resources of Microsoft.Compute have no etag.
    if place.kind.provider() == "Microsoft.Network" {
        body["etag"] = json!(resource.etag());
    }
    body["properties"]["provisioningState"] = json!(resource.state.text());
    match place.kind {
        Kind::LoadBalancer => load_balancer::render(references, resource, &mut body),
        Kind::PublicIp => public_ip::render(references, resource, &mut body),
        Kind::SecurityGroup => security_group::render(references, resource, &mut body),
        Kind::VirtualNetwork => network::render(references, resource, &mut body),
        Kind::Interface => dress_children(resource, &mut body, "ipConfigurations"),
        Kind::ScaleSet => scale_set::render(&mut body),
        Kind::Machine => {}
    }
    body
}

/// Returns the lists of children that have their own paths, and whether these can be written.
pub(super) fn collections(kind: Kind) -> &'static [(&'static str, bool)] {
    match kind {
        Kind::LoadBalancer => &[
            ("frontendIPConfigurations", false),
            ("backendAddressPools", true),
            ("loadBalancingRules", false),
            ("probes", false),
            ("inboundNatRules", true),
            ("outboundRules", false),
        ],
        Kind::SecurityGroup => &[("securityRules", true), ("defaultSecurityRules", false)],
        Kind::VirtualNetwork => &[("subnets", true)],
        Kind::Interface => &[("ipConfigurations", false)],
        Kind::PublicIp | Kind::Machine | Kind::ScaleSet => &[],
    }
}

/// Adds ids, etags, types and states to children.
fn dress_children(resource: &StoredResource, body: &mut Value, collection: &str) {
    let (etag, state) = (resource.etag(), resource.state.text());
    let kind = resource.place.kind;
    let kind = format!("{}/{}/{collection}", kind.provider(), kind.segment());
    let items = body["properties"][collection].as_array_mut();
    for child in items.into_iter().flatten() {
        let id = resource.child_id(collection, name(child));
        child["id"] = json!(id);
        child["etag"] = json!(etag);
        child["type"] = json!(kind);
        child["properties"]["provisioningState"] = json!(state);
    }
}

/// Returns a list of references.
fn references_to(ids: &[String]) -> Value {
    ids.iter().map(|id| json!({ "id": id })).collect()
}

/// Sets the SKU: the requested one, else the former one, else the default. It cannot be changed.
fn settle_sku(context: &Context<'_>, body: &mut Object, allowed: &[&str]) -> Result<(), Rejection> {
    let before = context
        .previous
        .map(|previous| previous.body["sku"].clone());
    let sku = object_at(body, "sku")?;
    drop_nulls(sku);
    let usual = before
        .as_ref()
        .and_then(|sku| sku["name"].as_str())
        .unwrap_or("Basic");
    let wanted = sku
        .entry("name")
        .or_insert_with(|| json!(usual))
        .as_str()
        .unwrap_or_default();
    let Some(known) = allowed.iter().find(|one| one.eq_ignore_ascii_case(wanted)) else {
        let message = format!("The sku '{wanted}' is none of {}.", allowed.join(", "));
        return Err(Rejection::bad("InvalidSku", message));
    };
    // A static and unused address may become Standard, and nothing becomes Basic.
    let is_upgrade = context.place.kind == Kind::PublicIp
        && *known == "Standard"
        && context.references.to(&context.place.key()).is_empty()
        && context.previous.is_some_and(|previous| {
            previous.body["properties"]["publicIPAllocationMethod"] == "Static"
        });
    if before.is_some() && !usual.eq_ignore_ascii_case(known) && !is_upgrade {
        let message = format!(
            "The sku of {} cannot be changed from {usual} to {known}.",
            context.id()
        );
        return Err(Rejection::bad("SkuCannotBeChanged", message));
    }
    sku.insert("name".to_owned(), json!(known));
    sku.entry("tier").or_insert_with(|| json!("Regional"));
    Ok(())
}

/// Returns true if a list has a child of that name.
fn has_child(body: &Value, collection: &str, wanted: &str) -> bool {
    children(body, collection)
        .iter()
        .any(|child| name(child).eq_ignore_ascii_case(wanted))
}
