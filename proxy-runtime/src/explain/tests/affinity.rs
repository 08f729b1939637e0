//! Explanations of session affinity agree with what a proxy does.

use http::HeaderMap;
use http::header::SET_COOKIE;
use proptest::prelude::*;
use proxy_model::compiled::{DestinationIndex, RouteIndex};

use super::*;
use crate::affinity::Bond;
use crate::cluster::Unpicked;

/// The route `/` leads to the cluster `a`, `/split` to `a` and `b`. `to` is the host of destinations.
fn config(policy: &str, failure: &str, available: &str, to: &str) -> String {
    let cluster = format!(
        r#"{{"SessionAffinity":{{"Enabled":true,"AffinityKeyName":"X-Key","Policy":"{policy}","FailurePolicy":"{failure}"}},
            "HealthCheck":{{"AvailableDestinationsPolicy":"{available}","Active":{{"Enabled":true}}}},
            "Destinations":{{"d1":{{"Address":"http://{to}/"}},"d2":{{"Address":"http://{to}:81/"}}}}}}"#
    );
    format!(
        r#"{{"Routes":{{
            "single":{{"ClusterId":"a","Match":{{"Path":"/"}}}},
            "split":{{"Match":{{"Path":"/split"}},"WeightedClusters":[
                {{"ClusterId":"a","Weight":1}},{{"ClusterId":"b","Weight":3}}]}}}},
        "Clusters":{{"a":{cluster},"b":{cluster}}}}}"#
    )
}

/// The key that a proxy gives a client, as the client sends it.
fn key(generation: &Generation, cluster: u32, destination: u32, names_cluster: bool) -> HeaderMap {
    let index = ClusterIndex(cluster);
    let state = generation.cluster(index);
    let bond = Bond::New { is_https: false };
    let cluster = generation.snapshot().cluster_at(index);
    let destination = DestinationIndex(destination);
    let key = state.new_key(cluster, destination, bond, names_cluster);
    let mut given = HeaderMap::new();
    key.unwrap().apply_to(&mut given);
    let mut sent = HeaderMap::new();
    match given.remove(SET_COOKIE) {
        Some(cookie) => {
            let cookie = cookie
                .to_str()
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .to_owned();
            sent.insert("cookie", cookie.parse().unwrap());
        }
        None => drop(sent.insert("x-key", given.remove("x-key").unwrap())),
    }
    sent
}

/// The key that a client sends.
#[derive(Clone, Debug)]
enum Sent {
    None,
    Given {
        cluster: u32,
        destination: u32,
        names_cluster: bool,
    },
    Cookie(&'static str),
    Header(&'static [&'static str]),
}

fn sent() -> impl Strategy<Value = Sent> {
    let given = (0_u32..2, 0_u32..2, any::<bool>());
    prop_oneof![
        Just(Sent::None),
        given.prop_map(|(cluster, destination, names_cluster)| Sent::Given {
            cluster,
            destination,
            names_cluster
        }),
        prop::sample::select(vec![
            "X-Key=",
            "X-Key=0000000000000000",
            "X-Key=?",
            "other=1"
        ])
        .prop_map(Sent::Cookie),
        prop::sample::select(vec![&[""][..], &["?"], &["a", "b"], &["", ""]])
            .prop_map(Sent::Header),
    ]
}

fn request(generation: &Generation, path: &str, sent: &Sent) -> Parts {
    let mut parts = parts("GET", path);
    match sent {
        Sent::None => {}
        Sent::Given {
            cluster,
            destination,
            names_cluster,
        } => {
            let key = key(generation, *cluster, *destination, *names_cluster);
            parts.headers.extend(key);
        }
        Sent::Cookie(cookie) => drop(parts.headers.insert("cookie", cookie.parse().unwrap())),
        Sent::Header(values) => {
            for value in *values {
                parts.headers.append("x-key", value.parse().unwrap());
            }
        }
    }
    parts
}

fn names(explanation: &Explanation) -> Vec<&str> {
    let headers = explanation.forwarded.iter().flat_map(|it| &it.headers);
    headers.map(|(name, _)| name.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_explanation_and_the_proxy_agree(
        policy in prop::sample::select(vec!["HashCookie", "ArrCookie", "Cookie", "CustomHeader"]),
        failure in prop::sample::select(vec!["Redistribute", "Return503Error"]),
        available in prop::sample::select(vec!["HealthyOrPanic", "HealthyAndUnknown"]),
        path in prop::sample::select(vec!["/", "/split"]),
        sick in any::<[bool; 4]>(),
        sent in sent(),
    ) {
        let snapshot = snapshot(&config(policy, failure, available, "10.0.0.1"));
        let (proxy, _driver) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let generation = proxy.shared().load();
        for (position, is_sick) in sick.into_iter().enumerate() {
            let state = generation.cluster(ClusterIndex(position as u32 / 2));
            let health = if is_sick { Health::Unhealthy } else { Health::Healthy };
            state.destinations()[position % 2].health().update(|record| record.health = health);
            state.live().health_changed();
        }
        let parts = request(&generation, path, &sent);
        let head = HttpHead::new(&parts);
        let told = proxy.explain(&parts, ConnectionInfo::default());

        // The cluster.
        let route = RouteIndex(u32::from(path == "/split"));
        let kept = generation.route(route).kept(generation.snapshot(), &head);
        prop_assert_eq!(told.keeps_cluster, kept.is_some());
        let shown = generation.snapshot().cluster_index(told.cluster.as_ref().unwrap()).unwrap();
        if let Some(kept) = kept {
            prop_assert_eq!(shown, kept);
        }
        // The destination.
        let cluster = generation.snapshot().cluster_at(shown);
        let affinity = told.affinity.as_ref().unwrap();
        match generation.cluster(shown).pick(cluster, &head) {
            Ok(picked) => {
                prop_assert_eq!(told.outcome, Verdict::Matched);
                prop_assert_eq!(affinity.key == KeyUse::Kept, picked.bond == Bond::Kept);
                let destination = &cluster.destinations()[picked.index.0 as usize];
                if picked.bond == Bond::Kept {
                    prop_assert_eq!(affinity.destination.as_ref(), Some(destination.id()));
                    let uri = &told.forwarded.as_ref().unwrap().uri;
                    let authority = destination.address().authority().to_str().unwrap();
                    prop_assert!(uri.contains(&format!("//{authority}/")), "{uri}");
                }
            }
            Err(Unpicked::None) => {
                prop_assert_eq!(told.outcome, Verdict::NoDestination);
                prop_assert_eq!(told.rejected, None);
            }
            Err(Unpicked::Rejected(failure, status)) => {
                prop_assert_eq!(told.outcome, Verdict::NoDestination);
                prop_assert_eq!(told.status, Some(status));
                prop_assert_eq!(told.rejected, Some(failure.to_string()));
            }
        }
    }

    /// The explanation without a running proxy is the same, or says that it does not know.
    #[test]
    fn an_explanation_of_the_configuration_alone_claims_nothing_else(
        policy in prop::sample::select(vec!["HashCookie", "ArrCookie", "Cookie", "CustomHeader"]),
        path in prop::sample::select(vec!["/", "/split"]),
        sent in sent(),
    ) {
        let snapshot = snapshot(&config(policy, "Return503Error", "HealthyAndUnknown", "10.0.0.1"));
        let running = Proxy::builder().snapshot(Arc::clone(&snapshot));
        let (proxy, _driver) = running.build().unwrap();
        let parts = request(&proxy.shared().load(), path, &sent);
        let live = proxy.explain(&parts, ConnectionInfo::default());
        let told = explain(&snapshot, &ProxySettings::default(), &parts, ConnectionInfo::default());
        let (key, live_key) = (told.affinity.unwrap().key, live.affinity.as_ref().unwrap().key);
        if key == KeyUse::Unknown {
            prop_assert!(policy == "Cookie" || policy == "CustomHeader");
            prop_assert_ne!(live_key, KeyUse::NotSet);
        } else {
            prop_assert_eq!(key, live_key);
            prop_assert_eq!((told.outcome, told.status), (live.outcome, live.status));
            prop_assert_eq!(&told.cluster, &live.cluster);
            prop_assert_eq!(told.keeps_cluster, live.keeps_cluster);
        }
    }
}

#[test]
fn the_mark_against_loops_is_shown() {
    let snapshot = snapshot(&config(
        "HashCookie",
        "Redistribute",
        "HealthyOrPanic",
        "10.0.0.1",
    ));
    let running = Proxy::builder().snapshot(Arc::clone(&snapshot));
    let (proxy, _driver) = running.build().unwrap();
    let parts = parts("GET", "/");
    let live = proxy.explain(&parts, ConnectionInfo::default());
    let told =
        |settings: &ProxySettings| explain(&snapshot, settings, &parts, ConnectionInfo::default());
    let guarded = told(&ProxySettings::default());
    assert!(names(&live).contains(&"Cdn-Loop"), "{:?}", names(&live));
    assert_eq!(names(&guarded), names(&live));
    let settings = ProxySettings {
        without_loop_guard: true,
        ..ProxySettings::default()
    };
    assert!(!names(&told(&settings)).contains(&"Cdn-Loop"));
}

/// `d1` becomes `d1[10.0.0.1]`, which has other keys.
#[test]
fn keys_of_names_that_are_resolved_are_unknown() {
    let resolving = ProxySettings {
        resolves_destinations: true,
        ..ProxySettings::default()
    };
    for (to, settings, expected) in [
        (
            "orders.example",
            &resolving,
            [KeyUse::Unknown, KeyUse::Unknown],
        ),
        ("10.0.0.1", &resolving, [KeyUse::Kept, KeyUse::Unavailable]),
        (
            "orders.example",
            &ProxySettings::default(),
            [KeyUse::Kept, KeyUse::Unavailable],
        ),
    ] {
        let snapshot = snapshot(&config(
            "HashCookie",
            "Return503Error",
            "HealthyOrPanic",
            to,
        ));
        let running = Proxy::builder().snapshot(Arc::clone(&snapshot));
        let (proxy, _driver) = running.build().unwrap();
        let told = |sent: &Sent| {
            let parts = request(&proxy.shared().load(), "/", sent);
            explain(&snapshot, settings, &parts, ConnectionInfo::default())
        };
        let given = Sent::Given {
            cluster: 0,
            destination: 1,
            names_cluster: false,
        };
        for (sent, expected) in [
            (given, expected[0]),
            (Sent::Cookie("X-Key=0000000000000000"), expected[1]),
            (Sent::None, KeyUse::NotSet),
        ] {
            assert_eq!(told(&sent).affinity.unwrap().key, expected, "{to} {sent:?}");
        }
    }
}
