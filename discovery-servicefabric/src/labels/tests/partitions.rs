//! Partitions as clusters.

use proxy_model::config::{PartitionHash, PartitionKey};
use serde_json::json;

use super::traffic::{Routing, get};
use super::*;

const PATH: (&str, &str) = ("YARP.Routes.r.Path", "/{**rest}");
const BY_ID: (&str, &str) = ("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition");
const BY_KEY: (&str, &str) = ("YARP.Backend.ServiceFabric.PartitionMode", "Key");
const QUERY: (&str, &str) = ("YARP.Backend.ServiceFabric.PartitionKey.Query", "tenant");

fn two_ranges() -> Vec<PartitionDescription> {
    vec![
        range("p2", 0, i64::MAX, vec![]),
        range("p1", i64::MIN, -1, vec![with_role(7, ReplicaRole::Primary)]),
    ]
}

fn stateful(pairs: &[(&str, &str)], partitions: Vec<PartitionDescription>) -> ServiceDescription {
    service(ServiceKind::Stateful, pairs, partitions)
}

#[test]
fn partitions_by_id_are_clusters_with_routes_of_their_own() {
    let pairs = [
        PATH,
        BY_ID,
        ("YARP.Routes.r.Transforms.[3].PathPrefix", "/v1"),
        ("YARP.Routes.r.MatchQueries.[0].Name", "a"),
        ("YARP.Routes.r.MatchQueries.[0].Mode", "Exists"),
    ];
    let config = good(&YarpLabels::default(), &stateful(&pairs, two_ranges()));
    assert_eq!(
        cluster_ids(&config),
        ["fabric:/App/Web/p1", "fabric:/App/Web/p2"]
    );
    assert_eq!(
        addresses(&config.clusters[0]),
        [("p1/7", "https://10.0.0.7/")]
    );
    // It has no replicas at the moment; its keys get 503 and not what belongs to others.
    assert_eq!(addresses(&config.clusters[1]), []);
    assert_eq!(
        config.clusters[0].metadata.as_ref().unwrap()["__SF.PartitionId"],
        "p1"
    );
    assert_eq!(
        route_ids(&config),
        ["fabric%3A%2FApp%2FWeb:r:p1", "fabric%3A%2FApp%2FWeb:r:p2"]
    );
    let first = serde_json::to_value(route(&config, "fabric%3A%2FApp%2FWeb:r:p1")).unwrap();
    let expected = json!({
        "ClusterId": "fabric:/App/Web/p1",
        "Match": {
            "Path": "/{**rest}",
            "QueryParameters": [{ "Name": "a", "Mode": "Exists" }, { "Name": "PartitionID", "Values": ["p1"] }],
        },
        "Transforms": [{ "PathPrefix": "/v1" }, { "QueryRemoveParameter": "PartitionID" }],
    });
    assert_eq!(first, expected);

    let routing = Routing::of(&config);
    for (query, expected) in [
        ("a=1&PartitionID=p1", "fabric:/App/Web/p1"),
        ("a=1&partitionid=P2", "fabric:/App/Web/p2"),
        ("a=1&PartitionID=p3", "404"),
        ("a=1", "404"),
    ] {
        assert_eq!(
            routing.cluster(&get("/x").query(query)),
            expected,
            "{query}"
        );
    }
}

#[test]
fn a_singleton_is_no_partition_and_any_other_is() {
    for mode in [BY_ID, BY_KEY] {
        let config = good(
            &YarpLabels::default(),
            &stateful(&[PATH, mode], vec![singleton(vec![])]),
        );
        assert_eq!(cluster_ids(&config), ["fabric:/App/Web"]);
        assert_eq!(Routing::of(&config).cluster(&get("/")), "fabric:/App/Web");
        // None could be read, which is no reason to reject the service.
        let config = good(&YarpLabels::default(), &stateful(&[PATH, mode], vec![]));
        assert_eq!(cluster_ids(&config), ["fabric:/App/Web"]);
    }
    // One of a kind that may have others is divided: nothing changes for its requests when others come or go.
    for only in [range("p1", 0, 9, vec![]), named("p1", "a", vec![])] {
        let config = good(
            &YarpLabels::default(),
            &stateful(&[PATH, BY_ID], vec![only]),
        );
        assert_eq!(cluster_ids(&config), ["fabric:/App/Web/p1"]);
        assert_eq!(route_ids(&config), ["fabric%3A%2FApp%2FWeb:r:p1"]);
        let routing = Routing::of(&config);
        for (query, expected) in [
            ("PartitionID=p1", "fabric:/App/Web/p1"),
            ("PartitionID=p0", "404"),
            ("", "404"),
        ] {
            assert_eq!(routing.cluster(&get("/").query(query)), expected, "{query}");
        }
    }
    // A range has an end, even if it is the only one.
    let only = vec![range("p1", 0, 9, vec![])];
    let config = good(
        &YarpLabels::default(),
        &stateful(&[PATH, BY_KEY, QUERY], only),
    );
    let routing = Routing::of(&config);
    assert_eq!(
        routing.cluster(&get("/").query("tenant=9")),
        "fabric:/App/Web/p1"
    );
    assert_eq!(routing.cluster(&get("/").query("tenant=10")), "400");
}

#[test]
fn a_key_is_where_labels_say() {
    for (label, path, request) in [
        (QUERY, "/{**rest}", get("/x").query("tenant=-5")),
        (
            ("YARP.Backend.ServiceFabric.PartitionKey.Header", "X-Tenant"),
            "/{**rest}",
            get("/x").header("x-tenant", "-5"),
        ),
        (
            (
                "YARP.Backend.ServiceFabric.PartitionKey.RouteValue",
                "tenant",
            ),
            "/{tenant}/{**rest}",
            get("/-5/x"),
        ),
        (
            (
                "YARP.Routes.r.ServiceFabric.PartitionKey.RouteValue",
                "tenant",
            ),
            "/t/{tenant}",
            get("/t/-5"),
        ),
    ] {
        let pairs = [("YARP.Routes.r.Path", path), BY_KEY, label];
        let config = good(&YarpLabels::default(), &stateful(&pairs, two_ranges()));
        assert_eq!(
            cluster_ids(&config),
            ["fabric:/App/Web/p1", "fabric:/App/Web/p2"]
        );
        assert_eq!(route_ids(&config), ["fabric%3A%2FApp%2FWeb:r"]);
        assert_eq!(
            Routing::of(&config).cluster(&request),
            "fabric:/App/Web/p1",
            "{label:?}"
        );
    }
}

#[test]
fn keys_and_their_hash_may_be_decided_for_all_services() {
    let key = PartitionKey {
        header: Some("X-Tenant".into()),
        ..PartitionKey::default()
    };
    let options = LabelOptions::default()
        .with_partition_mode(PartitionMode::Key)
        .with_partition_key(key, PartitionHash::Fnv1a64);
    let parser = YarpLabels::new(options);
    let config = good(&parser, &stateful(&[PATH], two_ranges()));
    let partitioned = config.routes[0].partitioned_clusters.as_ref().unwrap();
    assert_eq!(partitioned.hash, PartitionHash::Fnv1a64);
    let routing = Routing::of(&config);
    let clusters: std::collections::BTreeSet<String> = (0..100)
        .map(|i| routing.cluster(&get("/").header("x-tenant", format!("{i} customers"))))
        .collect();
    assert_eq!(clusters.len(), 2, "{clusters:?}");

    // Labels override the options, and names are compared exactly, independent of the hash.
    let config = good(&parser, &stateful(&[PATH, QUERY], two_ranges()));
    let partitioned = config.routes[0].partitioned_clusters.as_ref().unwrap();
    assert_eq!(partitioned.key.query_parameter.as_deref(), Some("tenant"));
    assert_eq!(partitioned.hash, PartitionHash::None);
    let names = vec![named("p1", "eu", vec![]), named("p2", "us", vec![])];
    let config = good(&parser, &stateful(&[PATH], names));
    let routing = Routing::of(&config);
    assert_eq!(
        routing.cluster(&get("/").header("x-tenant", "us")),
        "fabric:/App/Web/p2"
    );
}

#[test]
fn keys_that_make_no_sense_are_told() {
    let mode = "/YARP.Backend.ServiceFabric.PartitionMode";
    for (labels, pointer, code) in [
        (&[][..], mode, "missing_partition_key"),
        (
            &[
                QUERY,
                ("YARP.Backend.ServiceFabric.PartitionKey.Header", "X"),
            ],
            "/YARP.Backend.ServiceFabric.PartitionKey.Query",
            "ambiguous_partition_key",
        ),
        (
            &[("YARP.Backend.ServiceFabric.PartitionKey.Hash", "Fnv1a64")],
            "/YARP.Backend.ServiceFabric.PartitionKey.Hash",
            "missing_partition_key",
        ),
        (
            &[(
                "YARP.Backend.ServiceFabric.PartitionKey.RouteValue",
                "tenant",
            )],
            "/YARP.Backend.ServiceFabric.PartitionKey.RouteValue",
            "unknown_route_parameter",
        ),
        (
            &[("YARP.Routes.r.ServiceFabric.PartitionKey.Header", "a b")],
            "/YARP.Routes.r.ServiceFabric.PartitionKey.Header",
            "invalid_header_name",
        ),
    ] {
        let pairs: Vec<_> = [PATH, BY_KEY]
            .into_iter()
            .chain(labels.iter().copied())
            .collect();
        let parsed = parse(&stateful(&pairs, two_ranges()));
        let errors: Vec<_> = parsed
            .problems
            .errors()
            .map(|e| (e.pointer.as_str(), &*e.code))
            .collect();
        assert_eq!(errors, [(pointer, code)], "{:?}", parsed.problems);
    }
    let parsed = parse(&stateful(&[PATH, QUERY], two_ranges()));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /YARP.Backend.ServiceFabric.PartitionKey.Query: keys are looked at with `PartitionMode` = `Key` only"
        ]
    );
}

#[test]
fn partitions_that_cannot_be_told_apart_are_rejected() {
    let unknown = PartitionDescription::new(
        PartitionInformation {
            id: "p".into(),
            ..PartitionInformation::default()
        },
        vec![],
    );
    for partitions in [
        vec![range("a", 0, 10, vec![]), range("b", 10, 20, vec![])],
        vec![range("a", 5, 4, vec![]), range("b", 10, 20, vec![])],
        vec![range("a", 0, 10, vec![]), named("b", "b", vec![])],
        vec![named("a", "n", vec![]), named("b", "n", vec![])],
        vec![named("a", "", vec![]), named("b", "n", vec![])],
        vec![range("", 0, 10, vec![]), range("b", 11, 20, vec![])],
        vec![unknown],
    ] {
        let told = rejected(&stateful(&[PATH, BY_KEY, QUERY], partitions.clone()));
        assert_eq!(told.len(), 1);
        let merged = good(&YarpLabels::default(), &stateful(&[PATH], partitions));
        assert_eq!(merged.clusters.len(), 1);
    }
}

#[test]
fn partitions_in_which_nothing_can_be_reached_are_named() {
    let insecure = || vec![replica(1, "http://10.0.0.1")];
    let partitions = vec![
        range("p1", 0, 1, vec![replica(1, "https://10.0.0.1")]),
        range("p2", 2, 3, insecure()),
        range("p3", 4, 5, insecure()),
        range("p4", 6, 7, vec![]),
    ];
    let parsed = parse(&stateful(&[PATH, BY_ID], partitions));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /: in 2 of 4 partitions no replica has a usable endpoint; in p2, its listener `` has the scheme `http`, which the option `DiscoverInsecureHttpDestinations` would allow (listen with https, or set `DiscoverInsecureHttpDestinations` to `true`)"
        ]
    );
}
