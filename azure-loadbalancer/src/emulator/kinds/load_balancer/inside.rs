//! The references inside one load balancer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Context;
use super::{FRONTENDS, POOLS, PROBES, RULES, pools, ports, resolve};
use crate::emulator::json::{Object, children, id_of, key, name, number_in, one_of};
use crate::emulator::rejection::Rejection;

/// Fills in Azure's defaults of absent properties.
pub(super) fn fill_defaults(properties: &mut Object) {
    let mut fill = |collection: &str, defaults: &[(&str, Value)]| {
        let items = properties.get_mut(collection).and_then(Value::as_array_mut);
        for properties in items
            .into_iter()
            .flatten()
            .filter_map(|child| child["properties"].as_object_mut())
        {
            for (field, value) in defaults {
                properties.entry(*field).or_insert_with(|| value.clone());
            }
        }
    };
    fill(
        RULES,
        &[
            ("enableFloatingIP", json!(false)),
            ("enableTcpReset", json!(false)),
            ("disableOutboundSnat", json!(false)),
            ("idleTimeoutInMinutes", json!(4)),
            ("loadDistribution", json!("Default")),
        ],
    );
    fill(
        PROBES,
        &[
            ("intervalInSeconds", json!(15)),
            ("numberOfProbes", json!(2)),
            ("probeThreshold", json!(1)),
        ],
    );
    fill(POOLS, &[("loadBalancerBackendAddresses", json!([]))]);
}

/// Checks rules, probes and pools, and that ids lead to parts of the same load balancer.
pub(super) fn check(context: &Context<'_>, body: &Value) -> Result<(), Rejection> {
    let is_basic = body["sku"]["name"] == "Basic";
    for rule in children(body, RULES) {
        check_rule(context, body, rule, is_basic)?;
    }
    ports::check(body)?;
    for probe in children(body, PROBES) {
        check_probe(probe, is_basic)?;
    }
    for pool in children(body, POOLS) {
        pools::check(context, pool)?;
    }
    for (collection, fields) in [
        (
            "inboundNatRules",
            &[("frontendIPConfiguration", FRONTENDS)][..],
        ),
        ("inboundNatPools", &[("frontendIPConfiguration", FRONTENDS)]),
        ("outboundRules", &[("backendAddressPool", POOLS)]),
    ] {
        for child in children(body, collection) {
            for (field, target) in fields {
                check_reference(context, body, &child["properties"][*field], target)?;
            }
            for frontend in child["properties"]["frontendIPConfigurations"]
                .as_array()
                .into_iter()
                .flatten()
            {
                check_reference(context, body, frontend, FRONTENDS)?;
            }
        }
    }
    Ok(())
}

fn check_rule(
    context: &Context<'_>,
    body: &Value,
    rule: &Value,
    is_basic: bool,
) -> Result<(), Rejection> {
    let label = format!("load balancing rule {}", name(rule));
    let properties = &rule["properties"];
    let missing =
        |field: &str| Rejection::bad("InvalidRequestFormat", format!("{label} has no {field}."));
    for field in ["protocol", "frontendPort", "frontendIPConfiguration"] {
        if properties[field].is_null() {
            return Err(missing(field));
        }
    }
    one_of(properties, "protocol", &["Tcp", "Udp", "All"], &label)?;
    one_of(
        properties,
        "loadDistribution",
        &["Default", "SourceIP", "SourceIPProtocol"],
        &label,
    )?;
    // Port 0 stands for all ports, together with protocol All.
    let lowest = u64::from(
        !properties["protocol"]
            .as_str()
            .is_some_and(|p| p.eq_ignore_ascii_case("All")),
    );
    number_in(properties, "frontendPort", lowest..=65_534, &label)?;
    number_in(properties, "backendPort", lowest..=65_535, &label)?;
    number_in(
        properties,
        "idleTimeoutInMinutes",
        4..=if is_basic { 30 } else { 100 },
        &label,
    )?;
    if is_basic && properties["enableTcpReset"] == true {
        let message =
            format!("{label}: TCP reset is not supported by load balancers of sku Basic.");
        return Err(Rejection::bad("TcpResetNotSupportedForBasicSku", message));
    }
    check_reference(
        context,
        body,
        &properties["frontendIPConfiguration"],
        FRONTENDS,
    )?;
    check_reference(context, body, &properties["backendAddressPool"], POOLS)?;
    check_reference(context, body, &properties["probe"], PROBES)?;
    for pool in properties["backendAddressPools"]
        .as_array()
        .into_iter()
        .flatten()
    {
        check_reference(context, body, pool, POOLS)?;
    }
    Ok(())
}

/// Checks that a reference can be resolved. An absent one is valid.
fn check_reference(
    context: &Context<'_>,
    body: &Value,
    reference: &Value,
    collection: &str,
) -> Result<(), Rejection> {
    match id_of(reference) {
        Some(id) if resolve(context, body, collection, reference).is_none() => {
            Err(Rejection::dangling(id, &context.id()))
        }
        _ => Ok(()),
    }
}

fn check_probe(probe: &Value, is_basic: bool) -> Result<(), Rejection> {
    let label = format!("probe {}", name(probe));
    let properties = &probe["properties"];
    let invalid = |message: String| Rejection::bad("InvalidRequestFormat", message);
    if properties["protocol"].is_null() || properties["port"].is_null() {
        return Err(invalid(format!("{label} needs a protocol and a port.")));
    }
    let protocols: &[&str] = if is_basic {
        &["Tcp", "Http"]
    } else {
        &["Tcp", "Http", "Https"]
    };
    one_of(properties, "protocol", protocols, &label)?;
    number_in(properties, "port", 1..=65_535, &label)?;
    number_in(
        properties,
        "intervalInSeconds",
        5..=u64::from(u32::MAX),
        &label,
    )?;
    number_in(
        properties,
        "numberOfProbes",
        1..=u64::from(u32::MAX),
        &label,
    )?;
    let is_http = properties["protocol"]
        .as_str()
        .is_some_and(|p| !p.eq_ignore_ascii_case("Tcp"));
    if is_http == properties["requestPath"].is_null() {
        let message = match is_http {
            true => format!("{label} needs a requestPath."),
            false => format!("{label} is of protocol Tcp and must not have a requestPath."),
        };
        return Err(invalid(message));
    }
    Ok(())
}

/// Returns, by the key of a part, the fields that list its users, and their ids.
pub(super) fn uses(body: &Value) -> BTreeMap<String, BTreeMap<&'static str, Vec<String>>> {
    let mut uses: BTreeMap<String, BTreeMap<&'static str, Vec<String>>> = BTreeMap::new();
    let mut add = |reference: &Value, by: &'static str, user: &Value| {
        let ids = id_of(reference).zip(user["id"].as_str());
        if let Some((target, user)) = ids {
            let users = uses.entry(key(target)).or_default().entry(by).or_default();
            // The user may refer to the same target in the field for one and in the one for several.
            if users.last().is_none_or(|last| last != user) {
                users.push(user.to_owned());
            }
        }
    };
    for collection in [RULES, "inboundNatRules", "inboundNatPools", "outboundRules"] {
        for user in children(body, collection) {
            let properties = &user["properties"];
            for field in ["frontendIPConfiguration", "backendAddressPool", "probe"] {
                add(&properties[field], collection, user);
            }
            for field in ["frontendIPConfigurations", "backendAddressPools"] {
                for reference in properties[field].as_array().into_iter().flatten() {
                    add(reference, collection, user);
                }
            }
        }
    }
    uses
}
