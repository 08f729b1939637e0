//! The pick of a destination, for each policy, among 4, 64 and 1,000.

use std::collections::HashMap;
use std::hint::black_box;

use benches::cluster;
use criterion::{BenchmarkId, Criterion};
use proxy_model::DestinationId;
use proxy_runtime::balance::{
    FirstAlphabetical, LeastRequests, LoadBalancer, PowerOfTwoChoices, RandomChoice, RoundRobin,
};
use proxy_runtime::harness::BalancerHarness;

/// Numbers of destinations.
const SIZES: [usize; 3] = [4, 64, 1_000];

const POLICIES: [(&str, &dyn LoadBalancer); 5] = [
    ("PowerOfTwoChoices", &PowerOfTwoChoices),
    ("RoundRobin", &RoundRobin),
    ("LeastRequests", &LeastRequests),
    ("Random", &RandomChoice),
    ("FirstAlphabetical", &FirstAlphabetical),
];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (name, policy) in POLICIES {
        for (kind, weighted) in [("equal", false), ("weighted", true)] {
            let mut group = criterion.benchmark_group(format!("balancing/{name}-{kind}"));
            for size in SIZES {
                let harness = harness(size, weighted);
                check(name, policy, size, weighted);
                group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                    bencher.iter(|| black_box(&harness).pick(policy, None));
                });
            }
            group.finish();
        }
    }
    criterion.final_summary();
}

fn harness(size: usize, weighted: bool) -> BalancerHarness {
    BalancerHarness::new(cluster(size, weighted), 42)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// Asserts that the policy picks as its name says.
fn check(name: &str, policy: &dyn LoadBalancer, size: usize, weighted: bool) {
    let weight = |i: usize| if weighted { 1 + i % 4 } else { 1 };
    let id = |i: usize| DestinationId::from(format!("destination-{i:04}"));
    let mut harness = harness(size, weighted);
    let total: usize = (0..size).map(weight).sum();
    let mut picked: HashMap<DestinationId, usize> = HashMap::new();
    for _ in 0..total {
        let pick = harness.pick(policy, None).expect("all are available");
        *picked.entry(pick.clone()).or_default() += 1;
    }
    let times = |i: usize| picked.get(&id(i)).copied().unwrap_or_default();
    match name {
        "RoundRobin" => assert!((0..size).all(|i| times(i) == weight(i)), "{picked:?}"),
        "FirstAlphabetical" | "LeastRequests" => assert_eq!(times(0), total, "{picked:?}"),
        _ => assert!(picked.len() > size / 4, "{picked:?}"),
    }
    // All but the last are busy.
    for i in 0..size - 1 {
        harness.occupy(&id(i), 8);
    }
    if name == "LeastRequests" {
        assert_eq!(harness.pick(policy, None), Some(&id(size - 1)));
    }
}
