//! Tests of endpoints with the naming service. Gateways may respond from their cache.

use super::*;
use crate::model::HealthState;
use crate::options::EndpointSource;

fn resolving(cluster: &FakeCluster) -> ServiceFabricDiscoverer {
    let source = EndpointSource::ReplicasAndResolve;
    with_options(
        cluster,
        ServiceFabricOptions::default().with_endpoint_source(source),
    )
}

fn texts(addresses: &[&str]) -> Option<Vec<String>> {
    Some(addresses.iter().map(ToString::to_string).collect())
}

/// 65
#[tokio::test(start_paused = true)]
async fn an_old_answer_of_the_naming_service_takes_no_instance_away() {
    let cluster = cluster();
    cluster.remember_names();
    cluster.edit(|contents| {
        contents.instances("a1", &[(21, "https://p:1"), (22, "https://q:1")]);
    });
    let discoverer = resolving(&cluster);
    let once = discoverer.runner().run_once().await;
    let config = once.state.config.clone().unwrap();
    let found = addresses_in(&config);
    assert_eq!(
        found,
        [
            "https://p:1/",
            "https://q:1/",
            "https://a2/",
            "https://b1/",
            "https://b2/"
        ]
    );
    assert_eq!(cluster.calls("resolve a1"), 2);
    assert_eq!(cluster.calls("resolve a1 old-v1"), 1);
    let reports = discoverer.health_reports(once.report.as_deref().unwrap());
    let is_ok = |state: &HealthState| *state == HealthState::Ok;
    assert!(reports.iter().all(|of| is_ok(&of.information.health_state)));
}

/// 65
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_not_named_in_a_new_answer_is_taken_away() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents.instances("a1", &[(21, "https://p:1"), (22, "https://q:1")]);
        contents.draining.push(21);
    });
    let discovery = cycle(&resolving(&cluster)).await;
    assert_eq!(
        addresses(&discovery)["fabric:/A/S1"],
        texts(&["https://q:1/"])
    );
    assert_eq!(cluster.calls("resolve a1"), 2);
    assert_eq!(cluster.calls("resolve a2"), 1);
}

/// 65
#[tokio::test(start_paused = true)]
async fn what_is_not_named_serves_on_while_nothing_else_does() {
    let cluster = cluster();
    let discoverer = resolving(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    let before = running.config();
    cluster.edit(|contents| contents.draining.push(1));
    let report = running.report(3).await;
    assert_eq!(running.config(), before);
    let reports = discoverer.health_reports(&report);
    let information = &reports[0].information;
    assert_eq!(information.health_state, HealthState::Warning);
    assert!(
        information.description.contains("names none"),
        "{information:?}"
    );
    cluster.edit(|contents| {
        contents.instances("a1", &[(1, "https://a1:443"), (9, "https://new:1")]);
    });
    running.report(report.cycle + 12).await;
    let config = running.config();
    assert!(addresses_in(&config).contains(&"https://new:1/".to_owned()));
    assert!(!addresses_in(&config).contains(&"https://a1/".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_challenge_that_fails_takes_nothing_away() {
    let cluster = cluster();
    cluster.remember_names();
    cluster.edit(|contents| {
        contents.instances("a1", &[(21, "https://p:1"), (22, "https://q:1")]);
    });
    cluster.fail("resolve a1 old-v1", crate::calls::CallErrorKind::Busy);
    let discovery = cycle(&resolving(&cluster)).await;
    assert_eq!(
        addresses(&discovery)["fabric:/A/S1"],
        texts(&["https://p:1/", "https://q:1/"])
    );
    let problem = discovery.problems.iter().next().unwrap();
    assert_eq!(problem.code, "stale_answer");
}
