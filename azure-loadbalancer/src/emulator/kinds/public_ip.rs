//! Public IP addresses.

use serde_json::{Value, json};

use super::{Context, settle_sku};
use crate::emulator::json::{Object, number_in, object_at, one_of};
use crate::emulator::path::Kind;
use crate::emulator::references::References;
use crate::emulator::rejection::Rejection;
use crate::emulator::store::{Store, StoredResource};

pub(super) fn accept(context: &Context<'_>, body: &mut Object) -> Result<(), Rejection> {
    settle_sku(context, body, &["Basic", "Standard"])?;
    let is_standard = body["sku"]["name"] == "Standard";
    let location = body["location"].clone();
    let properties = object_at(body, "properties")?;
    properties.remove("ipConfiguration");
    let shown = Value::Object(properties.clone());
    one_of(
        &shown,
        "publicIPAllocationMethod",
        &["Static", "Dynamic"],
        "a public address",
    )?;
    one_of(
        &shown,
        "publicIPAddressVersion",
        &["IPv4", "IPv6"],
        "a public address",
    )?;
    number_in(&shown, "idleTimeoutInMinutes", 4..=30, "a public address")?;
    let method = properties.entry("publicIPAllocationMethod");
    let method = method.or_insert_with(|| json!("Dynamic"));
    if is_standard && method != "Static" {
        let message = format!(
            "Standard sku publicIp {} must have AllocationMethod set to Static.",
            context.id()
        );
        return Err(Rejection::bad(
            "StandardSkuPublicIPAddressesMustBeStatic",
            message,
        ));
    }
    properties
        .entry("publicIPAddressVersion")
        .or_insert_with(|| json!("IPv4"));
    properties
        .entry("idleTimeoutInMinutes")
        .or_insert_with(|| json!(4));
    // Azure assigns the address, and keeps an assigned one.
    properties.remove("ipAddress");
    if let Some(previous) = context.previous
        && let Some(address) = previous.body["properties"]["ipAddress"].as_str()
    {
        properties.insert("ipAddress".to_owned(), json!(address));
    }
    settle_label(context, properties, &location)
}

/// Checks the DNS label, which is unique in a region, and sets the DNS name.
fn settle_label(
    context: &Context<'_>,
    properties: &mut Object,
    location: &Value,
) -> Result<(), Rejection> {
    let Some(settings) = properties
        .get_mut("dnsSettings")
        .and_then(Value::as_object_mut)
    else {
        return Ok(());
    };
    let label = settings
        .get("domainNameLabel")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    settings.remove("fqdn");
    if label.is_empty() {
        return Ok(());
    }
    // RFC 1035, section 2.3.1, and at least three characters.
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = (3..=63).contains(&label.len())
        && label.chars().all(inner)
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && !label.ends_with('-');
    if !is_valid {
        let message = format!(
            "The domain name label {label} is invalid. It must conform to the following regular expression: \
             ^[a-z][a-z0-9-]{{1,61}}[a-z0-9]$."
        );
        return Err(Rejection::bad("InvalidDomainNameLabel", message));
    }
    // A label is unique in its region.
    let has_label = |other: &&StoredResource| {
        let theirs = &other.body["properties"]["dnsSettings"]["domainNameLabel"];
        other.place.kind == Kind::PublicIp
            && other.place.key() != context.place.key()
            && other.body["location"] == *location
            && theirs
                .as_str()
                .is_some_and(|theirs| theirs.eq_ignore_ascii_case(&label))
    };
    let name = format!(
        "{label}.{}.cloudapp.azure.com",
        location.as_str().unwrap_or_default()
    );
    if context.store.all().any(|other| has_label(&other)) {
        let message = format!("DNS record {name} is already used by another public IP.");
        return Err(Rejection::bad("DnsRecordInUse", message));
    }
    settings.insert("fqdn".to_owned(), json!(name));
    Ok(())
}

/// Assigns the address when the operation that creates it completes.
pub(in crate::emulator) fn settle(store: &mut Store, key: &str) {
    let has_none = |resource: &StoredResource| resource.body["properties"]["ipAddress"].is_null();
    if !store.get(key).is_some_and(has_none) {
        return;
    }
    let address = store.allocate_public();
    if let (Some(address), Some(resource)) = (address, store.get_mut(key)) {
        resource.body["properties"]["ipAddress"] = json!(address.to_string());
    }
}

pub(super) fn render(references: &References, resource: &StoredResource, body: &mut Value) {
    let properties = &mut body["properties"];
    match references.to(&resource.place.key()).first() {
        Some(id) => properties["ipConfiguration"] = json!({ "id": id }),
        // A dynamic address is assigned only while it is used.
        None if properties["publicIPAllocationMethod"] == "Dynamic" => {
            if let Some(properties) = properties.as_object_mut() {
                properties.remove("ipAddress");
            }
        }
        None => {}
    }
}
