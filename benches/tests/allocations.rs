//! The way of a request through the routes and to a destination allocates nothing.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use allocation_counter::measure;
use benches::{RouteSet, cluster};
use proxy_model::matching::Lookup;
use proxy_runtime::balance::{
    FirstAlphabetical, LeastRequests, LoadBalancer, PowerOfTwoChoices, RandomChoice, RoundRobin,
    Trial,
};

/// Asserts that every look-up gets the answer that it must get, and allocates nothing.
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
        |head| benches::Head::get("nowhere.example.com", proxy_model::RequestHead::path(&head)),
        &Lookup::NotFound,
    );
    assert_free(&unknown);
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
            let trial = Trial::new(cluster(size, weighted), 42).unwrap();
            // The first request of a thread registers it with the published pointer.
            assert!(trial.pick(&RandomChoice, &Trial::GET).is_some());
            for (number, policy) in policies.iter().enumerate() {
                let mut picked = 0;
                let allocations = measure(|| {
                    let picks = (0..100).filter_map(|_| trial.pick(*policy, &Trial::GET));
                    picked = picks.count();
                });
                assert_eq!(picked, 100);
                assert_eq!(allocations.count_total, 0, "policy {number} of {size}");
            }
        }
    }
}
