//! Single security rules: their owners, and their comparison with requests.

use std::collections::BTreeSet;

use super::desired::DesiredRule;
use crate::naming;
use crate::plan::cluster_state::{ClusterState, Owner};
use crate::resources::{Direction, SecurityProtocol, SecurityRule, SecurityRuleProperties};

/// Returns true if a rule can be shared by several services: `shared-TCP-80-…`, or an aggregated one.
pub(super) fn is_merged(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let allow = naming::AGGREGATED.to_owned() + "allow_ipv4_";
    lower.starts_with(&allow)
        || lower == naming::deny_rule(naming::Family::V4).to_ascii_lowercase()
        || (lower.split('-').next() == Some(naming::SHARED) && is_private(name))
}

/// Returns true if a name continues like those of rules for one port: `…-TCP-80-…`.
pub(super) fn is_private(name: &str) -> bool {
    let mut parts = name.splitn(4, '-').skip(1);
    let protocol = parts.next().unwrap_or_default();
    let port = parts.next().unwrap_or_default();
    let known = protocol.eq_ignore_ascii_case("TCP") || protocol.eq_ignore_ascii_case("UDP");
    known && port.parse::<u16>().is_ok() && parts.next().is_some()
}

/// Returns true if a rule that is not merged stays whatever services request.
pub(super) fn stays(world: &ClusterState<'_>, name: &str) -> bool {
    match world.owner(name, is_private(name)) {
        Owner::Foreign => true,
        Owner::Orphan => !(world.sweeps() && world.config.exclusive_security_group),
        Owner::Subject(index) => world.subjects.get(index).is_some_and(|s| s.is_held()),
    }
}

/// Returns the destinations of a rule, whether written as one value or as a list.
pub(super) fn destinations(properties: &SecurityRuleProperties) -> impl Iterator<Item = &str> {
    properties.destinations()
}

pub(super) fn new(desired: &DesiredRule, priority: u16) -> SecurityRule {
    let properties = SecurityRuleProperties {
        priority,
        ..SecurityRuleProperties::default()
    };
    let mut rule = SecurityRule::named(&desired.name, properties);
    update(&mut rule, desired, &desired.destinations);
    rule
}

/// Updates a rule except for its priority. Returns true if it changed.
pub(super) fn update(
    rule: &mut SecurityRule,
    desired: &DesiredRule,
    destinations: &BTreeSet<String>,
) -> bool {
    let properties = &mut rule.properties;
    let before = properties.clone();
    if properties.protocol.as_ref() != Some(&desired.protocol) {
        properties.protocol = Some(desired.protocol.clone());
    }
    if properties.access.as_ref() != Some(&desired.access) {
        properties.access = Some(desired.access.clone());
    }
    if properties.direction.as_ref() != Some(&Direction::Inbound) {
        properties.direction = Some(Direction::Inbound);
    }
    let any = BTreeSet::from(["*".to_owned()]);
    let SecurityRuleProperties {
        source_port_range,
        source_port_ranges,
        destination_port_range,
        destination_port_ranges,
        source_address_prefix,
        source_address_prefixes,
        ..
    } = properties;
    set_texts(source_port_range, source_port_ranges, &any, false);
    let ports = desired.ports.iter().cloned().collect();
    // The wildcard port cannot be in a list.
    let ports_as_list = desired.as_lists && desired.protocol != SecurityProtocol::Any;
    set_texts(
        destination_port_range,
        destination_port_ranges,
        &ports,
        ports_as_list,
    );
    let sources = desired.sources.iter().cloned().collect();
    set_texts(
        source_address_prefix,
        source_address_prefixes,
        &sources,
        false,
    );
    set_destinations(properties, destinations, desired.as_lists);
    before != *properties
}

/// Sets the destinations of a rule. Returns true if it changed.
pub(super) fn set_destinations(
    properties: &mut SecurityRuleProperties,
    destinations: &BTreeSet<String>,
    as_list: bool,
) -> bool {
    set_texts(
        &mut properties.destination_address_prefix,
        &mut properties.destination_address_prefixes,
        destinations,
        as_list,
    )
}

/// Writes texts as one value or as a list, unless they are present in either form.
fn set_texts(
    single: &mut Option<String>,
    list: &mut Vec<String>,
    wanted: &BTreeSet<String>,
    as_list: bool,
) -> bool {
    let there: BTreeSet<&String> = single
        .iter()
        .filter(|text| !text.is_empty())
        .chain(list.iter())
        .collect();
    if there.iter().copied().eq(wanted.iter()) {
        return false;
    }
    match wanted.first() {
        Some(only) if wanted.len() == 1 && !as_list => {
            *single = Some(only.clone());
            list.clear();
        }
        _ => {
            *single = None;
            *list = wanted.iter().cloned().collect();
        }
    }
    true
}
