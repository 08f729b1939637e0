//! Tests of names that form another name's id, and of clusters with another service's name.

use discovery_core::ServiceOutcome;

use super::super::Verdict;
use super::*;
use crate::model::HealthState;
use crate::testing::Contents;

fn found(discovery: &Discovery, name: &str) -> DiscoveredService {
    let mut services = discovery.services.iter();
    services
        .find(|service| &*service.name == name)
        .unwrap()
        .clone()
}

#[tokio::test(start_paused = true)]
async fn a_name_with_a_tilde_is_not_read_and_says_so() {
    let cluster = cluster();
    cluster.edit(|contents| {
        // To the gateway both have the id `A~We~b`.
        contents
            .stateless("fabric:/A/We~b", "S", [("t", vec![(1, "https://tilde:1")])])
            .stateless("fabric:/A/We/b", "S", [("s", vec![(1, "https://slash:1")])])
            .application("fabric:/B~S1", "T", "1", []);
    });
    let discoverer = discoverer(&cluster);
    let discovery = cycle(&discoverer).await;
    let slash = Some(vec!["https://slash:1/".to_owned()]);
    assert_eq!(addresses(&discovery)["fabric:/A/We/b"], slash);
    let tilde = found(&discovery, "fabric:/A/We~b");
    assert_eq!(tilde.content, ServiceContent::NotEnabled);
    let problem = tilde.problems.iter().next().unwrap();
    assert_eq!(problem.code, "name_not_usable");
    assert!(problem.message.contains("has a `~`"), "{problem}");
    let problem = discovery.problems.iter().next().unwrap();
    assert_eq!(problem.pointer, "/Applications/fabric:~1B~0S1");
    assert_eq!(cluster.calls("partitions A~We~b"), 1);
    assert_eq!(cluster.calls("services B~S1"), 0);
    let decisions = discoverer.decisions().decisions;
    for name in ["fabric:/A/We~b", "fabric:/B~S1"] {
        let decision = decisions.iter().find(|of| &*of.name == name).unwrap();
        assert_eq!(decision.verdict, Verdict::Rejected);
    }

    let once = discoverer.runner().run_once().await;
    let reports = discoverer.health_reports(once.report.as_deref().unwrap());
    let told: Vec<_> = reports.iter().map(|of| of.entity.to_string()).collect();
    let twice = told.iter().filter(|of| *of == "service A~We~b");
    assert_eq!(twice.count(), 1, "{told:?}");
    assert_eq!(told.len(), 5);
}

const PAY: &str = "fabric:/Shop/Pay";

fn conflicting_owner(contents: &mut Contents, application: &str) {
    let mut labels = LABELS.to_vec();
    labels.push(("YARP.Backend.BackendId", "Fabric:/shop/pay"));
    let name = format!("{application}/Evil");
    contents
        .application_type("T", "1", [])
        .service_type("T", "1", "E", labels)
        .application(application, "T", "1", [])
        .stateless(&name, "E", [("e", vec![(1, "https://evil:1")])]);
}

fn pay(contents: &mut Contents) {
    contents
        .service_type("T", "1", "S", LABELS)
        .application("fabric:/Shop", "T", "1", [])
        .stateless(PAY, "S", [("p", vec![(1, "https://pay:1")])]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_the_name_of_another_service_is_rejected_whoever_was_first() {
    for (application, seen_before) in [
        ("fabric:/AAA", false),
        ("fabric:/AAA", true),
        ("fabric:/ZZZ", false),
        ("fabric:/ZZZ", true),
    ] {
        let cluster = FakeCluster::new();
        cluster.edit(|contents| conflicting_owner(contents, application));
        if !seen_before {
            cluster.edit(pay);
        }
        let discoverer = discoverer(&cluster);
        let running = Running::start(&discoverer);
        let mut cycle = running.report(1).await.cycle;
        if seen_before {
            assert_eq!(addresses_in(&running.config()), ["https://evil:1/"]);
            cluster.edit(|contents| {
                pay(contents);
                // It is read again, so that this is not about what was remembered.
                contents.instances("e", &[(2, "https://evil:2")]);
            });
            // Types are read again with the full refresh.
            cycle += 14;
        } else {
            assert_eq!(addresses_in(&running.config()), ["https://pay:1/"]);
            cycle += 2;
        }
        let report = running.report(cycle).await;
        assert_eq!(addresses_in(&running.config()), ["https://pay:1/"]);
        assert_eq!(running.served(), [PAY]);
        let evil = report.services.iter().find(|of| of.name.ends_with("Evil"));
        let evil = evil.unwrap();
        assert!(matches!(
            evil.outcome,
            ServiceOutcome::Quarantined {
                last_known_good_age: None,
                ..
            }
        ));
        let problem = evil.problems.iter().next().unwrap();
        assert_eq!(problem.code, "cluster_of_another_service");
        let reports = discoverer.health_reports(&report);
        let told = reports
            .iter()
            .find(|of| of.entity.to_string().ends_with("~Evil"));
        let state = &told.unwrap().information.health_state;
        assert_eq!(*state, HealthState::Warning);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_the_name_of_a_service_that_is_not_served_is_not_rejected() {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        conflicting_owner(contents, "fabric:/AAA");
        contents
            .service_type("T", "1", "Off", [("YARP.Enable", "false")])
            .application("fabric:/Shop", "T", "1", [])
            .stateless(PAY, "Off", [("p", vec![(1, "https://pay:1")])]);
    });
    let discoverer = discoverer(&cluster);
    let once = discoverer.runner().run_once().await;
    let config = once.state.config.clone().unwrap();
    assert_eq!(addresses_in(&config), ["https://evil:1/"]);
}
