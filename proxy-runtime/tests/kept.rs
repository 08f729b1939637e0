//! The memory that is kept for many routes, from the configuration as it was read to the proxy that serves.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use discovery_core::{Merge, StaticProvider};
use proxy_model::config::ProxyConfig;
use proxy_runtime::Proxy;
use serde_json::{Map, json};

/// Counts the heap of the whole process.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const ROUTES: usize = 1_000;

/// Routes to clusters of their own with three destinations each, whose addresses depend on `version`.
fn config(version: usize) -> ProxyConfig {
    let (mut routes, mut clusters) = (Map::new(), Map::new());
    for n in 0..ROUTES {
        let id = format!("fabric:/Store{:04}/Frontend{:02}", n / 100, n % 100);
        let route = json!({
            "ClusterId": id,
            "Match": {
                "Hosts": [format!("store-{:04}.example", n / 100)],
                "Path": format!("/frontend-{:02}/{{**rest}}", n % 100),
            },
            "Transforms": [{ "PathRemovePrefix": "/frontend" }],
        });
        let destinations = (1..=3).map(|instance| {
            let host = format!("10.{instance}.{}.{}", n / 250, n % 250);
            let place = format!("{n:08x}-6e0a-4a4b-9d3c-a0b9c5e0d001/{instance}");
            let destination = json!({ "Address": format!("https://{host}:2000{version}/{place}") });
            (place, destination)
        });
        let cluster = json!({
            "LoadBalancingPolicy": "PowerOfTwoChoices",
            "Metadata": { "Team": "store" },
            "Destinations": destinations.collect::<Map<_, _>>(),
        });
        routes.insert(format!("{id}.main"), route);
        clusters.insert(id, cluster);
    }
    let section = json!({ "Routes": routes, "Clusters": clusters });
    ProxyConfig::from_json(&section.to_string()).unwrap()
}

/// The most bytes of a route, its cluster and three destinations at each step, and what was measured.
const MOST: [(&str, usize); 3] = [
    // 3,567
    ("the configuration", 3_700),
    // 2,442: the configuration is shared.
    ("its compiled form", 2_600),
    // 1,635: session affinity, passive health and the times that the proxy adds are a part of it.
    ("the state of the proxy", 1_700),
];

/// The most that six reloads add: the changes of the last 20 are kept, 62 KB each, however many routes there are.
const MOST_OF_RELOADS: usize = 600;

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_each_route_is_bounded() {
    let begin = HEAP.allocated();
    let held = || HEAP.allocated().saturating_sub(begin) / ROUTES;
    let mut steps = vec![0];
    let provider = StaticProvider::new("file", config(0));
    steps.push(held());
    let merged = Merge::new().provider(provider.clone()).start();
    merged.ready().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    steps.push(held());
    let proxy = Proxy::builder().snapshots(merged.snapshots());
    let (proxy, driver) = proxy.build().unwrap();
    steps.push(held());
    let driver = tokio::spawn(driver);
    for (pair, (what, most)) in steps.windows(2).zip(MOST) {
        let bytes = pair[1].saturating_sub(pair[0]);
        println!("{what}: {bytes} bytes of each route");
        assert!(bytes <= most, "{what}: {bytes} bytes of each route");
    }
    let first = held();
    for version in 1..=6 {
        let mut generations = proxy.generations();
        assert!(provider.update(config(version)));
        generations.changed().await.unwrap();
        // Time to let go of the previous configuration.
        tokio::time::sleep(Duration::from_secs(2)).await;
        println!("after {version} reloads: {} bytes of each route", held());
    }
    let last = held();
    assert!(
        last <= first + MOST_OF_RELOADS,
        "{first} bytes grew to {last}"
    );
    driver.abort();
}
