use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, FlipOrder};
use azure_loadbalancer::plan::Operation;
use azure_loadbalancer::steps::{Call, Steps};
use azure_loadbalancer::{Node, Service, plan};

use crate::support::*;

/// Executes the steps of a call.
fn call(
    azure: &mut Azure,
    config: &Config,
    call: Call,
    services: &[Service],
    name: &str,
) -> Vec<String> {
    let from = azure.log.len();
    for step in call.steps(config.flip_order) {
        let snapshot = azure.seen();
        let steps = Steps::new(config, services, &[], &snapshot);
        let plan = steps
            .step(call, *step, &key(name))
            .unwrap_or_else(|why| panic!("{step:?}: {why}"));
        azure.execute(&plan);
    }
    azure.log[from..].to_vec()
}

// Cases G5 (a second deletion writes nothing), G8 (an update equals ensuring).
#[test]
fn the_steps_of_a_call_do_what_the_plan_for_all_does() {
    for order in [FlipOrder::MakeBeforeBreak, FlipOrder::BreakFirst] {
        for config in [note(), current()] {
            let config = Config {
                flip_order: order,
                exclusive_security_group: true,
                ..config
            };
            let (a, b) = (service("a", &[80]), internal("b", &[80, 81]));
            let mut azure = empty();
            call(
                &mut azure,
                &config,
                Call::Ensure,
                std::slice::from_ref(&a),
                "a",
            );
            call(
                &mut azure,
                &config,
                Call::Ensure,
                &[a.clone(), b.clone()],
                "b",
            );
            assert_eq!(
                azure.converge(&config, &[a.clone(), b.clone()], &[]).1,
                Vec::<String>::new()
            );
            // An update does the same as ensuring, which is nothing here.
            assert_eq!(
                call(
                    &mut azure,
                    &config,
                    Call::Update,
                    &[a.clone(), b.clone()],
                    "a"
                ),
                Vec::<String>::new()
            );
            // A flip, one service at a time.
            let (a, b) = (internal("a", &[80]), service("b", &[80]));
            call(
                &mut azure,
                &config,
                Call::Ensure,
                &[a.clone(), b.clone()],
                "a",
            );
            call(
                &mut azure,
                &config,
                Call::Ensure,
                &[a.clone(), b.clone()],
                "b",
            );
            // When breaking first, the old address is no longer known when its rules are checked.
            let forgotten = order == FlipOrder::BreakFirst && config.is_standard();
            let (_, log) = azure.converge(&config, &[a.clone(), b.clone()], &[]);
            assert_eq!(
                log,
                vec!["put networkSecurityGroup nsg"; usize::from(forgotten)]
            );
            for (name, writes) in [("a", true), ("b", true), ("a", false), ("b", false)] {
                let log = call(
                    &mut azure,
                    &config,
                    Call::EnsureDeleted,
                    &[a.clone(), b.clone()],
                    name,
                );
                assert_eq!(!log.is_empty(), writes, "{name}: {log:?}");
            }
            assert!(azure.balancers().is_empty() && azure.snapshot.public_ips.is_empty());
            assert!(azure.security_rules().is_empty());
        }
    }
}

// Case D9, and the order of G1 backwards.
#[test]
fn deletion_begins_with_the_security_group() {
    let mut azure = empty();
    let services = [service("a", &[80])];
    azure.converge(&note(), &services, &[]);
    let log = call(&mut azure, &note(), Call::EnsureDeleted, &services, "a");
    let expected = [
        "put networkSecurityGroup nsg",
        "delete loadBalancer testCluster",
        "delete publicIPAddress testCluster-aa",
    ];
    assert_eq!(log, expected);
    azure.converge(&note(), &services, &[]);
    assert_eq!(
        azure
            .converge(&note(), &[deleting(service("a", &[80]))], &[])
            .1,
        expected
    );
}

#[test]
fn an_address_changes_step_by_step_without_a_rejection() {
    for order in [FlipOrder::MakeBeforeBreak, FlipOrder::BreakFirst] {
        let config = Config {
            flip_order: order,
            ..note()
        };
        let mut azure = empty();
        azure.add_public_ip("rg", "mine", "1.2.3.4", "Basic", &[]);
        call(
            &mut azure,
            &config,
            Call::Ensure,
            &[service("a", &[80])],
            "a",
        );
        call(
            &mut azure,
            &config,
            Call::Ensure,
            &[at(service("a", &[80]), "1.2.3.4")],
            "a",
        );
        assert!(azure.public_ip("testCluster-aa").is_none());
    }
}

#[test]
fn getting_writes_nothing() {
    assert!(Call::Get.steps(FlipOrder::BreakFirst).is_empty());
    let mut azure = empty();
    let plan = plan(&note(), &[service("a", &[80])], &[], &azure.seen());
    assert!(!plan.services[&key("a")].exists);
    azure.converge(&note(), &[service("a", &[80])], &[]);
    // Only the public address is left. The current edition counts that, so that it is not forgotten.
    azure.snapshot.load_balancers.clear();
    for (config, exists) in [(note(), false), (current(), true)] {
        let plan = azure_loadbalancer::plan(
            &config,
            &[deleting(service("a", &[80]))],
            &[],
            &azure.seen(),
        );
        assert_eq!(plan.services[&key("a")].exists, exists);
    }
}

// Case G6.
#[test]
fn deletion_finds_both_kinds() {
    let mut azure = empty();
    azure.converge(&note(), &[service("a", &[80])], &[]);
    azure.converge(&note(), &[deleting(internal("a", &[80]))], &[]);
    assert!(azure.balancers().is_empty() && azure.snapshot.public_ips.is_empty());
}

#[test]
fn a_service_of_another_type_has_nothing() {
    let mut azure = empty();
    azure.converge(&note(), &[service("a", &[80])], &[]);
    let mut cluster_ip = service("a", &[80]);
    cluster_ip.load_balanced = false;
    azure.converge(&note(), &[cluster_ip], &[]);
    assert!(azure.balancers().is_empty());
}

// Case D12, beside another service.
#[test]
fn a_mistake_in_one_service_leaves_it_as_it_is_and_harms_no_other() {
    let mut azure = empty();
    let ok = [service("a", &[80]), service("b", &[80])];
    azure.converge(&note(), &ok, &[]);
    let wrong = with(service("a", &[8080]), keys::TCP_IDLE_TIMEOUT, "x");
    let (plan, _) = azure.converge(&note(), &[wrong, service("b", &[81])], &[]);
    assert!(plan.services[&key("a")].error.is_some());
    assert_eq!(plan.services[&key("a")].ingress.len(), 1);
    assert_eq!(
        names(&azure.rules("testCluster")),
        ["aa-TCP-80", "ab-TCP-81"]
    );
    assert_eq!(
        names(&azure.security_rules()),
        ["aa-TCP-80-Internet", "ab-TCP-81-Internet"]
    );
    assert!(azure.public_ip("testCluster-aa").is_some());
}

#[test]
fn a_configuration_that_cannot_be_used_writes_nothing() {
    let wrong = [
        Config {
            cluster_name: "-".to_owned(),
            ..note()
        },
        Config {
            subscription_id: String::new(),
            ..note()
        },
        Config {
            vnet_name: String::new(),
            ..current()
        },
        Config {
            security_group_name: Some(String::new()),
            ..note()
        },
        Config {
            backend_pool_type: azure_loadbalancer::config::PoolMembership::Address,
            ..note()
        },
    ];
    for config in wrong {
        let plan = plan(&config, &[service("a", &[80])], &[], &empty().snapshot);
        assert!(plan.actions.is_empty() && plan.services[&key("a")].error.is_some());
    }
}

#[test]
fn many_services_are_one_write_of_each_resource() {
    let services: Vec<_> = (0..200).map(|i| service(&format!("s{i}"), &[80])).collect();
    let mut azure = empty();
    azure.echo = Echo(7);
    let (_, log) = azure.converge(&current(), &services, &[]);
    let writes = |kind: &str| log.iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!(
        [
            writes("put publicIPAddress"),
            writes("put loadBalancer"),
            writes("put networkSecurityGroup")
        ],
        [200, 1, 1]
    );
    let nodes = [Node::new("n", "10.0.0.4".parse().unwrap())];
    let plan = plan(&current(), &services, &nodes, &azure.seen());
    assert_eq!(plan.actions.len(), 1);
    assert!(matches!(
        plan.actions[0].operation,
        Operation::PutPool { .. }
    ));
}

#[test]
fn a_plan_tells_what_becomes_different() {
    let mut azure = empty();
    azure.converge(&note(), &[service("a", &[80])], &[]);
    let asked = [with(service("a", &[80]), keys::TCP_IDLE_TIMEOUT, "9")];
    let plan = plan(&note(), &asked, &[], &azure.seen());
    let told: Vec<_> = plan
        .actions
        .iter()
        .flat_map(|action| &action.changes)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        ["~ loadBalancingRules[aa-TCP-80].idleTimeoutInMinutes: 4 -> 9"]
    );
    assert_eq!(plan.actions[0].reasons, ["default/a is changed"]);
    assert!(
        serde_json::to_string(&plan)
            .expect("JSON")
            .contains("\"do\":\"putLoadBalancer\"")
    );
}

#[test]
fn a_service_that_cannot_be_read_keeps_what_it_has() {
    let mut azure = empty();
    azure.converge(&current(), &[service("a", &[80])], &[]);
    let unreadable = Service {
        unreadable: Some("no ports".to_owned()),
        ports: Vec::new(),
        ..service("a", &[80])
    };
    let (plan, log) = azure.converge(&current(), &[unreadable, service("b", &[81])], &[]);
    let error = plan.services[&key("a")]
        .error
        .as_ref()
        .map(ToString::to_string);
    assert!(error.is_some_and(|error| error.contains("no ports")));
    assert!(!log.is_empty(), "the other is served");
    assert_eq!(names(&azure.rules("testCluster")).len(), 2);
}
