//! Clients that stay with their destination.

use http::Request;
use proptest::prelude::*;

use super::*;
use crate::affinity::{Bond, KeyFailure};
use crate::cluster::Unpicked;
use crate::head::HttpHead;

/// A cluster with these destinations, each `name:weight`, and these further settings.
fn sticky(destinations: &str, affinity: &str, cluster: &str) -> Arc<Snapshot> {
    let destinations: Vec<_> = destinations
        .split_whitespace()
        .map(|destination| {
            let (id, weight) = destination.split_once(':').unwrap_or((destination, "1"));
            format!(r#""{id}":{{"Address":"http://{id}/","Weight":{weight}}}"#)
        })
        .collect();
    let destinations = destinations.join(",");
    snapshot(&format!(
        r#"{{"Clusters":{{"c":{{"SessionAffinity":{{"Enabled":true,"AffinityKeyName":"k"{affinity}}}{cluster},
            "Destinations":{{{destinations}}}}}}}}}"#
    ))
}

/// A client with a cookie, or without one.
fn client(cookie: Option<&str>) -> http::request::Parts {
    let mut request = Request::get("/");
    if let Some(cookie) = cookie {
        request = request.header("cookie", cookie);
    }
    request.body(()).unwrap().into_parts().0
}

/// The destination for a client, and the cookie that it has from then on.
fn visit(
    generation: &Generation,
    cookie: Option<&str>,
) -> Result<(String, Bond, String), Unpicked> {
    let cluster = &generation.snapshot().clusters()[0];
    let state = generation.cluster(ClusterIndex(0));
    let parts = client(cookie);
    let picked = state.pick(cluster, &HttpHead::new(&parts))?;
    let id = cluster.destinations()[picked.index.0 as usize].id();
    let new = state.new_key(cluster, picked.index, picked.bond, false);
    let cookie = new.map(|key| {
        let mut headers = http::HeaderMap::new();
        key.apply_to(&mut headers);
        let line = headers["set-cookie"].to_str().unwrap().to_owned();
        line.split(';').next().unwrap().to_owned()
    });
    let bond = picked.bond;
    assert_eq!(bond == Bond::Kept, cookie.is_none());
    let kept = cookie.unwrap_or_else(|| parts.headers["cookie"].to_str().unwrap().to_owned());
    Ok((id.to_string(), bond, kept))
}

const NEW: Bond = Bond::New { is_https: false };

#[test]
fn a_client_stays_while_its_destination_is_available() {
    for check in [
        r#","HealthCheck":{"Active":{"Enabled":true}}"#,
        r#","HealthCheck":{"AvailableDestinationsPolicy":"HealthyAndUnknown","Active":{"Enabled":true}}"#,
    ] {
        let generation = first(sticky("a b c", "", check));
        let (id, bond, cookie) = visit(&generation, None).unwrap();
        assert_eq!(bond, NEW);
        for _ in 0..20 {
            let kept = (id.clone(), Bond::Kept, cookie.clone());
            assert_eq!(visit(&generation, Some(&cookie)), Ok(kept));
        }
        let position = ["a", "b", "c"].iter().position(|it| **it == *id).unwrap();
        let mut healths = [Healthy; 3];
        healths[position] = Unhealthy;
        set_health(&generation, &healths);
        let (other, bond, moved) = visit(&generation, Some(&cookie)).unwrap();
        assert_ne!(other, id);
        assert_eq!(bond, NEW);
        let stays = (other, Bond::Kept, moved.clone());
        assert_eq!(visit(&generation, Some(&moved)), Ok(stays));
        set_health(&generation, &[Healthy; 3]);
        assert_eq!(visit(&generation, Some(&cookie)).unwrap().0, id);
    }
}

/// Row 37 of the comparison with YARP: all are available then.
#[test]
fn a_client_stays_where_all_are_unhealthy() {
    let check = r#","HealthCheck":{"Active":{"Enabled":true}}"#;
    let generation = first(sticky("a b c", "", check));
    let (id, _, cookie) = visit(&generation, None).unwrap();
    set_health(&generation, &[Unhealthy; 3]);
    let kept = (id, Bond::Kept, cookie.clone());
    assert_eq!(visit(&generation, Some(&cookie)), Ok(kept));
}

#[test]
fn a_key_of_no_use_is_a_matter_of_the_failure_policy() {
    let reject = r#","FailurePolicy":"Return503Error""#;
    let check = r#","HealthCheck":{"AvailableDestinationsPolicy":"HealthyAndUnknown","Active":{"Enabled":true}}"#;
    let unknown = "k=0000000000000000";
    let rejected = |failure| {
        Err(Unpicked::Rejected(
            failure,
            http::StatusCode::SERVICE_UNAVAILABLE,
        ))
    };
    let redistributing = first(sticky("a b", "", check));
    assert_eq!(visit(&redistributing, Some(unknown)).unwrap().1, NEW);
    let rejecting = first(sticky("a b", reject, check));
    assert_eq!(
        visit(&rejecting, Some(unknown)),
        rejected(KeyFailure::Unavailable)
    );
    let (_, _, cookie) = visit(&rejecting, None).unwrap();
    // J09: no destination is available.
    set_health(&rejecting, &[Unhealthy; 2]);
    assert_eq!(
        visit(&rejecting, Some(&cookie)),
        rejected(KeyFailure::Unavailable)
    );
    assert_eq!(visit(&rejecting, None), Err(Unpicked::None));
    set_health(&redistributing, &[Unhealthy; 2]);
    assert_eq!(visit(&redistributing, Some(&cookie)), Err(Unpicked::None));
}

/// J16
#[test]
fn without_affinity_no_key_is_read_or_given() {
    for switched in ["false", "null"] {
        let snapshot = snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"SessionAffinity":{{"Enabled":{switched},"AffinityKeyName":"k","FailurePolicy":"Return503Error"}},
                "Destinations":{{"a":{{"Address":"http://a/"}}}}}}}}}}"#
        ));
        let generation = first(snapshot);
        let cluster = &generation.snapshot().clusters()[0];
        let state = generation.cluster(ClusterIndex(0));
        let parts = client(Some("k=0000000000000000"));
        let picked = state.pick(cluster, &HttpHead::new(&parts)).unwrap();
        assert_eq!(picked.bond, Bond::None);
        assert!(
            state
                .new_key(cluster, picked.index, picked.bond, false)
                .is_none()
        );
    }
}

/// Weights, tiers and zones are for clients without a key.
#[test]
fn a_client_stays_beside_better_destinations() {
    let tiers = |other: &str| {
        snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"SessionAffinity":{{"Enabled":true,"AffinityKeyName":"k"}},"Destinations":{{
                "a":{{"Address":"http://a/","Priority":1}}{other}}}}}}}}}"#
        ))
    };
    let before = first(tiers(""));
    let (id, _, cookie) = visit(&before, None).unwrap();
    assert_eq!(id, "a");
    let after = next(
        &before,
        tiers(r#","b":{"Address":"http://b/","Priority":0}"#),
    );
    assert_eq!(visit(&after, None).unwrap().0, "b");
    assert_eq!(visit(&after, Some(&cookie)).unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn a_draining_destination_keeps_its_clients_for_a_time() {
    let before = first(sticky("a b:0", "", ""));
    let all = r#","DrainTimeout":"00:01:00""#;
    let mut cookies = Vec::new();
    let serving = next(&before, sticky("a b", all, ""));
    serving.note_drains();
    while cookies.len() < 20 {
        let (id, _, cookie) = visit(&serving, None).unwrap();
        if id == "b" {
            cookies.push(cookie);
        }
    }
    let draining = next(&serving, sticky("a b:0", all, ""));
    draining.note_drains();
    for cookie in &cookies {
        assert_eq!(visit(&draining, Some(cookie)).unwrap().0, "b");
        assert_eq!(
            visit(&draining, None).unwrap().0,
            "a",
            "it gets no new ones"
        );
    }
    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    let again = next(&draining, sticky("a b:0", all, ""));
    again.note_drains();
    assert_eq!(visit(&again, Some(&cookies[0])).unwrap().0, "b");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let (id, bond, _) = visit(&again, Some(&cookies[0])).unwrap();
    assert_eq!((&*id, bond), ("a", NEW), "its time is over");
    // Without a limit it keeps them, unless it is unhealthy.
    let endless = next(&again, sticky("a b:0", "", ""));
    endless.note_drains();
    assert_eq!(visit(&endless, Some(&cookies[0])).unwrap().0, "b");
    destination(&endless, 1).health().assign(Unhealthy);
    assert_eq!(visit(&endless, Some(&cookies[0])).unwrap().0, "a");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A scale-in moves the clients of the removed destinations and no others.
    #[test]
    fn a_scale_in_moves_the_clients_of_what_is_gone(
        count in 2_usize..12,
        gone in prop::collection::btree_set(0_usize..12, 1..4),
        policy in prop::sample::select(vec!["HashCookie", "ArrCookie"]),
    ) {
        let id = |i: usize| format!("d{i}");
        let affinity = format!(r#","Policy":"{policy}""#);
        let all: Vec<_> = (0..count).map(id).collect();
        let left: Vec<_> = (0..count).filter(|i| !gone.contains(i)).map(id).collect();
        prop_assume!(!left.is_empty() && left.len() < all.len());
        let before = first(sticky(&all.join(" "), &affinity, ""));
        let after = next(&before, sticky(&left.join(" "), &affinity, ""));
        for _ in 0..60 {
            let (home, _, cookie) = visit(&before, None).unwrap();
            let (now, bond, _) = visit(&after, Some(&cookie)).unwrap();
            if left.contains(&home) {
                prop_assert_eq!((now, bond), (home, Bond::Kept));
            } else {
                prop_assert!(left.contains(&now));
                prop_assert_eq!(bond, NEW);
            }
        }
    }
}

/// A client stays on its side of a canary while the weights change, and whatever they are.
#[test]
fn a_client_stays_on_its_side_of_a_canary() {
    let canary = |stable: u32, canary: u32| {
        let cluster = |name: &str| {
            format!(
                r#""{name}":{{"SessionAffinity":{{"Enabled":true,"AffinityKeyName":"k"}},
                    "Destinations":{{"d1":{{"Address":"http://{name}/"}}}}}}"#
            )
        };
        snapshot(&format!(
            r#"{{"Routes":{{"r":{{"Match":{{"Path":"/"}},"WeightedClusters":[
                {{"ClusterId":"stable","Weight":{stable}}},{{"ClusterId":"canary","Weight":{canary}}}]}}}},
                "Clusters":{{{},{}}}}}"#,
            cluster("stable"),
            cluster("canary")
        ))
    };
    let choose = |generation: &Generation, cookie: Option<&str>| {
        let snapshot = generation.snapshot();
        let parts = client(cookie);
        let head = HttpHead::new(&parts);
        let index = generation
            .route(RouteIndex(0))
            .choose(
                snapshot.route_at(RouteIndex(0)),
                snapshot,
                &head,
                &Random::default(),
            )
            .unwrap();
        let (cluster, state) = (snapshot.cluster_at(index), generation.cluster(index));
        let picked = state.pick(cluster, &head).unwrap();
        let key = state.new_key(cluster, picked.index, picked.bond, true);
        let key = key.map(|key| {
            let mut headers = http::HeaderMap::new();
            key.apply_to(&mut headers);
            let line = headers["set-cookie"].to_str().unwrap().to_owned();
            line.split(';').next().unwrap().to_owned()
        });
        (cluster.id().to_string(), key)
    };
    let even = first(canary(1, 1));
    let mut sides = std::collections::BTreeMap::new();
    while sides.len() < 2 {
        let (side, key) = choose(&even, None);
        sides.insert(side, key.unwrap());
    }
    for weights in [(1, 1), (99, 1), (0, 1), (1, 0)] {
        let now = next(&even, canary(weights.0, weights.1));
        for (side, key) in &sides {
            // Both clusters have a destination of the same name.
            for _ in 0..20 {
                assert_eq!(choose(&now, Some(key)), (side.clone(), None), "{weights:?}");
            }
        }
    }
    // Who came before there were weights stays with the first cluster that has the destination.
    let (_, _, plain) = visit(&even, None).unwrap();
    assert_eq!(choose(&even, Some(&plain)), ("stable".to_owned(), None));
}

/// A request with a valid key allocates nothing on its way to a destination, whatever the policy.
#[test]
fn a_kept_client_costs_no_allocation() {
    for policy in [
        "HashCookie",
        "ArrCookie",
        #[cfg(feature = "affinity-keys")]
        "Cookie",
    ] {
        let affinity = format!(r#","Policy":"{policy}""#);
        let generation = first(sticky("a b c d e", &affinity, ""));
        let (_, _, cookie) = visit(&generation, None).unwrap();
        let cookies = format!("theme=dark; {cookie}; a=b");
        let parts = client(Some(&cookies));
        let cluster = &generation.snapshot().clusters()[0];
        let state = generation.cluster(ClusterIndex(0));
        let pick = || {
            let picked = state.pick(cluster, &HttpHead::new(&parts)).unwrap();
            assert_eq!(picked.bond, Bond::Kept, "{policy}");
        };
        // The counters of a worker are made with its first request.
        pick();
        let counted = allocation_counter::measure(pick);
        assert_eq!(counted.count_total, 0, "{policy}");
    }
}
