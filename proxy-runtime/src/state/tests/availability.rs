//! The availability of destinations.

use super::*;
use crate::live::Ineligible;

#[test]
fn availability_follows_health_and_policy() {
    let enabled = r#""Active":{"Enabled":true}"#;
    let disabled = r#""Active":{"Enabled":false}"#;
    let strict = r#""AvailableDestinationsPolicy":"HealthyAndUnknown""#;
    let panic = r#""AvailableDestinationsPolicy":"HealthyOrPanic""#;
    for (case, check, healths, expected) in [
        (
            "K30",
            format!("{strict},{enabled}"),
            [Unhealthy, Healthy, Unknown],
            "bc",
        ),
        (
            "K33",
            format!("{strict},{disabled}"),
            [Unhealthy, Unhealthy, Unhealthy],
            "abc",
        ),
        (
            "K34",
            format!("{panic},{enabled}"),
            [Unhealthy, Healthy, Unknown],
            "bc",
        ),
        (
            "K35",
            format!("{panic},{enabled}"),
            [Unhealthy, Unhealthy, Unhealthy],
            "abc",
        ),
        (
            "strict",
            format!("{strict},{enabled}"),
            [Unhealthy, Unhealthy, Unhealthy],
            "",
        ),
        (
            "default",
            enabled.to_owned(),
            [Unhealthy, Unhealthy, Unhealthy],
            "abc",
        ),
    ] {
        let generation = first(snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"HealthCheck":{{{check}}},"Destinations":{{
                "a":{{"Address":"http://h1/"}},"b":{{"Address":"http://h2/"}},"c":{{"Address":"http://h3/"}}}}}}}}}}"#
        )));
        set_health(&generation, &healths);
        assert_eq!(available(&generation).concat(), expected, "{case}");
        let state = generation.cluster(ClusterIndex(0));
        let is_panic = state
            .available(&generation.snapshot().clusters()[0])
            .is_panic();
        assert_eq!(is_panic, case == "K35" || case == "default", "{case}");
        assert_eq!(pick(&generation).is_none(), expected.is_empty(), "{case}");
    }
}

#[test]
fn tiers_zones_and_weights_narrow_the_choice() {
    for (policy, zone, healths, expected) in [
        (
            "HealthyOrPanic",
            None,
            [Healthy, Healthy, Healthy, Healthy],
            "ab",
        ),
        (
            "HealthyOrPanic",
            None,
            [Unhealthy, Healthy, Healthy, Healthy],
            "b",
        ),
        // A tier is used only while all smaller ones have no available destination; weight 0 does
        // not count.
        (
            "HealthyOrPanic",
            None,
            [Unhealthy, Unhealthy, Healthy, Healthy],
            "c",
        ),
        // Panic comes after all tiers, and uses all of them.
        (
            "HealthyOrPanic",
            None,
            [Unhealthy, Unhealthy, Unhealthy, Healthy],
            "abc",
        ),
        (
            "HealthyOrPanic",
            Some("west"),
            [Unhealthy, Unhealthy, Unhealthy, Healthy],
            "abc",
        ),
        (
            "HealthyAndUnknown",
            None,
            [Unhealthy, Unhealthy, Unhealthy, Healthy],
            "",
        ),
        (
            "HealthyOrPanic",
            Some("EAST"),
            [Healthy, Healthy, Healthy, Healthy],
            "a",
        ),
        (
            "HealthyOrPanic",
            Some("west"),
            [Healthy, Healthy, Healthy, Healthy],
            "b",
        ),
        // The zone counts within the tier.
        (
            "HealthyOrPanic",
            Some("west"),
            [Healthy, Unhealthy, Healthy, Healthy],
            "a",
        ),
        (
            "HealthyOrPanic",
            Some("north"),
            [Healthy, Healthy, Healthy, Healthy],
            "ab",
        ),
    ] {
        let snapshot = snapshot(&TIERS.replace("POLICY", policy));
        let registered = Registered::default();
        let generation = Generation::first(snapshot, &registered, &context(zone)).unwrap();
        set_health(&generation, &healths);
        assert_eq!(
            available(&generation).concat(),
            expected,
            "{policy} {zone:?} {healths:?}"
        );
    }
}

#[test]
fn every_destination_left_out_has_a_reason() {
    let generation = Generation::first(
        snapshot(&TIERS.replace("POLICY", "HealthyOrPanic")),
        &Registered::default(),
        &context(Some("east")),
    )
    .unwrap();
    set_health(&generation, &[Healthy, Healthy, Unhealthy, Healthy]);
    let state = generation.cluster(ClusterIndex(0));
    let verdicts = state.assess(&generation.snapshot().clusters()[0]).verdicts;
    assert_eq!(
        verdicts,
        [
            None,
            Some(Ineligible::OtherZone),
            Some(Ineligible::Unhealthy),
            Some(Ineligible::NoWeight)
        ]
    );
    set_health(&generation, &[Healthy, Healthy, Healthy, Healthy]);
    let verdicts = state.assess(&generation.snapshot().clusters()[0]).verdicts;
    assert_eq!(verdicts[2], Some(Ineligible::LowerPriority { used: 0 }));
}

#[test]
fn weights_do_not_count_when_all_are_zero() {
    let generation = first(snapshot(
        r#"{"Clusters":{"c":{"LoadBalancingPolicy":"RoundRobin","Destinations":{
            "a":{"Address":"http://h1/","Weight":0},"b":{"Address":"http://h2/","Weight":0}}}}}"#,
    ));
    assert_eq!(available(&generation), ["a", "b"]);
    let picks: Vec<_> = (0..4).map(|_| pick(&generation).unwrap().index.0).collect();
    assert_eq!(picks, [0, 1, 0, 1]);
}

fn picked_id(generation: &Generation) -> String {
    let picked = pick(generation).unwrap();
    let cluster = generation.cluster(ClusterIndex(0));
    cluster.destination(picked.index).id().to_string()
}

#[test]
fn a_change_of_health_shows_in_the_next_pick() {
    let generation = first(snapshot(&TIERS.replace("POLICY", "HealthyOrPanic")));
    set_health(&generation, &[Unhealthy, Healthy, Healthy, Healthy]);
    for _ in 0..20 {
        assert_eq!(picked_id(&generation), "b");
    }
    set_health(&generation, &[Healthy, Unhealthy, Healthy, Healthy]);
    for _ in 0..20 {
        assert_eq!(picked_id(&generation), "a");
    }
}

#[test]
fn a_change_of_health_while_a_generation_is_built_is_not_lost() {
    let tiers = TIERS.replace("POLICY", "HealthyOrPanic");
    let old = first(snapshot(&tiers));
    let new = old
        .next(snapshot(&tiers), &Registered::default(), &context(None))
        .unwrap();
    // The check still holds the old generation; its result must reach the new one too.
    set_health(&old, &[Unhealthy, Healthy, Healthy, Healthy]);
    assert_eq!(available(&new), ["b"]);
    assert_eq!(available(&old), ["b"]);
}
