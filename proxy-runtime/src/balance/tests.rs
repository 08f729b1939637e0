use std::collections::HashMap;
use std::net::IpAddr;

use proptest::prelude::*;
use proxy_model::DestinationId;
use proxy_model::config::{ClusterConfig, DestinationConfig};

use super::*;
use crate::harness::BalancerHarness;

/// A cluster of destinations d1, d2 … with these weights.
fn weighted(weights: &[u32]) -> ClusterConfig {
    let destination = |(i, weight): (usize, &u32)| {
        let config = DestinationConfig {
            address: format!("http://10.0.0.{}:8000/", i + 1),
            weight: Some(*weight),
            ..DestinationConfig::default()
        };
        (DestinationId::new(format!("d{}", i + 1)), config)
    };
    ClusterConfig {
        destinations: weights.iter().enumerate().map(destination).collect(),
        ..ClusterConfig::default()
    }
}

fn equal(count: usize) -> ClusterConfig {
    weighted(&vec![1; count])
}

fn harness(cluster: ClusterConfig) -> BalancerHarness {
    BalancerHarness::new(cluster, 7).unwrap()
}

fn counts(
    harness: &BalancerHarness,
    policy: &dyn LoadBalancer,
    picks: usize,
) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for _ in 0..picks {
        let id = harness.pick(policy, None).unwrap();
        *counts.entry(id.as_str().to_owned()).or_default() += 1;
    }
    counts
}

/// Every built-in policy.
const ALL: [&dyn LoadBalancer; 5] = [
    &PowerOfTwoChoices,
    &RoundRobin,
    &LeastRequests,
    &RandomChoice,
    &FirstAlphabetical,
];

#[test]
fn i03_two_choices_avoid_the_busy_one_of_two() {
    let mut harness = harness(equal(2));
    harness.occupy(&"d1".into(), 1000);
    assert_eq!(counts(&harness, &PowerOfTwoChoices, 100)["d2"], 100);
}

#[test]
fn i04_two_choices_never_take_the_busiest_of_three() {
    let mut harness = harness(equal(3));
    harness.occupy(&"d1".into(), 1);
    harness.occupy(&"d2".into(), 2);
    harness.occupy(&"d3".into(), 3);
    let counts = counts(&harness, &PowerOfTwoChoices, 1000);
    assert!(!counts.contains_key("d3"), "{counts:?}");
    assert!(
        counts["d1"] > counts["d2"] && counts["d2"] > 0,
        "{counts:?}"
    );
}

/// Draws the same two candidates as `PowerOfTwoChoices` and picks the first, to test ties.
struct FirstDrawn;

impl LoadBalancer for FirstDrawn {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        let first = candidates.draw();
        candidates.draw_other(first);
        Some(first)
    }
}

#[test]
fn i05_on_a_tie_the_first_drawn_is_taken() {
    for weights in [[1, 1, 1, 1], [4, 3, 2, 1]] {
        // Both use the same seed, so the picks must equal the first draws.
        let (ours, drawn) = (harness(weighted(&weights)), harness(weighted(&weights)));
        for _ in 0..200 {
            assert_eq!(
                ours.pick(&PowerOfTwoChoices, None),
                drawn.pick(&FirstDrawn, None)
            );
        }
    }
}

#[test]
fn two_choices_draw_two_different_ones() {
    struct Distinct;
    impl LoadBalancer for Distinct {
        fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
            let first = candidates.draw();
            let second = candidates.draw_other(first);
            assert!(first != second && second < candidates.len());
            Some(second)
        }
    }
    for weights in [&[1, 1][..], &[1, 1000], &[3, 1, 4, 1, 5]] {
        counts(&harness(weighted(weights)), &Distinct, 500);
    }
}

#[test]
fn i08_turns_wrap_without_leaving_the_list() {
    for weights in [&[1, 1, 1][..], &[5, 2, 1]] {
        let harness = harness(weighted(weights));
        for around in [
            u64::from(u32::MAX),
            i32::MAX as u64,
            i64::MAX as u64,
            u64::MAX,
        ] {
            harness.set_turn(around.wrapping_sub(3));
            assert_eq!(counts(&harness, &RoundRobin, 7).values().sum::<usize>(), 7);
        }
    }
}

#[test]
fn round_robin_follows_the_order_of_the_configuration() {
    let harness = harness(equal(3));
    let picks: Vec<_> = (0..7)
        .map(|_| harness.pick(&RoundRobin, None).unwrap())
        .collect();
    assert_eq!(picks, ["d1", "d2", "d3", "d1", "d2", "d3", "d1"]);
}

#[test]
fn weighted_round_robin_is_exact_and_spread() {
    let harness = harness(weighted(&[5, 1, 2]));
    let picks: Vec<_> = (0..80)
        .map(|_| harness.pick(&RoundRobin, None).unwrap().as_str())
        .collect();
    for round in picks.chunks(8) {
        let count = |id| round.iter().filter(|pick| **pick == id).count();
        assert_eq!((count("d1"), count("d2"), count("d3")), (5, 1, 2));
    }
    let longest = picks.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
    assert!(longest <= 3, "{longest} in a row for one: {picks:?}");
}

#[test]
fn i10_one_destination_is_chosen_without_asking() {
    struct Never;
    impl LoadBalancer for Never {
        fn pick(&self, _: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
            panic!("there is no choice")
        }
    }
    let harness = harness(equal(1));
    assert_eq!(harness.pick(&Never, None).unwrap(), "d1");
    // No turn is taken either.
    harness.pick(&RoundRobin, None);
    assert_eq!(harness.take_turn(), 0);
}

#[test]
fn i11_without_destinations_there_is_no_pick() {
    for policy in ALL {
        assert_eq!(harness(equal(0)).pick(policy, None), None);
    }
}

#[test]
fn a_position_past_the_end_rejects_the_request() {
    struct PastTheEnd;
    impl LoadBalancer for PastTheEnd {
        fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
            Some(candidates.len())
        }
    }
    assert_eq!(harness(equal(3)).pick(&PastTheEnd, None), None);
}

#[test]
fn least_requests_takes_the_least_and_of_several_the_first() {
    let mut harness = harness(equal(3));
    assert_eq!(harness.pick(&LeastRequests, None).unwrap(), "d1");
    harness.occupy(&"d1".into(), 1);
    assert_eq!(harness.pick(&LeastRequests, None).unwrap(), "d2");
    harness.occupy(&"d2".into(), 1);
    harness.occupy(&"d3".into(), 2);
    assert_eq!(harness.pick(&LeastRequests, None).unwrap(), "d1");
}

/// Requests of other workers at busy destinations: `PowerOfTwoChoices` ignores them,
/// `LeastRequests` counts them.
#[cfg(feature = "server")]
#[test]
fn what_other_workers_have_in_flight() {
    let mut harness = harness(equal(2));
    harness.occupy(&"d1".into(), 5);
    assert_eq!(counts(&harness, &PowerOfTwoChoices, 100)["d2"], 100);
    let elsewhere = |harness: &BalancerHarness, policy: &(dyn LoadBalancer + Sync)| {
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let _place = crate::observe::WorkerPlace::take();
                counts(harness, policy, 100)
            });
            worker.join().unwrap()
        })
    };
    assert_eq!(
        elsewhere(&harness, &PowerOfTwoChoices)["d2"],
        100,
        "not busy"
    );
    harness.split();
    assert!(elsewhere(&harness, &PowerOfTwoChoices)["d1"] > 20);
    assert_eq!(elsewhere(&harness, &LeastRequests)["d2"], 100);
}

#[test]
fn least_requests_counts_per_weight() {
    let mut harness = harness(weighted(&[10, 1]));
    harness.occupy(&"d1".into(), 9);
    harness.occupy(&"d2".into(), 1);
    assert_eq!(harness.pick(&LeastRequests, None).unwrap(), "d1");
    harness.occupy(&"d1".into(), 2);
    assert_eq!(harness.pick(&LeastRequests, None).unwrap(), "d2");
}

#[test]
fn first_alphabetical_ignores_case_and_the_order_of_the_configuration() {
    let mut cluster = ClusterConfig::default();
    for id in ["c", "B", "a2", "A1"] {
        let config = DestinationConfig {
            address: "http://10.0.0.1/".into(),
            ..DestinationConfig::default()
        };
        cluster.destinations.insert(id.into(), config);
    }
    let harness = harness(cluster);
    assert_eq!(harness.pick(&FirstAlphabetical, None).unwrap(), "A1");
}

#[test]
fn random_is_uniform_without_weights() {
    let counts = counts(&harness(equal(4)), &RandomChoice, 8_000);
    for count in counts.values() {
        assert!((1_800..2_200).contains(count), "{counts:?}");
    }
}

#[test]
fn a_registered_policy_is_found_ignoring_case() {
    let mut balancers = Balancers::default();
    balancers.register("Mine".into(), std::sync::Arc::new(RoundRobin));
    balancers.register("mINE".into(), std::sync::Arc::new(RandomChoice));
    assert_eq!(
        balancers.names().map(|name| &**name).collect::<Vec<_>>(),
        ["mINE"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_policy_leaves_the_list(
        weights in prop::collection::vec(0_u32..2_000, 1..24),
        busy in prop::collection::vec(0_usize..20, 24),
        turn: u64,
        seed: u64,
    ) {
        let mut harness = BalancerHarness::new(weighted(&weights), seed).unwrap();
        harness.set_turn(turn);
        for (i, busy) in busy.iter().take(weights.len()).enumerate() {
            harness.occupy(&DestinationId::new(format!("d{}", i + 1)), *busy);
        }
        for policy in ALL {
            for _ in 0..20 {
                // A position out of range would reject the request.
                let picked = harness.pick(policy, None);
                let picked = picked.expect("there is always one").as_str()[1..].parse::<usize>().unwrap();
                let is_out = weights[picked - 1] == 0 && weights.iter().any(|w| *w > 0);
                prop_assert!(!is_out, "weight 0 gets nothing");
            }
        }
    }

    #[test]
    fn two_choices_never_take_the_strictly_busiest(
        busy in prop::collection::vec(0_usize..50, 2..12),
        seed: u64,
    ) {
        let most = *busy.iter().max().unwrap();
        prop_assume!(busy.iter().filter(|b| **b == most).count() == 1);
        let busiest = busy.iter().position(|b| *b == most).unwrap();
        let mut harness = BalancerHarness::new(equal(busy.len()), seed).unwrap();
        for (i, busy) in busy.iter().enumerate() {
            harness.occupy(&DestinationId::new(format!("d{}", i + 1)), *busy);
        }
        let busiest = format!("d{}", busiest + 1);
        for _ in 0..50 {
            prop_assert_ne!(harness.pick(&PowerOfTwoChoices, None).unwrap(), busiest.as_str());
        }
    }

    #[test]
    fn turns_give_each_exactly_its_share(weights in prop::collection::vec(1_u32..50, 2..10), turn in 0_u64..1_000_000) {
        let total: u32 = weights.iter().sum();
        let harness = harness(weighted(&weights));
        harness.set_turn(turn * u64::from(total));
        // With equal weights, one cycle has one turn for each.
        let equal = weights.iter().all(|w| *w == weights[0]);
        let turns = if equal { weights.len() } else { total as usize };
        let counts = counts(&harness, &RoundRobin, turns);
        for (i, weight) in weights.iter().enumerate() {
            let expected = if equal { 1 } else { *weight as usize };
            prop_assert_eq!(counts[&format!("d{}", i + 1)], expected);
        }
    }

    #[test]
    fn draws_follow_the_weights(weights in prop::collection::vec(1_u32..20, 2..6), seed: u64) {
        const PICKS: usize = 4_000;
        let total: u32 = weights.iter().sum();
        let harness = BalancerHarness::new(weighted(&weights), seed).unwrap();
        // Idle destinations tie, so `PowerOfTwoChoices` picks the first drawn: its shares are those
        // of one draw.
        for policy in [&RandomChoice as &dyn LoadBalancer, &PowerOfTwoChoices] {
            let counts = counts(&harness, policy, PICKS);
            for (i, weight) in weights.iter().enumerate() {
                let share = f64::from(*weight) / f64::from(total);
                let count = counts.get(&format!("d{}", i + 1)).copied().unwrap_or(0);
                // Eight standard deviations: no test run exceeds them by chance.
                let deviation = (PICKS as f64 * share * (1.0 - share)).sqrt();
                let off = (count as f64 - PICKS as f64 * share).abs();
                prop_assert!(off < 8.0 * deviation, "{weights:?}: {counts:?}");
            }
        }
    }
}

/// A stage between available and picked: a policy narrows the choice by the client's address, and leaves the rest to a
/// built-in policy.
#[test]
fn a_policy_narrows_the_choice() {
    struct OnlyFor(IpAddr);

    impl LoadBalancer for OnlyFor {
        fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
            let is_known = head.client_address() == Some(self.0);
            let keep = |&i: &usize| candidates.metadata(i).is_some() == is_known;
            candidates.pick_among(keep, &RoundRobin, head)
        }

        fn is_always_asked(&self) -> bool {
            true
        }
    }

    struct From(IpAddr);

    impl RequestHead for From {
        fn method(&self) -> &str {
            "GET"
        }
        fn path(&self) -> &str {
            "/"
        }
        fn query(&self) -> Option<&str> {
            None
        }
        fn authority(&self) -> &str {
            ""
        }
        fn is_https(&self) -> bool {
            false
        }
        fn client_address(&self) -> Option<IpAddr> {
            Some(self.0)
        }
        fn for_each_header(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) {}
    }

    let [known, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let policy = OnlyFor(known);
    // The id, the weight, and whether the destination is for the known client.
    let of = |destinations: &[(&str, u32, bool)]| {
        let each = destinations.iter().map(|(id, weight, is_own)| {
            let own = [("Own".to_owned(), "yes".to_owned())];
            let config = DestinationConfig {
                address: format!("http://{id}/"),
                weight: Some(*weight),
                metadata: is_own.then(|| own.into_iter().collect()),
                ..DestinationConfig::default()
            };
            (DestinationId::from(*id), config)
        });
        harness(ClusterConfig {
            destinations: each.collect(),
            ..ClusterConfig::default()
        })
    };
    let harness = of(&[
        ("a", 1, true),
        ("b", 1, false),
        ("c", 1, true),
        ("d", 3, false),
    ]);
    let picks = |client: IpAddr, harness: &BalancerHarness| {
        let picks = (0..8).map(|_| {
            let picked = harness.pick(&policy, Some(&From(client)));
            picked.map_or("-", |id| id.as_str()).to_owned()
        });
        let mut picks: Vec<_> = picks.collect();
        picks.sort();
        picks.concat()
    };
    assert_eq!(picks(known, &harness), "aaaacccc");
    assert_eq!(
        picks(other, &harness),
        "bbdddddd",
        "weights count among those that are left"
    );
    // A single destination is not for everybody.
    let harness = of(&[("a", 1, true)]);
    assert_eq!(picks(known, &harness), "aaaaaaaa");
    assert_eq!(picks(other, &harness), "--------");
}
