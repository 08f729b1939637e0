//! UIDs that a program gives its services.

use azure_loadbalancer::emulator::EmulatorOptions;
use azure_loadbalancer::{Service, plan};

use crate::execute::world::*;

/// UIDs that are no UUIDs: names made of them would have no owner once the service is gone.
const NO_UUIDS: [&str; 5] = [
    "web-1",
    "\u{fc}",
    "257b9655",
    "257b9655-5137-4ad2-b091-ef3f07043xyz",
    "-",
];

fn with_uid(uid: &str) -> Service {
    Service {
        uid: uid.to_owned(),
        ..service("odd", &[81])
    }
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_is_none_is_an_error_of_its_service_alone() {
    for uid in NO_UUIDS {
        let emulator = azure(EmulatorOptions::default());
        let executor = executor(&emulator);
        let odd = with_uid(uid);
        let services = [odd.clone(), service("web", &[80])];
        let planned = executor.forecast(&services, &nodes(2)).await.unwrap();
        let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
        let error = report.error_of(&odd.key).expect("it is an error");
        assert!(error.to_string().contains("is no UUID"), "{uid}: {error}");
        let mut of_plan = planned.services();
        let (_, outcome) = of_plan.find(|(key, _)| **key == odd.key).unwrap();
        assert!(outcome.error.is_some(), "the plan says so, too: {uid}");
        // The other service is served, and nothing was made of this one.
        let web = &report.services[&service("web", &[80]).key];
        assert!(web.error.is_none() && !web.ingress.is_empty(), "{uid}");
        let all = contents(&emulator);
        let balancer = &all[&network("loadBalancers", "testCluster").to_lowercase()];
        let rules = balancer["properties"]["loadBalancingRules"].as_array();
        assert_eq!(rules.map(Vec::len), Some(1), "{uid}");
        assert_nothing_rejected(&emulator);
    }
}

/// Resources that an earlier version made of such a UID stay while the service exists, and go with it.
#[tokio::test(start_paused = true)]
async fn what_there_is_of_such_a_uid_stays_and_can_be_deleted() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let mut odd = with_uid("web-1");
    // Plans alone do not check it.
    for _ in 0..4 {
        let (_, snapshot) = executor.plan(&[], &nodes(2)).await.unwrap();
        let made = plan(&config(), std::slice::from_ref(&odd), &nodes(2), &snapshot);
        executor.execute(&made).await;
    }
    let made = contents(&emulator);
    let report = executor
        .reconcile(std::slice::from_ref(&odd), &nodes(2))
        .await
        .unwrap();
    assert!(report.error_of(&odd.key).is_some());
    assert_eq!(contents(&emulator), made);
    odd.deleting = true;
    let report = executor
        .reconcile(std::slice::from_ref(&odd), &nodes(2))
        .await
        .unwrap();
    assert!(report.errors().is_empty(), "{report:#?}");
    let left = contents(&emulator);
    let gone = made.keys().filter(|id| !left.contains_key(*id));
    assert!(gone.count() >= 2, "its address and its load balancer");
}

#[tokio::test(start_paused = true)]
async fn uuids_in_any_form_and_no_uid_are_fine() {
    for uid in [
        "",
        "257b9655-5137-4ad2-b091-ef3f07043ad3",
        "257B9655-5137-4AD2-B091-EF3F07043AD3",
        "257b965551374ad2b091ef3f07043ad3",
    ] {
        let emulator = azure(EmulatorOptions::default());
        let services = [with_uid(uid)];
        let report = executor(&emulator)
            .reconcile(&services, &nodes(2))
            .await
            .unwrap();
        assert!(report.is_converged() && report.errors().is_empty(), "{uid}");
    }
}
