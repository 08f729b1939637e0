//! Properties for any services, in any order, with execution interrupted anywhere.

pub(crate) mod generated;

use std::collections::{BTreeMap, BTreeSet};

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, Edition, FlipOrder, PoolMembership};
use azure_loadbalancer::plan::{Operation, forecast};
use azure_loadbalancer::resources::{Access, SecurityRuleProperties, SubResource};
use azure_loadbalancer::{Node, Plan, Service, plan};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::generated::{Asked, FIRST_NODE_PORT, configs, machines, steps, with_noise};
use crate::support::{Azure, Echo};

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(),
        failure_persistence: None, ..ProptestConfig::default() })]

    /// (i) Plans are complete after at most four rounds, (iii) every write is valid, (vi) no rule leads where
    /// no service is, (vii) no two rules share a priority, (ix) no load balancer has too many rules, and no
    /// node is behind too many.
    #[test]
    fn plans_come_to_an_end_and_leave_a_state_that_is_valid(
        config in configs(), steps in steps(), echo in any::<u64>(),
    ) {
        let (mut azure, _) = machines(&config);
        with_noise(&mut azure, &config);
        azure.echo = Echo(echo);
        for step in steps {
            let (services, nodes) = (step.services(&config), step.nodes());
            for _ in 0..4 {
                let planned = plan(&config, &services, &nodes, &azure.read(&config, &services));
                for action in &planned.actions {
                    azure.apply(action).map_err(TestCaseError::fail)?;
                    open_to_nobody_else(&azure, &config)?;
                }
            }
            let (end, more) = azure.converge(&config, &services, &nodes);
            prop_assert!(more.is_empty(), "not done after four rounds: {more:?}");
            open_to_services_only(&azure, &config, &nodes)?;
            nodes_are_reached(&azure, &config, &services, &nodes, &end)?;
            for balancer in &azure.snapshot.load_balancers {
                let named = |name: &str| azure.snapshot.load_balancers.iter().find(|one| one.name.eq_ignore_ascii_case(name));
                let rules = |name: &str| named(name).map_or(0, |one| one.properties.load_balancing_rules.len());
                let internal = rules(&format!("{}-internal", balancer.name));
                prop_assert!(rules(&balancer.name) <= config.maximum_rules());
                prop_assert!(rules(&balancer.name) + internal <= config.maximum_rules_of_interface());
            }
        }
    }

    /// (ii) and (v): after the deletion of all services, only the resources of other owners are left.
    #[test]
    fn nothing_is_left_of_services_and_nothing_is_taken_from_others(
        config in configs(), steps in steps(), deleted in any::<bool>(),
    ) {
        let (mut azure, mut nodes) = machines(&config);
        with_noise(&mut azure, &config);
        let before = everything(&azure, &config);
        let others = theirs(&azure, &config);
        let mut last = Vec::new();
        for step in steps {
            (last, nodes) = (step.services(&config), step.nodes());
            azure.converge(&config, &last, &nodes);
            prop_assert_eq!(theirs(&azure, &config), others.clone());
        }
        for service in &mut last {
            service.deleting = true;
        }
        // They are deleted, or simply missing.
        azure.converge(&config, if deleted { &last } else { &[] }, &nodes);
        azure.converge(&config, &[], &nodes);
        prop_assert_eq!(provable(everything(&azure, &config), &config), provable(before, &config));
    }

    /// A crash after any write leaves a state from which the same result is reached, and nothing is
    /// forgotten.
    #[test]
    fn a_crash_after_any_write_forgets_nothing(
        config in configs(), steps in steps(), crashes in proptest::collection::vec(0..6usize, 12),
    ) {
        let (mut azure, mut nodes) = machines(&config);
        with_noise(&mut azure, &config);
        let before = everything(&azure, &config);
        let mut crashes = crashes.into_iter();
        for step in steps {
            let services = step.services(&config);
            nodes = step.nodes();
            for until in crashes.by_ref().take(4) {
                let planned = plan(&config, &services, &nodes, &azure.read(&config, &services));
                for action in planned.actions.iter().take(until) {
                    azure.apply(action).map_err(TestCaseError::fail)?;
                    open_to_nobody_else(&azure, &config)?;
                }
            }
            let (end, _) = azure.converge(&config, &services, &nodes);
            if config.exclusive_security_group {
                open_to_services_only(&azure, &config, &nodes)?;
                nodes_are_reached(&azure, &config, &services, &nodes, &end)?;
            }
        }
        azure.converge(&config, &[], &nodes);
        prop_assert_eq!(provable(everything(&azure, &config), &config), provable(before, &config));
    }

    /// (iv) No order of services, nodes or resources makes a difference.
    #[test]
    fn order_makes_no_difference(
        config in configs(), steps in steps(), echo in 1u64.., turn in 0..7usize,
    ) {
        let (mut azure, _) = machines(&config);
        with_noise(&mut azure, &config);
        for step in steps {
            let (services, nodes) = (step.services(&config), step.nodes());
            let mut other = (services.clone(), nodes.clone());
            if !other.0.is_empty() {
                let by = turn % other.0.len();
                other.0.rotate_left(by);
                other.0.reverse();
            }
            other.1.reverse();
            let one = plan(&config, &services, &nodes, &azure.snapshot);
            let two = plan(&config, &other.0, &other.1, &azure.snapshot);
            prop_assert_eq!(&one, &two);
            // The order and letter case of ids in the snapshot do not influence the plan either.
            let seen = Echo(echo).of(&azure.snapshot);
            let three = plan(&config, &services, &nodes, &seen);
            let told = |plan: &Plan| {
                let actions = plan.actions.iter().map(|action| serde_json::to_value(&action.operation).expect("JSON"));
                let outcomes = serde_json::to_value(&plan.services).expect("JSON");
                (actions.map(unordered).collect::<BTreeSet<_>>(), unordered(outcomes))
            };
            prop_assert_eq!(told(&one), told(&three));
            azure.converge(&config, &services, &nodes);
        }
    }

    /// (viii) Every write changes something, and is written once.
    #[test]
    fn every_write_changes_something(config in configs(), steps in steps()) {
        let (mut azure, _) = machines(&config);
        for step in steps {
            let (services, nodes) = (step.services(&config), step.nodes());
            for _ in 0..4 {
                let planned = plan(&config, &services, &nodes, &azure.read(&config, &services));
                for action in &planned.actions {
                    let deletes = matches!(
                        action.operation,
                        Operation::DeletePublicIp { .. }
                            | Operation::DeleteLoadBalancer { .. }
                            | Operation::UpgradeScaleSetInstances { .. }
                    );
                    prop_assert!(deletes || !action.changes.is_empty(), "{}", action.operation);
                }
                azure.execute(&planned);
            }
        }
    }

    /// The forecast of all rounds equals the writes of these rounds, whatever the kind of pool membership.
    #[test]
    fn all_rounds_are_planned_at_once(config in configs(), steps in steps()) {
        let (mut azure, _) = machines(&config);
        with_noise(&mut azure, &config);
        // Without exclusive rights the executor remembers addresses, which single plans do not.
        let config = Config { exclusive_security_group: true, ..config };
        for step in steps {
            let (services, nodes) = (step.services(&config), step.nodes());
            let planned = forecast(&config, &services, &nodes, &azure.read(&config, &services), 4);
            let mut shown: Vec<_> = planned.actions().map(|(_, action)| action.operation.to_string()).collect();
            let (_, mut log) = azure.converge(&config, &services, &nodes);
            shown.sort();
            log.sort();
            prop_assert_eq!(shown, log);
        }
    }

    /// A service with a mistake stays as it is, whatever the others do.
    #[test]
    fn mistakes_harm_nobody(config in configs(), first in Asked::any(), steps in steps()) {
        let (mut azure, nodes) = machines(&config);
        let mut fixed = first.service("fixed", &config);
        fixed.load_balancer_ip = None;
        azure.converge(&config, std::slice::from_ref(&fixed), &nodes);
        let before = of_service(&azure, &fixed);
        prop_assert!(before.len() > 1 || azure.balancers().is_empty());
        let mut wrong = fixed.clone();
        wrong.annotations.insert(keys::TCP_IDLE_TIMEOUT.to_owned(), "x".to_owned());
        for step in steps {
            let (mut services, nodes) = (step.services(&config), step.nodes());
            services.push(wrong.clone());
            let (end, _) = azure.converge(&config, &services, &nodes);
            prop_assert_eq!(of_service(&azure, &fixed), before.clone());
            nodes_are_reached(&azure, &config, &services, &nodes, &end)?;
        }
    }
}

/// Returns the same text for values that differ in order and letter case only.
fn unordered(value: Value) -> String {
    match value {
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(unordered).collect();
            items.sort();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, field)| format!("{key}:{}", unordered(field)));
            fields
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join("\n")
        }
        other => other.to_string().to_lowercase(),
    }
}

/// Returns the number of random cases per property.
pub(crate) fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    asked.unwrap_or(96)
}

fn destinations(properties: &SecurityRuleProperties) -> impl Iterator<Item = &String> {
    let single = properties.destination_address_prefix.iter();
    single.chain(&properties.destination_address_prefixes)
}

/// Returns the addresses in the cluster's pools. With `in_use`, only those of load balancers that have a rule
/// of the cluster, since others are left alone.
fn members(azure: &Azure, in_use: bool) -> BTreeSet<String> {
    let balancers = azure.snapshot.load_balancers.iter();
    let ours = balancers.filter(|balancer| {
        let mut rules = balancer.properties.load_balancing_rules.iter();
        !in_use || rules.any(|rule| rule.name != "theirs")
    });
    let pools = ours.flat_map(|balancer| &balancer.properties.backend_address_pools);
    let pools = pools.filter(|pool| pool.is_named("testCluster"));
    let entries = pools.flat_map(|pool| &pool.properties.load_balancer_backend_addresses);
    let addresses = entries.flatten();
    addresses
        .filter_map(|entry| entry.properties.ip_address.clone())
        .collect()
}

/// Returns the addresses of nodes.
fn addresses(nodes: &[Node]) -> BTreeSet<String> {
    let addresses = nodes.iter().flat_map(|node| &node.addresses);
    addresses.map(ToString::to_string).collect()
}

/// Checks that the security rules of services without a floating address lead to exactly the members of
/// pools, and that each service that may be reached has some.
fn nodes_are_reached(
    azure: &Azure,
    config: &Config,
    services: &[Service],
    nodes: &[Node],
    end: &Plan,
) -> Result<(), TestCaseError> {
    if config.edition == Edition::Note {
        return Ok(()); // In 2018 rules led to the addresses of load balancers only.
    }
    let mut known = members(azure, false);
    if config.backend_pool_type == PoolMembership::NetworkInterface {
        known.extend(addresses(nodes)); // Pools do not tell them.
    }
    let members = members(azure, true);
    let rules = azure.security_rules();
    let mut open = BTreeSet::new();
    for rule in rules {
        let properties = &rule.properties;
        let ports = properties.destination_port_ranges.iter();
        let ports = ports.filter_map(|port| port.parse::<u16>().ok());
        let ports: Vec<_> = ports.filter(|port| *port >= FIRST_NODE_PORT).collect();
        if ports.is_empty() {
            continue;
        }
        let to: BTreeSet<_> = destinations(properties).cloned().collect();
        prop_assert!(members.is_subset(&to), "{rule:?} and {members:?}");
        prop_assert!(to.is_subset(&known), "{rule:?} and {known:?}");
        open.extend(ports);
    }
    for service in services {
        let says = |key: &str| service.annotations.contains_key(key);
        let is_fine = end
            .services
            .get(&service.key)
            .is_some_and(|one| one.error.is_none());
        // Internal services are reachable from inside without a rule.
        let needs_rules = says(keys::DISABLE_FLOATING_IP) && !says(keys::INTERNAL);
        if is_fine && needs_rules && !members.is_empty() {
            for port in service.ports.iter().filter_map(|port| port.node_port) {
                prop_assert!(open.contains(&port), "{}: {open:?}", service.key);
            }
        }
    }
    Ok(())
}

/// Checks that every rule of this cluster leads to a service, or to a node.
fn open_to_services_only(
    azure: &Azure,
    config: &Config,
    nodes: &[Node],
) -> Result<(), TestCaseError> {
    let mut reached = addresses(nodes);
    reached.extend(members(azure, false));
    for balancer in &azure.snapshot.load_balancers {
        for frontend in &balancer.properties.frontend_ip_configurations {
            let public = frontend
                .properties
                .public_ip_address
                .as_ref()
                .and_then(|r| r.id.as_ref());
            let address = azure
                .snapshot
                .public_ips
                .iter()
                .find(|ip| ip.id.as_ref() == public && public.is_some());
            reached.extend(address.and_then(|ip| ip.properties.ip_address.clone()));
            reached.extend(frontend.properties.private_ip_address.clone());
        }
    }
    for rule in azure.security_rules() {
        let properties = &rule.properties;
        if rule.name.starts_with("theirs") || properties.access == Some(Access::Deny) {
            continue;
        }
        for destination in destinations(properties) {
            // See `provable`; a node and a public address are known.
            let is_known = destination.starts_with("20.") || destination.starts_with("10.0.1.");
            if !config.exclusive_security_group && !is_known {
                continue;
            }
            prop_assert!(
                reached.contains(destination),
                "{} leads to {destination}: {reached:?}",
                rule.name
            );
        }
    }
    Ok(())
}

/// Checks between two writes of one plan that a released public address is not open. A private one may be for
/// a moment, since the frontend moves in one write and the rule in the next.
fn open_to_nobody_else(azure: &Azure, config: &Config) -> Result<(), TestCaseError> {
    if config.edition == Edition::Note && config.flip_order == FlipOrder::BreakFirst {
        return Ok(()); // The order of 2018, literally.
    }
    let there: BTreeSet<&str> = azure
        .snapshot
        .public_ips
        .iter()
        .filter_map(|ip| ip.properties.ip_address.as_deref())
        .collect();
    for rule in azure.security_rules() {
        let properties = &rule.properties;
        for destination in destinations(properties).filter(|to| to.starts_with("20.")) {
            prop_assert!(
                there.contains(destination.as_str()),
                "{} leads to {destination}, which was given back",
                rule.name
            );
        }
    }
    Ok(())
}

/// Returns the parts of other owners.
fn theirs(azure: &Azure, config: &Config) -> BTreeMap<String, Value> {
    let mut parts = everything(azure, config);
    parts.retain(|name, _| name.contains("theirs"));
    parts
}

/// Keeps the parts that must go with the services. A plan has no memory: without exclusive rights, it does
/// not know the address of a moved frontend once only the security group has it, and leaves it, since it may
/// be another cluster's. All other parts go, and those of other owners stay.
fn provable(mut parts: BTreeMap<String, Value>, config: &Config) -> BTreeMap<String, Value> {
    parts.retain(|name, _| {
        config.exclusive_security_group || !name.starts_with("rule ") || name.contains("theirs")
    });
    parts
}

/// Returns all parts of all resources by name, without fields that every write changes and without the
/// cluster's pools, which stay.
fn everything(azure: &Azure, config: &Config) -> BTreeMap<String, Value> {
    let mut parts = BTreeMap::new();
    for balancer in &azure.snapshot.load_balancers {
        let document = serde_json::to_value(&balancer.properties).expect("JSON");
        for (kind, list) in document.as_object().expect("an object") {
            for part in list.as_array().into_iter().flatten() {
                if part["name"] != json!(config.cluster_name) {
                    let name = format!("{} {kind} {}", balancer.name, part["name"]);
                    let mut properties = part["properties"].clone();
                    let fields = properties.as_object_mut().expect("an object");
                    // Defaults of the first write by any client.
                    fields.retain(|key, _| {
                        !["numberOfProbes", "probeThreshold"].contains(&key.as_str())
                    });
                    parts.insert(name, properties);
                }
            }
        }
    }
    for rule in azure.security_rules() {
        parts.insert(
            format!("rule {}", rule.name),
            serde_json::to_value(&rule.properties).expect("JSON"),
        );
    }
    for address in &azure.snapshot.public_ips {
        let tags = serde_json::to_value(&address.tags).expect("JSON");
        parts.insert(format!("address {}", address.name), tags);
    }
    for interface in &azure.snapshot.network_interfaces {
        let pools = &interface.properties.ip_configurations[0]
            .properties
            .load_balancer_backend_address_pools;
        // If other owners keep the load balancer, machines stay members of its pool.
        let strange = pools.iter().filter(|pool: &&SubResource| {
            !pool.id.as_ref().is_some_and(|id| {
                azure
                    .snapshot
                    .load_balancers
                    .iter()
                    .any(|b| b.id == id.parent())
            })
        });
        parts.insert(
            format!("interface {}", interface.name),
            json!(strange.count()),
        );
    }
    parts
}

/// Returns the parts of a service.
fn of_service(azure: &Azure, service: &Service) -> BTreeMap<String, Value> {
    let prefix = azure_loadbalancer::naming::prefix(&service.uid_in("testCluster"));
    let mut parts = BTreeMap::new();
    for balancer in &azure.snapshot.load_balancers {
        let document = serde_json::to_value(&balancer.properties).expect("JSON");
        for (kind, list) in document.as_object().expect("an object") {
            for part in list.as_array().into_iter().flatten() {
                if part["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with(&prefix))
                {
                    parts.insert(
                        format!("{} {kind} {}", balancer.name, part["name"]),
                        part["properties"].clone(),
                    );
                }
            }
        }
    }
    for rule in azure
        .security_rules()
        .into_iter()
        .filter(|rule| rule.name.starts_with(&prefix))
    {
        parts.insert(
            rule.name.clone(),
            serde_json::to_value(&rule.properties).expect("JSON"),
        );
    }
    parts
}
