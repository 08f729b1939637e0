//! Security rules that lead to nodes, while nodes come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::OrphanPolicy;
use azure_loadbalancer::node::Readiness;
use azure_loadbalancer::{Config, Node, Service};

use crate::support::*;

fn nodes(numbers: &[u8]) -> Vec<Node> {
    let node = |number: &u8| {
        let address = format!("10.0.5.{number}").parse().expect("an address");
        Node::new(format!("n{number}"), address)
    };
    numbers.iter().map(node).collect()
}

fn flat(name: &str, port: u16) -> Service {
    with(service(name, &[port]), keys::DISABLE_FLOATING_IP, "true")
}

fn mistaken(service: Service) -> Service {
    with(service, keys::TCP_IDLE_TIMEOUT, "x")
}

/// Returns the destinations of all rules that allow this port of nodes.
fn open(azure: &Azure, port: u16) -> BTreeSet<String> {
    let rules = azure.security_rules().into_iter();
    let rules = rules.filter(|rule| {
        rule.properties
            .destination_port_ranges
            .contains(&port.to_string())
    });
    rules
        .flat_map(|rule| rule.properties.destination_address_prefixes.clone())
        .collect()
}

fn pool(azure: &Azure) -> BTreeSet<String> {
    let pool = &azure
        .balancer_named("testCluster")
        .properties
        .backend_address_pools[0];
    let entries = pool.properties.load_balancer_backend_addresses.iter();
    entries
        .flatten()
        .filter_map(|entry| entry.properties.ip_address.clone())
        .collect()
}

/// Exclusive in the security group or not.
fn configs() -> [Config; 2] {
    [true, false].map(|exclusive_security_group| Config {
        exclusive_security_group,
        ..current()
    })
}

const AFTERWARDS: [&[u8]; 4] = [&[3, 4], &[1, 3], &[1], &[1, 2, 3]];

#[test]
fn nodes_reach_the_rules_of_a_service_with_a_mistake() {
    for config in configs() {
        for after in AFTERWARDS {
            let mut azure = empty();
            azure.converge(&config, &[flat("a", 80)], &nodes(&[1, 2]));
            azure.converge(&config, &[mistaken(flat("a", 80))], &nodes(after));
            assert_eq!(open(&azure, 10_080), pool(&azure), "{after:?}");
            assert_eq!(pool(&azure).len(), after.len());
            // After the correction, no work is left.
            let (_, log) = azure.converge(&config, &[flat("a", 80)], &nodes(after));
            assert_eq!(log, Vec::<String>::new());
        }
    }
}

#[test]
fn nodes_reach_the_rules_of_a_service_that_is_not_named_and_stays() {
    for config in configs() {
        let config = Config {
            orphans: OrphanPolicy::Report,
            ..config
        };
        for after in AFTERWARDS {
            let mut azure = empty();
            let stays = Service {
                uid: "257b9655-5137-4ad2-b091-ef3f07043ad3".to_owned(),
                ..flat("a", 80)
            };
            azure.converge(&config, &[stays], &nodes(&[1, 2]));
            azure.converge(&config, &[], &nodes(after));
            assert_eq!(open(&azure, 10_080), pool(&azure), "{after:?}");
            assert_eq!(pool(&azure).len(), after.len());
        }
    }
}

/// The address of a node that is no member would no longer be known as the cluster's once it has gone.
#[test]
fn a_node_that_is_no_member_is_not_let_in() {
    for config in configs() {
        let mut azure = empty();
        let ready = nodes(&[1, 2]);
        let waits = |seconds| Node {
            readiness: Readiness::NotReady(Duration::from_secs(seconds)),
            ..nodes(&[3]).remove(0)
        };
        for seconds in [10, 3_600] {
            let with_one_more = [ready.clone(), vec![waits(seconds)]].concat();
            azure.converge(&config, &[flat("a", 80)], &with_one_more);
            assert_eq!(open(&azure, 10_080), pool(&azure));
            assert_eq!(pool(&azure).len(), 2);
        }
        // A member that is not ready stays for a while, and is allowed for as long.
        azure.converge(&config, &[flat("a", 80)], &nodes(&[1, 2, 3]));
        for (seconds, members) in [(10, 3), (3_600, 2)] {
            let with_one_more = [ready.clone(), vec![waits(seconds)]].concat();
            azure.converge(&config, &[flat("a", 80)], &with_one_more);
            assert_eq!(open(&azure, 10_080), pool(&azure));
            assert_eq!(pool(&azure).len(), members);
        }
        azure.converge(&config, &[flat("a", 80)], &nodes(&[1]));
        assert_eq!(open(&azure, 10_080), pool(&azure));
    }
}

#[test]
fn a_mistake_keeps_no_rule_of_a_service_that_has_gone() {
    for config in configs() {
        let mut azure = empty();
        let services = [flat("a", 80), flat("b", 81)];
        azure.converge(&config, &services, &nodes(&[1, 2]));
        for after in AFTERWARDS {
            let services = [mistaken(flat("a", 80)), deleting(flat("b", 81))];
            azure.converge(&config, &services, &nodes(after));
            assert_eq!(open(&azure, 10_080), pool(&azure), "{after:?}");
            assert_eq!(open(&azure, 10_081), BTreeSet::new(), "{after:?}");
        }
    }
}

#[test]
fn a_mistake_opens_no_port_of_new_nodes_for_others() {
    for config in configs() {
        let mut azure = empty();
        let services = [flat("a", 80), service("b", &[81])];
        azure.converge(&config, &services, &nodes(&[1, 2]));
        // No service uses port 80 of nodes any more; the one with the mistake has a floating address.
        let services = [deleting(flat("a", 80)), mistaken(service("b", &[81]))];
        azure.converge(&config, &services, &nodes(&[1, 3]));
        assert!(!open(&azure, 10_080).contains("10.0.5.3"));
        azure.converge(&config, &[service("b", &[81])], &nodes(&[1, 3]));
        assert_eq!(open(&azure, 10_080), BTreeSet::new());
    }
}
