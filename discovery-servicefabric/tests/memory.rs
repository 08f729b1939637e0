//! Test of the memory for a large cluster, from the gateway's responses to the snapshot that serves.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use cap::Cap;
use discovery_core::{ConfigFilter, Merge};
use discovery_servicefabric::testing::FakeCluster;
use discovery_servicefabric::{ServiceFabric, ServiceFabricOptions};

/// Counts the heap of the whole process.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const SERVICES: usize = 2_000;

/// The most bytes of one service: 17,500 were measured.
const MOST: usize = 18_100;

/// The most bytes of one service at any moment of the start: 19,700 were measured.
const MOST_AT_ONCE: usize = 20_500;

/// The most bytes that a cycle without a change allocates for each service: 8,300 to 9,000 were measured.
const MOST_OF_A_CYCLE: usize = 9_500;

/// Services in an application.
const EACH: usize = 100;

/// A cluster of services with one partition, three instances and one route each, in applications of a
/// hundred services.
fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents.application_type("StoreType", "1.0.0", [("Host", "shop.example")]);
        for service in 0..EACH {
            let path = format!("/frontend-{service:02}/{{**rest}}");
            let labels = [
                ("YARP.Enable", "true"),
                ("YARP.Routes.main.Hosts", "[Host]"),
                ("YARP.Routes.main.Path", &path),
                (
                    "YARP.Routes.main.Transforms.[0].PathRemovePrefix",
                    "/frontend",
                ),
                ("YARP.Backend.LoadBalancingPolicy", "PowerOfTwoChoices"),
                ("YARP.Backend.HealthCheck.Active.Enabled", "true"),
                ("YARP.Backend.HealthCheck.Active.Path", "/healthz"),
                ("YARP.Backend.Metadata.Team", "store"),
            ];
            contents.service_type("StoreType", "1.0.0", &format!("Type{service:02}"), labels);
        }
        for application in 0..SERVICES / EACH {
            let name = format!("fabric:/Store{application:04}");
            let host = format!("store-{application:04}.example");
            contents.application(&name, "StoreType", "1.0.0", [("Host", host.as_str())]);
            for service in 0..EACH {
                let at = application * EACH + service;
                let partition = format!("{at:08x}-6e0a-4a4b-9d3c-a0b9c5e0d001");
                let address = |instance: u8| {
                    let host = format!("10.{instance}.{}.{}", at / 250, at % 250);
                    format!("https://{host}:20001/{partition}/{instance}")
                };
                let addresses = [1, 2, 3].map(address);
                let id = 133_000_000_000_000_000 + at as i64 * 10;
                let instances = addresses
                    .iter()
                    .zip(1..)
                    .map(|(address, n)| (id + n, address.as_str()));
                let instances: Vec<_> = instances.collect();
                contents.stateless(
                    &format!("{name}/Frontend{service:02}"),
                    &format!("Type{service:02}"),
                    [(partition.as_str(), instances)],
                );
            }
        }
    });
    cluster
}

/// A filter that changes nothing.
struct NoChange;

impl ConfigFilter for NoChange {}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_each_service_is_bounded() {
    let cluster = cluster();
    let begin = HEAP.allocated();
    let held = |what: &str| {
        let bytes = HEAP.allocated() - begin;
        println!("{what}: {} bytes of each service", bytes / SERVICES);
        bytes
    };
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let discoverer = ServiceFabric::new(cluster.clone())
        .options(options)
        .discoverer();
    let answer = discovery_core::Discoverer::discover(&discoverer)
        .await
        .unwrap();
    cluster.forget_calls();
    held("discoverer with answer");
    drop(answer);
    held("discoverer");
    // As in the gateway, whose filter leaves most services as they are.
    let provider = discoverer.runner().filter(NoChange).start();
    while provider.state().status.cycles < 3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.forget_calls();
    held("runner");
    let merged = Arc::new(Merge::new().provider(provider).start());
    merged.ready().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    cluster.forget_calls();
    held("merge");
    assert_eq!(merged.state().snapshot.clusters().len(), SERVICES);
    assert!(merged.state().problems.is_empty());
    cluster.forget_calls();
    cluster.take_reports();
    let total = held("all");
    assert!(total / SERVICES < MOST, "{total}");
    // An allocator does not return all of it at once.
    let at_once = (HEAP.max_allocated() - begin) / SERVICES;
    println!("at once: {at_once} bytes of each service");
    assert!(at_once < MOST_AT_ONCE, "{at_once}");

    // What a cycle takes for a moment is resident memory as well, in a process that polls every few seconds.
    let (cycles, taken) = (merged.providers()[0].status.cycles, HEAP.total_allocated());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let cycles = merged.providers()[0].status.cycles - cycles;
    assert!(cycles >= 4, "{cycles} cycles");
    let taken = (HEAP.total_allocated() - taken) / cycles as usize / SERVICES;
    println!("a quiet cycle: {taken} bytes of each service");
    assert!(taken < MOST_OF_A_CYCLE, "{taken}");
}
