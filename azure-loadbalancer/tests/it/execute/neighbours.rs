//! Other clusters, and other controllers, in the same resource group.

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::{Config, Executor, Service};

use crate::execute::world::*;

/// Returns the executor of a cluster. All write into the same security group, with the default setting.
fn of_cluster(emulator: &Emulator, cluster_name: &str) -> Executor {
    let config = Config {
        cluster_name: cluster_name.to_owned(),
        exclusive_security_group: Config::new("s", "rg", "westus").exclusive_security_group,
        ..config()
    };
    let client = client_through(emulator.clone(), RetryPolicy::default());
    Executor::new(client, config).unwrap()
}

#[tokio::test(start_paused = true)]
async fn clusters_whose_services_have_the_same_names_do_not_share_them() {
    // Without UIDs, and with the same ones, as after a restored backup.
    for uid in ["", "257b9655-5137-4ad2-b091-ef3f07043ad3"] {
        let emulator = azure(EmulatorOptions::default());
        let web = Service {
            uid: uid.to_owned(),
            ..service("web", &[80])
        };
        let (a, b) = (of_cluster(&emulator, "a"), of_cluster(&emulator, "b"));
        let web = std::slice::from_ref(&web);
        a.reconcile(web, &nodes(2)).await.unwrap();
        let of_a = |emulator: &Emulator| {
            let mut all = contents(emulator);
            all.retain(|id, _| {
                id.ends_with("/loadbalancers/a") || id.contains("/publicipaddresses/a-")
            });
            all
        };
        let before = of_a(&emulator);
        assert_eq!(before.len(), 2);

        let report = b.reconcile(web, &nodes(2)).await.unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{report:#?}"
        );
        assert_eq!(of_a(&emulator), before, "{uid}");
        assert!(contents(&emulator).contains_key(&network("loadBalancers", "b").to_lowercase()));
        for executor in [&a, &b] {
            let (plan, _) = executor.plan(web, &nodes(2)).await.unwrap();
            assert!(plan.is_done(), "{uid}: {plan:#?}");
        }

        b.reconcile(&[], &nodes(2)).await.unwrap();
        assert_eq!(of_a(&emulator), before, "{uid}");
    }
}

#[tokio::test(start_paused = true)]
async fn services_of_another_class_are_left_to_their_controller() {
    let emulator = azure(EmulatorOptions::default());
    let without = executor(&emulator);
    let class = "example.com/x";
    let of_class = Executor::new(
        client_through(emulator.clone(), RetryPolicy::default()),
        Config {
            load_balancer_class: Some(class.to_owned()),
            ..config()
        },
    )
    .unwrap();
    let foreign = Service {
        load_balancer_class: Some(class.to_owned()),
        ..service("foreign", &[80])
    };
    let services = [foreign.clone(), service("own", &[81])];

    let before = contents(&emulator);
    let report = without.reconcile(&services[..1], &nodes(1)).await.unwrap();
    assert!(
        report.is_converged() && report.services.is_empty(),
        "{report:#?}"
    );
    assert_eq!(contents(&emulator), before);

    let report = of_class.reconcile(&services, &nodes(1)).await.unwrap();
    assert_eq!(report.services.keys().collect::<Vec<_>>(), [&foreign.key]);
    assert_eq!(report.services[&foreign.key].ingress.len(), 1);
    let frontends = |emulator: &Emulator| {
        let all = contents(emulator);
        let balancer = &all[&network("loadBalancers", "testCluster").to_lowercase()];
        balancer["properties"]["frontendIPConfigurations"]
            .as_array()
            .unwrap()
            .len()
    };
    // Even if both have the same cluster's name, each leaves the other's alone.
    without.reconcile(&services, &nodes(1)).await.unwrap();
    assert_eq!(frontends(&emulator), 2);
    of_class.reconcile(&services, &nodes(1)).await.unwrap();
    assert_eq!(frontends(&emulator), 2);
}

#[tokio::test(start_paused = true)]
async fn security_rules_of_another_cluster_stay_whoever_sweeps() {
    let emulator = azure(EmulatorOptions::default());
    let (a, b) = (of_cluster(&emulator, "a"), of_cluster(&emulator, "b"));
    let (web, api) = ([service("web", &[80])], [service("api", &[80])]);
    let address = |report: &azure_loadbalancer::execute::Reconciled, of: &Service| {
        report.services[&of.key].ingress[0].ip.to_string()
    };
    let rules = |emulator: &Emulator| {
        let all = contents(emulator);
        let group = &all[&network("networkSecurityGroups", "nsg").to_lowercase()];
        group["properties"]["securityRules"].to_string()
    };
    let initial = rules(&emulator);
    let of_a = address(&a.reconcile(&web, &nodes(1)).await.unwrap(), &web[0]);
    let of_b = address(&b.reconcile(&api, &nodes(1)).await.unwrap(), &api[0]);
    for executor in [(&a, &web), (&b, &api)] {
        let report = executor.0.reconcile(executor.1, &nodes(1)).await.unwrap();
        assert_eq!(report.calls.writes, 0, "{:?}", report.written);
        let now = rules(&emulator);
        assert!(now.contains(&of_a) && now.contains(&of_b), "{now}");
    }
    b.reconcile(&[], &nodes(1)).await.unwrap();
    let now = rules(&emulator);
    assert!(now.contains(&of_a) && !now.contains(&of_b), "{now}");
    a.reconcile(&[], &nodes(1)).await.unwrap();
    assert_eq!(rules(&emulator), initial);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_alone_leaves_nothing_behind_either() {
    let emulator = azure(EmulatorOptions::default());
    let before = contents(&emulator);
    let executor = of_cluster(&emulator, "a");
    let limited = |mut service: Service| {
        service.source_ranges = vec!["10.0.0.0/8".to_owned()];
        service
    };
    let inside = || limited(internal(service("moves", &[80])));
    let moved = annotated(inside(), "azure-load-balancer-internal-subnet", "sub2");
    let flat = annotated(
        service("flat", &[81]),
        "azure-disable-load-balancer-floating-ip",
        "true",
    );
    let history = [
        (vec![inside(), flat.clone()], 3),
        (vec![moved, flat.clone()], 2),
        (vec![limited(service("moves", &[80])), flat.clone()], 1),
        (
            vec![limited(elsewhere(service("moves", &[80]))), flat.clone()],
            2,
        ),
        (vec![inside()], 2),
    ];
    for (services, count) in history {
        let report = executor.reconcile(&services, &nodes(count)).await.unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{report:#?}"
        );
        let now = contents(&emulator);
        let rules = &now[&network("networkSecurityGroups", "nsg").to_lowercase()]["properties"]["securityRules"];
        let mut destinations = std::collections::BTreeSet::new();
        for rule in rules
            .as_array()
            .unwrap()
            .iter()
            .filter(|rule| rule["name"] != "of-others")
        {
            let several = rule["properties"]["destinationAddressPrefixes"].as_array();
            let one = rule["properties"]["destinationAddressPrefix"].as_str();
            destinations.extend(
                several
                    .into_iter()
                    .flatten()
                    .filter_map(|one| one.as_str())
                    .chain(one),
            );
        }
        let mut wanted = std::collections::BTreeSet::new();
        for service in &services {
            if service.key == flat.key {
                let addresses = nodes(count)
                    .into_iter()
                    .map(|node| node.addresses[0].to_string());
                wanted.extend(addresses);
            } else {
                wanted.insert(report.services[&service.key].ingress[0].ip.to_string());
            }
        }
        let destinations: std::collections::BTreeSet<_> =
            destinations.into_iter().map(str::to_owned).collect();
        assert_eq!(destinations, wanted);
    }
    executor.reconcile(&[], &nodes(1)).await.unwrap();
    assert_eq!(contents(&emulator), before);
}
