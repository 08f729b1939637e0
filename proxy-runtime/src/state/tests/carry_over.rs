//! State that the next generation inherits.

use super::*;

#[test]
fn live_state_is_carried_over_by_id_and_address() {
    let old = first(snapshot(ONE));
    let kept = destination(&old, 0);
    let in_flight = kept.enter();
    kept.health().update(|record| {
        record.health = Unhealthy;
        record.failures = 5;
    });
    let new = next(
        &old,
        snapshot(
            r#"{"Clusters":{"orders":{"LoadBalancingPolicy":"Random","Destinations":{
                "d2":{"Address":"http://elsewhere/"},"d1":{"Address":"http://h1/","HealthPath":"/up","Weight":7}}}}}"#,
        ),
    );
    // In another order, with another spelling and other settings: the same destination.
    let d1 = destination(&new, 1);
    assert!(Arc::ptr_eq(&d1, &kept));
    assert_eq!((d1.in_flight(), d1.health().active()), (1, Unhealthy));
    assert!(!d1.is_removed());
    assert!(Arc::ptr_eq(
        old.cluster(ClusterIndex(0)).live(),
        new.cluster(ClusterIndex(0)).live()
    ));
    // Another address: another destination.
    let (before, after) = (destination(&old, 1), destination(&new, 0));
    assert_ne!(before.key(), after.key());
    assert!(before.is_removed() && !after.is_removed());
    drop(in_flight);
    assert_eq!(d1.in_flight(), 0);
}

#[test]
fn a_removed_destination_finishes_its_requests_and_comes_back_fresh() {
    let old = first(snapshot(ONE));
    let removed = destination(&old, 0);
    let in_flight = removed.enter();
    removed.health().update(|record| record.health = Unhealthy);
    let without = next(
        &old,
        snapshot(r#"{"Clusters":{"Orders":{"Destinations":{"d2":{"Address":"http://h2/"}}}}}"#),
    );
    assert!(removed.is_removed());
    assert_eq!(removed.in_flight(), 1);
    let back = next(&without, snapshot(ONE));
    let fresh = destination(&back, 0);
    assert_ne!(fresh.key(), removed.key());
    assert_eq!((fresh.in_flight(), fresh.health().active()), (0, Unknown));
    drop(in_flight);
    assert_eq!(removed.in_flight(), 0);
}

/// Differs from YARP, which compares addresses ignoring case and so ignores such a change.
#[test]
fn e25_a_path_in_another_case_is_another_address() {
    let at = |path: &str| snapshot(&ONE.replace("http://h1/", &format!("http://H1/{path}")));
    let old = first(at("api"));
    let new = next(&old, at("API"));
    assert_ne!(destination(&old, 0).key(), destination(&new, 0).key());
    let host = next(&new, snapshot(&ONE.replace("http://h1/", "http://h1/API")));
    assert_eq!(
        destination(&new, 0).key(),
        destination(&host, 0).key(),
        "hosts have no case"
    );
}

#[test]
fn turns_go_on_after_a_reload() {
    let round_robin = ONE.replace(
        r#""Destinations""#,
        r#""LoadBalancingPolicy":"RoundRobin","Destinations""#,
    );
    let old = first(snapshot(&round_robin));
    assert_eq!(pick(&old).unwrap().index.0, 0);
    let new = next(&old, snapshot(&round_robin));
    assert_eq!(pick(&new).unwrap().index.0, 1);
}

#[test]
fn e24_connections_are_kept_while_the_settings_of_the_client_are_the_same() {
    let with = |settings: &str| {
        snapshot(&ONE.replace(r#""Destinations""#, &format!(r#"{settings}"Destinations""#)))
    };
    let old = first(with(r#""HttpClient":{"MaxConnectionsPerServer":3},"#));
    let client = |generation: &Generation| generation.cluster(ClusterIndex(0)).client();
    let same = next(
        &old,
        with(r#""LoadBalancingPolicy":"Random","HttpClient":{"MaxConnectionsPerServer":3},"#),
    );
    assert_eq!(client(&old), client(&same));
    let other = next(
        &same,
        with(r#""HttpClient":{"DangerousAcceptAnyServerCertificate":true},"#),
    );
    assert_ne!(client(&old), client(&other));
}

#[test]
fn e10_a_destination_that_is_added_serves_through_the_route_that_is_there() {
    let with = |more: &str| {
        snapshot(&format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/"}}}}}},
                "Clusters":{{"c":{{"Destinations":{{"a":{{"Address":"http://h1/"}}{more}}}}}}}}}"#
        ))
    };
    let old = first(with(""));
    let new = next(&old, with(r#","b":{"Address":"http://h2/"}"#));
    assert!(Arc::ptr_eq(
        old.route(RouteIndex(0)).metrics(),
        new.route(RouteIndex(0)).metrics()
    ));
    assert!(Arc::ptr_eq(&destination(&old, 0), &destination(&new, 0)));
    assert_eq!(available(&new), ["a", "b"]);
    assert_eq!((old.number(), new.number()), (1, 2));
}

#[test]
fn clusters_are_found_ignoring_case() {
    let generation = first(snapshot(ONE));
    assert!(generation.find_cluster(&ClusterId::new("ORDERS")).is_some());
    assert!(generation.find_cluster(&ClusterId::new("order")).is_none());
}
