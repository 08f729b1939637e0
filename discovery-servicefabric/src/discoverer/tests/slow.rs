//! Tests that a slow entity does not delay others for long.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// Returns the time until the configuration has this address.
async fn until(running: &Running, address: &str) -> Duration {
    let start = Instant::now();
    let mut states = running.provider.subscribe();
    let found = states.wait_for(|state| {
        let config = state.config.as_deref();
        config.is_some_and(|config| addresses_in(config).iter().any(|of| of == address))
    });
    let guard = Duration::from_secs(24 * 3600);
    tokio::time::timeout(guard, found).await.unwrap().unwrap();
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_change_is_seen_within_a_period_and_twenty_seconds_although_another_service_hangs() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    cluster.edit(|contents| {
        contents.instances("a1", &[(70, "https://unseen:1")]);
    });
    cluster.slow("replicas a1", Duration::from_secs(60));
    for id in 71..80 {
        let address = format!("https://i{id}:1");
        cluster.edit(|contents| {
            contents.instances("b1", &[(id, &address)]);
        });
        let took = until(&running, &format!("{address}/")).await;
        assert!(took <= Duration::from_secs(33 + 20), "{took:?}");
        let config = running.config();
        let served = addresses_in(&config);
        assert!(served.contains(&"https://a1/".to_owned()), "{served:?}");
    }
    cluster.forget_calls();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let asked = cluster.calls("replicas a1");
    assert!((3..=5).contains(&asked), "{asked} times in 20 minutes");
    cluster.heal();
    let took = until(&running, "https://unseen:1/").await;
    // The last failing call may be running at this moment, for twenty seconds.
    assert!(took <= Duration::from_secs(333 + 20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn many_partitions_that_hang_take_no_longer_than_one() {
    let cluster = cluster();
    let ids: Vec<_> = (0..300).map(|at| format!("h{at}")).collect();
    cluster.edit(|contents| {
        let partitions = ids.iter().map(|id| (id.as_str(), vec![(1, "https://h:1")]));
        contents.stateful("fabric:/A/Hung", "S", partitions);
    });
    for id in &ids {
        cluster.slow(&format!("replicas {id}"), Duration::from_secs(60));
    }
    let discoverer = discoverer(&cluster);
    let start = Instant::now();
    let found = addresses(&cycle(&discoverer).await);
    assert!((20..=31).contains(&start.elapsed().as_secs()));
    assert_eq!(found["fabric:/A/Hung"], None);
    assert_eq!(found.values().flatten().count(), 4);
}

/// A slow service is not a failing one: responses within the limit are waited for, independent of their
/// number.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_read_for_minutes_is_read() {
    let cluster = cluster();
    cluster.edit(|contents| {
        let ids: Vec<_> = (0..100).map(|at| format!("h{at}")).collect();
        let partitions = ids.iter().map(|id| (id.as_str(), vec![(1, "https://h:1")]));
        contents.stateful("fabric:/A/Large", "S", partitions);
    });
    cluster.delay(Duration::from_secs(15));
    let options = ServiceFabricOptions::default().with_max_concurrent_calls(4);
    let discoverer = with_options(&cluster, options);
    let found = addresses(&cycle(&discoverer).await);
    assert_eq!(found["fabric:/A/Large"].as_ref().map(Vec::len), Some(100));
}
