use std::sync::Arc;
use std::time::Duration;

use proxy_model::{CompileOptions, RequestHead, Snapshot};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::*;
use crate::balance::{Candidates, LoadBalancer};
use crate::fixtures::{Log, config, snapshot};
use crate::observe::targets;

fn with_destinations(count: usize) -> Arc<Snapshot> {
    let destinations: Vec<_> = (0..count)
        .map(|i| format!(r#""d{i}":{{"Address":"http://h{i}/"}}"#))
        .collect();
    snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"Destinations":{{{}}}}}}}}}"#,
        destinations.join(",")
    ))
}

#[tokio::test(start_paused = true)]
async fn the_driver_follows_its_source() {
    let (source, snapshots) = watch::channel(with_destinations(1));
    let (proxy, driver) = Proxy::builder().snapshots(snapshots).build().unwrap();
    assert_eq!(
        proxy.clusters()[0].destinations.len(),
        1,
        "the current one serves at once"
    );
    let mut generations = proxy.generations();
    tokio::spawn(driver);
    source.send(with_destinations(2)).unwrap();
    generations.changed().await.unwrap();
    assert_eq!(*generations.borrow_and_update(), 2);
    assert_eq!(proxy.clusters()[0].destinations.len(), 2);

    // When the channel closes, its last configuration stays.
    drop(source);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(proxy.clusters()[0].destinations.len(), 2);
    assert_eq!(proxy.publish(with_destinations(3)).unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_between_build_and_spawn_is_not_missed() {
    let (source, snapshots) = watch::channel(with_destinations(1));
    let (proxy, driver) = Proxy::builder().snapshots(snapshots).build().unwrap();
    source.send(with_destinations(2)).unwrap();
    let mut generations = proxy.generations();
    tokio::spawn(driver);
    generations.changed().await.unwrap();
    assert_eq!(proxy.clusters()[0].destinations.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_driver_ends_with_the_last_handle() {
    let (proxy, driver) = Proxy::builder().build().unwrap();
    let driver = tokio::spawn(driver);
    let service = proxy.service();
    let clone = service.clone();
    drop((proxy, service));
    sleep(Duration::from_secs(10)).await;
    assert!(!driver.is_finished());
    drop(clone);
    timeout(Duration::from_secs(10), driver)
        .await
        .unwrap()
        .unwrap();
}

struct First;

impl LoadBalancer for First {
    fn pick(&self, _: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        Some(0)
    }
}

#[test]
fn a_policy_that_is_not_registered_is_rejected_and_the_current_configuration_stays() {
    let builder = Proxy::builder().balancer("First", Arc::new(First));
    let json = r#"{"Clusters":{"a/b":{"LoadBalancingPolicy":"first"}}}"#;
    let (compiled, _) = Snapshot::compile(config(json), &builder.compile_options()).unwrap();
    let compiled = Arc::new(compiled);
    assert!(Snapshot::compile(config(json), &CompileOptions::default()).is_err());
    assert!(builder.snapshot(Arc::clone(&compiled)).build().is_ok());

    let (proxy, _driver) = Proxy::builder()
        .snapshot(with_destinations(1))
        .build()
        .unwrap();
    let problems = proxy.publish(compiled).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.pointer, "/Clusters/a~1b/LoadBalancingPolicy");
    assert_eq!(proxy.clusters()[0].id, *"c");
    assert_eq!(proxy.overview().generation, 1);
    let history = proxy.history();
    assert_eq!(history[0].outcome, PublishOutcome::Rejected);
    assert!(
        history[0].lines[0].contains("First"),
        "{:?}",
        history[0].lines
    );
    assert_eq!(
        (history[1].outcome, history.len()),
        (PublishOutcome::Published, 2)
    );
}

#[test]
fn names_of_built_in_policies_are_taken() {
    let builder = Proxy::builder().balancer("roundrobin", Arc::new(First));
    let problems = builder.build().unwrap_err();
    assert!(problems.to_string().contains("roundrobin"), "{problems}");
}

#[test]
fn the_last_twenty_changes_are_remembered_in_words() {
    let (proxy, _driver) = Proxy::builder()
        .snapshot(with_destinations(0))
        .build()
        .unwrap();
    for count in 1..=30 {
        proxy.publish(with_destinations(count)).unwrap();
    }
    let history = proxy.history();
    assert_eq!(history.len(), 20);
    assert_eq!((history[0].generation, history[19].generation), (31, 12));
    assert!(
        history[0].lines.iter().any(|line| line.contains("d29")),
        "{:?}",
        history[0].lines
    );
    assert_eq!(
        history[0].revision,
        with_destinations(30).revision().to_string()
    );

    proxy.publish(with_destinations(1_000)).unwrap();
    let large = &proxy.history()[0];
    assert!(large.lines.len() <= 200);
    let json = serde_json::to_value(large).unwrap();
    assert_eq!(json["outcome"], "published");
}

#[tokio::test(start_paused = true)]
async fn rates_are_measured_once_a_second() {
    let (proxy, driver) = Proxy::builder()
        .snapshot(with_destinations(2))
        .build()
        .unwrap();
    tokio::spawn(driver);
    // The first sample is taken at once.
    sleep(Duration::from_millis(500)).await;
    let destination = {
        let generation = proxy.shared().load();
        let cluster = generation.cluster(proxy_model::compiled::ClusterIndex(0));
        Arc::clone(&cluster.destinations()[0])
    };
    for _ in 0..3 {
        for _ in 0..5 {
            destination.metrics().requested();
            destination
                .metrics()
                .responded(http::StatusCode::OK, Duration::from_millis(7));
        }
        sleep(Duration::from_secs(1)).await;
    }
    let cluster = &proxy.clusters()[0];
    assert_eq!(cluster.per_second[56..], [0, 5, 5, 5]);
    assert_eq!(cluster.requests, 15);
    let p50 = cluster.latency.unwrap().p50;
    assert!(
        p50 > Duration::from_millis(6) && p50 < Duration::from_millis(8),
        "{p50:?}"
    );
    assert_eq!(cluster.destinations[0].responses.success, 15);
    assert_eq!(cluster.destinations[1].per_second, [0; 60]);
    let json = serde_json::to_value(cluster).unwrap();
    assert_eq!(json["destinations"][0]["responses"]["2xx"], 15);
    assert!(json["latency"]["p99_ms"].as_f64().unwrap() < 8.0);
}

#[test]
fn publishing_from_many_threads_loses_no_generation() {
    let (proxy, _driver) = Proxy::builder().build().unwrap();
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let proxy = proxy.clone();
                scope.spawn(move || {
                    let publish = |count| proxy.publish(with_destinations(count)).unwrap();
                    (0..25).map(publish).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (2..=101).collect::<Vec<_>>());
    assert_eq!(proxy.overview().generation, 101);
    assert_eq!(*proxy.generations().borrow(), 101);
}

#[test]
fn what_is_not_supported_is_logged_once() {
    let cors = |policy: &str| {
        snapshot(&format!(
            r#"{{"Routes":{{"r":{{"Match":{{"Path":"/"}},"CorsPolicy":"{policy}"}}}}}}"#
        ))
    };
    let (log, _guard) = Log::start();
    let warnings = || {
        let events = log.take(targets::CONFIG);
        events
            .iter()
            .filter(|event| event.level == Level::WARN)
            .count()
    };
    let (proxy, _driver) = Proxy::builder().snapshot(cors("Default")).build().unwrap();
    assert_eq!(warnings(), 1);
    proxy.publish(cors("default")).unwrap();
    assert_eq!(warnings(), 0, "it was said already");
    proxy.publish(cors("Disable")).unwrap();
    proxy.publish(cors("Default")).unwrap();
    assert_eq!(warnings(), 1);
}
