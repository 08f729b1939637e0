//! Nodes whose address cannot be read.

use std::time::Duration;

use azure_loadbalancer::Node;
use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::Config;
use azure_loadbalancer::node::Readiness;
use serde_json::json;

use super::members::{members, nodes, warned};
use crate::support::*;

/// Addresses do not vanish from machines; a mistake in the node's status removes nothing.
#[test]
fn nodes_without_a_readable_address_stay_members() {
    let node = |addresses: serde_json::Value| {
        let document: azure_loadbalancer::node::NodeDocument = serde_json::from_value(json!({
            "metadata": {"name": "n1"},
            "status": {
                "addresses": addresses,
                "conditions": [{"type": "Ready", "status": "True"}]
            }
        }))
        .expect("it is a node");
        document.into_node(Duration::ZERO)
    };
    let of = |text: &str| json!([{"type": "InternalIP", "address": text}]);
    let floats = [service("web", &[80])];
    let direct = [with(
        service("web", &[80]),
        keys::DISABLE_FLOATING_IP,
        "true",
    )];
    for services in [floats, direct] {
        for addresses in [of("10.20.1.500"), of("fd00::1"), json!([]), json!(null)] {
            let mut azure = empty();
            azure.converge(&current(), &services, &nodes(3));
            let [first, _, last] = &nodes(3)[..] else {
                panic!("three nodes")
            };
            let now = [first.clone(), node(addresses.clone()), last.clone()];
            let (plan, log) = azure.converge(&current(), &services, &now);
            assert_eq!(log, Vec::<String>::new(), "{addresses}");
            assert_eq!(members(&azure), ["n0", "n1", "n2"]);
            assert!(
                warned(&plan, "node n1 has no IPv4 address"),
                "{:?}",
                plan.warnings
            );
            // Its address goes to no other node meanwhile.
            let thief = Node::new("thief", [10, 0, 5, 1].into());
            let (_, _) = azure.converge(
                &current(),
                &services,
                &[now[0].clone(), now[1].clone(), thief],
            );
            assert_eq!(members(&azure), ["n0", "n1"]);
            // Nodes that leave for other reasons leave.
            let old = Node {
                readiness: Readiness::NotReady(Duration::from_secs(3_600)),
                ..now[1].clone()
            };
            let (_, _) = azure.converge(&current(), &services, &[now[0].clone(), old]);
            assert_eq!(members(&azure), ["n0"]);
            // It does not become one.
            let (plan, log) = azure.converge(&current(), &services, &now[..2]);
            assert_eq!(log, Vec::<String>::new());
            assert_eq!(members(&azure), ["n0"]);
            assert!(warned(&plan, "node n1 has no IPv4 address"));
        }
    }
}

/// Pools without any node keep their members for a while, and this node stays a member after it.
#[test]
fn the_last_node_without_a_readable_address_stays_a_member() {
    let services = [with(
        service("web", &[80]),
        keys::DISABLE_FLOATING_IP,
        "true",
    )];
    let now = [Node::new("n0", "2001:db8::1".parse().expect("it is valid"))];
    let mut azure = empty();
    azure.converge(&current(), &services, &nodes(2));
    let (plan, log) = azure.converge(&current(), &services, &now);
    assert_eq!(log, Vec::<String>::new());
    assert!(
        warned(&plan, "keeps its members (2)"),
        "{:?}",
        plan.warnings
    );
    let at_once = Config {
        empty_grace: Some(Duration::ZERO),
        ..current()
    };
    azure.converge(&at_once, &services, &now);
    assert_eq!(members(&azure), ["n0"]);
}
