//! Invariants that hold for any services and any faults.

use std::collections::{BTreeMap, BTreeSet};

use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault};
use azure_loadbalancer::{Config, Node, Service};
use proptest::prelude::*;
use serde_json::Value;

use crate::execute::crashes::up_to;
use crate::execute::scenario::{faults, node_sets, services};
use crate::execute::world::*;

/// Reconciles with faults, and then without, until no work is left.
async fn settle(
    emulator: &Emulator,
    config: &Config,
    wanted: &[Service],
    nodes: &[Node],
    faults: Vec<Fault>,
) {
    let executor = executor_of(emulator, config);
    emulator.with(|machine| faults.into_iter().for_each(|fault| machine.inject(fault)));
    // It may fail; only the resulting state counts.
    let _ = executor.reconcile(wanted, nodes).await;
    emulator.with(|machine| {
        machine.clear_faults();
        machine.finish_operations();
    });
    let mut report = executor.reconcile(wanted, nodes).await.unwrap();
    for _ in 0..2 {
        if report.is_converged() {
            break;
        }
        report = executor.reconcile(wanted, nodes).await.unwrap();
    }
    assert!(report.is_converged(), "{report:#?}");
    let (plan, _) = executor.plan(wanted, nodes).await.unwrap();
    assert!(
        plan.is_done(),
        "a plan for what is as it should be is empty: {plan:#?}"
    );
}

/// Returns the resources of other owners.
fn foreign(contents: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let is_foreign = |id: &str| {
        ["of-others", "user-ip", "foreign-ip", "virtualnetworks"]
            .iter()
            .any(|name| id.contains(name))
    };
    let mut found: BTreeMap<_, _> = contents
        .iter()
        .filter(|(id, _)| is_foreign(id))
        .map(|(id, value)| (id.clone(), value.clone()))
        .collect();
    for value in found.values_mut() {
        // The list of users is known to the resource, and belongs to the cluster.
        value["properties"]["ipConfiguration"].take();
        for subnet in value["properties"]["subnets"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            subnet["properties"]
                .as_object_mut()
                .unwrap()
                .remove("ipConfigurations");
        }
    }
    let rules = &contents[&network("networkSecurityGroups", "nsg").to_lowercase()]["properties"]["securityRules"];
    let rule = rules
        .as_array()
        .unwrap()
        .iter()
        .find(|rule| rule["name"] == "of-others");
    found.insert("rule".to_owned(), rule.cloned().unwrap());
    found
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn parts<'v>(value: &'v Value, kind: &str) -> impl Iterator<Item = &'v Value> {
    value["properties"][kind].as_array().into_iter().flatten()
}

fn security_rules(contents: &BTreeMap<String, Value>) -> impl Iterator<Item = &Value> {
    let group = &contents[&network("networkSecurityGroups", "nsg").to_lowercase()];
    parts(group, "securityRules").filter(|rule| rule["name"] != "of-others")
}

fn destinations(rule: &Value) -> BTreeSet<&str> {
    let properties = &rule["properties"];
    let several = texts(&properties["destinationAddressPrefixes"]);
    several
        .chain(properties["destinationAddressPrefix"].as_str())
        .collect()
}

/// The addresses in the cluster's pools.
fn members(contents: &BTreeMap<String, Value>) -> BTreeSet<&str> {
    let pools = contents
        .values()
        .flat_map(|one| parts(one, "backendAddressPools"));
    let entries = pools.flat_map(|pool| parts(pool, "loadBalancerBackendAddresses"));
    entries
        .filter_map(|entry| entry["properties"]["ipAddress"].as_str())
        .collect()
}

/// Checks that every allowing rule leads to the address of a frontend, or to all members of pools.
fn assert_rules_lead_somewhere(contents: &BTreeMap<String, Value>) {
    let mut alive = BTreeSet::new();
    for (id, value) in contents {
        if id.contains("/publicipaddresses/") && !value["properties"]["ipConfiguration"].is_null() {
            alive.extend(value["properties"]["ipAddress"].as_str());
        }
        for frontend in parts(value, "frontendIPConfigurations") {
            alive.extend(frontend["properties"]["privateIPAddress"].as_str());
        }
    }
    let members = members(contents);
    for rule in security_rules(contents) {
        let to = destinations(rule);
        let is_of_nodes = to.iter().any(|address| members.contains(address));
        assert!(
            !is_of_nodes || members.is_subset(&to),
            "{rule} and {members:?}"
        );
        for destination in to {
            assert!(
                alive.contains(destination) || members.contains(destination),
                "{destination} of {rule} is none of {alive:?} and {members:?}"
            );
        }
    }
}

/// Removes the security rules of the cluster.
fn without_rules(mut contents: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let group = contents.get_mut(&network("networkSecurityGroups", "nsg").to_lowercase());
    let rules = group.and_then(|group| group["properties"]["securityRules"].as_array_mut());
    rules.unwrap().retain(|rule| rule["name"] == "of-others");
    contents
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_wrong_it_converges(
        history in proptest::collection::vec((services(), node_sets(), faults()), 1..4),
        config in configs(),
        seed in any::<u64>(),
        delay in 0..3_u64,
    ) {
        run(async {
            let emulator = azure(EmulatorOptions::default().operation_requests(delay).id_casing_seed(seed));
            let initial = contents(&emulator);
            for (wanted, nodes, faults) in history {
                settle(&emulator, &config, &wanted, &nodes, faults).await;
                let now = contents(&emulator);
                assert_eq!(foreign(&now), foreign(&initial), "what is not the cluster's stays");
                assert_rules_lead_somewhere(&now);
            }
            settle(&emulator, &config, &[], &[], Vec::new()).await;
            assert_eq!(contents(&emulator), initial, "nothing is left behind");
            // No request was one that Azure would reject.
            assert_nothing_rejected(&emulator);
        });
    }

    #[test]
    fn the_order_of_services_and_nodes_means_nothing(wanted in services(), nodes in node_sets()) {
        run(async {
            let (one, other) = (azure(EmulatorOptions::default()), azure(EmulatorOptions::default()));
            executor(&one).reconcile(&wanted, &nodes).await.unwrap();
            let reversed: Vec<_> = wanted.iter().rev().cloned().collect();
            let backwards: Vec<_> = nodes.into_iter().rev().collect();
            executor(&other).reconcile(&reversed, &backwards).await.unwrap();
            assert_eq!(contents(&one), contents(&other));
        });
    }

    #[test]
    fn only_what_changes_is_written_and_seldom_twice(
        before in services(), after in services(), old_nodes in node_sets(), new_nodes in node_sets(), config in configs(),
    ) {
        run(async {
            let emulator = azure(EmulatorOptions::default());
            let executor = executor_of(&emulator, &config);
            executor.reconcile(&before, &old_nodes).await.unwrap();
            let old = contents(&emulator);
            let report = executor.reconcile(&after, &new_nodes).await.unwrap();
            let new = contents(&emulator);
            let mut writes: BTreeMap<String, u32> = BTreeMap::new();
            for written in &report.written {
                let target = written.target.as_ref().unwrap().as_str().to_lowercase();
                // A part is written with its whole.
                let whole = target.split("/backendaddresspools").next().unwrap().to_owned();
                *writes.entry(whole).or_default() += 1;
            }
            for (target, times) in writes {
                assert_ne!(old.get(&target), new.get(&target), "{target} was written and is as it was");
                // A load balancer that gains and loses addresses is written before and after the security
                // group, so that no rule leads to an address without an owner; and that group after the gains
                // and before the losses. A DNS label moves to a new address when the old one is gone.
                let has_label = !new.get(&target).is_none_or(|one| one["properties"]["dnsSettings"].is_null());
                let most = if target.contains("/publicipaddresses/") && !has_label { 1 } else { 2 };
                assert!(times <= most, "{target} was written {times} times");
            }
        });
    }

    #[test]
    fn wherever_one_ends_another_goes_on(
        before in services(), after in services(), requests in 0..40_i64, is_carried_out in any::<bool>(), delay in 0..3_u64,
        old_nodes in node_sets(), new_nodes in node_sets(), config in configs(),
    ) {
        run(async {
            let emulator = azure(EmulatorOptions::default().operation_requests(delay));
            let initial = contents(&emulator);
            executor_of(&emulator, &config).reconcile(&before, &old_nodes).await.unwrap();
            up_to(&emulator, requests, is_carried_out, &config, &after, &new_nodes).await;
            settle(&emulator, &config, &after, &new_nodes, Vec::new()).await;
            let now = contents(&emulator);
            assert_eq!(foreign(&now), foreign(&initial));
            if config.exclusive_security_group {
                assert_rules_lead_somewhere(&now);
            } else {
                // Without exclusive rights, unproven rules stay, and an address that only the security group
                // has was known only to the crashed process. No client is denied because of that.
                let members = members(&now);
                let of_nodes = |to: &BTreeSet<&str>| to.iter().any(|to| members.contains(to));
                let mut rules = security_rules(&now).map(destinations).filter(of_nodes);
                assert!(rules.all(|to| members.is_subset(&to)), "{now:#?}");
            }
            settle(&emulator, &config, &[], &[], Vec::new()).await;
            let (end, initial) = if config.exclusive_security_group {
                (contents(&emulator), initial)
            } else {
                (without_rules(contents(&emulator)), without_rules(initial))
            };
            assert_eq!(end, initial, "nothing is left behind");
            assert_nothing_rejected(&emulator);
        });
    }

    #[test]
    fn two_writers_at_once_come_to_the_same(before in services(), after in services(), delay in 0..4_u64, seed in any::<u64>()) {
        run(async {
            let options = || EmulatorOptions::default().operation_requests(delay).id_casing_seed(seed);
            let (emulator, alone) = (azure(options()), azure(options()));
            executor(&emulator).reconcile(&before, &nodes(2)).await.unwrap();
            let (one, two) = (executor(&emulator), executor(&emulator));
            let few = nodes(2);
            let (first, second) = tokio::join!(one.reconcile(&after, &few), two.reconcile(&after, &few));
            // Each may have given up after conflicts; together they have succeeded, or the next run does.
            let _ = (first.unwrap(), second.unwrap());
            settle(&emulator, &config(), &after, &few, Vec::new()).await;
            executor(&alone).reconcile(&after, &nodes(2)).await.unwrap();
            let frontends = |emulator: &Emulator| -> BTreeSet<String> {
                let all = contents(emulator);
                let of_all = all.values().filter_map(|one| one["properties"]["frontendIPConfigurations"].as_array());
                of_all.flatten().map(|frontend| frontend["name"].to_string()).collect()
            };
            assert_eq!(frontends(&emulator), frontends(&alone));
            let now = contents(&emulator);
            assert_eq!(foreign(&now), foreign(&contents(&alone)));
            assert_rules_lead_somewhere(&now);
        });
    }
}
