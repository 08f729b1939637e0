//! Tests of the failures that an old response replaces, of the time for which it does, and of eviction.

use std::time::Duration;

use super::CachedCalls;
use crate::calls::{CallErrorKind, ClusterCalls};
use crate::testing::FakeCluster;

fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", [])
            .application("fabric:/A", "T", "1", [])
            .stateless("fabric:/A/S", "S", [("p", vec![(1, "https://a:1")])])
            .property("fabric:/A/S", "YARP.Enable", "true");
        contents
            .manifests
            .insert("Pkg".to_owned(), "<x/>".to_owned());
    });
    cluster
}

/// The result of each call as text, or the kind of its error.
async fn all(calls: &impl ClusterCalls) -> Vec<Result<String, CallErrorKind>> {
    macro_rules! told {
        ($($call:expr),*) => { vec![$($call.await.map(|a| format!("{a:?}")).map_err(|e| e.kind())),*] };
    }
    told![
        calls.application_types(),
        calls.applications(),
        calls.service_types("T", "1"),
        calls.service_manifest("T", "1", "Pkg"),
        calls.services("A"),
        calls.partitions("A~S"),
        calls.replicas("p"),
        calls.properties("A~S")
    ]
}

#[tokio::test(start_paused = true)]
async fn which_failures_an_old_answer_stands_in_for() {
    for (kind, stands_in) in [
        (CallErrorKind::Unreachable, true),
        (CallErrorKind::TimedOut, true),
        (CallErrorKind::Busy, true),
        (CallErrorKind::Denied, true),
        (CallErrorKind::Failed, true),
        (CallErrorKind::Malformed, true),
        (CallErrorKind::Rejected, false),
        (CallErrorKind::Gone, false),
    ] {
        let cluster = cluster();
        let cached = CachedCalls::new(cluster.clone());
        let live = all(&cached).await;
        assert!(live.iter().all(Result::is_ok), "{live:?}");
        for call in [
            "application_types",
            "applications",
            "service_types",
            "service_manifest",
            "services",
            "partitions",
            "replicas",
            "properties",
        ] {
            cluster.fail(call, kind);
        }
        let failing = all(&cached).await;
        match stands_in {
            true => assert_eq!(failing, live, "{kind:?}"),
            false => assert!(
                failing.iter().all(|answer| *answer == Err(kind)),
                "{kind:?}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_forgotten() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    assert_eq!(cached.partitions("A~S").await.unwrap().len(), 1);
    cluster.fail_times("partitions", CallErrorKind::Gone, 1);
    assert!(cached.partitions("A~S").await.unwrap_err().is_gone());
    cluster.fail("partitions", CallErrorKind::Busy);
    let error = cached.partitions("A~S").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Busy);
}

#[tokio::test(start_paused = true)]
async fn an_answer_stands_in_for_its_time_and_no_longer() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    cached.replicas("p").await.unwrap();
    cluster.fail("replicas", CallErrorKind::TimedOut);
    tokio::time::advance(Duration::from_secs(30 * 60)).await;
    let observed = cached.observe();
    assert_eq!(observed.stale(), None);
    assert_eq!(observed.replicas("p").await.unwrap().len(), 1);
    let stale = observed.stale().unwrap();
    assert_eq!(stale.at.elapsed(), Duration::from_secs(30 * 60));
    assert_eq!(stale.error, "replicas p: the test says so");

    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(cached.replicas("p").await.is_err());

    cluster.heal();
    let live = cached.observe();
    live.replicas("p").await.unwrap();
    assert_eq!(live.stale(), None);
}

/// R12
#[tokio::test(start_paused = true)]
async fn answers_are_kept_by_what_was_asked_for() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    assert_eq!(cached.replicas("p").await.unwrap().len(), 1);
    cluster.fail("replicas", CallErrorKind::Busy);
    assert!(cached.replicas("q").await.is_err());
    assert_eq!(cached.replicas("p").await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_several_old_answers_is_told() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    cached.partitions("A~S").await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    cached.replicas("p").await.unwrap();
    cluster.fail("partitions", CallErrorKind::Busy);
    cluster.fail("replicas", CallErrorKind::Busy);
    let observed = cached.observe();
    observed.replicas("p").await.unwrap();
    assert_eq!(observed.stale().unwrap().at.elapsed(), Duration::ZERO);
    observed.partitions("A~S").await.unwrap();
    observed.replicas("p").await.unwrap();
    let oldest = observed.stale().unwrap();
    assert_eq!(oldest.at.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn without_a_duration_nothing_is_remembered() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone()).with_duration(Duration::ZERO);
    cached.applications().await.unwrap();
    assert_eq!(cached.remembered(), 0);
    cluster.fail("applications", CallErrorKind::Busy);
    assert!(cached.applications().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_is_forgotten() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    all(&cached).await;
    assert_eq!(cached.remembered(), 8);
    let unused = Duration::from_secs(600);
    tokio::time::advance(Duration::from_secs(400)).await;
    cached.applications().await.unwrap();
    // Asking counts, whether or not the call works.
    cluster.fail("services", CallErrorKind::Busy);
    cached.services("A").await.unwrap();
    tokio::time::advance(Duration::from_secs(400)).await;
    cached.evict(unused);
    assert_eq!(cached.remembered(), 2);
    assert_eq!(cached.services("A").await.unwrap().len(), 1);
    tokio::time::advance(Duration::from_secs(1800)).await;
    cached.evict(Duration::from_secs(10_000));
    assert_eq!(cached.remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_changes_nothing() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    cached.services("A").await.unwrap();
    cluster.delay(Duration::from_secs(10));
    cluster.fail_times("services", CallErrorKind::Gone, 1);
    let dropped = tokio::time::timeout(Duration::from_secs(1), cached.services("A")).await;
    assert!(dropped.is_err());
    assert_eq!(cached.remembered(), 1);
}

#[tokio::test(start_paused = true)]
async fn reports_probes_and_resolutions_are_never_answered_from_memory() {
    let cluster = cluster();
    let cached = CachedCalls::new(cluster.clone());
    let partition = cached.partitions("A~S").await.unwrap()[0]
        .partition_information
        .clone();
    cached.resolve("A~S", &partition, None).await.unwrap();
    cached.replica_ids().await.unwrap();
    cluster.fail("resolve", CallErrorKind::Busy);
    cluster.fail("replica_ids", CallErrorKind::Busy);
    assert!(cached.resolve("A~S", &partition, None).await.is_err());
    assert!(cached.replica_ids().await.is_err());
}
