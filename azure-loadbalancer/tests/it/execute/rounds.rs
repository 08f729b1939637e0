//! Reconciliation from an empty Azure to the requested services, and back.

use std::time::Duration;

use azure_loadbalancer::Node;
use azure_loadbalancer::emulator::{EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::ServiceError;
use azure_loadbalancer::node::Readiness;
use http::Method;

use crate::execute::world::*;

#[tokio::test(start_paused = true)]
async fn services_get_what_they_ask_for_and_nothing_is_left_behind() {
    let emulator = azure(EmulatorOptions::default().id_casing_seed(5));
    let before = contents(&emulator);
    let executor = executor(&emulator);
    let services = [
        service("web", &[80, 443]),
        internal(service("db", &[5432])),
        service("api", &[8080]),
    ];
    let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    for service in &services {
        let outcome = &report.services[&service.key];
        assert_eq!(outcome.ingress.len(), 1, "{}", service.key);
    }
    let is_private = |name: &str| {
        report.services[&azure_loadbalancer::ServiceKey::new("default", name)].ingress[0]
            .ip
            .to_string()
            .starts_with("10.0.")
    };
    assert!(is_private("db") && !is_private("web"));

    // Again: nothing is written, and five reads are enough.
    let again = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert_eq!((again.calls.writes, again.rounds), (0, 0));
    assert!(again.calls.reads <= 5, "{:?}", again.calls);

    let report = executor.reconcile(&[], &nodes(3)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    assert_eq!(contents(&emulator), before);
    assert_nothing_rejected(&emulator);
}

#[tokio::test(start_paused = true)]
async fn what_one_cannot_have_the_others_get() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let bad = annotated(
        service("bad", &[81]),
        "azure-load-balancer-tcp-idle-timeout",
        "abc",
    );
    let services = [service("good", &[80]), bad];
    let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert!(report.error_of(&services[0].key).is_none());
    let errors = report.errors();
    assert_eq!(errors.len(), 1);
    assert!(
        matches!(errors[&services[1].key], ServiceError::Plan(_)),
        "{errors:?}"
    );
    assert!(report.failures.is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_that_lead_elsewhere_stop_nobody_else() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let before = contents(&emulator);
    let elsewhere = "%2e%2e/networkSecurityGroups/nsg";
    for (key, value) in [
        ("azure-pip-name", elsewhere),
        ("azure-pip-name", "..\\networkSecurityGroups\\nsg"),
        ("azure-pip-name", ".."),
        ("azure-load-balancer-resource-group", ".."),
        ("azure-load-balancer-resource-group", "a b!"),
        ("azure-load-balancer-resource-group", "rg/providers/x"),
    ] {
        let services = [
            service("good", &[80]),
            annotated(service("bad", &[81]), key, value),
        ];
        let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
        let errors = report.errors();
        assert_eq!(errors.len(), 1, "{value}: {errors:?}");
        let error = errors[&services[1].key].to_string();
        assert!(error.contains(key), "{error}");
        assert_eq!(report.services[&services[0].key].ingress.len(), 1);
    }
    executor.reconcile(&[], &nodes(1)).await.unwrap();
    assert_eq!(contents(&emulator), before);
    assert_nothing_rejected(&emulator);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_read_stops_nobody_else() {
    for (status, is_forbidden) in [400, 403, 404]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let emulator = azure(EmulatorOptions::default());
        if is_forbidden {
            forbid_the_list(&emulator);
        }
        let executor = executor(&emulator);
        let rejection = FaultAction::Answer {
            status,
            code: "NotThisGroup".to_owned(),
            retry_after: None,
        };
        emulator.with(|machine| {
            machine.inject(
                Fault::new(rejection)
                    .path("resourceGroups/other")
                    .times(100),
            )
        });
        let bad = annotated(
            service("bad", &[81]),
            "azure-load-balancer-resource-group",
            "other",
        );
        let services = [service("good", &[80]), bad];
        let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
        assert_eq!(report.services[&services[0].key].ingress.len(), 1);
        let ServiceError::Arm(error) = report.error_of(&services[1].key).unwrap() else {
            panic!("{report:#?}")
        };
        assert!(error.has_code("NotThisGroup"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_is_told_once_and_not_tried_again() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let rejection = FaultAction::Answer {
        status: 400,
        code: "QuotaExceeded".to_owned(),
        retry_after: None,
    };
    emulator.with(|machine| {
        machine.inject(
            Fault::new(rejection)
                .method(&Method::PUT)
                .path("publicIPAddresses")
                .times(100),
        )
    });
    let services = [service("web", &[80]), internal(service("db", &[5432]))];
    let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
    let error = report.error_of(&services[0].key).unwrap();
    let ServiceError::Arm(error) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.code(), Some("QuotaExceeded"));
    assert!(report.error_of(&services[1].key).is_none(), "{report:#?}");
    let puts = emulator.with(|machine| {
        let all = machine.requests();
        all.iter()
            .filter(|one| one.method == "PUT" && one.target.contains("publicIPAddresses"))
            .count()
    });
    assert_eq!(puts, 1);
    emulator.with(|machine| machine.clear_faults());
    assert!(
        executor
            .reconcile(&services, &nodes(1))
            .await
            .unwrap()
            .is_converged()
    );
}

// Case G12.
#[tokio::test(start_paused = true)]
async fn a_write_that_fails_later_is_told_and_mended_next_time() {
    for canceled in [false, true] {
        let emulator = azure(EmulatorOptions::default());
        let executor = executor(&emulator);
        let fails = FaultAction::FailOperation {
            code: "InternalServerError".to_owned(),
            canceled,
        };
        // With the nodes in the pool, and without them.
        let fault = Fault::new(fails).method(&Method::PUT).times(2);
        emulator.with(|machine| machine.inject(fault.path("loadBalancers")));
        let services = [service("web", &[80])];
        let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
        let error = report.error_of(&services[0].key).expect("it is told");
        let ServiceError::Arm(error) = error else {
            panic!("{error:?}")
        };
        assert_eq!(error.code(), Some("InternalServerError"));
        let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{report:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing() {
    let emulator = azure(EmulatorOptions::default());
    let before = contents(&emulator);
    let (plan, _) = executor(&emulator)
        .plan(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    assert!(!plan.actions.is_empty());
    assert_eq!(contents(&emulator), before);
    assert_eq!(emulator.with(|machine| machine.counts().writes), 0);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_cannot_be_used_is_rejected_at_once() {
    let emulator = azure(EmulatorOptions::default());
    let client = executor(&emulator).client().clone();
    let config = azure_loadbalancer::Config {
        vnet_name: String::new(),
        ..config()
    };
    assert!(azure_loadbalancer::Executor::new(client, config).is_err());
}

#[tokio::test(start_paused = true)]
async fn an_address_of_the_user_is_used_and_survives() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let auto = service("web", &[80]);
    executor
        .reconcile(std::slice::from_ref(&auto), &nodes(1))
        .await
        .unwrap();
    // The own address is in use while the service moves to the user's: no order of whole writes is rejected.
    let pinned = azure_loadbalancer::Service {
        load_balancer_ip: Some(USER_IP.to_owned()),
        ..auto
    };
    let report = executor
        .reconcile(std::slice::from_ref(&pinned), &nodes(1))
        .await
        .unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert_eq!(
        report.services[&pinned.key].ingress[0].ip.to_string(),
        USER_IP
    );
    assert_eq!(
        contents(&emulator)
            .keys()
            .filter(|id| id.contains("publicip"))
            .count(),
        2
    );
    executor.reconcile(&[], &nodes(1)).await.unwrap();
    assert!(
        contents(&emulator).contains_key(&network("publicIPAddresses", "user-ip").to_lowercase())
    );
    assert_nothing_rejected(&emulator);
}

// Case G7.
#[tokio::test(start_paused = true)]
async fn a_service_whose_group_is_not_there_can_go() {
    let statuses = [None, Some(403), Some(404)].into_iter();
    for (status, is_forbidden) in statuses.flat_map(|one| [(one, false), (one, true)]) {
        let emulator = azure(EmulatorOptions::default());
        if is_forbidden {
            forbid_the_list(&emulator);
        }
        let executor = executor(&emulator);
        if let Some(status) = status {
            let rejection = FaultAction::Answer {
                status,
                code: "NotThisGroup".to_owned(),
                retry_after: None,
            };
            emulator.with(|machine| {
                machine.inject(Fault::new(rejection).path("resourceGroups/nope").times(100))
            });
        }
        let named = annotated(
            service("web", &[80]),
            "azure-load-balancer-resource-group",
            "nope",
        );
        let going = azure_loadbalancer::Service {
            deleting: true,
            ..named
        };
        let report = executor
            .reconcile(std::slice::from_ref(&going), &nodes(1))
            .await
            .unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{status:?}: {report:#?}"
        );
        assert_eq!(report.calls.writes, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_there_twice_is_told() {
    for (uid, expected) in [
        (None, "there 2 times with the same UID"),
        (
            Some("9f2a1c7e-0000-4000-8000-000000000001"),
            "; only the one with UID ",
        ),
    ] {
        let emulator = azure(EmulatorOptions::default());
        let mut twice = [service("web", &[80]), service("web", &[81])];
        if let Some(uid) = uid {
            twice[1].uid = uid.to_owned();
        }
        let report = executor(&emulator)
            .reconcile(&twice, &nodes(1))
            .await
            .unwrap();
        let mut warnings = report.warnings.iter();
        let told = warnings.any(|warning| {
            let names_it = warning.what.contains(&format!("{:?}", twice[0].uid));
            warning.what.contains(expected) && names_it
        });
        assert!(told, "{:?}", report.warnings);
        assert!(report.is_converged() && report.errors().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_could_write_keeps_no_service_waiting() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let web = [service("web", &[80])];
    let address = "10.0.9.1".parse().unwrap();
    let old = Node {
        readiness: Readiness::NotReady(Duration::from_secs(1)),
        ..Node::new("old", address)
    };
    let long = Node::new("n".repeat(253), "10.0.9.3".parse().unwrap());
    let members = || {
        let all = contents(&emulator);
        let balancer = &all[&network("loadBalancers", "testCluster").to_lowercase()];
        let pool = &balancer["properties"]["backendAddressPools"][0]["properties"];
        let entries = pool["loadBalancerBackendAddresses"].as_array().unwrap();
        let mut shown: Vec<_> = entries
            .iter()
            .map(|one| {
                let name = one["name"].as_str().unwrap();
                assert!(name.len() <= 80, "{name}");
                (
                    one["properties"]["ipAddress"].as_str().unwrap().to_owned(),
                    name.to_owned(),
                )
            })
            .collect();
        shown.sort();
        shown
    };
    // Both are ready, in either order; then one is already a member; then the other one takes over its
    // address.
    let (a, b) = (Node::new("a", address), Node::new("b", address));
    for nodes in [
        vec![b.clone(), a.clone()],
        vec![a.clone(), b.clone(), long.clone()],
    ] {
        let report = executor.reconcile(&web, &nodes).await.unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{report:#?}"
        );
        assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
        assert_eq!(members()[0], ("10.0.9.1".to_owned(), "a".to_owned()));
    }
    assert_eq!(members().len(), 2);
    let report = executor
        .reconcile(&web, std::slice::from_ref(&old))
        .await
        .unwrap();
    assert!(report.is_converged());
    assert_eq!(
        members().len(),
        2,
        "who is not ready does not join, and nobody is left to leave for"
    );
    let was = Node {
        readiness: Readiness::Ready,
        ..old.clone()
    };
    executor.reconcile(&web, &[was]).await.unwrap();
    assert_eq!(members(), [("10.0.9.1".to_owned(), "old".to_owned())]);
    let report = executor.reconcile(&web, &[old, b]).await.unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert_eq!(members(), [("10.0.9.1".to_owned(), "b".to_owned())]);
    assert_nothing_rejected(&emulator);
}
