use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, Edition};
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::steps::Steps;
use azure_loadbalancer::{Node, Service};

use crate::support::*;

fn error_of(azure: &mut Azure, config: &Config, nodes: &[Node], service: Service) -> PlanError {
    let key = service.key.clone();
    let (plan, log) = azure.converge(config, &[service], nodes);
    assert_eq!(log, Vec::<String>::new());
    plan.services[&key].error.clone().expect("an error")
}

// Case B2.
#[test]
fn without_a_mode_all_services_are_on_the_primary_load_balancer() {
    for is_internal in [false, true] {
        let (mut azure, nodes) = cluster(10, 5);
        let make = if is_internal { internal } else { service };
        let services: Vec<_> = (0..10).map(|i| make(&format!("svc{i}"), &[80])).collect();
        azure.converge(&note(), &services, &nodes);
        let name = if is_internal {
            "testCluster-internal"
        } else {
            "testCluster"
        };
        assert_eq!(azure.balancers(), [name]);
        assert_eq!(azure.rules(name).len(), 10);
    }
}

// Case B3.
#[test]
fn auto_spreads_services_over_all_sets() {
    for count in 1..=9 {
        let (mut azure, nodes) = cluster(8, 4);
        let mut services = Vec::new();
        // One after the other, and then all at once, give the same.
        for index in 0..count {
            services.push(with(
                service(&format!("svc{index}"), &[80]),
                keys::MODE,
                "__AUTO__",
            ));
            azure.converge(&note(), &services, &nodes);
        }
        let (mut at_once, _) = cluster(8, 4);
        at_once.converge(&note(), &services, &nodes);
        for azure in [azure, at_once] {
            let balancers = azure.balancers();
            assert_eq!(balancers.len(), count.min(4));
            let rules: Vec<_> = balancers
                .iter()
                .map(|name| azure.rules(name).len())
                .collect();
            let (least, most) = (rules.iter().min().unwrap(), rules.iter().max().unwrap());
            assert!(most - least <= 1, "{rules:?}");
        }
    }
}

// Cases A11, B10.
#[test]
fn sets_are_chosen_by_name_in_any_case() {
    let (mut azure, nodes) = cluster(4, 2);
    azure.converge(
        &note(),
        &[with(service("a", &[80]), keys::MODE, " AS-1 ")],
        &nodes,
    );
    assert_eq!(azure.balancers(), ["as-1"]);
}

// Cases B12, B13.
#[test]
fn modes_that_name_nothing_are_rejected() {
    for mode in ["as-1,nope", "", " ", "nope", "as-1,,as"] {
        let (mut azure, nodes) = cluster(4, 2);
        let asked = with(service("a", &[80]), keys::MODE, mode);
        let error = error_of(&mut azure, &note(), &nodes, asked);
        assert!(
            matches!(error, PlanError::Selection(_) | PlanError::Annotation(_)),
            "{mode:?}: {error}"
        );
    }
}

// Case B14.
#[test]
fn a_node_without_a_set_matters_in_2018_only() {
    let (mut azure, mut nodes) = cluster(2, 2);
    nodes.push(Node {
        name: "stray".to_owned(),
        ..Node::default()
    });
    let asked = with(service("a", &[80]), keys::MODE, "__auto__");
    let error = error_of(&mut azure, &note(), &nodes, asked.clone());
    assert!(error.to_string().contains("stray"), "{error}");
    let today = Config {
        edition: Edition::Current,
        ..note()
    };
    azure.converge(&today, std::slice::from_ref(&asked), &nodes);
    assert_eq!(azure.balancers().len(), 1);
    assert!(matches!(
        error_of(&mut empty(), &today, &[], asked),
        PlanError::Selection(_)
    ));
}

// Case B15.
#[test]
fn a_placement_stays_in_2018_and_moves_today() {
    let (mut azure, nodes) = cluster(6, 3);
    azure.converge(
        &note(),
        &[with(service("a", &[80]), keys::MODE, "as-1")],
        &nodes,
    );
    let moved = [with(service("a", &[80]), keys::MODE, "as-2")];
    azure.converge(&note(), &moved, &nodes);
    assert_eq!(azure.balancers(), ["as-1"]);
    let today = Config {
        edition: Edition::Current,
        ..note()
    };
    azure.converge(&today, &moved, &nodes);
    assert_eq!(azure.balancers(), ["as-2"]);
    // No service names a set: it stays.
    azure.converge(&today, &[service("a", &[80])], &nodes);
    assert_eq!(azure.balancers(), ["as-2"]);
}

// Case B16.
#[test]
fn standard_load_balancers_have_no_mode() {
    let standard = Config {
        load_balancer_sku: azure_loadbalancer::config::LoadBalancerSku::Standard,
        ..note()
    };
    let asked = with(service("a", &[80]), keys::MODE, "__auto__");
    let error = error_of(&mut empty(), &standard, &[], asked.clone());
    assert!(error.to_string().starts_with(keys::MODE), "{error}");
    let (plan, _) = empty().converge(&current(), &[asked], &[]);
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning.what.contains(keys::MODE))
    );
}

#[test]
fn the_maximum_of_rules_holds_also_for_who_grows() {
    let few = Config {
        maximum_load_balancer_rule_count: 3,
        ..note()
    };
    let mut azure = empty();
    let mut services = vec![service("a", &[80]), service("b", &[80, 81])];
    azure.converge(&few, &services, &[]);
    services.push(service("c", &[80]));
    let (plan, log) = azure.converge(&few, &services, &[]);
    assert!(matches!(
        plan.services[&key("c")].error,
        Some(PlanError::RuleLimit {
            count: 3,
            needed: 1,
            maximum: 3,
            ..
        })
    ));
    assert_eq!(log, Vec::<String>::new());
    // One grows while the other shrinks, in either order of names.
    for (grows, shrinks) in [("a", "b"), ("b", "a")] {
        let mut azure = empty();
        azure.converge(
            &few,
            &[service(grows, &[80]), service(shrinks, &[80, 81])],
            &[],
        );
        let after = [service(grows, &[80, 81]), service(shrinks, &[80])];
        let (plan, _) = azure.converge(&few, &after, &[]);
        assert!(
            plan.services
                .values()
                .all(|outcome| outcome.error.is_none())
        );
        let (plan, log) = azure.converge(
            &few,
            &[service(grows, &[80, 81, 82]), after[1].clone()],
            &[],
        );
        assert!(plan.services[&key(grows)].error.is_some());
        assert_eq!(log, Vec::<String>::new());
        assert_eq!(azure.rules("testCluster").len(), 3);
    }
}

/// A node is behind the rules of both load balancers.
#[test]
fn the_rules_of_both_load_balancers_count_for_the_nodes_behind_them() {
    let few = Config {
        maximum_load_balancer_rule_count: 4,
        maximum_interface_rule_count: 5,
        ..current()
    };
    let internal = |name, ports: &[u16]| with(service(name, ports), keys::INTERNAL, "true");
    let mut azure = empty();
    let mut services = vec![
        service("a", &[80, 81]),
        internal("b", &[80, 81]),
        internal("c", &[82, 83]),
    ];
    let (plan, _) = azure.converge(&few, &services, &[]);
    let rejected = |count, needed| {
        Some(PlanError::InterfaceRuleLimit {
            load_balancer: "testCluster-internal".to_owned(),
            count,
            needed,
            maximum: 5,
        })
    };
    assert_eq!(plan.services[&key("c")].error, rejected(4, 2));
    assert_eq!(azure.rules("testCluster").len(), 2);
    assert_eq!(azure.rules("testCluster-internal").len(), 2);
    // One rule is left, and existing services come first.
    services[2] = internal("c", &[82]);
    services[0] = service("a", &[80, 81, 82]);
    let (plan, _) = azure.converge(&few, &services, &[]);
    assert_eq!(plan.services[&key("a")].error, None);
    assert_eq!(plan.services[&key("c")].error, rejected(5, 1));
    let count = |name| azure.rules(name).len();
    assert_eq!(count("testCluster") + count("testCluster-internal"), 5);
    // A service that needs no more than it has is not rejected.
    let fewer = Config {
        maximum_interface_rule_count: 1,
        ..few
    };
    let (plan, log) = azure.converge(&fewer, &services, &[]);
    for there in ["a", "b"] {
        assert_eq!(plan.services[&key(there)].error, None, "{there}");
    }
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn what_would_be_chosen_is_told_without_writing() {
    let (mut azure, nodes) = cluster(4, 2);
    let config = note();
    let services = [with(service("a", &[80]), keys::MODE, "as-1")];
    let snapshot = azure.seen();
    let steps = Steps::new(&config, &services, &nodes, &snapshot);
    let wanted = steps
        .get_service_load_balancer(&key("a"), true)
        .expect("one is chosen");
    assert_eq!(
        (wanted.load_balancer.name.as_str(), wanted.exists),
        ("as-1", false)
    );
    assert_eq!(wanted.load_balancer.location.as_deref(), Some("westus"));
    let unwanted = steps
        .get_service_load_balancer(&key("a"), false)
        .expect("the default");
    assert_eq!(
        (unwanted.load_balancer.name.as_str(), unwanted.exists),
        ("testCluster", false)
    );
    azure.converge(&config, &services, &nodes);
    let snapshot = azure.seen();
    let steps = Steps::new(&config, &services, &nodes, &snapshot);
    for want in [false, true] {
        let found = steps
            .get_service_load_balancer(&key("a"), want)
            .expect("it is there");
        assert_eq!(
            (found.load_balancer.name.as_str(), found.exists),
            ("as-1", true)
        );
        assert_eq!(found.ingress.len(), 1);
    }
}

/// Azure's own limit: existing services stay, and among the others the first by name get the rest.
#[test]
fn a_load_balancer_has_as_many_frontends_as_azure_allows() {
    let standard = Config {
        maximum_load_balancer_rule_count: 10_000,
        maximum_interface_rule_count: 10_000,
        ..current()
    };
    let basic = Config {
        maximum_load_balancer_rule_count: 10_000,
        maximum_interface_rule_count: 10_000,
        ..note()
    };
    for (config, maximum) in [(standard, 600), (basic, 200)] {
        let mut azure = empty();
        let last = service("z", &[80]);
        azure.converge(&config, std::slice::from_ref(&last), &[]);
        let many = (0..=maximum).map(|number| service(&format!("s{number:03}"), &[80]));
        let mut services: Vec<_> = many.collect();
        services.push(last);
        let (plan, _) = azure.converge(&config, &services, &[]);
        assert_eq!(azure.frontends("testCluster").len(), maximum);
        let failed: Vec<_> = plan
            .services
            .iter()
            .filter_map(|(key, outcome)| Some((key.name.clone(), outcome.error.clone()?)))
            .collect();
        let load_balancer = "testCluster".to_owned();
        let error = PlanError::FrontendLimit {
            load_balancer,
            maximum,
        };
        let names = [maximum - 1, maximum].map(|number| format!("s{number:03}"));
        assert_eq!(failed, names.map(|name| (name, error.clone())));
        // A service that shares an address needs no frontend.
        if config.edition == Edition::Current {
            let shared = azure.public_ip(&format!("testCluster-{}", prefix("s000")));
            let shared = shared.and_then(|ip| ip.properties.ip_address.clone());
            services[maximum] = at(service("s600", &[81]), &shared.expect("an address"));
            services.remove(maximum - 1);
            let (plan, _) = azure.converge(&config, &services, &[]);
            assert!(plan.services.values().all(|one| one.error.is_none()));
        }
    }
}
