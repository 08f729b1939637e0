//! Poll cycles of Service Fabric discovery over an in-memory cluster: the cost besides the calls.

use std::time::Duration;

use benches::Scale;
use criterion::{BatchSize, Criterion, Throughput};
use discovery_core::{Discoverer, Discovery};
use discovery_servicefabric::testing::FakeCluster;
use discovery_servicefabric::{ServiceFabric, ServiceFabricDiscoverer, ServiceFabricOptions};
use tokio::runtime::Runtime;

/// Number of services per application.
const EACH: usize = 100;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let services = Scale::of_this_run().limit(10_000);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    let mut group = criterion.benchmark_group(format!("servicefabric/{services}"));
    group.throughput(Throughput::Elements(services as u64));

    let cluster = cluster(services);
    group.bench_function("first-round", |bencher| {
        bencher.iter_batched(
            || discoverer(&cluster, true),
            |discoverer| (round(&runtime, &discoverer), discoverer),
            BatchSize::PerIteration,
        );
    });

    let warm = discoverer(&cluster, true);
    cluster.forget_calls();
    let mut answer = None;
    let allocations = allocation_counter::measure(|| answer = Some(round(&runtime, &warm)));
    let first = answer.expect("it was measured");
    println!(
        "servicefabric/{services}/memory: {} KiB at most, {} KiB remembered, beside the conversion on its own thread",
        allocations.bytes_max / 1024,
        allocations.bytes_current / 1024,
    );
    // The cached state of a service: names, shared labels, partitions, replicas, and their
    // responses.
    assert!(allocations.bytes_max < services as u64 * 16 * 1024);
    let applications = services / EACH;
    // Applications and their types, service types, the lists of services, the probe, partitions and
    // replicas.
    let calls = 2 + 1 + applications + 1 + 2 * services;
    assert_eq!(cluster.all_calls().len(), calls);
    assert_eq!(first.services.len(), services);

    group.bench_function("quiet-round", |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds)
                .map(|_| {
                    // Shorter than any refresh interval, so that each cycle only lists.
                    let discoverer = &warm;
                    runtime.block_on(tokio::time::advance(Duration::from_millis(100)));
                    cluster.forget_calls();
                    let start = std::time::Instant::now();
                    let quiet = round(&runtime, discoverer);
                    let took = start.elapsed();
                    assert_eq!(quiet, first);
                    assert_eq!(cluster.all_calls().len(), 2 + applications + 1);
                    took
                })
                .sum()
        });
    });

    let reading = discoverer(&cluster, false);
    assert_eq!(round(&runtime, &reading), first);
    group.bench_function("everything-read-again", |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds)
                .map(|_| {
                    runtime.block_on(tokio::time::advance(Duration::from_millis(100)));
                    cluster.forget_calls();
                    let start = std::time::Instant::now();
                    let again = round(&runtime, &reading);
                    let took = start.elapsed();
                    assert_eq!(again, first);
                    assert_eq!(cluster.calls("replicas"), services);
                    took
                })
                .sum()
        });
    });
    group.finish();
    criterion.final_summary();
}

/// A cluster of services with one partition and two instances each, a hundred per application.
fn cluster(services: usize) -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [("Host", "shop.example")])
            .service_type(
                "T",
                "1",
                "S",
                [
                    ("YARP.Enable", "true"),
                    ("YARP.Routes.main.Hosts", "[Host]"),
                    ("YARP.Routes.main.Path", "/{**rest}"),
                    ("YARP.Backend.LoadBalancingPolicy", "PowerOfTwoChoices"),
                    ("YARP.Backend.HealthCheck.Passive.Enabled", "true"),
                ],
            );
        for application in 0..services.div_ceil(EACH) {
            let name = format!("fabric:/A{application:04}");
            contents.application(&name, "T", "1", []);
            for service in 0..EACH {
                let at = application * EACH + service;
                let partition = format!("{at:08x}-0000-0000-0000-000000000000");
                contents.stateless(
                    &format!("{name}/S{service:02}"),
                    "S",
                    [(
                        partition.as_str(),
                        vec![(1, "https://10.0.0.1:8443"), (2, "https://10.0.0.2:8443")],
                    )],
                );
            }
        }
    });
    cluster
}

/// A discoverer whose every cycle lists everything and refreshes nothing.
fn discoverer(cluster: &FakeCluster, probe: bool) -> ServiceFabricDiscoverer {
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_millis(100))
        .with_full_refresh_period(Duration::from_secs(365 * 24 * 3600))
        .with_change_probe(probe);
    ServiceFabric::new(cluster.clone())
        .options(options)
        .discoverer()
}

fn round(runtime: &Runtime, discoverer: &ServiceFabricDiscoverer) -> Discovery {
    runtime
        .block_on(discoverer.discover())
        .expect("the cluster answers")
}
