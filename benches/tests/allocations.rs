//! Routing and load balancing of a request without allocations.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use allocation_counter::measure;
use benches::{Head, RouteSet, cluster, compiled};
use proxy_model::Snapshot;
use proxy_model::compiled::RouteTarget;
use proxy_model::config::ProxyConfig;
use proxy_model::matching::Lookup;
use proxy_runtime::balance::{
    FirstAlphabetical, LeastRequests, LoadBalancer, PowerOfTwoChoices, RandomChoice, RoundRobin,
};
use proxy_runtime::harness::BalancerHarness;
use serde_json::{Value, json};

/// Asserts that every look-up has the expected result, and allocates nothing.
#[track_caller]
fn assert_free(set: &RouteSet) {
    let mut right = 0;
    let allocations = measure(|| {
        let requests = set.requests().iter().zip(set.answers());
        right = requests
            .filter(|(request, answer)| set.snapshot().find(*request) == **answer)
            .count();
    });
    assert_eq!(right, set.requests().len());
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

#[test]
fn allocations_are_counted() {
    let allocations = measure(|| drop(std::hint::black_box(Box::new(7))));
    assert_eq!(allocations.count_total, 1);
}

#[test]
fn finding_a_route_allocates_nothing() {
    assert_free(&RouteSet::by_host(1_000));
    assert_free(&RouteSet::by_wildcard(1_000));
    assert_free(&RouteSet::by_path(1_000));
    assert_free(&RouteSet::by_header(100));
}

#[test]
fn finding_none_allocates_nothing() {
    assert_free(&RouteSet::crossing(8));
    let mut unknown = RouteSet::by_host(100);
    unknown.change(
        |head| Head::get("nowhere.example.com", proxy_model::RequestHead::path(&head)),
        &Lookup::NotFound,
    );
    assert_free(&unknown);
}

#[test]
fn finding_a_partition_allocates_nothing() {
    let ranges: Vec<_> = (0..1_000)
        .map(|i| json!({ "ClusterId": "c", "LowKey": 10 * i, "HighKey": 10 * i + 9 }))
        .collect();
    let names: Vec<_> = (0..1_000)
        .map(|i| json!({ "ClusterId": "c", "Name": format!("tenant-{i:04}") }))
        .collect();
    let header = json!({ "Header": "x-tenant" });
    for config in [
        json!({ "Key": header, "Partitions": ranges }),
        json!({ "Key": header, "Partitions": ranges, "Hash": "Fnv1a64" }),
        json!({ "Key": header, "Partitions": names }),
        json!({ "Key": { "RouteValue": "tenant" }, "Partitions": ranges }),
        json!({ "Key": { "QueryParameter": "tenant" }, "Partitions": names }),
    ] {
        let snapshot = partitioned(&config);
        let RouteTarget::Partitioned(partitions) = snapshot.routes()[0].target() else {
            panic!("{config}");
        };
        let is_number = config["Partitions"][0]["Name"].is_null();
        let heads: Vec<_> = (0..100)
            .map(|i| match is_number {
                true => (97 * i).to_string(),
                false => format!("tenant-{:04}", 7 * i),
            })
            .map(|key| {
                Head::get("h", format!("/{key}"))
                    .with_query(format!("a=b&tenant={key}"))
                    .with_header("x-tenant", key)
            })
            .collect();
        let mut found = 0;
        let allocations = measure(|| {
            found = heads
                .iter()
                .filter(|head| partitions.find(*head).is_ok())
                .count();
        });
        assert_eq!(found, 100);
        assert_eq!(allocations.count_total, 0, "{config}");
    }
}

/// A route with partitions for `/{tenant}`.
fn partitioned(config: &Value) -> Snapshot {
    let document = json!({
        "Routes": { "r": { "Match": { "Path": "/{tenant}" }, "PartitionedClusters": config } },
        "Clusters": { "c": {} },
    });
    compiled(ProxyConfig::from_json(&document.to_string()).unwrap())
}

#[test]
fn picking_a_destination_allocates_nothing() {
    let policies: [&dyn LoadBalancer; 5] = [
        &PowerOfTwoChoices,
        &RoundRobin,
        &LeastRequests,
        &RandomChoice,
        &FirstAlphabetical,
    ];
    for weighted in [false, true] {
        for size in [1, 2, 64] {
            let harness = BalancerHarness::new(cluster(size, weighted), 42).unwrap();
            // The first request of a thread registers it with the published pointer, and the first
            // pick of a destination creates its counters.
            // Weights are at most 4, so each destination has had a turn by then.
            for _ in 0..4 * size {
                assert!(harness.pick(&RoundRobin, None).is_some());
            }
            for (number, policy) in policies.iter().enumerate() {
                let mut picked = 0;
                let allocations = measure(|| {
                    let picks = (0..100).filter_map(|_| harness.pick(*policy, None));
                    picked = picks.count();
                });
                assert_eq!(picked, 100);
                assert_eq!(allocations.count_total, 0, "policy {number} of {size}");
            }
        }
    }
}
