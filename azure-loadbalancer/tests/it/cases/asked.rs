//! Requests that cannot be met: an error or a warning, and never something else in their place.

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, LoadBalancerSku, PoolMembership};
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::{Plan, Service};
use serde_json::json;

use crate::support::*;

fn error(plan: &Plan, name: &str) -> String {
    let error = plan.services[&key(name)].error.as_ref();
    error.map(ToString::to_string).unwrap_or_default()
}

/// A capital letter does not open a service that is meant to be closed.
#[test]
fn flags_are_true_or_false_and_nothing_else() {
    let flags = [
        keys::INTERNAL,
        keys::DENY_ALL_EXCEPT_RANGES,
        keys::DISABLE_FLOATING_IP,
        keys::DISABLE_TCP_RESET,
        "service.beta.kubernetes.io/port_80_no_lb_rule",
    ];
    for key in flags {
        for value in ["True", "TRUE", "yes", "1", " true", "on"] {
            let mut azure = empty();
            let (plan, log) =
                azure.converge(&current(), &[with(service("a", &[80]), key, value)], &[]);
            assert!(
                error(&plan, "a").contains("write \"true\" or \"false\""),
                "{key} {value}"
            );
            assert_eq!(log, Vec::<String>::new());
        }
        for value in ["true", "false", ""] {
            let (plan, _) =
                empty().converge(&current(), &[with(service("a", &[80]), key, value)], &[]);
            assert_eq!(error(&plan, "a"), "", "{key} {value}");
        }
    }
    let (plan, _) = empty().converge(
        &note(),
        &[with(service("a", &[80]), keys::INTERNAL, "True")],
        &[],
    );
    assert!(error(&plan, "a").contains("\"True\""));
    // The edition of 2018 ignores later annotations, so an invalid one is no error.
    let unread = with(service("a", &[80]), keys::DISABLE_TCP_RESET, "yes");
    assert_eq!(error(&empty().converge(&note(), &[unread], &[]).0, "a"), "");
}

/// A typo does not make an internal service external.
#[test]
fn a_typo_does_not_turn_an_internal_service_inside_out() {
    let mut azure = empty();
    azure.converge(&current(), &[internal("a", &[80])], &[]);
    let (plan, log) = azure.converge(
        &current(),
        &[with(service("a", &[80]), keys::INTERNAL, "yes")],
        &[],
    );
    assert_eq!(log, Vec::<String>::new());
    assert_eq!(azure.balancers(), ["testCluster-internal"]);
    assert!(
        plan.services[&key("a")].ingress[0]
            .ip
            .to_string()
            .starts_with("10.")
    );
}

#[test]
fn services_of_ipv6_are_not_served_by_ipv4_without_a_word() {
    let of = |families: &[&str]| Service {
        ip_families: families.iter().map(|one| (*one).to_owned()).collect(),
        ..service("a", &[80])
    };
    let (plan, log) = empty().converge(&current(), &[of(&["IPv6"])], &[]);
    assert!(
        error(&plan, "a").contains("spec.ipFamilies"),
        "{}",
        error(&plan, "a")
    );
    assert_eq!(log, Vec::<String>::new());
    for families in [["IPv4", "IPv6"], ["IPv6", "IPv4"]] {
        let (plan, _) = empty().converge(&current(), &[of(&families)], &[]);
        assert_eq!(error(&plan, "a"), "");
        assert!(
            plan.warnings
                .iter()
                .any(|one| one.what.contains("IPv4 alone"))
        );
    }
    for families in [&["IPv4"][..], &[]] {
        let (plan, _) = empty().converge(&current(), &[of(families)], &[]);
        assert!(
            !plan
                .warnings
                .iter()
                .any(|one| one.what.contains("IPv4 alone"))
        );
    }
    let read: Service = serde_json::from_value(json!({
        "metadata": {"name": "a"}, "spec": {"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}
    }))
    .expect("it reads");
    assert_eq!(read.ip_families, ["IPv6"]);
}

#[test]
fn the_annotation_for_an_address_is_that_of_the_specification() {
    let named = |address: &str| with(service("a", &[80]), keys::IPV4, address);
    let mut azure = empty();
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Standard", &[]);
    let (plan, _) = azure.converge(&current(), &[named(" 1.2.3.4")], &[]);
    assert_eq!(
        plan.services[&key("a")].ingress[0].ip.to_string(),
        "1.2.3.4"
    );
    // Both may have the same value, and share with any other service that has it.
    let both = [
        at(named("1.2.3.4"), "1.2.3.4"),
        at(service("b", &[81]), "1.2.3.4"),
    ];
    let (plan, _) = azure.converge(&current(), &both, &[]);
    assert!(plan.services.values().all(|one| one.error.is_none()));
    for (asked, expected) in [
        (
            at(named("1.2.3.4"), "1.2.3.5"),
            "spec.loadBalancerIP names another address",
        ),
        (named("2001:db8::1"), "IPv6 is not supported"),
        (named("5.6.7.8"), "no public address in resource group"),
        (
            with(
                service("a", &[80]),
                "service.beta.kubernetes.io/azure-pip-prefix-id",
                "/x",
            ),
            "it is not supported",
        ),
        (
            with(
                service("a", &[80]),
                "service.beta.kubernetes.io/azure-load-balancer-ipv6",
                "::1",
            ),
            "it is not supported",
        ),
        (
            with(
                service("a", &[80]),
                "service.beta.kubernetes.io/azure-pip-name-ipv6",
                "six",
            ),
            "it is not supported",
        ),
        (
            with(
                service("a", &[80]),
                "service.beta.kubernetes.io/azure-pip-ip-tags",
                "FirstPartyUsage=x",
            ),
            "it is not supported",
        ),
    ] {
        let (plan, log) = azure.converge(&current(), &[asked, both[1].clone()], &[]);
        assert!(
            error(&plan, "a").contains(expected),
            "{}",
            error(&plan, "a")
        );
        assert_eq!(log, Vec::<String>::new(), "{expected}");
    }
    let inside = with(internal("c", &[80]), keys::IPV4, "10.0.4.4");
    azure.converge(&current(), &[both[0].clone(), both[1].clone(), inside], &[]);
    let frontends = azure.frontends("testCluster-internal");
    assert_eq!(
        frontends[0].properties.private_ip_address.as_deref(),
        Some("10.0.4.4")
    );
}

#[test]
fn what_azure_would_reject_is_rejected_before_anything_is_written() {
    let mut azure = empty();
    azure.add_public_ip("rg", "far", "1.2.3.4", "Standard", &[]);
    azure.add_public_ip("rg", "near", "1.2.3.5", "Standard", &[]);
    azure.snapshot.public_ips[0].location = Some("eastus".to_owned());
    azure.snapshot.public_ips[1].location = Some("West US".to_owned());
    let (plan, log) = azure.converge(&current(), &[at(service("a", &[80]), "1.2.3.4")], &[]);
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::OtherRegion { .. })
    ));
    assert_eq!(log, Vec::<String>::new());
    let (plan, _) = azure.converge(&current(), &[at(service("a", &[80]), "1.2.3.5")], &[]);
    assert_eq!(error(&plan, "a"), "");
    let mut last = service("b", &[80]);
    last.ports[0].port = 65_535;
    let (plan, log) = azure.converge(&current(), &[last], &[]);
    assert!(error(&plan, "b").contains("65534"), "{}", error(&plan, "b"));
    assert_eq!(
        log.iter()
            .filter(|line| line.starts_with("put publicIP"))
            .count(),
        0
    );
    let nowhere = Config {
        subnet_name: String::new(),
        ..current()
    };
    let (plan, _) = empty().converge(&nowhere, &[internal("c", &[80])], &[]);
    assert!(
        error(&plan, "c").contains("write subnetName"),
        "{}",
        error(&plan, "c")
    );
}

#[test]
fn what_is_odd_is_told() {
    let says = |plan: &Plan, words: &str| plan.warnings.iter().any(|one| one.what.contains(words));
    let open = Config {
        security_group_name: None,
        ..current()
    };
    let (plan, _) = empty().converge(&open, &[service("a", &[80])], &[]);
    assert!(says(&plan, "no securityGroupName"), "{:?}", plan.warnings);
    let (plan, _) = empty().converge(&open, &[internal("a", &[80])], &[]);
    assert!(!says(&plan, "no securityGroupName"));
    let (plan, _) = empty().converge(
        &current(),
        &[with(service("a", &[80]), keys::PROBE_PROTOCOL, "gopher")],
        &[],
    );
    assert!(
        says(&plan, "\"gopher\" is none of tcp, http and https"),
        "{:?}",
        plan.warnings
    );
    let (plan, _) = empty().converge(
        &current(),
        &[with(service("a", &[80]), keys::PROBE_PROTOCOL, "HTTP")],
        &[],
    );
    assert!(!says(&plan, "probed by connecting"), "{:?}", plan.warnings);
    let comma = with(service("a", &[80]), keys::MODE, "as,");
    assert!(
        error(&empty().converge(&note(), &[comma], &[]).0, "a").contains("after the last comma")
    );
    // In 2018 a label was written once.
    let mut azure = empty();
    let labelled = |label: &str| [with(service("a", &[80]), keys::DNS_LABEL, label)];
    azure.converge(&note(), &labelled("shop"), &[]);
    let (plan, _) = azure.converge(&note(), &labelled("other"), &[]);
    assert!(
        says(&plan, "does not get label other"),
        "{:?}",
        plan.warnings
    );
}

#[test]
fn basic_load_balancers_have_interfaces_unless_the_file_says_otherwise() {
    let read = |more: serde_json::Value| {
        let mut all = json!({"subscriptionId": "s", "resourceGroup": "rg", "location": "westus"});
        all.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        serde_json::from_value::<Config>(all).expect("it reads")
    };
    let basic = read(json!({"loadBalancerSku": "basic"}));
    assert_eq!(basic.backend_pool_type, PoolMembership::NetworkInterface);
    assert_eq!(basic.load_balancer_sku, LoadBalancerSku::Basic);
    assert_eq!(read(json!({})).backend_pool_type, PoolMembership::Address);
    let told = read(json!({"loadBalancerSku": "basic", "backendPoolType": "nodeIP"}));
    assert!(told.validate().is_err());
}

/// A document with a UID of another form leaves its resources as they are, and gets an explanation.
#[test]
fn documents_with_uids_that_are_none_are_rejected() {
    let read = |uid: &str| {
        let document = json!({"metadata": {"name": "a", "namespace": "default", "uid": uid},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]}});
        serde_json::from_value::<Service>(document).expect("it reads")
    };
    for uid in [
        "web-1",
        "ü",
        "257b9655-5137",
        "g57b9655-5137-4ad2-b091-ef3f07043ad3",
    ] {
        let mut azure = empty();
        azure.converge(
            &current(),
            &[Service {
                unreadable: None,
                ..read(uid)
            }],
            &[],
        );
        let (plan, log) = azure.converge(&current(), &[read(uid)], &[]);
        assert!(
            error(&plan, "a").contains("is no UUID"),
            "{uid}: {}",
            error(&plan, "a")
        );
        assert_eq!(log, Vec::<String>::new());
    }
    for uid in [
        "",
        "257b9655-5137-4ad2-b091-ef3f07043ad3",
        "257B9655-5137-4AD2-B091-EF3F07043AD3",
    ] {
        let mut azure = empty();
        let (plan, _) = azure.converge(&current(), &[read(uid)], &[]);
        assert_eq!(error(&plan, "a"), "", "{uid}");
        // So nothing remains when the service is gone.
        azure.converge(&current(), &[], &[]);
        assert_eq!(azure.balancers(), [""; 0], "{uid}");
        assert!(azure.snapshot.public_ips.is_empty());
    }
}
