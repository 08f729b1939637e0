use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, Edition, FlipOrder};
use azure_loadbalancer::plan;
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::resources::AllocationMethod;
use serde_json::json;

use crate::support::*;

// Cases C1, G1.
#[test]
fn an_external_service_gets_a_frontend_with_a_public_address() {
    let mut azure = empty();
    let (plan, log) = azure.converge(&note(), &[service("a", &[80])], &[]);
    assert_eq!(
        log,
        [
            "put publicIPAddress testCluster-aa",
            "put loadBalancer testCluster",
            "put networkSecurityGroup nsg"
        ]
    );
    let frontend = azure.frontends("testCluster")[0];
    let public = azure.public_ip("testCluster-aa").expect("it is made");
    assert_eq!(frontend.name, "aa");
    assert_eq!(
        frontend
            .properties
            .public_ip_address
            .as_ref()
            .and_then(|r| r.id.clone()),
        public.id
    );
    let ingress = &plan.services[&key("a")].ingress;
    assert_eq!(
        Some(ingress[0].ip.to_string()),
        public.properties.ip_address
    );
}

// Cases C2, C3, C6.
#[test]
fn an_internal_service_gets_a_frontend_in_the_subnet() {
    let mut azure = empty();
    let services = [
        internal("a", &[80]),
        with(internal("b", &[80]), keys::INTERNAL_SUBNET, "sub2"),
        at(internal("c", &[80]), "10.0.0.9"),
    ];
    azure.converge(&note(), &services, &[]);
    let frontends = azure.frontends("testCluster-internal");
    assert_eq!(names(&frontends), ["aa", "ab-sub2", "ac"]);
    let subnet = |index: usize| {
        frontends[index]
            .properties
            .subnet
            .as_ref()
            .and_then(|s| s.id.clone())
    };
    assert_eq!(subnet(0), Some(note().subnet_id("subnet")));
    assert_eq!(subnet(1), Some(note().subnet_id("sub2")));
    let method = |index: usize| {
        frontends[index]
            .properties
            .private_ip_allocation_method
            .clone()
    };
    assert_eq!(
        [method(0), method(2)],
        [
            Some(AllocationMethod::Dynamic),
            Some(AllocationMethod::Static)
        ]
    );
    assert_eq!(
        frontends[2].properties.private_ip_address.as_deref(),
        Some("10.0.0.9")
    );
    assert!(names(&azure.rules("testCluster-internal")).contains(&"ab-sub2-TCP-80".to_owned()));
}

// Cases C5, F7.
#[test]
fn a_frontend_that_cannot_be_is_an_error_and_nothing_is_written() {
    let table = [
        with(internal("a", &[80]), keys::INTERNAL_SUBNET, "nope"),
        at(internal("a", &[80]), "192.168.0.1"),
        at(internal("a", &[80]), "nonsense"),
        at(service("a", &[80]), "1.2.3.4"),
    ];
    for asked in table {
        let (plan, log) = empty().converge(&note(), std::slice::from_ref(&asked), &[]);
        assert!(plan.services[&key("a")].error.is_some(), "{asked:?}");
        assert_eq!(log, Vec::<String>::new());
    }
}

// Case A3.
#[test]
fn a_subnet_annotation_of_an_external_service_says_nothing() {
    let mut azure = empty();
    azure.converge(
        &note(),
        &[with(service("a", &[80]), keys::INTERNAL_SUBNET, "sub2")],
        &[],
    );
    assert_eq!(names(&azure.rules("testCluster")), ["aa-TCP-80"]);
}

// Cases C10, C11.
#[test]
fn a_flip_leaves_nothing_and_harms_no_other() {
    for order in [FlipOrder::MakeBeforeBreak, FlipOrder::BreakFirst] {
        let config = Config {
            flip_order: order,
            ..note()
        };
        let mut azure = empty();
        let (outside, inside) = (service("x", &[80]), internal("y", &[80]));
        azure.converge(
            &config,
            &[service("a", &[80]), outside.clone(), inside.clone()],
            &[],
        );
        let other = |azure: &Azure| {
            let frontend = azure
                .frontends("testCluster")
                .into_iter()
                .find(|f| f.name == "ax")
                .cloned()
                .unwrap();
            let rule = azure
                .rules("testCluster")
                .into_iter()
                .find(|r| r.name == "ax-TCP-80")
                .cloned()
                .unwrap();
            (frontend.properties, rule.properties)
        };
        let before = other(&azure);
        azure.converge(
            &config,
            &[internal("a", &[80]), outside.clone(), inside.clone()],
            &[],
        );
        assert_eq!(names(&azure.frontends("testCluster")), ["ax"]);
        assert_eq!(
            names(&azure.frontends("testCluster-internal")),
            ["aa", "ay"]
        );
        assert_eq!(other(&azure), before);
        assert!(azure.public_ip("testCluster-aa").is_none());
        azure.converge(&config, &[service("a", &[80]), outside, inside], &[]);
        assert_eq!(names(&azure.frontends("testCluster-internal")), ["ay"]);
        assert!(azure.public_ip("testCluster-aa").is_some());
    }
}

#[test]
fn the_order_of_a_flip_is_chosen() {
    let flip = |order| {
        let config = Config {
            flip_order: order,
            ..note()
        };
        let mut azure = empty();
        azure.converge(&config, &[service("a", &[80])], &[]);
        azure.converge(&config, &[internal("a", &[80])], &[]).1
    };
    assert_eq!(
        flip(FlipOrder::MakeBeforeBreak),
        [
            "put loadBalancer testCluster-internal",
            "put networkSecurityGroup nsg",
            "delete loadBalancer testCluster",
            "delete publicIPAddress testCluster-aa"
        ]
    );
    assert_eq!(
        flip(FlipOrder::BreakFirst),
        [
            "delete loadBalancer testCluster",
            "delete publicIPAddress testCluster-aa",
            "put loadBalancer testCluster-internal",
            "put networkSecurityGroup nsg"
        ]
    );
}

#[test]
fn two_flips_in_opposite_ways_do_not_block_each_other() {
    for order in [FlipOrder::MakeBeforeBreak, FlipOrder::BreakFirst] {
        let config = Config {
            flip_order: order,
            ..note()
        };
        let mut azure = empty();
        azure.converge(&config, &[service("a", &[80]), internal("b", &[80])], &[]);
        azure.converge(&config, &[internal("a", &[80]), service("b", &[80])], &[]);
        assert_eq!(names(&azure.frontends("testCluster")), ["ab"]);
        assert_eq!(names(&azure.frontends("testCluster-internal")), ["aa"]);
    }
}

// Cases C12, F6.
#[test]
fn an_address_that_a_user_brings_takes_over_without_a_rejection() {
    let mut azure = empty();
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Basic", &[]);
    azure.converge(&note(), &[service("a", &[80])], &[]);
    let (_, log) = azure.converge(&note(), &[at(service("a", &[80]), "1.2.3.4")], &[]);
    assert_eq!(
        log,
        [
            "put loadBalancer testCluster",
            "put networkSecurityGroup nsg",
            "delete publicIPAddress testCluster-aa"
        ]
    );
    let mine = azure.public_ip("mine").expect("it stays");
    assert!(mine.tags.is_empty());
    assert_eq!(azure.frontends("testCluster").len(), 1);
    azure.converge(
        &note(),
        &[deleting(at(service("a", &[80]), "1.2.3.4"))],
        &[],
    );
    assert!(azure.public_ip("mine").is_some());
    assert!(azure.balancers().is_empty());
}

// Case C16.
#[test]
fn both_annotations_of_an_internal_service_go_in_one_edit() {
    let (mut azure, nodes) = cluster(4, 2);
    let before = with(
        with(internal("a", &[80]), keys::INTERNAL_SUBNET, "sub2"),
        keys::MODE,
        "as-1",
    );
    azure.converge(&note(), &[before], &nodes);
    assert_eq!(azure.balancers(), ["as-1-internal"]);
    azure.converge(
        &note(),
        &[with(service("a", &[80]), keys::MODE, "as-1")],
        &nodes,
    );
    assert_eq!(azure.balancers(), ["as-1"]);
}

// Case C13.
#[test]
fn a_frontend_that_others_use_stays() {
    let uses = [
        (
            "outboundRules",
            json!([{"name": "o", "properties": {"frontendIPConfigurations": [{"id": "FRONTEND"}]}}]),
        ),
        (
            "inboundNatRules",
            json!([{"name": "n", "properties": {"frontendIPConfiguration": {"id": "FRONTEND"}}}]),
        ),
        (
            "inboundNatPools",
            json!([{"name": "n", "properties": {"frontendIPConfiguration": {"id": "FRONTEND"}}}]),
        ),
        (
            "loadBalancingRules",
            json!([{"name": "theirs", "properties": {
            "frontendIPConfiguration": {"id": "FRONTEND"}, "backendAddressPool": {"id": "POOL"},
            "protocol": "Tcp", "frontendPort": 9, "backendPort": 9}}]),
        ),
    ];
    for (kind, parts) in uses {
        let mut azure = empty();
        azure.converge(&note(), &[service("a", &[80])], &[]);
        let balancer = &mut azure.snapshot.load_balancers[0];
        let frontend = note()
            .load_balancer_id("testCluster")
            .child("frontendIPConfigurations", "aa");
        let pool = note()
            .load_balancer_id("testCluster")
            .child("backendAddressPools", "testCluster");
        let parts = parts
            .to_string()
            .replace("FRONTEND", frontend.as_str())
            .replace("POOL", pool.as_str());
        let mut document = serde_json::to_value(&*balancer).unwrap();
        let parts: Vec<serde_json::Value> = serde_json::from_str(&parts).unwrap();
        let list = document["properties"]
            .as_object_mut()
            .unwrap()
            .entry(kind)
            .or_insert(json!([]));
        list.as_array_mut().unwrap().extend(parts);
        *balancer = serde_json::from_value(document).unwrap();
        let (plan, _) = azure.converge(&note(), &[deleting(service("a", &[80]))], &[]);
        assert_eq!(names(&azure.frontends("testCluster")), ["aa"], "{kind}");
        assert!(!names(&azure.rules("testCluster")).contains(&"aa-TCP-80".to_owned()));
        assert!(azure.public_ip("testCluster-aa").is_some());
        assert!(
            plan.warnings
                .iter()
                .any(|warning| warning.what.contains("stays because")),
            "{kind}"
        );
    }
}

/// A frontend that stays until its service is reachable elsewhere does not block another service that
/// requests its address, whatever the order of the resources, with or without further services.
#[test]
fn an_internal_address_that_is_left_is_somebody_elses_at_once() {
    let config = Config {
        edition: Edition::Current,
        flip_order: FlipOrder::MakeBeforeBreak,
        ..note()
    };
    let addresses = |azure: &Azure, name: &str| -> Vec<_> {
        let frontends = azure.frontends(name).into_iter();
        let owned = frontends.map(|f| (f.name.clone(), f.properties.private_ip_address.clone()));
        owned.collect()
    };
    for (is_turned, has_others) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut azure, nodes) = cluster(4, 2);
        let stays = at(internal("moves", &[80]), "10.0.9.0");
        azure.converge(&config, &[stays], &nodes);
        let moved = with(internal("moves", &[80]), keys::MODE, "as-1");
        let comes = at(internal("comes", &[80]), "10.0.9.0");
        let mut services = vec![moved, comes];
        services.extend(has_others.then(|| internal("new", &[80])));
        for _ in 0..4 {
            let balancers = &mut azure.snapshot.load_balancers;
            balancers.sort_by(|one, other| one.name.cmp(&other.name));
            if is_turned {
                balancers.reverse();
            }
            let planned = plan(&config, &services, &nodes, &azure.snapshot);
            assert!(planned.services.values().all(|s| s.error.is_none()));
            azure.execute(&planned);
        }
        let left = ("acomes".to_owned(), Some("10.0.9.0".to_owned()));
        let on_primary = addresses(&azure, "testCluster-internal");
        assert!(on_primary.contains(&left), "{on_primary:?}");
        assert_eq!(on_primary.len(), 1 + usize::from(has_others));
        let elsewhere = addresses(&azure, "as-1-internal");
        assert_eq!(elsewhere.len(), 1, "{elsewhere:?}");
        assert_eq!(elsewhere[0].0, "amoves");
        assert_ne!(elsewhere[0].1, left.1);
    }
}

/// A moved service whose old frontend still exists stays where its frontend is allowed, whatever the order of
/// reading.
#[test]
fn where_a_service_stays_does_not_depend_on_what_is_read_first() {
    let config = Config {
        edition: Edition::Current,
        ..note()
    };
    let mode = |sets: &str| with(internal("web", &[80]), keys::MODE, sets);
    let (mut azure, nodes) = cluster(4, 2);
    azure.converge(&config, &[mode("as")], &nodes);
    let planned = plan(&config, &[mode("as-1")], &nodes, &azure.snapshot);
    let makes = &planned.actions[0];
    azure.apply(makes).expect("the new one is made");
    assert_eq!(azure.snapshot.load_balancers.len(), 2);
    for _ in 0..2 {
        azure.snapshot.load_balancers.reverse();
        let on = |sets: &str| {
            let planned = plan(&config, &[mode(sets)], &nodes, &azure.snapshot);
            let outcome = planned.services.into_values().next();
            let outcome = outcome.expect("an outcome");
            (outcome.load_balancer, outcome.ingress[0].ip)
        };
        let (balancer, ip) = on("as-1");
        assert_eq!(balancer.as_deref(), Some("as-1-internal"));
        let frontends = azure.frontends("as-1-internal");
        let own = frontends[0].properties.private_ip_address.clone();
        assert_eq!(Some(ip.to_string()), own);
        // Both may be: the first by name wins.
        assert_eq!(on("as,as-1").0.as_deref(), Some("as-1-internal"));
        assert_eq!(on("as").0.as_deref(), Some("testCluster-internal"));
    }
}

/// Other services that want any address in the subnet do not request a particular one.
#[test]
fn a_frontend_lingers_whoever_else_is_in_its_subnet() {
    let config = Config {
        edition: Edition::Current,
        flip_order: FlipOrder::MakeBeforeBreak,
        ..note()
    };
    let (mut azure, nodes) = cluster(4, 2);
    let neighbour = internal("neighbour", &[80]);
    azure.converge(
        &config,
        &[internal("web", &[80]), neighbour.clone()],
        &nodes,
    );
    let flipped = [service("web", &[80]), neighbour];
    let planned = plan(&config, &flipped, &nodes, &azure.snapshot);
    let told = planned
        .deferred
        .iter()
        .any(|deferred| deferred.what.contains("testCluster-internal"));
    assert!(told, "{:?}", planned.deferred);
}

// Case C15.
#[test]
fn an_internal_address_that_nobody_asks_for_is_not_changed() {
    let mut azure = empty();
    azure.converge(&current(), &[at(internal("a", &[80]), "10.0.0.9")], &[]);
    let (_, log) = azure.converge(&current(), &[internal("a", &[80])], &[]);
    assert_eq!(log, Vec::<String>::new());
    assert_eq!(
        azure.frontends("testCluster-internal")[0]
            .properties
            .private_ip_address
            .as_deref(),
        Some("10.0.0.9")
    );
}

#[test]
fn a_uid_that_two_have_is_rejected() {
    let mut twin = service("b", &[80]);
    twin.uid = "a".to_owned();
    let mut azure = empty();
    let services = [service("a", &[80]), twin];
    let (plan, log) = azure.converge(&note(), &services, &[]);
    for name in ["a", "b"] {
        let error = &plan.services[&key(name)].error;
        assert!(matches!(error, Some(PlanError::DuplicateUid { .. })));
    }
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn a_copy_with_the_same_uid_takes_nothing_over() {
    for config in [note(), current()] {
        // The order of names does not matter.
        for name in ["a-copy", "z-copy"] {
            let mut azure = empty();
            azure.converge(&config, &[service("web", &[80])], &[]);
            let before = azure.snapshot.clone();
            let mut copy = at(service(name, &[81]), "9.9.9.9");
            copy.uid = "web".to_owned();
            let services = [copy.clone(), service("web", &[80])];
            let (plan, log) = azure.converge(&config, &services, &[]);
            assert_eq!(log, Vec::<String>::new(), "{name}");
            assert_eq!(azure.snapshot, before);
            assert!(plan.orphans.is_empty(), "{:?}", plan.orphans);
            // The same after the copy is deleted.
            copy.deleting = true;
            let services = [copy, service("web", &[80])];
            azure.converge(&config, &services, &[]);
            assert_eq!(azure.snapshot, before);
        }
    }
}

// Case C14.
#[test]
fn a_uid_that_begins_with_another_is_somebody_else() {
    let mut azure = empty();
    azure.converge(
        &note(),
        &[service("web", &[80]), service("web2", &[80])],
        &[],
    );
    azure.converge(
        &note(),
        &[deleting(service("web", &[80])), service("web2", &[80])],
        &[],
    );
    assert_eq!(names(&azure.frontends("testCluster")), ["aweb2"]);
    assert_eq!(names(&azure.rules("testCluster")), ["aweb2-TCP-80"]);
}

// Case C8.
#[test]
fn outside_and_inside_are_two_load_balancers() {
    let mut azure = empty();
    azure.converge(
        &note(),
        &[service("out", &[80]), internal("in", &[80])],
        &[],
    );
    assert_eq!(azure.balancers(), ["testCluster", "testCluster-internal"]);
    assert_eq!(names(&azure.frontends("testCluster")), ["aout"]);
    assert_eq!(names(&azure.frontends("testCluster-internal")), ["ain"]);
}
