//! Tests of the start of cycles.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::*;
use crate::calls::CallErrorKind;
use crate::model::ReplicaStatus;

async fn fires_after(discoverer: &ServiceFabricDiscoverer) -> Option<Duration> {
    let start = Instant::now();
    let fired = timeout(Duration::from_secs(3600), discoverer.changed()).await;
    fired.is_ok().then(|| start.elapsed())
}

fn unready(cluster: &FakeCluster) {
    cluster.edit(|contents| {
        let replica = &mut contents.replicas.get_mut("a1").unwrap()[0];
        replica.replica_status = ReplicaStatus::InBuild;
    });
}

#[tokio::test(start_paused = true)]
async fn a_renewed_credential_is_used_within_a_period() {
    let cluster = cluster();
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(2));
    let discoverer = with_options(&cluster, options);
    for _ in 0..20 {
        cluster.fail("application", CallErrorKind::Denied);
        cluster.fail("applications", CallErrorKind::Denied);
        let running = Running::start(&discoverer);
        tokio::time::sleep(Duration::from_secs(60)).await;
        cluster.heal();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(running.served().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_hurries_a_settled_cluster() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    assert_eq!(
        fires_after(&discoverer).await,
        None,
        "before the first cycle"
    );
    cycle(&discoverer).await;
    assert_eq!(fires_after(&discoverer).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_stays_unready_is_hurried_for_half_a_minute_and_then_left_to_the_interval() {
    let cluster = cluster();
    unready(&cluster);
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    let mut waits = Vec::new();
    while let Some(wait) = fires_after(&discoverer).await {
        assert_eq!(fires_after(&discoverer).await, None, "once for each cycle");
        // The hour without fast refreshes.
        let discoverer = &discoverer;
        waits.push(wait.as_secs());
        if waits.len() > 20 {
            break;
        }
        cycle(discoverer).await;
    }
    assert!(waits.iter().all(|wait| *wait == 5), "{waits:?}");
    assert!((5..=8).contains(&waits.len()), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_nobody_waited_for_is_not_lost() {
    let cluster = cluster();
    unready(&cluster);
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(fires_after(&discoverer).await, Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn the_runner_sees_a_service_become_ready_within_the_fast_period() {
    let cluster = cluster();
    unready(&cluster);
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    assert_eq!(addresses_in(&running.config()).len(), 3);
    cluster.edit(|contents| {
        let replica = &mut contents.replicas.get_mut("a1").unwrap()[0];
        replica.replica_status = ReplicaStatus::Ready;
    });
    let start = Instant::now();
    let mut states = running.provider.subscribe();
    let all = states.wait_for(|state| {
        let config = state.config.as_deref();
        config.is_some_and(|config| addresses_in(config).len() == 4)
    });
    timeout(Duration::from_secs(60), all)
        .await
        .unwrap()
        .unwrap();
    let took = start.elapsed();
    assert!(took <= Duration::from_secs(6), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn everything_is_listed_in_time_although_cycles_come_in_a_hurry() {
    let cluster = cluster();
    unready(&cluster);
    let discoverer = discoverer(&cluster);
    let _running = Running::start(&discoverer);
    for minutes in 1..=5 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let listed = cluster.calls("applications");
        assert!((minutes..=minutes * 3 + 1).contains(&listed), "{listed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_service_is_found_within_the_period() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    cluster.edit(|contents| {
        contents.stateless("fabric:/A/New", "S", [("n", vec![(1, "https://n:1")])]);
    });
    let start = Instant::now();
    let mut states = running.provider.subscribe();
    let found = states.wait_for(|state| {
        let config = state.config.as_deref();
        config.is_some_and(|config| config.clusters.len() == 5)
    });
    timeout(Duration::from_secs(60), found)
        .await
        .unwrap()
        .unwrap();
    let took = start.elapsed();
    assert!(took <= Duration::from_secs(33), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_listed_is_tried_again_in_a_hurry_for_a_while() {
    let cluster = cluster();
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    let discoverer = with_options(&cluster, options);
    cluster.fail("services A", CallErrorKind::Busy);
    let _running = Running::start(&discoverer);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let tries = cluster.calls("services A");
    assert!((4..=5).contains(&tries), "{tries}");
    assert_eq!(cluster.calls("services B"), 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let tries = cluster.calls("services A");
    assert!((20..=35).contains(&tries), "{tries}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_cycle_hurries_nothing() {
    let cluster = cluster();
    unready(&cluster);
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    let discoverer = with_options(&cluster, options);
    cycle(&discoverer).await;
    cluster.fail("applications", CallErrorKind::Busy);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(discoverer.discover().await.is_err());
    assert_eq!(fires_after(&discoverer).await, None);
}
