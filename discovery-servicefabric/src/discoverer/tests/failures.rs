//! Failing calls remove nothing.

use std::time::Duration;

use discovery_core::{DiscoverErrorKind, ServiceOutcome, SourceState};

use super::*;
use crate::calls::CallErrorKind;
use crate::model::{HealthState, ServiceStatus};

/// Options without a cache, so that the first failure counts.
fn cold() -> ServiceFabricOptions {
    ServiceFabricOptions::default().with_cache_duration(Duration::ZERO)
}

fn names(discovery: &Discovery) -> Vec<&str> {
    let services = discovery.services.iter();
    services.map(|service| &*service.name).collect()
}

fn failed_groups(discovery: &Discovery) -> Vec<&str> {
    let groups = discovery.failed_groups.iter();
    groups.map(|failed| &*failed.group).collect()
}

/// 54
#[tokio::test(start_paused = true)]
async fn an_application_that_cannot_be_listed_is_named_and_the_others_are_read() {
    let cluster = cluster();
    let discoverer = with_options(&cluster, cold());
    cluster.fail("services A", CallErrorKind::Busy);
    for _ in 0..2 {
        let discovery = next(&discoverer).await;
        assert_eq!(names(&discovery), ["fabric:/B/S1", "fabric:/B/S2"]);
        assert_eq!(failed_groups(&discovery), ["fabric:/A"]);
        let problem = &discovery.failed_groups[0].problem;
        assert_eq!(problem.pointer, "/Applications/fabric:~1A");
        assert_eq!(
            problem.message,
            "the services of `fabric:/A` could not be read: services A: the test says so"
        );
    }
    cluster.heal();
    let discovery = next(&discoverer).await;
    assert_eq!(discovery.services.len(), 4);
    assert_eq!(failed_groups(&discovery), [""; 0]);
}

/// 54
#[tokio::test(start_paused = true)]
async fn the_services_of_an_application_that_cannot_be_listed_serve_on() {
    let cluster = cluster();
    let discoverer = with_options(&cluster, cold());
    let running = Running::start(&discoverer);
    running.report(1).await;
    let all = running.served();
    assert_eq!(all.len(), 4);
    cluster.fail("services A", CallErrorKind::Busy);
    let report = running.report(3).await;
    assert_eq!(running.served(), all);
    let kept = report
        .services
        .iter()
        .filter(|service| match service.outcome {
            ServiceOutcome::Quarantined {
                last_known_good_age,
                ..
            } => last_known_good_age.is_some(),
            _ => false,
        });
    assert_eq!(kept.count(), 2);
}

/// Failing calls that old responses replace are reported within a cycle.
#[tokio::test(start_paused = true)]
async fn a_source_that_answers_in_part_says_so_within_a_cycle() {
    for (call, kind) in [
        ("applications", CallErrorKind::Busy),
        ("applications", CallErrorKind::Denied),
        ("services A", CallErrorKind::Busy),
        ("partitions A~S1", CallErrorKind::Failed),
    ] {
        let cluster = cluster();
        let discoverer = discoverer(&cluster);
        let running = Running::start(&discoverer);
        running.report(1).await;
        let served = running.served();
        assert_eq!(running.state(), SourceState::Live);
        cluster.edit(|contents| {
            contents.instances("a1", &[(70, "https://unseen:1")]);
        });
        cluster.fail(call, kind);
        tokio::time::sleep(Duration::from_secs(35)).await;
        let status = running.provider.state().status.clone();
        assert_eq!(status.state, SourceState::Partial, "{call}");
        let error = status.last_error.expect("it is named");
        assert!(
            error.message.contains("the test says so"),
            "{}",
            error.message
        );
        let is_rejected = kind == CallErrorKind::Denied;
        assert_eq!(error.kind == DiscoverErrorKind::Rejected, is_rejected);
        assert!(error.at.age() <= Duration::from_secs(10));
        assert!(status.consecutive_failures > 0);
        let age = status.last_ok.expect("it has answered").age();
        assert!(age >= Duration::from_secs(30), "{call}: {age:?}");
        assert_eq!(running.served(), served);

        tokio::time::sleep(Duration::from_secs(600)).await;
        let age = running.provider.state().status.last_ok.unwrap().age();
        assert!(age >= Duration::from_secs(630), "{call}: {age:?}");
        cluster.heal();
        tokio::time::sleep(Duration::from_secs(40)).await;
        let status = running.provider.state().status.clone();
        assert_eq!(status.state, SourceState::Live, "{call}");
        assert_eq!(status.consecutive_failures, 0);
        assert!(status.last_ok.unwrap().age() <= Duration::from_secs(33));
    }
}

/// 57
#[tokio::test(start_paused = true)]
async fn an_application_that_is_gone_is_dropped_and_the_cycle_goes_on() {
    let cluster = cluster();
    let discoverer = with_options(&cluster, cold());
    assert_eq!(cycle(&discoverer).await.services.len(), 4);
    cluster.edit(|contents| {
        contents.services.remove("A");
    });
    let discovery = next(&discoverer).await;
    assert_eq!(names(&discovery), ["fabric:/B/S1", "fabric:/B/S2"]);
    assert_eq!(failed_groups(&discovery), [""; 0]);
    let decisions = discoverer.decisions();
    assert_eq!(&*decisions.decisions[0].name, "fabric:/A");
}

/// 58
#[tokio::test(start_paused = true)]
async fn a_service_without_partitions_has_no_destinations() {
    let cluster = cluster();
    for status in [ServiceStatus::Deleting, ServiceStatus::Creating] {
        let discoverer = with_options(&cluster, cold());
        cluster.edit(|contents| {
            contents.partitions.remove("A~S1");
            contents.services.get_mut("A").unwrap()[0].service_status = status;
        });
        let discovery = cycle(&discoverer).await;
        assert_eq!(addresses(&discovery)["fabric:/A/S1"], Some(Vec::new()));
        assert_eq!(discovery.services.len(), 4);
    }
}

/// 58
#[tokio::test(start_paused = true)]
async fn an_active_service_of_which_no_partition_is_listed_serves_on() {
    for listed in [None, Some(Vec::new())] {
        let cluster = cluster();
        let options = cold().with_change_probe(false);
        let discoverer = with_options(&cluster, options);
        let running = Running::start(&discoverer);
        running.report(1).await;
        let before = running.config();
        cluster.edit(|contents| match listed {
            None => drop(contents.partitions.remove("A~S1")),
            Some(listed) => drop(contents.partitions.insert("A~S1".to_owned(), listed)),
        });
        let report = running.report(3).await;
        assert_eq!(running.config(), before);
        let service = &report.services[0];
        assert_eq!(&*service.name, "fabric:/A/S1");
        let problem = service.problems.iter().next().unwrap();
        assert_eq!(problem.code, "no_partitions");
        let reports = discoverer.health_reports(&report);
        assert_eq!(reports[0].information.health_state, HealthState::Warning);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_goes_although_nothing_that_is_left_can_be_read() {
    let cluster = cluster();
    let discoverer = with_options(&cluster, cold().with_change_probe(false));
    let running = Running::start(&discoverer);
    running.report(1).await;
    assert_eq!(running.served().len(), 4);
    cluster.fail("replicas", CallErrorKind::Rejected);
    cluster.fail("partitions", CallErrorKind::Rejected);
    cluster.edit(|contents| {
        contents.applications.retain(|of| of.name != "fabric:/B");
        contents.services.remove("B");
    });
    let report = running.report(3).await;
    assert_eq!(running.served(), ["fabric:/A/S1", "fabric:/A/S2"]);
    assert_eq!(running.state(), SourceState::Live);
    let told = discoverer.health_reports(&report);
    let warnings = told
        .iter()
        .filter(|report| report.information.health_state == HealthState::Warning);
    assert_eq!(warnings.count(), 2, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_old_list_of_applications_is_no_answer_when_nothing_else_can_be_read() {
    let cluster = cluster();
    let options = ServiceFabricOptions::default().with_change_probe(false);
    let discoverer = with_options(&cluster, options);
    cycle(&discoverer).await;
    cluster.fail("applications", CallErrorKind::Busy);
    cluster.fail("partitions", CallErrorKind::Rejected);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(discoverer.discover().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_first_cycle_in_which_everything_is_forbidden_is_a_rejection() {
    for call in ["services", "partitions", "service_types"] {
        let cluster = cluster();
        cluster.fail(call, CallErrorKind::Denied);
        let error = discoverer(&cluster).discover().await.unwrap_err();
        assert_eq!(error.kind(), DiscoverErrorKind::Rejected, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_whole_says_which_part_is_missing() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents.stateful(
            "fabric:/A/Many",
            "S",
            [
                ("m1", vec![(1, "https://m:1")]),
                ("m2", vec![(1, "https://m:2")]),
                ("m3", vec![(1, "https://m:3")]),
            ],
        );
    });
    let discoverer = with_options(&cluster, cold());
    cycle(&discoverer).await;
    for (call, kind, missing) in [
        ("replicas m2", CallErrorKind::Busy, Some("m2/")),
        ("replicas m3", CallErrorKind::Gone, Some("m3/")),
        ("partitions A~Many", CallErrorKind::TimedOut, None),
        ("replicas m1", CallErrorKind::Rejected, Some("m1/")),
        ("partitions A~Many", CallErrorKind::Malformed, None),
    ] {
        cluster.fail(call, kind);
        let discovery = next(&discoverer).await;
        let found = addresses(&discovery)["fabric:/A/Many"].clone();
        assert_eq!(found.map(|of| of.len()), missing.map(|_| 2), "{call}");
        assert_eq!(discovery.services.len(), 5);
        let mut services = discovery.services.iter();
        let many = services.find(|of| &*of.name == "fabric:/A/Many").unwrap();
        let unread: Vec<_> = many.unread.iter().map(|of| &**of).collect();
        assert_eq!(unread, missing.into_iter().collect::<Vec<_>>(), "{call}");
        cluster.heal();
        let discovery = next(&discoverer).await;
        let found = addresses(&discovery)["fabric:/A/Many"].clone().unwrap();
        assert_eq!(found.len(), 3, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_vanishes_meanwhile_is_looked_for_once_more() {
    let cluster = cluster();
    let discoverer = with_options(&cluster, cold());
    cluster.fail_times("replicas a1", CallErrorKind::Gone, 1);
    let discovery = cycle(&discoverer).await;
    assert_eq!(
        addresses(&discovery)["fabric:/A/S1"],
        Some(vec!["https://a1/".to_owned()])
    );
    assert_eq!(cluster.calls("partitions A~S1"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_without_the_applications_is_an_error_of_the_right_kind() {
    for (kind, expected) in [
        (CallErrorKind::Unreachable, DiscoverErrorKind::Transient),
        (CallErrorKind::TimedOut, DiscoverErrorKind::Transient),
        (CallErrorKind::Busy, DiscoverErrorKind::Transient),
        (CallErrorKind::Failed, DiscoverErrorKind::Transient),
        (CallErrorKind::Malformed, DiscoverErrorKind::Transient),
        (CallErrorKind::Gone, DiscoverErrorKind::Transient),
        (CallErrorKind::Denied, DiscoverErrorKind::Rejected),
        (CallErrorKind::Rejected, DiscoverErrorKind::Permanent),
    ] {
        let cluster = cluster();
        let wait = Duration::from_secs(7);
        cluster.fail_patiently("applications", kind, wait);
        let error = discoverer(&cluster).discover().await.unwrap_err();
        assert_eq!(error.kind(), expected, "{kind:?}");
        assert_eq!(error.retry_after(), Some(wait));
        assert_eq!(
            error.chain(),
            "the applications of the cluster cannot be listed: applications: the test says so"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cycle_in_which_nothing_can_be_read_is_an_error_and_not_an_empty_answer() {
    for call in [
        "services",
        "partitions",
        "replicas",
        "service_types",
        "application_types",
    ] {
        let cluster = cluster();
        let discoverer = with_options(&cluster, cold());
        cluster.fail(call, CallErrorKind::Busy);
        let error = discoverer.discover().await.unwrap_err();
        assert_eq!(error.kind(), DiscoverErrorKind::Transient, "{call}");
        cluster.heal();
        assert_eq!(cycle(&discoverer).await.services.len(), 4, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_anything_is_an_answer() {
    let cluster = FakeCluster::new();
    let discoverer = discoverer(&cluster);
    assert_eq!(cycle(&discoverer).await, Discovery::default());
}

#[tokio::test(start_paused = true)]
async fn an_outage_leaves_everything_as_it_was_however_long_it_is() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    let before = running.config();
    for call in [
        "application_types",
        "applications",
        "service_types",
        "services",
        "partitions",
        "replicas",
        "replica_ids",
    ] {
        cluster.fail(call, CallErrorKind::Unreachable);
    }
    // With only old responses, the source reports a failure.
    let mut states = running.provider.subscribe();
    let guard = Duration::from_secs(24 * 3600);
    let failing = states.wait_for(|state| state.status.state == SourceState::Failing);
    tokio::time::timeout(guard, failing).await.unwrap().unwrap();
    let status = running.provider.state().status.clone();
    let message = status.last_error.unwrap().message;
    assert!(
        message.starts_with("the cluster answers nothing: "),
        "{message}"
    );
    assert_eq!(running.config(), before);
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(running.config(), before);

    cluster.heal();
    cluster.edit(|contents| {
        contents.remove_service("fabric:/B/S2");
    });
    let live = states.wait_for(|state| state.status.state == SourceState::Live);
    tokio::time::timeout(guard, live).await.unwrap().unwrap();
    assert_eq!(running.served().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn old_answers_stand_in_for_calls_that_fail_while_others_work() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    let before = running.config();
    cluster.fail("applications", CallErrorKind::Unreachable);
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(running.state(), SourceState::Partial);
    let told = running.provider.state().problems.clone();
    let stale = told.iter().find(|problem| problem.code == "stale_answer");
    let message = &stale.unwrap().message;
    let (beginning, cause) = message.split_once(": ").unwrap();
    let age = beginning
        .strip_prefix("a response that is ")
        .and_then(|rest| rest.strip_suffix(" minutes old replaces that of a failed call"));
    assert!(age.is_some_and(|age| age.parse::<u32>().is_ok()), "{told}");
    assert!(cause.contains("applications"), "{told}");
    assert_eq!(running.config(), before);
}

/// An old response must not count as what the probe saw at the same time.
#[tokio::test(start_paused = true)]
async fn what_was_read_from_memory_is_read_again() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    cluster.edit(|contents| {
        contents.instances("a1", &[(77, "https://moved:443")]);
    });
    cluster.fail_times("replicas a1", CallErrorKind::Busy, 1);
    let old = next(&discoverer).await;
    assert_eq!(
        addresses(&old)["fabric:/A/S1"],
        Some(vec!["https://a1/".to_owned()])
    );
    assert_eq!(old.problems.iter().next().unwrap().code, "stale_answer");
    let new = next(&discoverer).await;
    assert_eq!(
        addresses(&new)["fabric:/A/S1"],
        Some(vec!["https://moved/".to_owned()])
    );
    assert!(new.problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn old_labels_are_told_until_there_are_new_ones() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents
            .service_type(
                "T",
                "1",
                "D",
                [
                    ("YARP.EnableDynamicOverrides", "true"),
                    ("YARP.Enable", "true"),
                ],
            )
            .stateless("fabric:/A/D", "D", [("d", vec![(1, "https://d:1")])])
            .property("fabric:/A/D", "YARP.Routes.x.Path", "/one");
    });
    let discoverer = discoverer(&cluster);
    let first = cycle(&discoverer).await;
    cluster.fail("properties", CallErrorKind::Busy);
    let old = next(&discoverer).await;
    assert_eq!(old.services, first.services);
    assert_eq!(old.problems.len(), 1);
    cluster.heal();
    assert_eq!(next(&discoverer).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_is_dropped_leaves_nothing_half_done() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let whole = {
        let other = super::discoverer(&cluster);
        cycle(&other).await
    };
    cluster.delay(Duration::from_secs(1));
    for seconds in 0..9 {
        let limit = Duration::from_millis(seconds * 1000 + 500);
        let dropped = tokio::time::timeout(limit, discoverer.discover()).await;
        if let Ok(done) = dropped {
            assert_eq!(done.unwrap(), whole);
        }
    }
    assert_eq!(cycle(&discoverer).await, whole);
}

#[tokio::test(start_paused = true)]
async fn an_application_of_a_type_that_is_not_listed_waits() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    cluster.edit(|contents| {
        contents.application("fabric:/C", "T", "2", []);
    });
    let discovery = next(&discoverer).await;
    assert_eq!(failed_groups(&discovery), ["fabric:/C"]);
    assert_eq!(discovery.services.len(), 4);
}

/// An upgrade to a version whose types cannot be read must not turn `[Parameter]` into nothing.
#[tokio::test(start_paused = true)]
async fn defaults_that_cannot_be_read_are_not_taken_for_none() {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [("Path", "/one")])
            .service_type(
                "T",
                "1",
                "S",
                [("YARP.Enable", "true"), ("YARP.Routes.r.Path", "[Path]")],
            )
            .application("fabric:/A", "T", "1", [])
            .stateless("fabric:/A/S", "S", [("p", vec![(1, "https://a:1")])]);
    });
    let discoverer = with_options(&cluster, cold());
    let first = cycle(&discoverer).await;
    cluster.fail("application_types", CallErrorKind::Busy);
    let second = next(&discoverer).await;
    assert_eq!(second.services, first.services);
    assert_eq!(second.problems.len(), 1);
}

/// Rejected calls while a label is wrong and instances have moved: they are told as a rejection, whether older answers
/// stand in or not. What is quarantined stays listed, and follows its instances once the credentials are right.
#[tokio::test(start_paused = true)]
async fn rejections_are_told_as_such_beside_quarantine_and_older_answers() {
    let set_order = |cluster: &FakeCluster, order: &'static str| {
        cluster.edit(|contents| {
            contents.property("fabric:/A/S1", "YARP.Routes.r1.Order", order);
        });
    };
    const ALL: &[&str] = &[
        "application_types",
        "applications",
        "service_types",
        "services",
        "partitions",
        "replicas",
        "replica_ids",
        "properties",
    ];
    for (cache, calls, state, condition) in [
        (
            Duration::from_secs(1800),
            &["applications", "replicas a1", "replica_ids"][..],
            SourceState::Partial,
            "the source rejects a part of the requests, older answers stand in for the rest",
        ),
        (
            Duration::ZERO,
            ALL,
            SourceState::Failing,
            "the source rejects the request, its last known good configuration serves",
        ),
    ] {
        let cluster = cluster();
        cluster.edit(|contents| {
            let labels = LABELS
                .into_iter()
                .chain([("YARP.EnableDynamicOverrides", "true")]);
            contents.service_types.clear();
            contents.service_type("T", "1", "S", labels);
        });
        let options = ServiceFabricOptions::default().with_cache_duration(cache);
        let running = Running::start(&with_options(&cluster, options));
        running.report(1).await;
        set_order(&cluster, "abc");
        running.report(40).await;
        let listed = || running.provider.state().status.quarantined.clone();
        assert_eq!(listed().len(), 1);
        let served = addresses_in(&running.config());
        assert_eq!(served.len(), 4);

        for call in calls {
            cluster.fail(call, CallErrorKind::Denied);
        }
        cluster.edit(|contents| {
            contents.instances("a1", &[(9, "https://moved:9")]);
        });
        tokio::time::sleep(Duration::from_secs(300)).await;
        let status = running.provider.state().status.clone();
        assert_eq!(status.state, state, "{cache:?}");
        assert_eq!(status.condition(true).as_deref(), Some(condition));
        assert_eq!(addresses_in(&running.config()), served);
        let serves = listed()[0].serves();
        assert!(serves.contains("minutes ago, destinations of "), "{serves}");
        assert!(!serves.ends_with(" 0 s ago"), "{serves}");

        cluster.heal();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(running.state(), SourceState::Live, "{cache:?}");
        let now = addresses_in(&running.config());
        assert!(now.contains(&"https://moved:9/".to_owned()), "{now:?}");
        assert_eq!(listed().len(), 1, "the label is still wrong");
        set_order(&cluster, "3");
        tokio::time::sleep(Duration::from_secs(700)).await;
        assert!(listed().is_empty());
    }
}
