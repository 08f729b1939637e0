//! Ports of a service's own frontend that are taken.

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, Edition, FlipOrder};
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Service, plan};
use serde_json::json;

use crate::support::*;

#[test]
fn ports_of_nat_and_of_rules_for_all_protocols_are_found_before_the_write() {
    let frontend = current()
        .load_balancer_id("testCluster")
        .child("frontendIPConfigurations", "aa");
    let part = |more: serde_json::Value| {
        let mut properties = json!({ "frontendIPConfiguration": { "id": frontend } });
        properties
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([{ "name": "theirs", "properties": properties }])
    };
    for (kind, parts, is_taken) in [
        (
            "inboundNatRules",
            part(json!({"protocol": "Tcp", "frontendPort": 81})),
            true,
        ),
        (
            "inboundNatRules",
            part(json!({"protocol": "All", "frontendPort": 81})),
            true,
        ),
        (
            "inboundNatRules",
            part(json!({"protocol": "Udp", "frontendPort": 81})),
            false,
        ),
        (
            "inboundNatRules",
            part(json!({"protocol": "Tcp", "frontendPort": 82})),
            false,
        ),
        (
            "inboundNatRules",
            part(
                json!({"protocol": "Tcp", "frontendPort": 0, "frontendPortRangeStart": 70, "frontendPortRangeEnd": 90}),
            ),
            true,
        ),
        (
            "inboundNatPools",
            part(
                json!({"protocol": "Tcp", "frontendPortRangeStart": 81, "frontendPortRangeEnd": 99}),
            ),
            true,
        ),
        (
            "inboundNatPools",
            part(
                json!({"protocol": "Tcp", "frontendPortRangeStart": 82, "frontendPortRangeEnd": 99}),
            ),
            false,
        ),
        (
            "loadBalancingRules",
            part(json!({"protocol": "All", "frontendPort": 0, "backendPort": 0})),
            true,
        ),
        (
            "loadBalancingRules",
            part(
                json!({"protocol": "All", "frontendPort": 81, "backendPort": 81, "enableFloatingIP": true}),
            ),
            true,
        ),
    ] {
        let mut azure = empty();
        azure.converge(&current(), &[service("a", &[80])], &[]);
        let mut document = serde_json::to_value(&azure.snapshot.load_balancers[0]).unwrap();
        let list = document["properties"]
            .as_object_mut()
            .unwrap()
            .entry(kind)
            .or_insert(json!([]));
        list.as_array_mut()
            .unwrap()
            .extend(parts.as_array().unwrap().clone());
        azure.snapshot.load_balancers[0] = serde_json::from_value(document).unwrap();

        let wanted = [service("a", &[80, 81]), service("b", &[81])];
        let plan = plan(&current(), &wanted, &[], &azure.snapshot);
        let error = &plan.services[&key("a")].error;
        let is_conflict = matches!(error, Some(PlanError::PortConflict { port: 80 | 81, .. }));
        assert_eq!(is_conflict, is_taken, "{kind} {parts}: {error:?}");
        if let Some(error) = error {
            assert!(error.to_string().contains("theirs"), "{error}");
        }
        assert_eq!(
            plan.services[&key("b")].error,
            None,
            "another frontend has ports of its own"
        );
    }
}

/// A rule that lingers until its service is reachable elsewhere does not block another one on the same
/// frontend, or in the same pool.
#[test]
fn a_port_that_is_left_is_somebody_elses_at_once() {
    let config = Config {
        edition: Edition::Current,
        flip_order: FlipOrder::MakeBeforeBreak,
        ..note()
    };
    for is_floating in [true, false] {
        let like = |service: Service| match is_floating {
            true => service,
            false => with(service, keys::DISABLE_FLOATING_IP, "true"),
        };
        let (mut azure, nodes) = cluster(4, 2);
        azure.add_public_ip("rg", "mine", "9.9.9.1", "Basic", &[]);
        let same_node_port = |service: Service| Service {
            ports: vec![ServicePort::tcp(82, 30_082)],
            ..service
        };
        let shares = same_node_port(at(internal("shares", &[]), "10.0.9.0"));
        let before = [
            like(at(internal("leads", &[80]), "10.0.9.0")),
            like(at(service("outside", &[80]), "9.9.9.1")),
            like(shares),
        ];
        azure.converge(&config, &before, &nodes);
        // The service moves to an address that must be released first, so that its own frontend and rules
        // linger.
        let moves = at(service("shares", &[80]), "9.9.9.1");
        let after = [
            like(same_node_port(internal("leads", &[]))),
            like(with(moves, keys::MODE, "__auto__")),
            deleting(before[1].clone()),
        ];
        let (plan, _) = azure.converge(&config, &after, &nodes);
        assert!(plan.services.values().all(|one| one.error.is_none()));
        let rules = names(&azure.rules("testCluster-internal"));
        assert_eq!(rules, ["aleads-TCP-82"]);
        let reached = &plan.services[&key("shares")].ingress;
        assert_eq!(reached[0].ip.to_string(), "9.9.9.1");
    }
}
