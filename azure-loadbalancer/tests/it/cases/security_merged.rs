//! Security rules that several services share: shared ones of 2018, aggregated ones of the current edition.

use std::collections::BTreeSet;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::resources::{Access, SecurityRule};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::steps::Steps;
use azure_loadbalancer::{Config, Node, Service};

use crate::support::*;

fn shared(name: &str, address: &str, ports: &[u16]) -> Service {
    at(
        with(service(name, ports), keys::SHARED_RULE, "true"),
        address,
    )
}

/// Creates a cluster whose users have brought addresses.
fn with_addresses(config: &Config) -> Azure {
    let mut azure = empty();
    let sku = if config.is_standard() {
        "Standard"
    } else {
        "Basic"
    };
    for address in [
        "192.168.33.44",
        "192.168.77.88",
        "192.168.99.11",
        "192.168.22.33",
    ] {
        azure.add_public_ip("rg", &format!("ip-{address}"), address, sku, &[]);
    }
    azure
}

fn to(rule: &SecurityRule) -> BTreeSet<&str> {
    rule.properties
        .destination_address_prefixes
        .iter()
        .map(String::as_str)
        .collect()
}

// Cases E19, E24, E30.
#[test]
fn services_share_a_rule_until_the_last_goes() {
    let mut azure = with_addresses(&note());
    let (a, b) = (
        shared("a", "192.168.33.44", &[80]),
        shared("b", "192.168.77.88", &[80]),
    );
    azure.add_security_rule("theirs", 500, "*");
    azure.converge(&note(), std::slice::from_ref(&a), &[]);
    azure.converge(&note(), &[a.clone(), b.clone()], &[]);
    let rule = azure.security_rule("shared-TCP-80-Internet");
    assert_eq!(to(rule), BTreeSet::from(["192.168.33.44", "192.168.77.88"]));
    assert_eq!(rule.properties.priority, 501);
    // A second time nothing is written.
    assert_eq!(
        azure.converge(&note(), &[a.clone(), b.clone()], &[]).1,
        Vec::<String>::new()
    );
    azure.converge(&note(), &[deleting(a), b.clone()], &[]);
    let rule = azure.security_rule("shared-TCP-80-Internet");
    assert_eq!(to(rule), BTreeSet::from(["192.168.77.88"]));
    assert_eq!(
        (rule.properties.priority, &rule.properties.access),
        (501, &Some(Access::Allow))
    );
    azure.converge(&note(), &[deleting(b)], &[]);
    assert_eq!(names(&azure.security_rules()), ["theirs"]);
}

// Cases E22, E23, E25, E26, E27.
#[test]
fn ports_and_networks_decide_which_rule_is_shared() {
    let mut azure = with_addresses(&note());
    let services = [
        shared("a", "192.168.33.44", &[4444]),
        shared("b", "192.168.77.88", &[8888]),
        shared("c", "192.168.99.11", &[4444]),
        at(service("d", &[4444, 8888]), "192.168.22.33"),
    ];
    azure.converge(&note(), &services, &[]);
    assert_eq!(azure.security_rules().len(), 4);
    assert_eq!(to(azure.security_rule("shared-TCP-4444-Internet")).len(), 2);
    assert_eq!(to(azure.security_rule("shared-TCP-8888-Internet")).len(), 1);
    let without = |gone: &[usize]| -> Vec<Service> {
        let mark = |(index, service): (usize, &Service)| {
            if gone.contains(&index) {
                deleting(service.clone())
            } else {
                service.clone()
            }
        };
        services.iter().enumerate().map(mark).collect()
    };
    azure.converge(&note(), &without(&[0]), &[]);
    assert_eq!(
        to(azure.security_rule("shared-TCP-4444-Internet")),
        BTreeSet::from(["192.168.99.11"])
    );
    azure.converge(&note(), &without(&[0, 2]), &[]);
    assert!(!names(&azure.security_rules()).contains(&"shared-TCP-4444-Internet".to_owned()));
    assert_eq!(to(azure.security_rule("shared-TCP-8888-Internet")).len(), 1);
    let other = ranges(shared("a", "192.168.33.44", &[8888]), &["10.0.0.0/8"]);
    azure.converge(&note(), &[other, services[1].clone()], &[]);
    assert!(names(&azure.security_rules()).contains(&"shared-TCP-8888-10.0.0.0_8".to_owned()));
}

// Case E29.
#[test]
fn a_shared_rule_loses_what_its_service_does_not_use_any_more() {
    let (mut first, b) = (
        shared("a", "192.168.33.44", &[80]),
        shared("b", "192.168.77.88", &[80, 81]),
    );
    let mut azure = with_addresses(&note());
    azure.converge(&note(), &[first.clone(), b.clone()], &[]);
    // Another port.
    first.ports[0].port = 81;
    azure.converge(&note(), &[first.clone(), b.clone()], &[]);
    assert_eq!(
        to(azure.security_rule("shared-TCP-80-Internet")),
        BTreeSet::from(["192.168.77.88"])
    );
    assert_eq!(to(azure.security_rule("shared-TCP-81-Internet")).len(), 2);
    // Another address.
    first.load_balancer_ip = Some("192.168.99.11".to_owned());
    azure.converge(&note(), &[first.clone(), b.clone()], &[]);
    assert_eq!(
        to(azure.security_rule("shared-TCP-81-Internet")),
        BTreeSet::from(["192.168.77.88", "192.168.99.11"])
    );
    // A separate rule.
    first.annotations.clear();
    azure.converge(&note(), &[first, b], &[]);
    assert_eq!(
        to(azure.security_rule("shared-TCP-81-Internet")),
        BTreeSet::from(["192.168.77.88"])
    );
    assert!(names(&azure.security_rules()).contains(&"aa-TCP-81-Internet".to_owned()));
}

// Case E31.
#[test]
fn a_step_leaves_addresses_that_it_does_not_know() {
    let mut azure = with_addresses(&note());
    azure.add_security_rule("shared-TCP-80-Internet", 500, "192.168.33.44");
    let config = note();
    let services = [shared("b", "192.168.77.88", &[80])];
    let snapshot = azure.seen();
    let steps = Steps::new(&config, &services, &[], &snapshot);
    let plan = steps
        .reconcile_security_group(&key("b"), Some("192.168.77.88"), true)
        .expect("a plan");
    azure.execute(&plan);
    let both = BTreeSet::from(["192.168.33.44", "192.168.77.88"]);
    assert_eq!(to(azure.security_rule("shared-TCP-80-Internet")), both);
    assert_eq!(azure.security_rules()[0].properties.priority, 500);
    // Deleted, without ports that identify the rules, and a second time.
    let mut bare = services.clone();
    bare[0].ports.clear();
    for expected in [1, 0] {
        let snapshot = azure.seen();
        let steps = Steps::new(&config, &bare, &[], &snapshot);
        let plan = steps
            .reconcile_security_group(&key("b"), Some("192.168.77.88"), false)
            .expect("a plan");
        assert_eq!(plan.actions.len(), expected);
        azure.execute(&plan);
    }
    assert_eq!(
        to(azure.security_rule("shared-TCP-80-Internet")),
        BTreeSet::from(["192.168.33.44"])
    );
}

#[test]
fn two_clusters_in_one_group_leave_each_other_alone() {
    let config = note();
    let mut azure = with_addresses(&config);
    azure.add_security_rule("shared-TCP-80-Internet", 500, "192.168.33.44");
    let uuid = "a257b965551374ad2b091ef3f07043ad-TCP-80-Internet";
    azure.add_security_rule(uuid, 501, "192.168.33.44");
    let mut b = shared("b", "192.168.77.88", &[80]);
    b.uid = String::new();
    azure.converge(&config, &[b], &[]);
    assert_eq!(to(azure.security_rule("shared-TCP-80-Internet")).len(), 2);
    // The service is not even listed any more: its frontend identifies its address.
    azure.converge(&config, &[], &[]);
    assert_eq!(
        to(azure.security_rule("shared-TCP-80-Internet")),
        BTreeSet::from(["192.168.33.44"])
    );
    assert!(names(&azure.security_rules()).contains(&uuid.to_owned()));
    assert!(azure.balancers().is_empty());
    // An exclusive cluster removes the rules of no service.
    let alone = Config {
        exclusive_security_group: true,
        ..note()
    };
    azure.converge(&alone, &[], &[]);
    assert!(azure.security_rules().is_empty());
}

// Case E32, IPv4: there is no IPv6.
#[test]
fn aggregated_rules_have_all_ports_and_addresses() {
    let mut azure = with_addresses(&current());
    let mut both = at(service("a", &[80, 443]), "192.168.33.44");
    both.ports.push(ServicePort::udp(53, 10053));
    let twin = at(service("b", &[443, 80]), "192.168.77.88");
    azure.converge(&current(), &[both.clone(), twin.clone()], &[]);
    let rules = azure.security_rules();
    assert_eq!(rules.len(), 2);
    let tcp = rules
        .iter()
        .find(|rule| rule.properties.destination_port_ranges == ["443", "80"])
        .expect("tcp");
    assert_eq!(to(tcp), BTreeSet::from(["192.168.33.44", "192.168.77.88"]));
    assert_eq!(
        tcp.properties.source_address_prefix.as_deref(),
        Some("Internet")
    );
    assert_eq!(tcp.properties.priority, 500);
    let udp = rules
        .iter()
        .find(|rule| rule.name != tcp.name)
        .expect("udp");
    assert_eq!(
        (to(udp), udp.properties.priority),
        (BTreeSet::from(["192.168.33.44"]), 501)
    );
    assert_eq!(
        azure
            .converge(&current(), &[both.clone(), twin.clone()], &[])
            .1,
        Vec::<String>::new()
    );
    azure.converge(&current(), &[both, deleting(twin)], &[]);
    assert!(
        azure
            .security_rules()
            .iter()
            .all(|rule| to(rule) == BTreeSet::from(["192.168.33.44"]))
    );
}

// Case E3 of today.
#[test]
fn networks_are_aggregated_and_tags_have_rules_of_their_own() {
    let mut azure = empty();
    let asked = ranges(
        service("a", &[80]),
        &["10.0.0.0/9", "10.128.0.0/9", "192.168.0.0/24"],
    );
    let asked = with(asked, keys::ALLOWED_SERVICE_TAGS, "AzureCloud, Sql");
    azure.converge(&current(), &[asked], &[]);
    let rules = azure.security_rules();
    let sources: BTreeSet<Vec<&str>> = rules
        .iter()
        .map(|rule| {
            let single = rule.properties.source_address_prefix.iter();
            single
                .chain(&rule.properties.source_address_prefixes)
                .map(String::as_str)
                .collect()
        })
        .collect();
    assert_eq!(
        sources,
        BTreeSet::from([
            vec!["10.0.0.0/8", "192.168.0.0/24"],
            vec!["AzureCloud"],
            vec!["Sql"]
        ])
    );
}

#[test]
fn networks_said_twice_are_rejected_and_everybody_is_the_internet() {
    let twice = with(
        ranges(service("a", &[80]), &["10.0.0.0/8"]),
        keys::ALLOWED_IP_RANGES,
        "11.0.0.0/8",
    );
    let (plan, _) = empty().converge(&current(), &[twice], &[]);
    assert!(plan.services[&key("a")].error.is_some());
    let single = |asked: Service| {
        let mut azure = empty();
        azure.converge(&current(), &[asked], &[]);
        let rules = azure.security_rules();
        rules
            .iter()
            .map(|rule| rule.properties.source_address_prefix.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        single(ranges(service("a", &[80]), &["0.0.0.0/0"])),
        [Some("Internet".to_owned())]
    );
    assert_eq!(
        single(ranges(internal("a", &[80]), &["0.0.0.0/0"])),
        [Some("0.0.0.0/0".to_owned())]
    );
    assert_eq!(single(internal("a", &[80])), []);
}

#[test]
fn networks_that_are_not_supported_close_the_service_as_well() {
    for asked in [service("a", &[80]), internal("a", &[80])] {
        let mut azure = empty();
        azure.converge(&current(), &[ranges(asked.clone(), &["fd00::/8"])], &[]);
        assert_eq!(
            names(&azure.security_rules()),
            ["k8s-azure-lb_deny-all_IPv4"]
        );
        let both = ranges(asked, &["fd00::/8", "10.0.0.0/8"]);
        azure.converge(&current(), &[both], &[]);
        assert_eq!(azure.security_rules().len(), 1);
        assert_eq!(
            azure.security_rules()[0].properties.access,
            Some(Access::Allow)
        );
    }
}

// Case E6 of today: a typing error neither opens a service nor shuts out its clients.
#[test]
fn networks_that_cannot_be_read_change_nothing() {
    let texts = ["1.2.3.4/33", "10.0.0.0", "x", "", "10.0.0.0/8, 11.0.0.0/8"];
    let written = |text: &str| {
        [
            ranges(service("a", &[80]), &["10.0.0.0/8", text]),
            ranges(internal("a", &[80]), &[text]),
            with(service("a", &[80]), keys::ALLOWED_IP_RANGES, "x/8"),
            with(service("a", &[80]), keys::SOURCE_RANGES, "1.2.3.4/33"),
        ]
    };
    for wrong in texts.into_iter().flat_map(written) {
        for before in [
            service("a", &[80]),
            internal("a", &[80]),
            ranges(service("a", &[80]), &["10.0.0.0/8"]),
        ] {
            let mut azure = empty();
            azure.converge(&current(), std::slice::from_ref(&before), &[]);
            let (plan, log) = azure.converge(&current(), std::slice::from_ref(&wrong), &[]);
            let error = plan.services[&key("a")].error.as_ref().expect("an error");
            assert!(error.to_string().contains("IPv4 networks"), "{error}");
            assert_eq!(log, Vec::<String>::new(), "{before:?}, then {wrong:?}");
        }
        // A new one is not opened, and others are served.
        let mut azure = empty();
        let (plan, _) = azure.converge(&current(), &[wrong.clone(), service("b", &[81])], &[]);
        assert!(plan.services[&key("a")].error.is_some());
        assert!(plan.services[&key("b")].error.is_none());
        let rules = format!("{:?}", azure.security_rules());
        assert!(!rules.contains("\"80\""), "{rules}");
        assert!(rules.contains("\"81\""), "{rules}");
    }
}

/// Ignored, they would open a service that is meant to be internal, or closed.
#[test]
fn misspelled_restrictions_are_errors() {
    for (wrong, value) in [
        ("azure-load-balancer-internl", "true"),
        ("azure-load-balancer-Internal", "true"),
        ("azure-loadbalancer-internal", "true"),
        ("azure-load-balancer-internal-subnets", "front"),
        ("azure-allowed-service-tag", "Sql"),
        ("load-balancer-source-range", "10.0.0.0/8"),
        ("azure-allowed-ip-range", "10.0.0.0/8"),
    ] {
        let wrong = format!("{}{wrong}", keys::PREFIX);
        let asked = with(service("a", &[80]), &wrong, value);
        for config in [current(), note()] {
            let mut azure = empty();
            azure.converge(&config, &[service("a", &[80])], &[]);
            let (plan, log) = azure.converge(&config, std::slice::from_ref(&asked), &[]);
            let error = plan.services[&key("a")].error.as_ref().expect("an error");
            assert!(error.to_string().contains("did you mean"), "{error}");
            assert_eq!(log, Vec::<String>::new());
            let (_, log) = empty().converge(&config, std::slice::from_ref(&asked), &[]);
            assert_eq!(log, Vec::<String>::new(), "a new one is not opened");
        }
    }
    // These restrict nothing, or are of others.
    for (other, value) in [
        ("azure-load-balancer-internl", "false"),
        ("azure-load-balancer-tcp-idle-timeot", "5"),
        ("aws-load-balancer-internal", "true"),
    ] {
        let asked = with(
            service("a", &[80]),
            &format!("{}{other}", keys::PREFIX),
            value,
        );
        let (plan, _) = empty().converge(&current(), &[asked], &[]);
        assert_eq!(plan.services[&key("a")].error, None, "{other}");
    }
}

#[test]
fn what_belongs_to_nobody_is_a_reason_beside_that_of_services() {
    let anonymous = |name: &str, ports: &[u16]| Service {
        uid: String::new(),
        ..service(name, ports)
    };
    let mut azure = empty();
    let services = [
        anonymous("a", &[80]),
        anonymous("b", &[80]),
        anonymous("c", &[80]),
    ];
    azure.converge(&current(), &services, &[]);
    let after = [anonymous("a", &[80]), anonymous("b", &[81])];
    let snapshot = azure.read(&current(), &after);
    let plan = azure_loadbalancer::plan(&current(), &after, &[], &snapshot);
    let group = plan
        .actions
        .iter()
        .find(|action| action.operation.to_string() == "put networkSecurityGroup nsg");
    let reasons = &group.expect("it is written").reasons;
    assert_eq!(
        reasons.iter().map(String::as_str).collect::<Vec<_>>(),
        [
            "default/a: who may connect",
            "default/b: who may connect",
            "resources of no service are removed"
        ]
    );
}

// Case E34.
#[test]
fn services_share_an_address_and_its_rules_are_those_of_both() {
    let mut azure = with_addresses(&current());
    let a = at(service("a", &[80]), "192.168.33.44");
    let b = with(
        at(service("b", &[443]), "192.168.33.44"),
        keys::DENY_ALL_EXCEPT_RANGES,
        "true",
    );
    azure.converge(&current(), &[a.clone(), b.clone()], &[]);
    assert_eq!(names(&azure.frontends("testCluster")), ["aa"]);
    assert_eq!(
        names(&azure.rules("testCluster")),
        ["aa-TCP-80", "ab-TCP-443"]
    );
    assert_eq!(azure.security_rules().len(), 3);
    // The first service is deleted: the address, the ports of the other, and the denial of the rest stay.
    azure.converge(&current(), &[deleting(a), b.clone()], &[]);
    assert_eq!(names(&azure.frontends("testCluster")), ["ab"]);
    assert_eq!(names(&azure.rules("testCluster")), ["ab-TCP-443"]);
    assert_eq!(azure.security_rules().len(), 2);
    assert!(
        azure
            .security_rules()
            .iter()
            .any(|rule| rule.properties.access == Some(Access::Deny))
    );
    // A port that both request goes to the first.
    let greedy = at(service("c", &[443]), "192.168.33.44");
    let (plan, log) = azure.converge(&current(), &[b, greedy], &[]);
    assert!(matches!(
        plan.services[&key("c")].error,
        Some(PlanError::PortConflict { port: 443, .. })
    ));
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn in_2018_an_address_is_of_one_service() {
    let mut azure = with_addresses(&note());
    let (a, b) = (
        at(service("a", &[80]), "192.168.33.44"),
        at(service("b", &[443]), "192.168.33.44"),
    );
    let (plan, _) = azure.converge(&note(), std::slice::from_ref(&b), &[]);
    assert!(plan.services[&key("b")].error.is_none());
    // The owner of the port keeps it.
    let (plan, log) = azure.converge(&note(), &[a, b], &[]);
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::AddressTaken { .. })
    ));
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn without_a_floating_address_rules_lead_to_nodes() {
    let nodes: Vec<_> = (1..4)
        .map(|i| Node::new(format!("n{i}"), format!("10.0.5.{i}").parse().unwrap()))
        .collect();
    let mut azure = empty();
    let asked = [with(service("a", &[80]), keys::DISABLE_FLOATING_IP, "true")];
    azure.converge(&current(), &asked, &nodes);
    let rule = azure.security_rules()[0];
    assert_eq!(
        to(rule),
        BTreeSet::from(["10.0.5.1", "10.0.5.2", "10.0.5.3"])
    );
    assert_eq!(rule.properties.destination_port_ranges, ["10080"]);
}

// Case E35: prefixes.
#[test]
fn too_many_prefixes_are_rejected() {
    let mut many = service("a", &[80]);
    many.source_ranges = (0..4001u32)
        .map(|i| format!("10.{}.{}.1/32", i / 250, i % 250))
        .collect();
    let (plan, log) = empty().converge(&current(), &[many, service("b", &[80])], &[]);
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::SecurityGroupLimit {
            what: "source prefixes",
            maximum: 4000,
            ..
        })
    ));
    assert!(plan.services[&key("b")].error.is_none());
    assert_eq!(log.len(), 3);
}

// Case E36.
#[test]
fn priorities_that_somebody_chose_stay() {
    let mut azure = empty();
    azure.converge(&current(), &[service("a", &[80])], &[]);
    let group = azure.snapshot.security_group.as_mut().expect("a group");
    group.properties.security_rules[0].properties.priority = 777;
    assert_eq!(
        azure.converge(&current(), &[service("a", &[80])], &[]).1,
        Vec::<String>::new()
    );
}
