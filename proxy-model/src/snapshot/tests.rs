use serde_json::{Value, json};

use super::*;
use crate::compiled::RouteTarget;
use crate::json::parse_document;

fn config(value: Value) -> ProxyConfig {
    serde_json::from_value(value).unwrap()
}

fn revision(value: Value) -> Revision {
    Revision::of(&config(value))
}

fn good_and_bad() -> Value {
    json!({
        "Routes": {
            "bad": { "ClusterId": "good", "Match": { "Path": "/{" } },
            "good": { "ClusterId": "good", "Match": { "Path": "/good" } },
            "orphan": { "ClusterId": "BAD", "Match": { "Path": "/orphan" } },
        },
        "Clusters": {
            "bad": { "Destinations": { "d": { "Address": "nowhere" } } },
            "good": { "Destinations": { "d": { "Address": "http://a" } } },
        },
    })
}

#[test]
fn one_error_rejects_the_whole() {
    let problems =
        Snapshot::compile(config(good_and_bad()), &CompileOptions::default()).unwrap_err();
    assert_eq!(problems.error_count(), 2);
}

#[test]
fn isolation_leaves_out_what_is_bad_and_names_it() {
    let (snapshot, problems) =
        Snapshot::compile_isolated(config(good_and_bad()), &CompileOptions::default());
    let ids: Vec<_> = snapshot.routes().iter().map(|r| r.id().as_str()).collect();
    assert_eq!(ids, ["good", "orphan"]);
    let ids: Vec<_> = snapshot
        .clusters()
        .iter()
        .map(|c| c.id().as_str())
        .collect();
    assert_eq!(ids, ["good"]);
    let found: Vec<_> = problems.iter().map(|p| (&*p.code, &*p.pointer)).collect();
    assert_eq!(
        found,
        [
            ("invalid_address", "/Clusters/bad/Destinations/d/Address"),
            ("invalid_path", "/Routes/bad/Match/Path"),
            ("refused_cluster", "/Routes/orphan/ClusterId"),
        ]
    );
    assert_eq!(
        snapshot.routes()[0].target(),
        &RouteTarget::Cluster(ClusterIndex(0))
    );
    assert_eq!(
        snapshot.routes()[1].target(),
        &RouteTarget::Missing(ClusterId::new("BAD"))
    );
    assert_eq!(snapshot.config().routes.len(), 2);
    assert_eq!(snapshot.revision(), Revision::of(snapshot.config()));
}

/// Codes and places of what is wrong with a section.
fn read(text: &str) -> Vec<(String, String)> {
    let document = parse_document(text).unwrap();
    let options = CompileOptions::default();
    let problems = Snapshot::read(&document, "/ReverseProxy", &options).unwrap_err();
    let found = problems.into_iter();
    found
        .map(|p| {
            let place = p.pointer.strip_prefix("/ReverseProxy").unwrap();
            (p.code.into_owned(), place.to_owned())
        })
        .collect()
}

fn assert_read(text: &str, expected: &[(&str, &str)]) {
    let found = read(text);
    let found: Vec<_> = found
        .iter()
        .map(|(code, place)| (&**code, &**place))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn reading_and_compiling_report_together() {
    let text = r#"{
        "routes": {
            "a": { "Order": "x", "clusterid": "C", "match": { "PATH": "/{" }, "Transforms": [{ "No": "1" }] },
            "b": { "ClusterId": "nowhere", "Match": { "Path": "/b", "Methods": ["GTE"] } }
        },
        "Clusters": { "c": { "Destinations": 5, "LoadBalancingPolicy": "x" } }
    }"#;
    assert_read(
        text,
        &[
            ("invalid_number", "/routes/a/Order"),
            ("wrong_type", "/Clusters/c/Destinations"),
            (
                "unknown_load_balancing_policy",
                "/Clusters/c/LoadBalancingPolicy",
            ),
            ("invalid_path", "/routes/a/match/PATH"),
            ("unknown_transform", "/routes/a/Transforms/0"),
            ("invalid_method", "/routes/b/Match/Methods/0"),
            ("unknown_cluster", "/routes/b/ClusterId"),
        ],
    );
    let document = parse_document(text).unwrap();
    let (snapshot, problems) = Snapshot::read_isolated(&document, "", &CompileOptions::default());
    assert!(snapshot.routes().is_empty() && snapshot.clusters().is_empty());
    assert_eq!(problems.error_count(), 6);
}

#[test]
fn what_follows_from_a_mistake_is_not_reported_as_another() {
    for (text, expected) in [
        (
            r#"{ "Routes": { "r": { "Match": { "Path": [] } } } }"#,
            &[("wrong_type", "/Routes/r/Match/Path")] as &[_],
        ),
        (
            r#"{ "Routes": { "r": { "Match": { "Pth": "/" } } } }"#,
            &[("unknown_key", "/Routes/r/Match/Pth")],
        ),
        (
            r#"{ "Routes": { "r": { "Mtch": { "Path": "/" } } } }"#,
            &[("unknown_key", "/Routes/r/Mtch")],
        ),
        (
            r#"{ "Routes": { "r": { "Match": { "Hosts": [[]] } } } }"#,
            &[("wrong_type", "/Routes/r/Match/Hosts/0")],
        ),
        (
            r#"{ "Routes": { "r": { "Match": { "Path": "/", "Headers": [ { "Name": "x", "Mode": "Exist" } ] } } } }"#,
            &[("unknown_value", "/Routes/r/Match/Headers/0/Mode")],
        ),
        (
            r#"{ "Routes": { "r": { "Match": { "Path": "/" }, "Transforms": [ { "PathSet": [] }, { "No": "" } ] } } }"#,
            &[
                ("wrong_type", "/Routes/r/Transforms/0/PathSet"),
                ("unknown_transform", "/Routes/r/Transforms/1"),
            ],
        ),
        (
            r#"{ "Clusters": { "c": { "Destinations": { "d": { "Adress": "http://a" }, "e": {} } } } }"#,
            &[
                ("unknown_key", "/Clusters/c/Destinations/d/Adress"),
                ("missing_address", "/Clusters/c/Destinations/e/Address"),
            ],
        ),
        (
            r#"{ "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" } } }, "Clutsers": { "c": {} } }"#,
            &[("unknown_key", "/Clutsers")],
        ),
    ] {
        assert_read(text, expected);
    }
}

#[test]
fn routes_to_a_cluster_that_could_not_be_read_are_not_blamed() {
    let document = parse_document(
        r#"{ "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" } } }, "Clusters": { "C": { "x": 1 } } }"#,
    )
    .unwrap();
    let (snapshot, problems) = Snapshot::read_isolated(&document, "", &CompileOptions::default());
    let found: Vec<_> = problems.iter().map(|p| (&*p.code, &*p.pointer)).collect();
    assert_eq!(
        found,
        [
            ("unknown_key", "/Clusters/C/x"),
            ("refused_cluster", "/Routes/r/ClusterId")
        ]
    );
    assert_eq!(snapshot.routes().len(), 1);
}

#[test]
fn parts_are_found_by_id_and_by_position() {
    let (snapshot, _) =
        Snapshot::compile_isolated(config(good_and_bad()), &CompileOptions::default());
    let route = snapshot.route(&RouteId::new("GOOD")).unwrap();
    assert_eq!(route.config().r#match.path.as_deref(), Some("/good"));
    let index = snapshot.route_index(&RouteId::new("orphan")).unwrap();
    assert_eq!(snapshot.route_at(index).id().as_str(), "orphan");
    let index = snapshot.cluster_index(&ClusterId::new("Good")).unwrap();
    assert_eq!(snapshot.cluster_at(index).id().as_str(), "good");
    assert!(snapshot.cluster(&ClusterId::new("bad")).is_none());
}

#[test]
fn the_empty_snapshot_is_that_of_the_empty_configuration() {
    let empty = Snapshot::empty();
    assert!(empty.routes().is_empty() && empty.clusters().is_empty());
    assert_eq!(empty.revision(), Revision::of(&ProxyConfig::default()));
}

#[test]
fn a_revision_does_not_depend_on_the_order_of_ids() {
    let destination = |port: u16| json!({ "Address": format!("http://a:{port}") });
    let one = json!({
        "Routes": { "a": { "Match": { "Path": "/a" } }, "b": { "Match": { "Path": "/b" } } },
        "Clusters": { "c": { "Destinations": { "x": destination(1), "y": destination(2) } }, "d": {} },
    });
    let other = r#"{
        "Clusters": { "d": {}, "c": { "Destinations": { "y": { "Address": "http://a:2" }, "x": { "Address": "http://a:1" } } } },
        "Routes": { "b": { "Match": { "Path": "/b" } }, "a": { "Match": { "Path": "/a" } } }
    }"#;
    assert_eq!(
        revision(one),
        Revision::of(&ProxyConfig::from_json(other).unwrap())
    );
}

#[test]
fn a_revision_depends_on_the_order_of_routes_that_match_the_same() {
    let read = |text: &str| Revision::of(&ProxyConfig::from_json(text).unwrap());
    let one =
        r#"{ "Routes": { "a": { "Match": { "Path": "/" } }, "b": { "Match": { "Path": "/" } } } }"#;
    let other =
        r#"{ "Routes": { "b": { "Match": { "Path": "/" } }, "a": { "Match": { "Path": "/" } } } }"#;
    assert_ne!(read(one), read(other));
}

/// Returns true if two orders of the same two routes, given by their criteria, have different revisions.
fn order_counts(one: &Value, other: &Value) -> bool {
    let revision = |ids: [&str; 2]| {
        let mut config = ProxyConfig::default();
        for id in ids {
            let criteria = if id == "a" { one } else { other };
            let route = json!({ "Match": criteria });
            config
                .routes
                .insert(id.into(), serde_json::from_value(route).unwrap());
        }
        Revision::of(&config)
    };
    revision(["a", "b"]) != revision(["b", "a"])
}

#[test]
fn a_revision_depends_on_the_order_of_routes_that_may_tie() {
    for (one, other) in [
        (
            json!({ "Path": "/x/{id:int}" }),
            json!({ "Path": "/x/{id:min(1)}" }),
        ),
        (json!({ "Path": "/x/{a}" }), json!({ "Path": "X/{b}/" })),
        (
            json!({ "Path": "/{a}.{b}" }),
            json!({ "Path": "/{a:regex(^\\d)}" }),
        ),
        (
            json!({ "Hosts": ["a", "b"] }),
            json!({ "Hosts": ["c", "B:*"] }),
        ),
        (
            json!({ "Path": "/", "Methods": ["GET"] }),
            json!({ "Path": "/", "Methods": ["PUT", "GET"] }),
        ),
        (
            json!({ "Path": "/", "Headers": [{ "Name": "a", "Mode": "Exists" }] }),
            json!({ "Path": "/", "Headers": [{ "Name": "b", "Mode": "Exists" }] }),
        ),
        (
            json!({ "Path": "/", "QueryParameters": [{ "Name": "a", "Mode": "Exists" }] }),
            json!({ "Path": "/", "QueryParameters": [{ "Name": "b", "Mode": "Exists" }] }),
        ),
        (json!({ "Path": "/{" }), json!({ "Path": "/}" })),
        (
            json!({ "Hosts": ["a"] }),
            json!({ "Hosts": ["a"], "Path": "/{**rest}" }),
        ),
    ] {
        assert!(order_counts(&one, &other), "{one} {other}");
    }
}

#[test]
fn a_revision_does_not_depend_on_the_order_of_routes_that_never_tie() {
    for (one, other) in [
        (json!({ "Path": "/x/{a}" }), json!({ "Path": "/y/{a}" })),
        (json!({ "Path": "/x/{a}" }), json!({ "Path": "/x/{a:int}" })),
        (json!({ "Path": "/{a?}" }), json!({ "Path": "/{*a}" })),
        (json!({ "Hosts": ["a"] }), json!({ "Hosts": ["b"] })),
        (json!({ "Hosts": ["a:1"] }), json!({ "Hosts": ["a:2"] })),
        (json!({ "Hosts": ["*"] }), json!({ "Path": "/{**rest}" })),
        (
            json!({ "Path": "/", "Methods": ["GET"] }),
            json!({ "Path": "/" }),
        ),
        (
            json!({ "Path": "/", "Headers": [{ "Name": "a", "Mode": "Exists" }] }),
            json!({ "Path": "/", "QueryParameters": [{ "Name": "b", "Mode": "Exists" }] }),
        ),
    ] {
        assert!(!order_counts(&one, &other), "{one} {other}");
    }
}

#[test]
fn every_value_counts() {
    let base = revision(
        json!({ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a/x" } } } } }),
    );
    for other in [
        // E25: YARP ignores the case of addresses and so misses this change; here it is one.
        json!({ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a/X" } } } } }),
        json!({ "Clusters": { "C": { "Destinations": { "d": { "Address": "http://a/x" } } } } }),
        json!({ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a/x", "Weight": 1 } } } } }),
        json!({ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a/x", "HealthPath": "/up" } } } } }),
        json!({ "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a/x" } }, "HealthCheck": {} } } }),
        json!({}),
    ] {
        assert_ne!(revision(other.clone()), base, "{other}");
    }
}

#[test]
fn revisions_stay_what_they_are() {
    // Kept by other processes and shown to people: a change here is a change of the format.
    let text = "ed46029e588b6a91308debe12b302c90";
    let revision = revision(
        json!({ "Routes": { "r": { "Match": { "Path": "/" }, "Order": 1 } }, "Clusters": { "c": {} } }),
    );
    assert_eq!(revision.to_string(), text);
    assert_eq!(text.parse(), Ok(revision));
    assert_eq!(serde_json::to_value(revision).unwrap(), json!(text));
    assert_eq!(
        serde_json::from_value::<Revision>(json!(text)).unwrap(),
        revision
    );
    for bad in [
        "",
        "4f",
        "zz46029e588b6a91308debe12b302c90",
        "+d46029e588b6a91308debe12b302c90",
    ] {
        assert_eq!(bad.parse::<Revision>(), Err(ParseRevisionError));
    }
}
