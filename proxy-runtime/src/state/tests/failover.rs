//! The choice of another destination after a failed connection.

use std::collections::BTreeSet;

use proxy_model::compiled::DestinationIndex;

use super::*;

fn other(generation: &Generation, failed: u32) -> Option<u32> {
    let cluster = &generation.snapshot().clusters()[0];
    let state = generation.cluster(ClusterIndex(0));
    let picked = state.pick_other(cluster, &BalancerHarness::GET, &[DestinationIndex(failed)]);
    picked.map(|picked| picked.index.0)
}

#[test]
fn it_is_the_one_that_would_be_picked_if_the_failed_one_were_unhealthy() {
    let all_well = [Healthy, Healthy, Healthy, Healthy];
    let panic = "HealthyOrPanic";
    for (policy, zone, healths, failed, expected) in [
        // First the same tier, then the next tier, then none.
        (panic, None, all_well, 0, &[1_u32] as &[u32]),
        (panic, None, [Healthy, Unhealthy, Healthy, Healthy], 0, &[2]),
        (
            "HealthyAndUnknown",
            None,
            [Healthy, Unhealthy, Unhealthy, Healthy],
            0,
            &[],
        ),
        // Another zone is better than none.
        (panic, Some("east"), all_well, 0, &[1]),
        // The same applies in a panic; the failed destination and those without weight are never
        // used.
        (
            panic,
            None,
            [Unhealthy, Unhealthy, Healthy, Healthy],
            2,
            &[0, 1],
        ),
        (
            panic,
            None,
            [Healthy, Unhealthy, Unhealthy, Unhealthy],
            0,
            &[1, 2],
        ),
    ] {
        let snapshot = snapshot(&TIERS.replace("POLICY", policy));
        let registered = Registered::default();
        let generation = Generation::first(snapshot, &registered, &context(zone)).unwrap();
        set_health(&generation, &healths);
        let case = format!("{policy} {zone:?} {healths:?} without {failed}");
        let found: BTreeSet<_> = (0..50).filter_map(|_| other(&generation, failed)).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{case}");
    }
}

#[test]
fn what_the_other_one_has_in_flight_does_not_matter() {
    for policy in [
        "PowerOfTwoChoices",
        "RoundRobin",
        "Random",
        "LeastRequests",
        "FirstAlphabetical",
    ] {
        let generation = first(snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"LoadBalancingPolicy":"{policy}","Destinations":{{
                "a":{{"Address":"http://h1/","Weight":99}},"b":{{"Address":"http://h2/"}}}}}}}}}}"#
        )));
        let busy = destination(&generation, 1);
        let _in_flight: Vec<_> = (0..20).map(|_| busy.enter()).collect();
        for _ in 0..50 {
            assert_eq!(other(&generation, 0), Some(1), "{policy}");
        }
    }
}
