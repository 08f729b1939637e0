use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, LeftAddresses};
use azure_loadbalancer::plan;
use azure_loadbalancer::plan::{Deferred, Plan, PlanError, Reads};
use azure_loadbalancer::resources::{AllocationMethod, ProvisioningState, SubResource};
use azure_loadbalancer::steps::Steps;

use crate::support::*;

// Cases F1, F2, F3.
#[test]
fn a_public_address_is_made_once_and_goes_with_its_service() {
    let mut azure = empty();
    azure.converge(&note(), &[service("servicea", &[80])], &[]);
    let made = azure
        .public_ip("testCluster-aservicea")
        .expect("it is made")
        .clone();
    assert_eq!(
        made.properties.public_ip_allocation_method,
        Some(AllocationMethod::Static)
    );
    assert_eq!(made.tag("service"), Some("default/servicea"));
    assert_eq!(
        azure
            .converge(&note(), &[service("servicea", &[80])], &[])
            .1,
        Vec::<String>::new()
    );
    azure.converge(&note(), &[deleting(service("servicea", &[80]))], &[]);
    assert!(azure.snapshot.public_ips.is_empty());
    // A second deletion finds nothing.
    let (plan, log) = azure.converge(&note(), &[deleting(service("servicea", &[80]))], &[]);
    assert_eq!(log, Vec::<String>::new());
    assert!(!plan.services[&key("servicea")].exists);
}

/// Security rules lead to the old address while the new one is unknown, so the old one must not have another
/// owner meanwhile.
#[test]
fn an_address_is_given_back_only_when_it_is_open_to_nobody() {
    for exclusive in [false, true] {
        let config = Config {
            exclusive_security_group: exclusive,
            ..current()
        };
        let (mut azure, nodes) = cluster(2, 1);
        let web = service("web", &[80]);
        azure.converge(&config, std::slice::from_ref(&web), &nodes);
        let old = azure.public_ip("testCluster-aweb").expect("the old one");
        let old = old.properties.ip_address.clone().expect("its address");
        let has = |azure: &Azure, address: &str| {
            let mut all = azure.snapshot.public_ips.iter();
            all.any(|one| one.properties.ip_address.as_deref() == Some(address))
        };
        let renamed = [with(web, keys::RESOURCE_GROUP, "rg2")];
        for round in 0..3 {
            let planned = plan(&config, &renamed, &nodes, &azure.snapshot);
            let waits = |deferred: &Deferred| deferred.what.contains("testCluster-aweb is deleted");
            assert_eq!(planned.deferred.iter().any(waits), round == 0);
            for action in &planned.actions {
                azure.apply(action).expect("it is taken");
                let is_open = azure.security_rules().iter().any(|rule| {
                    let to = &rule.properties.destination_address_prefixes;
                    to.contains(&old)
                });
                let is_ours = has(&azure, &old);
                assert!(is_ours || !is_open, "{}", action.operation);
            }
        }
        assert!(!has(&azure, &old));
        azure.converge(&config, &renamed, &nodes);
    }
}

// Case F5.
#[test]
fn internal_services_have_none() {
    let mut azure = empty();
    for (asked, expected) in [
        (internal("a", &[80]), 0),
        (service("a", &[80]), 1),
        (internal("a", &[80]), 0),
    ] {
        azure.converge(&note(), &[asked], &[]);
        assert_eq!(azure.snapshot.public_ips.len(), expected);
    }
}

// Cases F8 (pip1), F9 (pip2), F10 (pip3), F18 (pip5), F19 (pip7). F22 (IP tags) is not supported: none are
// written, and existing ones stay.
#[test]
fn only_what_is_tagged_as_the_services_own_is_deleted() {
    let mut azure = empty();
    azure.add_public_ip(
        "rg",
        "pip1",
        "1.1.1.1",
        "Basic",
        &[("service", "default/a")],
    );
    azure.add_public_ip(
        "rg",
        "pip2",
        "1.1.1.2",
        "Basic",
        &[("service", "default/other")],
    );
    azure.add_public_ip("rg", "pip3", "1.1.1.3", "Basic", &[]);
    azure.add_public_ip("rg", "pip4", "1.1.1.4", "Basic", &[("service", "backend")]);
    azure.add_public_ip(
        "rg",
        "pip5",
        "1.1.1.5",
        "Basic",
        &[
            ("service", "default/a"),
            ("kubernetes-cluster-name", "other"),
        ],
    );
    azure.add_public_ip(
        "elsewhere",
        "pip6",
        "1.1.1.6",
        "Basic",
        &[("service", "default/a")],
    );
    azure.add_public_ip(
        "rg",
        "pip7",
        "1.1.1.7",
        "Basic",
        &[("k8s-azure-service", "default/b"), ("service", "default/a")],
    );
    azure.converge(&note(), &[service("a", &[80])], &[]);
    let left: Vec<_> = azure
        .snapshot
        .public_ips
        .iter()
        .map(|ip| ip.name.as_str())
        .collect();
    assert_eq!(
        left,
        [
            "pip2",
            "pip3",
            "pip4",
            "pip5",
            "pip6",
            "pip7",
            "testCluster-aa"
        ]
    );
}

#[test]
fn what_belongs_to_nobody_goes_if_the_clusters_name_is_on_it() {
    let tags = [
        ("k8s-azure-service", "default/gone"),
        ("k8s-azure-cluster-name", "TESTcluster"),
    ];
    let mut azure = empty();
    azure.add_public_ip("rg", "pip1", "1.1.1.1", "Standard", &tags);
    let report = Config {
        orphans: azure_loadbalancer::config::OrphanPolicy::Report,
        ..current()
    };
    let (plan, log) = azure.converge(&report, &[], &[]);
    assert_eq!(
        (plan.orphans.len(), plan.orphans[0].owner.as_str()),
        (1, "default/gone")
    );
    assert!(!plan.orphans[0].removed && log.is_empty());
    assert_eq!(
        azure.converge(&current(), &[], &[]).1,
        ["delete publicIPAddress pip1"]
    );
}

// Cases F13, F15.
#[test]
fn the_resource_group_of_a_public_address_can_change() {
    let mut azure = empty();
    let elsewhere = with(service("a", &[80]), keys::RESOURCE_GROUP, " rg2 ");
    let group = |azure: &Azure| {
        let ids = azure
            .snapshot
            .public_ips
            .iter()
            .filter_map(|ip| ip.id.as_ref()?.resource_group());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    for (asked, expected) in [
        (elsewhere.clone(), "rg2"),
        (service("a", &[80]), "rg"),
        (elsewhere, "rg2"),
    ] {
        azure.converge(&note(), &[asked], &[]);
        assert_eq!(group(&azure), [expected]);
        let balancer = azure.balancer_named("testCluster");
        assert_eq!(
            balancer.id.as_ref().and_then(|id| id.resource_group()),
            Some("rg")
        );
    }
    // The group that only a frontend leads to is read as well.
    let reads = Reads::of(
        &note(),
        &[service("a", &[80])],
        &azure.snapshot.load_balancers,
    );
    assert!(reads.public_ip_groups.contains("rg2"));
}

// Case F25.
#[test]
fn skus_are_not_mixed() {
    let mut azure = empty();
    azure.converge(&current(), &[service("a", &[80])], &[]);
    let made = azure.public_ip("testCluster-aa").expect("it is made");
    assert_eq!(made.sku, azure.balancer_named("testCluster").sku);
    azure.add_public_ip("rg", "basic", "1.2.3.4", "Basic", &[]);
    let (plan, log) = azure.converge(
        &current(),
        &[service("a", &[80]), at(service("b", &[80]), "1.2.3.4")],
        &[],
    );
    assert!(matches!(
        plan.services[&key("b")].error,
        Some(PlanError::SkuMismatch { .. })
    ));
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn an_address_that_a_machine_uses_is_taken() {
    let mut azure = empty();
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Basic", &[]);
    let user = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/n/ipConfigurations/c";
    azure.snapshot.public_ips[0].properties.ip_configuration = Some(SubResource::to(user.into()));
    let (plan, _) = azure.converge(&note(), &[at(service("a", &[80]), "1.2.3.4")], &[]);
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::AddressTaken { .. })
    ));
}

// Case F17.
#[test]
fn several_services_are_tagged_and_leave_one_by_one() {
    let mut azure = empty();
    azure.converge(&current(), &[service("x", &[80])], &[]);
    let address = azure.snapshot.public_ips[0]
        .properties
        .ip_address
        .clone()
        .expect("an address");
    let y = at(service("y", &[81]), &address);
    azure.converge(&current(), &[service("x", &[80]), y.clone()], &[]);
    let tag = |azure: &Azure| {
        azure.snapshot.public_ips[0]
            .tag("k8s-azure-service")
            .map(str::to_owned)
    };
    assert_eq!(tag(&azure).as_deref(), Some("default/x,default/y"));
    azure.converge(&current(), &[deleting(service("x", &[80])), y.clone()], &[]);
    assert_eq!(tag(&azure).as_deref(), Some("default/y"));
    azure.converge(&current(), &[deleting(y)], &[]);
    assert!(azure.snapshot.public_ips.is_empty());
}

#[test]
fn a_public_address_is_chosen_by_name() {
    let mut azure = empty();
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Standard", &[]);
    let asked = |name: &str| with(service("a", &[80]), keys::PUBLIC_IP_NAME, name);
    let address = |azure: &mut Azure, asked| {
        azure.converge(&current(), &[asked], &[]).0.services[&key("a")].ingress[0].ip
    };
    address(&mut azure, service("a", &[80]));
    assert_eq!(address(&mut azure, asked("mine")).to_string(), "1.2.3.4");
    assert_eq!(azure.snapshot.public_ips.len(), 1);
    // A typo neither creates an address nor releases one.
    let (plan, log) = azure.converge(&current(), &[asked("mime")], &[]);
    assert_eq!(log, Vec::<String>::new());
    let outcome = &plan.services[&key("a")];
    assert!(matches!(
        outcome.error,
        Some(PlanError::PublicIpNotFound { .. })
    ));
    assert_eq!(outcome.ingress[0].ip.to_string(), "1.2.3.4");
    // The address that another service is about to get can be named before it exists.
    let mut azure = empty();
    let shares = with(service("b", &[81]), keys::PUBLIC_IP_NAME, "testCluster-aa");
    let (plan, _) = azure.converge(&current(), &[shares, service("a", &[80])], &[]);
    assert!(plan.services.values().all(|one| one.error.is_none()));
    assert_eq!(azure.snapshot.public_ips.len(), 1);
}

/// An address that may be known outside is kept, since a deleted address cannot be restored.
#[test]
fn an_address_that_others_may_know_stays_until_somebody_says_otherwise() {
    let keep = Config {
        left_addresses: LeftAddresses::Keep,
        ..current()
    };
    let seen = |published: &[&str]| {
        let mut web = service("a", &[80]);
        web.published = Some(published.iter().map(|one| (*one).to_owned()).collect());
        web
    };
    let labelled = with(seen(&[]), keys::DNS_LABEL, "shop");
    // The change of the service, and whether its address stays when it becomes internal.
    for (asked, why) in [
        (labelled, "has label \"shop\""),
        (seen(&["20.0.0.2"]), "the status of default/a shows it"),
        (service("a", &[80]), "has no status"),
        (seen(&[]), ""),
        (seen(&["20.0.0.9"]), ""),
    ] {
        let mut azure = empty();
        azure.converge(&keep, std::slice::from_ref(&asked), &[]);
        let flipped = [with(asked.clone(), keys::INTERNAL, "true")];
        for _ in 0..2 {
            let (plan, _) = azure.converge(&keep, &flipped, &[]);
            let told = plan
                .warnings
                .iter()
                .find(|one| one.what.contains("stays, since"));
            assert_eq!(
                azure.public_ip("testCluster-aa").is_some(),
                !why.is_empty(),
                "{why}"
            );
            assert!(
                told.map_or(why.is_empty(), |told| told.what.contains(why)),
                "{told:?}"
            );
        }
        if why.is_empty() {
            continue;
        }
        // It belongs to the service when that returns.
        let address = azure.public_ip("testCluster-aa").expect("it stays").clone();
        azure.converge(&keep, std::slice::from_ref(&asked), &[]);
        let again = azure.public_ip("testCluster-aa").expect("it stays");
        assert_eq!(again.properties.ip_address, address.properties.ip_address);
        // A configured deletion, or the deletion of the service, releases the address.
        let mut other = azure.clone();
        other.converge(&current(), &flipped, &[]);
        assert!(other.public_ip("testCluster-aa").is_none());
        azure.converge(&keep, &[deleting(asked)], &[]);
        assert!(azure.public_ip("testCluster-aa").is_none());
    }
}

/// The label moves with the service, although its old address stays.
#[test]
fn a_label_follows_its_service_to_another_address() {
    let keep = Config {
        left_addresses: LeftAddresses::Keep,
        ..current()
    };
    let asked = |group: &str| {
        with(
            with(service("a", &[80]), keys::DNS_LABEL, "shop"),
            keys::RESOURCE_GROUP,
            group,
        )
    };
    let mut azure = empty();
    azure.converge(&keep, &[asked("rg")], &[]);
    azure.converge(&keep, &[asked("rg2")], &[]);
    let mut labels: Vec<_> = azure
        .snapshot
        .public_ips
        .iter()
        .map(|ip| {
            let label = ip.properties.dns_settings.as_ref();
            let label = label.and_then(|settings| settings.domain_name_label.as_deref());
            (ip.id.as_ref().and_then(|id| id.resource_group()), label)
        })
        .collect();
    labels.sort();
    assert_eq!(labels, [(Some("rg"), None), (Some("rg2"), Some("shop"))]);
    let (plan, _) = azure.converge(
        &note(),
        &[with(service("b", &[80]), keys::DNS_LABEL, "x12")],
        &[],
    );
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

/// In 2018 a label was written once: the first plan says that it is lost, and so does each that follows.
#[test]
fn a_label_that_an_address_of_2018_cannot_take_along_is_told_before_the_service_moves() {
    let asked = |group: &str| {
        let labelled = with(service("a", &[80]), keys::DNS_LABEL, "shop");
        with(labelled, keys::RESOURCE_GROUP, group)
    };
    let mut azure = empty();
    azure.converge(&note(), &[asked("rg")], &[]);
    let told = |plan: &Plan| {
        let mut warnings = plan.warnings.iter();
        warnings.any(|one| one.what.contains("does not get label shop"))
    };
    let first = plan(&note(), &[asked("rg2")], &[], &azure.snapshot);
    assert!(told(&first), "{:?}", first.warnings);
    let waits = |plan: &Plan| {
        plan.deferred
            .iter()
            .any(|one| one.what.contains("gets label"))
    };
    assert!(!waits(&first), "{:?}", first.deferred);
    let (last, _) = azure.converge(&note(), &[asked("rg2")], &[]);
    assert!(told(&last), "{:?}", last.warnings);
}

#[test]
fn labels_in_the_dns() {
    let labelled = |label: &str| with(service("a", &[80]), keys::DNS_LABEL, label);
    let label = |azure: &Azure| {
        let settings = azure
            .public_ip("testCluster-aa")
            .and_then(|ip| ip.properties.dns_settings.clone());
        settings.and_then(|settings| settings.domain_name_label)
    };
    for (config, edited, cleared) in [
        (note(), Some("first"), Some("first")),
        (current(), Some("second"), None),
    ] {
        let mut azure = empty();
        azure.converge(&config, &[labelled("first")], &[]);
        assert_eq!(label(&azure).as_deref(), Some("first"));
        azure.converge(&config, &[labelled("second")], &[]);
        assert_eq!(label(&azure).as_deref(), edited);
        azure.converge(&config, &[service("a", &[80])], &[]);
        assert_eq!(label(&azure).as_deref(), edited);
        azure.converge(&config, &[labelled("")], &[]);
        assert_eq!(label(&azure).as_deref(), cleared);
        for wrong in ["x", "Upper", "1st", "end-", "a_b", &"x".repeat(64)] {
            let (plan, _) = empty().converge(&config, &[labelled(wrong)], &[]);
            assert!(plan.services[&key("a")].error.is_some(), "{wrong}");
        }
    }
}

#[test]
fn a_label_is_of_one_service() {
    let mut azure = empty();
    azure.add_public_ip(
        "rg",
        "mine",
        "1.2.3.4",
        "Standard",
        &[("k8s-azure-service", "default/b")],
    );
    let asked = |name: &str, port: u16, label: &str| {
        with(
            at(service(name, &[port]), "1.2.3.4"),
            keys::DNS_LABEL,
            label,
        )
    };
    azure.converge(&current(), &[asked("b", 80, "bees")], &[]);
    let (plan, log) = azure.converge(
        &current(),
        &[asked("a", 81, "ants"), asked("b", 80, "bees")],
        &[],
    );
    assert!(matches!(
        plan.services[&key("a")].error,
        Some(PlanError::DnsLabelTaken { .. })
    ));
    assert_eq!(log, Vec::<String>::new());
}

#[test]
fn the_step_does_not_delete_what_is_in_use() {
    let mut azure = empty();
    let config = note();
    azure.add_public_ip("rg", "mine", "1.2.3.4", "Basic", &[]);
    azure.converge(&config, &[service("a", &[80])], &[]);
    let services = [at(service("a", &[80]), "1.2.3.4")];
    let snapshot = azure.seen();
    let plan = Steps::new(&config, &services, &[], &snapshot)
        .reconcile_public_ip(&key("a"), true)
        .expect("a plan");
    assert_eq!(plan.actions, []);
    assert_eq!(plan.deferred.len(), 1);
}

// Case F21.
#[test]
fn an_address_that_was_never_made_whole_is_known_by_its_tags() {
    let mut azure = empty();
    let tags = [
        ("k8s-azure-service", "default/web"),
        ("k8s-azure-cluster-name", "testCluster"),
    ];
    azure.add_public_ip("rg", "ours", "", "Standard", &tags);
    azure.add_public_ip("rg", "theirs", "", "Standard", &[]);
    for address in &mut azure.snapshot.public_ips {
        address.properties.ip_address = None;
        address.properties.provisioning_state = Some(ProvisioningState::Failed);
    }
    let (plan, log) = azure.converge(&current(), &[deleting(service("web", &[80]))], &[]);
    assert_eq!(log, ["delete publicIPAddress ours"]);
    assert!(azure.public_ip("theirs").is_some());
    assert!(!plan.services[&key("web")].exists);
}
