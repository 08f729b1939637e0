//! Combinations of rules that each have their own test: mistakes and shared addresses, names of addresses and
//! moves, plans and their execution. They run on an independent resource manager, so that the emulator does
//! not verify itself.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod fake_arm;
mod migration;

use std::collections::BTreeSet;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::arm::{ArmClient, TowerTransport};
use azure_loadbalancer::config::{
    Config, LeftAddresses, LoadBalancerSku, OrphanPolicy, PoolMembership,
};
use azure_loadbalancer::{Executor, Node, Reconciled, Service, naming};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::fake_arm::FakeArm;
use crate::properties::generated;
use crate::support::{at, current, deleting, key, with};

const NETWORK: &str = "/subscriptions/subscription/resourceGroups/rg/providers/Microsoft.Network";

/// Returns a service without a UID of its own: an executor rejects one that is no UUID.
fn service(name: &str, ports: &[u16]) -> Service {
    Service {
        uid: String::new(),
        ..crate::support::service(name, ports)
    }
}

fn internal(name: &str, ports: &[u16]) -> Service {
    with(service(name, ports), keys::INTERNAL, "true")
}

/// Returns the name of a service's own public address.
fn own_address(name: &str) -> String {
    let service = service(name, &[]);
    format!(
        "testCluster-{}",
        naming::prefix(&service.uid_in("testCluster"))
    )
}

fn path(kind: &str, name: &str) -> String {
    format!("{NETWORK}/{kind}/{name}")
}

/// Creates a network, a security group, and three users' addresses.
fn azure() -> FakeArm {
    let azure = FakeArm::default();
    let vnet = path("virtualNetworks", "vnet");
    let subnet = |name: &str, range: &str| json!({"id": format!("{vnet}/subnets/{name}"), "name": name, "properties": {"addressPrefix": range}});
    let subnets = [
        subnet("subnet", "10.0.0.0/16"),
        subnet("sub2", "10.2.0.0/16"),
    ];
    azure.insert(&vnet, json!({"properties": {"subnets": subnets}}));
    let group = path("networkSecurityGroups", "nsg");
    azure.insert(&group, json!({"properties": {"securityRules": []}}));
    for which in 0..3 {
        let address = path("publicIPAddresses", &format!("theirs-{which}"));
        let properties =
            json!({"ipAddress": format!("9.9.9.{which}"), "publicIPAllocationMethod": "Static"});
        azure.insert(
            &address,
            json!({"sku": {"name": "Standard"}, "properties": properties}),
        );
    }
    azure
}

fn executor(azure: &FakeArm, config: &Config) -> Executor {
    let client = ArmClient::builder(TowerTransport::new(azure.clone()));
    Executor::new(client.build().unwrap(), config.clone()).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn nodes() -> Vec<Node> {
    let node = |last: u8| Node::new(format!("vm-{last}"), [10, 0, 1, last].into());
    vec![node(0), node(1)]
}

fn reconcile(azure: &FakeArm, config: &Config, services: &[Service]) -> Reconciled {
    run(executor(azure, config).reconcile(services, &nodes())).unwrap()
}

fn list(document: &Value, name: &str) -> Vec<Value> {
    document["properties"][name]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Returns the addresses at which the security group allows a port.
fn open_at(azure: &FakeArm, port: u16) -> BTreeSet<String> {
    let group = azure.get(&path("networkSecurityGroups", "nsg")).unwrap();
    let rules = list(&group, "securityRules");
    let about = rules.iter().filter(|rule| {
        let ports = rule["properties"]["destinationPortRanges"].as_array();
        ports.is_some_and(|ports| ports.contains(&json!(port.to_string())))
    });
    let to = about.flat_map(|rule| {
        rule["properties"]["destinationAddressPrefixes"]
            .as_array()
            .cloned()
    });
    to.flatten()
        .map(|to| to.as_str().unwrap().to_owned())
        .collect()
}

/// Returns the name of the public address, or the private address, that a rule of a port leads to.
fn reached_at(azure: &FakeArm, balancer: &str, port: u16) -> Option<String> {
    let balancer = azure.get(&path("loadBalancers", balancer))?;
    let rules = list(&balancer, "loadBalancingRules");
    let rule = rules
        .iter()
        .find(|rule| rule["properties"]["frontendPort"] == port)?;
    let frontend = rule["properties"]["frontendIPConfiguration"]["id"].as_str()?;
    let frontends = list(&balancer, "frontendIPConfigurations");
    let name = frontend.rsplit('/').next();
    let frontend = frontends.iter().find(|one| one["name"].as_str() == name)?;
    let properties = &frontend["properties"];
    let public = properties["publicIPAddress"]["id"].as_str();
    let place = public.and_then(|id| id.rsplit('/').next());
    place
        .or_else(|| properties["privateIPAddress"].as_str())
        .map(str::to_owned)
}

/// A way to share an address: the change of the service, the load balancer, the place, and the destination of
/// packets.
type Way = (
    fn(&str, u16) -> Service,
    &'static str,
    &'static str,
    &'static str,
);

/// The ways to share an address.
fn ways() -> [Way; 3] {
    [
        (
            |name, port| at(service(name, &[port]), "9.9.9.0"),
            "testCluster",
            "theirs-0",
            "9.9.9.0",
        ),
        (
            |name, port| with(service(name, &[port]), keys::PUBLIC_IP_NAME, "theirs-0"),
            "testCluster",
            "theirs-0",
            "9.9.9.0",
        ),
        (
            |name, port| {
                let inside = at(internal(name, &[port]), "10.0.5.5");
                with(inside, keys::ALLOWED_SERVICE_TAGS, "VirtualNetwork")
            },
            "testCluster-internal",
            "10.0.5.5",
            "10.0.5.5",
        ),
    ]
}

/// A service with a mistake keeps its resources, whatever the services that share its address do, and with any
/// owner of the frontend.
#[test]
fn a_mistake_takes_nothing_from_who_shares_an_address() {
    type Change = fn(Service) -> Service;
    let mistakes: [(&str, Change); 4] = [
        ("annotation", |one| with(one, keys::TCP_IDLE_TIMEOUT, "x")),
        ("unreadable", |mut one| {
            one.unreadable = Some("of two minds".to_owned());
            one
        }),
        ("no port", |mut one| {
            one.ports.clear();
            one
        }),
        ("port of the other", |mut one| {
            one.ports[0].port = 80;
            one
        }),
    ];
    let others: [(&str, Change); 6] = [
        ("stays", |one| one),
        ("changes its port", |mut one| {
            one.ports = service("x", &[90]).ports;
            one
        }),
        ("moves", |one| match one.load_balancer_ip.as_deref() {
            Some("10.0.5.5") => at(one, "10.0.5.6"),
            Some(_) => at(one, "9.9.9.1"),
            None => with(one, keys::PUBLIC_IP_NAME, "theirs-1"),
        }),
        ("goes", deleting),
        ("makes one as well", |one| {
            with(one, keys::TCP_IDLE_TIMEOUT, "y")
        }),
        ("lets others in", |one| {
            crate::support::ranges(one, &["10.0.0.0/8"])
        }),
    ];
    for (way, balancer, place, address) in ways() {
        for (mistake, wrong) in mistakes {
            for (change, other) in others {
                // The owner of the frontend is the first by name.
                for (good, bad) in [("a", "b"), ("b", "a")] {
                    if mistake == "port of the other" && change != "stays" {
                        continue;
                    }
                    let about = format!("{place}, {bad}: {mistake}, {good} {change}");
                    let azure = azure();
                    let config = current();
                    let both = [way(good, 80), way(bad, 81)];
                    let report = reconcile(&azure, &config, &both);
                    assert!(report.errors().is_empty(), "{about}: {:?}", report.errors());
                    let open = BTreeSet::from([address.to_owned()]);
                    assert_eq!(open_at(&azure, 81), open, "{about}");
                    let [first, second] = both;
                    let now = [other(first), wrong(second)];
                    let report = reconcile(&azure, &config, &now);
                    assert!(report.error_of(&key(bad)).is_some(), "{about}");
                    assert_eq!(
                        reached_at(&azure, balancer, 81).as_deref(),
                        Some(place),
                        "{about}"
                    );
                    assert_eq!(open_at(&azure, 81), open, "{about}");
                    let shown = &report.services[&key(bad)].ingress;
                    assert_eq!(shown[0].ip.to_string(), address, "{about}");
                    // The released parts of the other service are closed, though the address stays open for
                    // the first.
                    if ["changes its port", "goes"].contains(&change) {
                        assert_eq!(open_at(&azure, 80), BTreeSet::new(), "{about}");
                    }
                    azure.writes();
                    reconcile(&azure, &config, &now);
                    assert_eq!(azure.writes(), [""; 0], "{about}");
                }
            }
        }
    }
}

fn public(azure: &FakeArm, name: &str) -> Option<Value> {
    azure.get(&path("publicIPAddresses", name))
}

/// A typo in the name of an address writes nothing, whatever the service had before, and whatever else
/// changes with it.
#[test]
fn a_typo_in_the_name_of_an_address_gives_nothing_up() {
    let typo = |one| with(one, keys::PUBLIC_IP_NAME, "tipo");
    let named = |name| with(service("a", &[80]), keys::PUBLIC_IP_NAME, name);
    let own = own_address("a");
    for left_addresses in [LeftAddresses::Delete, LeftAddresses::Keep] {
        let config = Config {
            left_addresses,
            ..current()
        };
        for (before, place) in [
            (service("a", &[80]), own.as_str()),
            (named("theirs-1"), "theirs-1"),
            (at(service("a", &[80]), "9.9.9.2"), "theirs-2"),
        ] {
            for sharer in [
                None,
                Some(with(service("b", &[81]), keys::PUBLIC_IP_NAME, place)),
            ] {
                let azure = azure();
                let mut services: Vec<_> = sharer.clone().into_iter().collect();
                services.push(before.clone());
                reconcile(&azure, &config, &services);
                assert_eq!(
                    reached_at(&azure, "testCluster", 80).as_deref(),
                    Some(place)
                );
                azure.writes();
                let last = services.len() - 1;
                services[last] = typo(before.clone());
                let report = reconcile(&azure, &config, &services);
                assert_eq!(azure.writes(), [""; 0], "{place}");
                let error = report.error_of(&key("a")).unwrap().to_string();
                assert!(
                    error.contains("\"tipo\"") && error.contains(keys::PUBLIC_IP_NAME),
                    "{error}"
                );
                // The sharing service keeps the address, also when both change.
                if sharer.is_some() {
                    services[0].ports = service("b", &[82]).ports;
                    reconcile(&azure, &config, &services);
                    assert_eq!(
                        reached_at(&azure, "testCluster", 80).as_deref(),
                        Some(place)
                    );
                    assert_eq!(
                        reached_at(&azure, "testCluster", 82).as_deref(),
                        Some(place)
                    );
                    assert_eq!(open_at(&azure, 81), BTreeSet::new());
                    assert_eq!(open_at(&azure, 80), open_at(&azure, 82));
                }
            }
        }
    }
}

/// An address that a service has left stays if it may be known outside, however the service left it, and
/// nothing leads to it any more.
#[test]
fn an_address_that_was_handed_out_outlives_every_move() {
    type Move = fn(Service) -> Service;
    let moves: [(&str, Move); 5] = [
        ("to a name", |one| {
            with(one, keys::PUBLIC_IP_NAME, "theirs-1")
        }),
        ("to an address", |one| at(one, "9.9.9.2")),
        ("inside", |one| with(one, keys::INTERNAL, "true")),
        ("to a group", |one| with(one, keys::RESOURCE_GROUP, "rg2")),
        ("to nothing", |mut one| {
            one.load_balanced = false;
            one
        }),
    ];
    let own = &*own_address("a");
    for (about, moves) in moves {
        for (left_addresses, stays) in [(LeftAddresses::Keep, true), (LeftAddresses::Delete, false)]
        {
            let azure = azure();
            let config = Config {
                left_addresses,
                ..current()
            };
            let web = service("a", &[80]);
            reconcile(&azure, &config, std::slice::from_ref(&web));
            let old = public(&azure, own).unwrap()["properties"]["ipAddress"].clone();
            let old = old.as_str().unwrap().to_owned();
            let moved = [moves(web.clone())];
            let planned = run(executor(&azure, &config).forecast(&moved, &nodes())).unwrap();
            let is_shown = planned
                .actions()
                .any(|(_, action)| action.operation.verb() == "delete publicIPAddress");
            let report = reconcile(&azure, &config, &moved);
            assert!(report.is_converged(), "{about}: {report:#?}");
            assert_eq!(public(&azure, own).is_some(), stays, "{about}");
            assert_eq!(is_shown, !stays, "{about}: what is deleted is in the plan");
            assert!(!open_at(&azure, 80).contains(&old), "{about}");
            let told = report
                .warnings
                .iter()
                .any(|one| one.what.contains("--delete-left-addresses"));
            assert_eq!(told, stays, "{about}");
            if stays {
                // It belongs to the service again when that returns.
                reconcile(&azure, &config, &[web]);
                assert_eq!(public(&azure, own).unwrap()["properties"]["ipAddress"], old);
                assert_eq!(open_at(&azure, 80), BTreeSet::from([old]), "{about}");
            }
        }
    }
}

fn configs() -> impl Strategy<Value = Config> {
    let flags = proptest::array::uniform5(any::<bool>());
    flags.prop_map(|[keep, report, break_first, few, exclusive]| Config {
        left_addresses: if keep {
            LeftAddresses::Keep
        } else {
            LeftAddresses::Delete
        },
        orphans: if report {
            OrphanPolicy::Report
        } else {
            OrphanPolicy::Remove
        },
        flip_order: if break_first {
            azure_loadbalancer::config::FlipOrder::BreakFirst
        } else {
            azure_loadbalancer::config::FlipOrder::MakeBeforeBreak
        },
        maximum_load_balancer_rule_count: if few { 6 } else { 250 },
        exclusive_security_group: exclusive,
        load_balancer_sku: LoadBalancerSku::Standard,
        backend_pool_type: PoolMembership::Address,
        ..current()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::properties::cases(),
        failure_persistence: None, ..ProptestConfig::default() })]

    /// Exactly the planned changes are written if no other client writes, and the security group allows what the plan
    /// shows.
    #[test]
    fn what_is_applied_is_what_was_planned(config in configs(), steps in generated::steps()) {
        let azure = azure();
        for step in steps {
            let (services, nodes) = (step.services(&config), step.nodes());
            let executor = executor(&azure, &config);
            let planned = run(executor.forecast(&services, &nodes)).unwrap();
            azure.writes();
            let report = run(executor.reconcile(&services, &nodes)).unwrap();
            let mut written = azure.writes();
            let mut shown: Vec<_> = planned.actions().map(|(_, action)| {
                let verb = action.operation.verb().split(' ').next().unwrap();
                format!("{verb} {}", action.operation.target().unwrap().as_str().to_ascii_lowercase())
            }).collect();
            written.sort();
            shown.sort();
            prop_assert_eq!(shown, written);
            for (key, outcome) in planned.services() {
                let error = report.services[key].error.as_ref().map(ToString::to_string);
                prop_assert_eq!(outcome.error.map(|error| error.to_string()), error, "{}", key);
            }
            let of_report: BTreeSet<_> = report.warnings.iter().collect();
            prop_assert!(of_report.is_subset(&planned.warnings()));
            prop_assert!(planned.left().is_empty() == report.is_converged());
            let last = planned.actions().filter_map(|(_, action)| match &action.operation {
                azure_loadbalancer::plan::Operation::PutSecurityGroup { resource, .. } => Some(resource),
                _ => None,
            }).last();
            if let Some(group) = last {
                let there = azure.get(&path("networkSecurityGroups", "nsg")).unwrap();
                let there: BTreeSet<_> = list(&there, "securityRules").iter().map(|rule| {
                    (rule["name"].as_str().unwrap().to_owned(), rule["properties"]["priority"].as_u64().unwrap())
                }).collect();
                let shown: BTreeSet<_> = group.properties.security_rules.iter().map(|rule| {
                    (rule.name.clone(), u64::from(rule.properties.priority))
                }).collect();
                prop_assert_eq!(shown, there);
            }
        }
    }

    /// A service that shares an address and makes a mistake keeps its rules, its address and its access,
    /// whatever the others do.
    #[test]
    fn a_mistake_at_a_shared_address_harms_nobody(
        config in configs(), deny in any::<bool>(), steps in generated::steps(),
    ) {
        // An owner of the frontend, and a service that shares it.
        let azure = azure();
        let own = |name: &str, port: u16| at(service(name, &[port]), "9.9.9.0");
        let (leads, mut follows) = (own("aaa", 70), own("zzz", 71));
        if deny {
            follows = with(crate::support::ranges(follows, &["10.9.0.0/16"]), keys::DENY_ALL_EXCEPT_RANGES, "true");
        }
        let config = Config { maximum_load_balancer_rule_count: 250, ..config };
        reconcile(&azure, &config, &[leads.clone(), follows.clone()]);
        let before = (reached_at(&azure, "testCluster", 71), open_at(&azure, 71), denied(&azure));
        prop_assert_eq!(before.0.as_deref(), Some("theirs-0"));
        let wrong = with(follows, keys::TCP_IDLE_TIMEOUT, "x");
        for (number, step) in steps.iter().enumerate() {
            let mut services = step.services(&config);
            services.push(wrong.clone());
            match number {
                0 => services.push(leads.clone()),
                1 => services.push(deleting(leads.clone())),
                _ => {}
            }
            run(executor(&azure, &config).reconcile(&services, &step.nodes())).unwrap();
            let after = (reached_at(&azure, "testCluster", 71), open_at(&azure, 71), denied(&azure));
            prop_assert_eq!(&before.0, &after.0);
            prop_assert_eq!(&before.1, &after.1);
            prop_assert!(before.2.is_subset(&after.2), "{:?} {:?}", before.2, after.2);
        }
    }
}

/// Returns the addresses that deny all other clients.
fn denied(azure: &FakeArm) -> BTreeSet<String> {
    let group = azure.get(&path("networkSecurityGroups", "nsg")).unwrap();
    let rules = list(&group, "securityRules");
    let deny = rules
        .iter()
        .filter(|rule| rule["properties"]["access"] == "Deny");
    let to = deny.flat_map(|rule| {
        rule["properties"]["destinationAddressPrefixes"]
            .as_array()
            .cloned()
    });
    to.flatten()
        .map(|to| to.as_str().unwrap().to_owned())
        .collect()
}

/// An address that disappears between a plan and its execution is a mistake of the plan only: it is read
/// again.
#[test]
fn an_address_that_goes_while_it_is_named_is_an_error_and_no_move() {
    let azure = azure();
    let named = [with(service("a", &[80]), keys::PUBLIC_IP_NAME, "theirs-1")];
    let config = current();
    reconcile(&azure, &config, &named);
    azure.change(&path("publicIPAddresses", "theirs-1"), |one| {
        one["sku"]["name"] = json!("Basic");
    });
    azure.writes();
    let report = reconcile(&azure, &config, &named);
    assert!(report.error_of(&key("a")).is_some());
    assert_eq!(azure.writes(), [""; 0]);
    assert_eq!(azure.names("loadBalancers"), ["testCluster"]);
}
