//! Other clusters, and other controllers, in the same resource group.

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::{Config, Executor, Service};

use crate::world::*;

/// The executor of another cluster. Both write into the same security group.
fn of_cluster(emulator: &Emulator, cluster_name: &str) -> Executor {
    let config = Config {
        cluster_name: cluster_name.to_owned(),
        exclusive_security_group: false,
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
