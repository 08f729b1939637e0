//! Network security groups.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::security_rule::{check, values};
use super::{dress_children, references_to};
use crate::emulator::json::{Object, children, name, object_at, tidy_children};
use crate::emulator::references::References;
use crate::emulator::rejection::Rejection;
use crate::emulator::store::StoredResource;

/// The maximum number of rules of a group.
const MAX_RULES: usize = 1_000;
/// The maximum number of source prefixes, destination prefixes, source ports and destination ports in a
/// group, for each kind.
const MAX_VALUES: usize = 4_000;

pub(super) fn accept(body: &mut Object) -> Result<(), Rejection> {
    let properties = object_at(body, "properties")?;
    for server_set in ["defaultSecurityRules", "networkInterfaces", "subnets"] {
        properties.remove(server_set);
    }
    tidy_children(properties, "securityRules", &[])?;
    let shown = Value::Object(body.clone());
    let rules = children(&shown, "securityRules");
    if rules.len() > MAX_RULES {
        let message = format!(
            "A network security group can have {MAX_RULES} rules; this one has {}.",
            rules.len()
        );
        return Err(Rejection::bad("SecurityRuleCountLimitReached", message));
    }
    let mut priorities = BTreeMap::new();
    for rule in rules {
        check(rule)?;
        let properties = &rule["properties"];
        let direction = properties["direction"]
            .as_str()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let priority = properties["priority"].as_u64();
        if let Some(other) = priorities.insert((direction, priority), name(rule)) {
            let message = format!(
                "Security rule {} conflicts with rule {other}. Rules cannot have the same Priority and Direction.",
                name(rule)
            );
            return Err(Rejection::bad("SecurityRuleConflict", message));
        }
    }
    for (one, many) in [
        ("sourceAddressPrefix", "sourceAddressPrefixes"),
        ("destinationAddressPrefix", "destinationAddressPrefixes"),
        ("sourcePortRange", "sourcePortRanges"),
        ("destinationPortRange", "destinationPortRanges"),
    ] {
        let count: usize = rules
            .iter()
            .map(|rule| values(&rule["properties"], one, many).len())
            .sum();
        if count > MAX_VALUES {
            let message =
                format!("The rules have {count} values in {many}; {MAX_VALUES} are allowed.");
            let code = "SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached";
            return Err(Rejection::bad(code, message));
        }
    }
    Ok(())
}

pub(super) fn render(references: &References, resource: &StoredResource, body: &mut Value) {
    let users = references.to(&resource.place.key());
    let (subnets, interfaces): (Vec<String>, Vec<String>) = users
        .iter()
        .cloned()
        .partition(|id| id.contains("/subnets/"));
    let properties = &mut body["properties"];
    properties["defaultSecurityRules"] = default_rules();
    if !subnets.is_empty() {
        properties["subnets"] = references_to(&subnets);
    }
    if !interfaces.is_empty() {
        properties["networkInterfaces"] = references_to(&interfaces);
    }
    dress_children(resource, body, "securityRules");
    dress_children(resource, body, "defaultSecurityRules");
}

/// Returns the six default rules of every group.
fn default_rules() -> Value {
    let rule = |name: &str, priority: u16, inbound: bool, access: &str, from: &str, to: &str| {
        json!({
            "name": name,
            "properties": {
                "protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*",
                "sourceAddressPrefix": from, "destinationAddressPrefix": to,
                "access": access, "priority": priority,
                "direction": if inbound { "Inbound" } else { "Outbound" },
            },
        })
    };
    json!([
        rule(
            "AllowVnetInBound",
            65000,
            true,
            "Allow",
            "VirtualNetwork",
            "VirtualNetwork"
        ),
        rule(
            "AllowAzureLoadBalancerInBound",
            65001,
            true,
            "Allow",
            "AzureLoadBalancer",
            "*"
        ),
        rule("DenyAllInBound", 65500, true, "Deny", "*", "*"),
        rule(
            "AllowVnetOutBound",
            65000,
            false,
            "Allow",
            "VirtualNetwork",
            "VirtualNetwork"
        ),
        rule(
            "AllowInternetOutBound",
            65001,
            false,
            "Allow",
            "*",
            "Internet"
        ),
        rule("DenyAllOutBound", 65500, false, "Deny", "*", "*"),
    ])
}
