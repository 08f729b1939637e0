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
fn one_error_refuses_the_whole() {
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

#[test]
fn reading_and_compiling_report_together() {
    let document = parse_document(
        r#"{ "routes": { "a": { "Order": "x" }, "b": { "clusterid": "c", "match": { "PATH": "/{" } } },
             "Clusters": { "c": { "Destinations": 5 } } }"#,
    )
    .unwrap();
    let options = CompileOptions::default();
    let problems = Snapshot::read(&document, "/ReverseProxy", &options).unwrap_err();
    let found: Vec<_> = problems.iter().map(|p| (&*p.code, &*p.pointer)).collect();
    let expected = [
        ("invalid_number", "/ReverseProxy/routes/a/Order"),
        ("wrong_type", "/ReverseProxy/Clusters/c/Destinations"),
        ("invalid_path", "/ReverseProxy/routes/b/match/PATH"),
        ("refused_cluster", "/ReverseProxy/routes/b/clusterid"),
    ];
    assert_eq!(found, expected);
    let (snapshot, problems) = Snapshot::read_isolated(&document, "/ReverseProxy", &options);
    assert!(snapshot.routes().is_empty() && snapshot.clusters().is_empty());
    let found: Vec<_> = problems.iter().map(|p| (&*p.code, &*p.pointer)).collect();
    assert_eq!(found, expected[..3]);
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
