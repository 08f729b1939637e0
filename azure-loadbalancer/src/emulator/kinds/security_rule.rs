//! A rule of a network security group.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::service_tags;
use crate::emulator::json::{name, number_in, one_of};
use crate::emulator::rejection::Rejection;

/// The pairs of fields for one value and for several, of which exactly one may be given.
const PAIRS: [(&str, &str); 4] = [
    ("sourcePortRange", "sourcePortRanges"),
    ("destinationPortRange", "destinationPortRanges"),
    ("sourceAddressPrefix", "sourceAddressPrefixes"),
    ("destinationAddressPrefix", "destinationAddressPrefixes"),
];

/// Checks a rule on its own.
pub(super) fn check(rule: &Value) -> Result<(), Rejection> {
    let label = format!("security rule {}", name(rule));
    let properties = &rule["properties"];
    number_in(properties, "priority", 100..=4096, &label)?
        .ok_or_else(|| missing("priority", &label))?;
    for (field, allowed) in [
        ("protocol", &["Tcp", "Udp", "Icmp", "Esp", "Ah", "*"][..]),
        ("access", &["Allow", "Deny"]),
        ("direction", &["Inbound", "Outbound"]),
    ] {
        if properties[field].is_null() {
            return Err(missing(field, &label));
        }
        one_of(properties, field, allowed, &label)?;
    }
    for (one, many) in PAIRS {
        let texts = values(properties, one, many);
        let several = properties[many]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if several
            && properties[one]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        {
            let message = format!("{label} may have only one of {one} and {many}.");
            return Err(Rejection::bad("SecurityRuleParameterConflict", message));
        }
        if texts.is_empty() && !has_groups(properties, one) {
            return Err(missing(one, &label));
        }
        let is_port = one.ends_with("PortRange");
        for text in texts {
            let is_valid = if is_port {
                is_port_range(text)
            } else {
                is_prefix(text, several)
            };
            if !is_valid {
                let code = if is_port {
                    "SecurityRuleInvalidPortRange"
                } else {
                    "SecurityRuleInvalidAddressPrefix"
                };
                let message = format!("{label} has invalid {one}: `{text}`.");
                return Err(Rejection::bad(code, message));
            }
        }
    }
    Ok(())
}

/// Returns the values of a pair of properties: the singular and the list.
pub(super) fn values<'a>(properties: &'a Value, one: &str, many: &str) -> Vec<&'a str> {
    let list = properties[many].as_array().into_iter().flatten();
    let texts = list.chain([&properties[one]]).filter_map(Value::as_str);
    texts.filter(|text| !text.is_empty()).collect()
}

/// Returns true if application security groups replace the addresses.
fn has_groups(properties: &Value, one: &str) -> bool {
    let field = match one {
        "sourceAddressPrefix" => "sourceApplicationSecurityGroups",
        "destinationAddressPrefix" => "destinationApplicationSecurityGroups",
        _ => return false,
    };
    properties[field]
        .as_array()
        .is_some_and(|groups| !groups.is_empty())
}

fn missing(field: &str, label: &str) -> Rejection {
    Rejection::bad(
        "SecurityRuleParameterMissing",
        format!("{label} has no {field}."),
    )
}

fn is_port_range(text: &str) -> bool {
    let port = |text: &str| text.trim().parse::<u16>().ok();
    match text.split_once('-') {
        _ if text == "*" => true,
        Some((low, high)) => {
            matches!((port(low), port(high)), (Some(low), Some(high)) if low <= high)
        }
        None => port(text).is_some(),
    }
}

/// Returns true for an address, a network, or a service tag; `*` only where it stands alone.
fn is_prefix(text: &str, several: bool) -> bool {
    if text == "*" {
        return !several;
    }
    if text.contains('/') {
        return text.parse::<IpNet>().is_ok();
    }
    text.parse::<IpAddr>().is_ok() || service_tags::is_tag(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_judged_by_itself() {
        let good = json!({
            "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 500,
            "sourcePortRange": "*", "destinationPortRange": "80",
            "sourceAddressPrefix": "Internet", "destinationAddressPrefix": "10.0.0.4",
        });
        check(&json!({ "name": "a", "properties": good })).unwrap();
        for (field, value, code) in [
            ("priority", json!(99), "InvalidRequestFormat"),
            ("priority", json!(4097), "InvalidRequestFormat"),
            ("priority", Value::Null, "SecurityRuleParameterMissing"),
            ("protocol", json!("Sctp"), "InvalidRequestFormat"),
            ("access", Value::Null, "SecurityRuleParameterMissing"),
            (
                "destinationPortRange",
                json!("90-80"),
                "SecurityRuleInvalidPortRange",
            ),
            (
                "destinationPortRange",
                json!("65536"),
                "SecurityRuleInvalidPortRange",
            ),
            (
                "sourceAddressPrefix",
                json!("10.0.0.0/33"),
                "SecurityRuleInvalidAddressPrefix",
            ),
            (
                "sourceAddressPrefix",
                json!("Internett"),
                "SecurityRuleInvalidAddressPrefix",
            ),
            (
                "sourceAddressPrefix",
                json!("1.2.3"),
                "SecurityRuleInvalidAddressPrefix",
            ),
            (
                "destinationAddressPrefixes",
                json!(["10.0.0.5"]),
                "SecurityRuleParameterConflict",
            ),
        ] {
            let mut properties = good.clone();
            properties[field] = value.clone();
            let rejection = check(&json!({ "name": "a", "properties": properties })).unwrap_err();
            assert_eq!(rejection.code, code, "{field}: {value}");
        }
    }
}
