//! Security rules for single ports and sources, as in 2018.

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::resources::{
    Access, SecurityProtocol, SecurityRule, SecurityRuleProperties,
};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::steps::Steps;
use azure_loadbalancer::{Config, Service};

use crate::support::*;

fn made(services: &[Service]) -> Azure {
    let mut azure = empty();
    let (plan, _) = azure.converge(&note(), services, &[]);
    assert!(
        plan.services
            .values()
            .all(|outcome| outcome.error.is_none()),
        "{:?}",
        plan.services
    );
    azure
}

fn sources(azure: &Azure) -> Vec<String> {
    let rules = azure.security_rules();
    rules
        .iter()
        .filter_map(|rule| rule.properties.source_address_prefix.clone())
        .collect()
}

#[test]
fn an_external_service_is_open_to_the_internet() {
    let mut asked = service("a", &[80]);
    asked.ports.push(ServicePort::udp(53, 10053));
    let azure = made(&[asked]);
    assert_eq!(
        names(&azure.security_rules()),
        ["aa-TCP-80-Internet", "aa-UDP-53-Internet"]
    );
    let rule = &azure.security_rule("aa-TCP-80-Internet").properties;
    let address = azure
        .public_ip("testCluster-aa")
        .and_then(|ip| ip.properties.ip_address.clone());
    assert_eq!(rule.destination_address_prefix, address);
    assert_eq!(rule.destination_port_range.as_deref(), Some("80"));
    assert_eq!(rule.source_port_range.as_deref(), Some("*"));
    assert_eq!((rule.priority, &rule.access), (500, &Some(Access::Allow)));
    assert_eq!(
        azure
            .security_rule("aa-UDP-53-Internet")
            .properties
            .protocol,
        Some(SecurityProtocol::Udp)
    );
}

// Case E2.
#[test]
fn an_internal_service_needs_no_rule_unless_it_names_who_may_connect() {
    let mut azure = empty();
    let (_, log) = azure.converge(&note(), &[internal("a", &[80])], &[]);
    assert_eq!(log, ["put loadBalancer testCluster-internal"]);
    azure.converge(
        &note(),
        &[ranges(internal("a", &[80]), &["10.0.0.0/8"])],
        &[],
    );
    assert_eq!(names(&azure.security_rules()), ["aa-TCP-80-10.0.0.0_8"]);
    let to = azure.security_rules()[0]
        .properties
        .destination_address_prefix
        .clone();
    assert_eq!(
        to,
        azure.frontends("testCluster-internal")[0]
            .properties
            .private_ip_address
    );
}

// Case E3 of 2018.
#[test]
fn each_port_and_each_network_has_a_rule() {
    let azure = made(&[ranges(
        service("a", &[80, 443]),
        &["192.168.0.0/24", " 10.0.0.1/32 "],
    )]);
    assert_eq!(
        names(&azure.security_rules()),
        [
            "aa-TCP-443-10.0.0.1_32",
            "aa-TCP-443-192.168.0.0_24",
            "aa-TCP-80-10.0.0.1_32",
            "aa-TCP-80-192.168.0.0_24"
        ]
    );
}

// Case E7.
#[test]
fn the_specification_wins_over_the_annotation() {
    let annotated = with(
        service("a", &[80]),
        keys::SOURCE_RANGES,
        "10.0.0.0/8, 11.0.0.0/8",
    );
    assert_eq!(
        sources(&made(std::slice::from_ref(&annotated))),
        ["10.0.0.0/8", "11.0.0.0/8"]
    );
    assert_eq!(
        sources(&made(&[ranges(annotated, &["12.0.0.0/8"])])),
        ["12.0.0.0/8"]
    );
}

// Cases E8, E9.
#[test]
fn tags_alone_limit_who_may_connect() {
    let asked = |tags: &str| with(service("a", &[80]), keys::ALLOWED_SERVICE_TAGS, tags);
    assert_eq!(
        sources(&made(&[asked("AzureTrafficManager")])),
        ["AzureTrafficManager"]
    );
    assert_eq!(
        sources(&made(&[asked("Storage.WestUS,Sql")])),
        ["Sql", "Storage.WestUS"]
    );
    assert_eq!(
        sources(&made(&[ranges(asked("Sql"), &["10.0.0.0/8"])])),
        ["10.0.0.0/8", "Sql"]
    );
    for wrong in ["Bogus", "", "Sql, Storage"] {
        let (plan, log) = empty().converge(&note(), &[asked(wrong)], &[]);
        let error = plan.services[&key("a")]
            .error
            .as_ref()
            .expect("an error")
            .to_string();
        assert!(error.contains("AzureTrafficManager"), "{error}");
        assert_eq!(log, Vec::<String>::new());
    }
}

// Case E6 of 2018.
#[test]
fn a_network_that_cannot_be_read_is_an_error() {
    for wrong in ["10.0.0.0", "10.0.0.0/33", "x", "fd00::/8"] {
        let (plan, log) = empty().converge(&note(), &[ranges(service("a", &[80]), &[wrong])], &[]);
        assert!(plan.services[&key("a")].error.is_some(), "{wrong}");
        assert_eq!(log, Vec::<String>::new());
    }
}

// Cases E10, E11.
#[test]
fn rules_go_with_their_service_and_with_their_port() {
    let mut azure = made(&[service("a", &[81]), service("b", &[82, 83])]);
    azure.converge(
        &note(),
        &[deleting(service("a", &[81])), service("b", &[82])],
        &[],
    );
    assert_eq!(names(&azure.security_rules()), ["ab-TCP-82-Internet"]);
}

// Cases E12, E38.
#[test]
fn a_rule_follows_the_address() {
    let mut azure = empty();
    azure.add_security_rule("aa-TCP-80-Internet", 507, "*");
    azure.converge(&note(), &[service("a", &[80])], &[]);
    let rule = azure.security_rule("aa-TCP-80-Internet").properties.clone();
    let address = azure
        .public_ip("testCluster-aa")
        .and_then(|ip| ip.properties.ip_address.clone());
    assert_eq!(
        (rule.destination_address_prefix, rule.priority),
        (address, 507)
    );
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Basic", &[]);
    azure.converge(&note(), &[at(service("a", &[80]), "1.2.3.4")], &[]);
    assert_eq!(
        azure.security_rules()[0]
            .properties
            .destination_address_prefix
            .as_deref(),
        Some("1.2.3.4")
    );
}

// Cases E14, E16, E17.
#[test]
fn the_lowest_free_priority_is_taken() {
    let priority = |used: &[u16]| {
        let mut azure = empty();
        for priority in used {
            azure.add_security_rule(&format!("theirs-{priority}"), *priority, "*");
        }
        azure.converge(&note(), &[service("a", &[80])], &[]);
        assert_eq!(azure.security_rules().len(), used.len() + 1, "theirs stay");
        azure
            .security_rule("aa-TCP-80-Internet")
            .properties
            .priority
    };
    assert_eq!(priority(&[]), 500);
    assert_eq!(priority(&(500..550).collect::<Vec<_>>()), 550);
    assert_eq!(priority(&[500, 501, 502, 503, 504, 505, 506, 508]), 507);
    assert_eq!(priority(&[100, 4096]), 500);
}

// Case E15.
#[test]
fn when_all_priorities_are_used_nothing_is_written() {
    let mut azure = empty();
    let group = azure.snapshot.security_group.as_mut().expect("a group");
    // More rules than Azure allows, so that priorities run out before the number of rules does.
    for priority in 500..4096u16 {
        let properties = SecurityRuleProperties {
            priority,
            ..SecurityRuleProperties::default()
        };
        let rule = SecurityRule::named(format!("theirs-{priority}"), properties);
        group.properties.security_rules.push(rule);
    }
    let (plan, log) = azure.converge(&note(), &[service("a", &[80])], &[]);
    let error = plan.services[&key("a")].error.as_ref();
    assert!(
        matches!(
            error,
            Some(PlanError::SecurityGroupLimit { .. } | PlanError::PriorityExhausted { .. })
        ),
        "{error:?}"
    );
    assert_eq!(log, Vec::<String>::new());
}

// Case E35: rules.
#[test]
fn too_many_rules_are_rejected_before_anything_is_written() {
    let mut azure = empty();
    for priority in 0..998u16 {
        azure.add_security_rule(&format!("theirs-{priority}"), 4095 - priority, "*");
    }
    let services = [service("a", &[80, 81]), service("b", &[80])];
    let (plan, _) = azure.converge(&note(), &services, &[]);
    assert!(plan.services[&key("a")].error.is_none());
    assert!(matches!(
        plan.services[&key("b")].error,
        Some(PlanError::SecurityGroupLimit {
            what: "rules",
            count: 1001,
            maximum: 1000,
            ..
        })
    ));
    assert_eq!(names(&azure.frontends("testCluster")), ["aa"]);
}

#[test]
fn a_group_that_is_missing_is_never_created() {
    let mut azure = empty();
    azure.snapshot.security_group = None;
    let (plan, log) = azure.converge(&note(), &[service("a", &[80])], &[]);
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::SecurityGroupNotFound(_))
    ));
    assert_eq!(log, Vec::<String>::new());
    let without = Config {
        security_group_name: None,
        ..note()
    };
    let (plan, log) = azure.converge(&without, &[service("a", &[80])], &[]);
    assert!(plan.services[&key("a")].error.is_none());
    assert_eq!(log.len(), 2);
}

#[test]
fn rules_of_others_stay_whatever_their_names() {
    let mut azure = empty();
    for (name, priority) in [
        ("allow-ssh", 500),
        ("shared", 501),
        ("shared-services", 502),
        ("a", 503),
        ("aab-TCP-80-Internet", 504),
    ] {
        azure.add_security_rule(name, priority, "*");
    }
    let before: Vec<_> = azure.security_rules().into_iter().cloned().collect();
    azure.converge(&note(), &[service("a", &[80])], &[]);
    azure.converge(&note(), &[deleting(service("a", &[80]))], &[]);
    let after: Vec<_> = azure.security_rules().into_iter().cloned().collect();
    assert_eq!(after, before);
}

// Case E13.
#[test]
fn the_step_needs_an_address_and_takes_the_one_that_is_given() {
    let mut azure = empty();
    let config = note();
    let services = [service("a", &[80])];
    let snapshot = azure.seen();
    let steps = Steps::new(&config, &services, &[], &snapshot);
    assert_eq!(
        steps.reconcile_security_group(&key("a"), None, true),
        Err(PlanError::AddressUnknown)
    );
    for (given, expected) in [("1.2.3.4", "1.2.3.4"), ("", "*")] {
        let plan = steps
            .reconcile_security_group(&key("a"), Some(given), true)
            .expect("a plan");
        let mut azure = azure.clone();
        azure.execute(&plan);
        assert_eq!(azure.log, ["put networkSecurityGroup nsg"]);
        assert_eq!(
            azure.security_rules()[0]
                .properties
                .destination_address_prefix
                .as_deref(),
            Some(expected)
        );
    }
}
