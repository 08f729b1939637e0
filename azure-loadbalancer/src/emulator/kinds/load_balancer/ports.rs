//! The uniqueness of ports: no two rules may have the same ports of a frontend or, without a floating
//! address, of a pool.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::Value;

use super::RULES;
use crate::emulator::json::{children, id_of, key, name};
use crate::emulator::rejection::Rejection;

struct PortClaim<'a> {
    tcp: bool,
    udp: bool,
    ports: RangeInclusive<u64>,
    by: &'a str,
}

/// Checks load-balancing rules and inbound NAT together.
pub(super) fn check(body: &Value) -> Result<(), Rejection> {
    let mut claims: BTreeMap<String, Vec<PortClaim<'_>>> = BTreeMap::new();
    for collection in [RULES, "inboundNatRules", "inboundNatPools"] {
        for rule in children(body, collection) {
            let Some((frontend, claim)) = claim(rule) else {
                continue;
            };
            let others = claims.entry(frontend).or_default();
            if let Some(other) = others.iter().find(|other| other.meets(&claim)) {
                let message = format!(
                    "Load balancing rules {} and {} have the same frontend, protocol and frontend port.",
                    other.by, claim.by
                );
                return Err(Rejection::bad(
                    "RulesUseSameFrontendPortAndProtocol",
                    message,
                ));
            }
            others.push(claim);
        }
    }
    check_backends(body)
}

/// Checks backend ports: without a floating address, members distinguish rules only by the port.
fn check_backends(body: &Value) -> Result<(), Rejection> {
    let mut taken: BTreeMap<(String, String, u64), &str> = BTreeMap::new();
    for rule in children(body, RULES) {
        let properties = &rule["properties"];
        if properties["enableFloatingIP"].as_bool() == Some(true) {
            // Behind a floating address, a node distinguishes the rules by the address.
            continue;
        }
        let Some(port) = properties["backendPort"].as_u64() else {
            continue;
        };
        let protocol = properties["protocol"].as_str().unwrap_or_default();
        // A rule names its pools in one field or in the other.
        let several = properties["backendAddressPools"].as_array();
        let pools = std::iter::once(&properties["backendAddressPool"])
            .chain(several.into_iter().flatten())
            .filter_map(id_of)
            .map(key);
        for pool in pools.collect::<BTreeSet<_>>() {
            let other = taken.insert((pool, protocol.to_ascii_lowercase(), port), name(rule));
            if let Some(other) = other {
                let message = format!(
                    "Load balancing rules {other} and {} use the same backend port, protocol and pool without a floating address.",
                    name(rule)
                );
                return Err(Rejection::bad(
                    "RulesUseSameBackendPortProtocolAndPool",
                    message,
                ));
            }
        }
    }
    Ok(())
}

/// Returns the ports of a rule: a NAT rule has a port or a range; a rule for all protocols has port 0, which
/// means all ports.
fn claim(rule: &Value) -> Option<(String, PortClaim<'_>)> {
    let properties = &rule["properties"];
    let frontend = key(id_of(&properties["frontendIPConfiguration"])?);
    let protocol = properties["protocol"].as_str().unwrap_or_default();
    let is = |wanted: &str| {
        protocol.eq_ignore_ascii_case(wanted) || protocol.eq_ignore_ascii_case("All")
    };
    let range = properties["frontendPortRangeStart"]
        .as_u64()
        .zip(properties["frontendPortRangeEnd"].as_u64());
    let ports = match (range, properties["frontendPort"].as_u64()) {
        (_, Some(0)) if protocol.eq_ignore_ascii_case("All") => 0..=u64::from(u16::MAX),
        (Some((first, last)), None | Some(0)) => first..=last,
        (_, Some(port)) => port..=port,
        (None, None) => return None,
    };
    let (tcp, udp, by) = (is("Tcp"), is("Udp"), name(rule));
    Some((
        frontend,
        PortClaim {
            tcp,
            udp,
            ports,
            by,
        },
    ))
}

impl PortClaim<'_> {
    fn meets(&self, other: &Self) -> bool {
        ((self.tcp && other.tcp) || (self.udp && other.udp))
            && self.ports.start() <= other.ports.end()
            && other.ports.start() <= self.ports.end()
    }
}
