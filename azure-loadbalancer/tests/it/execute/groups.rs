//! Public addresses in other resource groups than the cluster's.

use azure_loadbalancer::Service;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use http::Method;
use serde_json::json;

use crate::execute::world::*;

const OTHERS: &str = "/subscriptions/s/resourceGroups/others/providers/Microsoft.Network";

fn in_rg2(emulator: &Emulator) -> Vec<String> {
    let all = contents(emulator).into_keys();
    all.filter(|id| id.contains("/resourcegroups/rg2/"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_address_is_deleted_although_its_deletion_was_rejected_at_first() {
    let web = service("web", &[80]);
    let there = elsewhere(web.clone());
    let wishes: [&[Service]; 2] = [std::slice::from_ref(&web), &[]];
    for (after, is_forbidden) in wishes
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        for (status, code) in [
            (409, "AnotherOperationInProgress"),
            (412, "PreconditionFailed"),
            (400, "ScopeLocked"),
        ] {
            let emulator = azure(EmulatorOptions::default());
            if is_forbidden {
                forbid_the_list(&emulator);
            }
            let executor = executor(&emulator);
            let there = std::slice::from_ref(&there);
            let report = executor.reconcile(there, &nodes(1)).await.unwrap();
            assert!(report.is_converged(), "{report:#?}");
            assert_eq!(in_rg2(&emulator).len(), 1);
            let rejected = answer(status, code)
                .method(&Method::DELETE)
                .path("publicIPAddresses");
            emulator.with(|machine| machine.inject(rejected));
            // A lock stays for the next run, which begins without any reference to it.
            for _ in 0..2 {
                executor.reconcile(after, &nodes(1)).await.unwrap();
            }
            assert_eq!(
                in_rg2(&emulator),
                Vec::<String>::new(),
                "{status}, {is_forbidden}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_process_left_is_found() {
    let emulator = azure(EmulatorOptions::default());
    let web = elsewhere(service("web", &[80]));
    executor(&emulator)
        .reconcile(&[web], &nodes(1))
        .await
        .unwrap();
    let locked = answer(400, "ScopeLocked")
        .method(&Method::DELETE)
        .path("publicIPAddresses");
    emulator.with(|machine| machine.inject(locked));
    executor(&emulator).reconcile(&[], &nodes(1)).await.unwrap();
    assert_eq!(in_rg2(&emulator).len(), 1);

    let (plan, _) = executor(&emulator).plan(&[], &nodes(1)).await.unwrap();
    assert_eq!(plan.orphans.len(), 1, "{plan:#?}");
    let report = executor(&emulator).reconcile(&[], &nodes(1)).await.unwrap();
    assert!(report.calls.reads <= 8, "two rounds: {:?}", report.calls);
    assert_eq!(in_rg2(&emulator), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn addresses_of_a_cluster_with_the_same_name_are_left_alone() {
    let uuid = "a257b965551374ad2b091ef3f07043ad";
    for is_forbidden in [false, true] {
        let emulator = azure(EmulatorOptions::default());
        if is_forbidden {
            forbid_the_list(&emulator);
        }
        emulator.with(|machine| {
            machine.add_group("s", "others", "westus");
            let mut put = |group: &str, service: &str, home: Option<&str>| {
                let mut tags = json!({
                    "k8s-azure-cluster-name": "testCluster", "k8s-azure-service": service,
                });
                if let Some(home) = home {
                    tags["azure-loadbalancer-cluster-group"] = home.into();
                }
                let name = format!("testCluster-{uuid}-{}", service.replace('/', "-"));
                let name = if home.is_none() { format!("testCluster-{uuid}") } else { name };
                let id = format!("{group}/publicIPAddresses/{name}");
                let address = json!({ "location": "westus", "sku": { "name": "Standard" }, "tags": tags,
                    "properties": { "publicIPAllocationMethod": "Static" } });
                machine.put(&id, address).unwrap();
            };
            let rg2 = OTHERS.replace("others", "rg2");
            // Created by another provider, and by this one; here, and in a group that both use.
            put(OTHERS, "default/web", None);
            put(OTHERS, "default/other", Some("others"));
            put(&rg2, "default/web", None);
            put(&rg2, "default/other", Some("others"));
        });
        let before = contents(&emulator);
        let executor = executor(&emulator);
        for services in [vec![elsewhere(service("web", &[80]))], vec![]] {
            let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
            assert!(
                report.is_converged() && report.orphans.is_empty(),
                "{report:#?}"
            );
            assert!(report.warnings.is_empty(), "{report:#?}");
            let now = contents(&emulator);
            for (id, value) in before.iter().filter(|(id, _)| id.contains(uuid)) {
                assert_eq!(now.get(id), Some(value), "{id}");
            }
        }
        assert_eq!(contents(&emulator), before);
    }
}

#[tokio::test(start_paused = true)]
async fn many_groups_are_one_read() {
    let emulator = azure(EmulatorOptions::default().operation_requests(0));
    let mut services = Vec::new();
    for number in 0..6 {
        let group = format!("group{number}");
        emulator.with(|machine| machine.add_group("s", &group, "westus"));
        let one = service(&format!("s{number}"), &[80]);
        services.push(annotated(one, "azure-load-balancer-resource-group", &group));
    }
    services.push(internal(service("inside", &[80])));
    let executor = executor(&emulator);
    let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    let steady = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert_eq!((steady.calls.reads, steady.calls.writes), (4, 0));
    // Without the right, it is one for each group.
    forbid_the_list(&emulator);
    let steady = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert_eq!((steady.calls.reads, steady.calls.writes), (4 + 7, 0));
}
