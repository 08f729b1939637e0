use crate::json::parse_document;
use crate::{CompileOptions, Snapshot};

/// Codes and places of what is wrong with a section, sorted by place.
fn found(text: &str) -> Vec<(String, String)> {
    let document = parse_document(text).unwrap();
    let problems = match Snapshot::read(&document, "/Proxy", &CompileOptions::default()) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    let mut found: Vec<_> = (problems.into_iter())
        .map(|p| {
            let place = p.pointer.strip_prefix("/Proxy").unwrap().to_owned();
            (place, p.code.into_owned())
        })
        .collect();
    found.sort_unstable();
    found
}

/// Checks everything that is found in the object `part`, with places from there.
fn check(before: &str, part: &str, after: &str, expected: &[(&str, &str)]) {
    let text = format!("{before}{part}{after}");
    let found = found(&text);
    let depth = if before.contains("Routes") {
        "/Routes/r"
    } else {
        "/Clusters/c"
    };
    let found: Vec<_> = (found.iter())
        .map(|(place, code)| (place.strip_prefix(depth).unwrap_or(place), &**code))
        .collect();
    assert_eq!(found, expected, "{part}");
}

fn check_route(route: &str, expected: &[(&str, &str)]) {
    check(r#"{ "Routes": { "r": "#, route, " } }", expected);
}

fn check_cluster(cluster: &str, expected: &[(&str, &str)]) {
    check(r#"{ "Clusters": { "c": "#, cluster, " } }", expected);
}

#[test]
fn one_mistake_in_a_route_does_not_hide_another() {
    for (route, expected) in [
        (
            r#"{ "Match": { "Path": "/{", "Metods": ["GET"] } }"#,
            &[
                ("/Match/Metods", "unknown_key"),
                ("/Match/Path", "invalid_path"),
            ] as &[_],
        ),
        (
            r#"{ "Match": { "Hosts": [{}, "a b", "xn--a"] } }"#,
            &[
                ("/Match/Hosts/0", "wrong_type"),
                ("/Match/Hosts/1", "invalid_host"),
                ("/Match/Hosts/2", "invalid_host"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "Transforms": [ null, { "No": "1" }, { "PathSet": [], "Set": "" } ] }"#,
            &[
                ("/Transforms/0", "wrong_type"),
                ("/Transforms/1", "unknown_transform"),
                ("/Transforms/2/PathSet", "wrong_type"),
                ("/Transforms/2/Set", "unexpected_transform_key"),
            ],
        ),
        (
            r#"{ "Match": { "Methods": 5 }, "Ordr": 1 }"#,
            &[
                ("/Match", "no_criteria"),
                ("/Match/Methods", "wrong_type"),
                ("/Ordr", "unknown_key"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/", "Headers": [ 1, { "Name": "a b", "Values": [""] } ] } }"#,
            &[
                ("/Match/Headers/0", "wrong_type"),
                ("/Match/Headers/1/Name", "invalid_header_name"),
                ("/Match/Headers/1/Values/0", "empty_value"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/", "Headers": [ { "Name": "a b", "Mode": "Exist", "Values": ["", "x", ""] } ] } }"#,
            &[
                ("/Match/Headers/0/Mode", "unknown_value"),
                ("/Match/Headers/0/Name", "invalid_header_name"),
                ("/Match/Headers/0/Values/0", "empty_value"),
                ("/Match/Headers/0/Values/2", "empty_value"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/", "QueryParameters": [ { "Mode": "Exact" } ] } }"#,
            &[
                ("/Match/QueryParameters/0/Name", "missing_name"),
                ("/Match/QueryParameters/0/Values", "missing_values"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "WeightedClusters": [
                { "ClusterId": "", "Weight": 2000000 }, { "ClusterId": [], "Weight": 3000000 }, 7,
                { "Weight": "x" } ] }"#,
            &[
                ("/WeightedClusters/0/ClusterId", "missing_cluster_id"),
                ("/WeightedClusters/0/Weight", "out_of_range"),
                ("/WeightedClusters/1/ClusterId", "wrong_type"),
                ("/WeightedClusters/1/Weight", "out_of_range"),
                ("/WeightedClusters/2", "wrong_type"),
                ("/WeightedClusters/3/ClusterId", "missing_cluster_id"),
                ("/WeightedClusters/3/Weight", "invalid_number"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "PartitionedClusters": {
                "Key": { "Heder": "k", "Header": "a b" },
                "Partitions": [ 7, { "ClusterId": "", "LowKey": "x", "HighKey": 1 },
                    { "ClusterId": [], "LowKey": 3, "HighKey": 2 } ] } }"#,
            &[
                ("/PartitionedClusters/Key/Header", "invalid_header_name"),
                ("/PartitionedClusters/Key/Heder", "unknown_key"),
                ("/PartitionedClusters/Partitions/0", "wrong_type"),
                (
                    "/PartitionedClusters/Partitions/1/ClusterId",
                    "missing_cluster_id",
                ),
                ("/PartitionedClusters/Partitions/1/LowKey", "invalid_number"),
                ("/PartitionedClusters/Partitions/2/ClusterId", "wrong_type"),
                ("/PartitionedClusters/Partitions/2/HighKey", "invalid_range"),
            ],
        ),
        (
            "{ \"Match\": { \"Path\": \"/\" }, \"Transforms\": [
                { \"RequestHeader\": \"a b\", \"Set\": \"\\n\" },
                { \"RequestHeaderRouteValue\": \"a b\", \"Set\": \"\" },
                { \"QueryValueParameter\": \"\" },
                { \"X-Forwarded\": \"Set\", \"HeaderPrefix\": \" \", \"For\": \"x\" } ] }",
            &[
                ("/Transforms/0/RequestHeader", "invalid_transform_value"),
                ("/Transforms/0/Set", "invalid_transform_value"),
                (
                    "/Transforms/1/RequestHeaderRouteValue",
                    "invalid_transform_value",
                ),
                ("/Transforms/1/Set", "invalid_transform_value"),
                ("/Transforms/1/Set", "unknown_route_parameter"),
                ("/Transforms/2", "missing_transform_key"),
                (
                    "/Transforms/2/QueryValueParameter",
                    "invalid_transform_value",
                ),
                ("/Transforms/3/For", "invalid_transform_value"),
                ("/Transforms/3/HeaderPrefix", "invalid_transform_value"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/{", "path": "/" } }"#,
            &[
                ("/Match/Path", "invalid_path"),
                ("/Match/path", "duplicate_key"),
            ],
        ),
    ] {
        check_route(route, expected);
    }
}

#[test]
fn one_mistake_in_a_cluster_does_not_hide_another() {
    for (cluster, expected) in [
        (
            r#"{ "Destinations": { "d1": { "Address": "nonsense", "Weight": "x" }, "d2": 1, "d3": {} } }"#,
            &[
                ("/Destinations/d1/Address", "invalid_address"),
                ("/Destinations/d1/Weight", "invalid_number"),
                ("/Destinations/d2", "wrong_type"),
                ("/Destinations/d3/Address", "missing_address"),
            ] as &[_],
        ),
        (
            r#"{ "HealthCheck": { "Active": { "Enabled": true, "Intervall": "5s", "Policy": "x", "Timeout": "00:00:00" } } }"#,
            &[
                ("/HealthCheck/Active/Intervall", "unknown_key"),
                ("/HealthCheck/Active/Policy", "unknown_active_health_policy"),
                ("/HealthCheck/Active/Timeout", "not_positive"),
            ],
        ),
        (
            r#"{ "HttpClient": { "MaxConnectionsPerServer": -1, "SslProtocols": [[], "Tls99"] } }"#,
            &[
                ("/HttpClient/MaxConnectionsPerServer", "out_of_range"),
                ("/HttpClient/SslProtocols/0", "wrong_type"),
                ("/HttpClient/SslProtocols/1", "unknown_value"),
            ],
        ),
        (
            r#"{ "SessionAffinity": { "Enabled": true, "Setings": {}, "AffinityKeyName": "",
                "Cookie": { "MaxAge": "x", "Expiration": "00:00:00", "SameSite": "x" } } }"#,
            &[
                (
                    "/SessionAffinity/AffinityKeyName",
                    "missing_affinity_key_name",
                ),
                ("/SessionAffinity/Cookie/Expiration", "not_positive"),
                ("/SessionAffinity/Cookie/MaxAge", "invalid_time_span"),
                ("/SessionAffinity/Cookie/SameSite", "unknown_value"),
                ("/SessionAffinity/Setings", "unknown_key"),
            ],
        ),
    ] {
        check_cluster(cluster, expected);
    }
}

#[test]
fn what_follows_from_a_mistake_is_left_out() {
    for (route, expected) in [
        (
            r#"{ "Match": { "Hosts": 5 } }"#,
            &[("/Match/Hosts", "wrong_type")] as &[_],
        ),
        (
            r#"{ "Match": 5, "Transforms": [ { "RequestHeaderRouteValue": "a", "Set": "id" } ] }"#,
            &[("/Match", "wrong_type")],
        ),
        (
            r#"{ "match": { "path": [], "Hosts": ["a"] }, "Transforms": [ { "RequestHeaderRouteValue": "a", "Set": "id" } ] }"#,
            &[("/match/path", "wrong_type")],
        ),
        (
            r#"{ "Match": { "Path": "/", "Headers": [ { "Name": "a", "mode": [], "Values": ["x"] }, { "Name": "a", "Mode": "Exsts" } ] } }"#,
            &[
                ("/Match/Headers/0/mode", "wrong_type"),
                ("/Match/Headers/1/Mode", "unknown_value"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "Transforms": [ { "forwarded": [], "ForFormat": "Ip" } ] }"#,
            &[("/Transforms/0/forwarded", "wrong_type")],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "PartitionedClusters": { "Key": { "Heder": "x" },
                "Partitions": [ { "Nam": "x" }, { "ClusterId": [], "LowKey": [], "HighKey": [] } ] } }"#,
            &[
                ("/PartitionedClusters/Key/Heder", "unknown_key"),
                ("/PartitionedClusters/Partitions/0/Nam", "unknown_key"),
                ("/PartitionedClusters/Partitions/1/ClusterId", "wrong_type"),
                ("/PartitionedClusters/Partitions/1/HighKey", "wrong_type"),
                ("/PartitionedClusters/Partitions/1/LowKey", "wrong_type"),
            ],
        ),
        (
            r#"{ "Match": 5, "PartitionedClusters": { "key": { "RouteValue": "id" }, "Partitionss": [] } }"#,
            &[
                ("/Match", "wrong_type"),
                ("/PartitionedClusters/Partitionss", "unknown_key"),
            ],
        ),
        (
            r#"{ "Match": { "Path": "/" }, "PartitionedClusters": { "key": 5, "partitions": {} } }"#,
            &[
                ("/PartitionedClusters/key", "wrong_type"),
                ("/PartitionedClusters/partitions", "no_partitions"),
            ],
        ),
    ] {
        check_route(route, expected);
    }
    check_cluster(
        r#"{ "SessionAffinity": { "Enabled": true, "AffinityKeyNam": "x" } }"#,
        &[("/SessionAffinity/AffinityKeyNam", "unknown_key")],
    );
    let text = r#"{ "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" } } }, "Clusters": CLUSTERS }"#;
    for (clusters, expected) in [
        ("5", ("/Clusters", "wrong_type")),
        ("[]", ("/Clusters", "old_format")),
        (r#"{ "c": 5 }"#, ("/Clusters/c", "wrong_type")),
    ] {
        let found = found(&text.replace("CLUSTERS", clusters));
        let found: Vec<_> = found.iter().map(|(at, code)| (&**at, &**code)).collect();
        assert_eq!(found, [expected], "{clusters}");
    }
}

#[test]
fn elements_are_where_the_document_has_them() {
    check_route(
        r#"{ "Match": { "hosts": { "5": "a.com", "07": "b b", "1": {} } } }"#,
        &[
            ("/Match/hosts/07", "invalid_host"),
            ("/Match/hosts/1", "wrong_type"),
        ],
    );
    check_cluster(
        r#"{ "HttpClient": { "SslProtocols": "Tls12, Tls99" } }"#,
        &[("/HttpClient/SslProtocols", "unknown_value")],
    );
    // These keys are names.
    check_cluster(
        r#"{ "Destinations": { "1": { "Address": "http://a" }, "0": {} } }"#,
        &[("/Destinations/0/Address", "missing_address")],
    );
}

#[test]
fn null_entries_are_named() {
    let text = r#"{ "Routes": { "r": null, "s": { "ClusterId": "c", "Match": { "Path": "/" } } },
        "Clusters": { "c": null, "d": { "Destinations": { "x": null } } } }"#;
    let document = parse_document(text).unwrap();
    let (snapshot, warnings) = Snapshot::read(&document, "", &CompileOptions::default()).unwrap();
    let found: Vec<_> = warnings.iter().map(|p| (&*p.code, &*p.pointer)).collect();
    assert_eq!(
        found,
        [
            ("null_entry", "/Routes/r"),
            ("null_entry", "/Clusters/c"),
            ("null_entry", "/Clusters/d/Destinations/x"),
        ]
    );
    assert_eq!(snapshot.routes().len(), 1);
    assert_eq!(snapshot.clusters().len(), 2);
}

#[test]
fn what_is_switched_off_is_not_judged() {
    // D34
    for (cluster, place) in [
        (
            r#"{ "SessionAffinity": { "Enabled": ENABLED, "AffinityKeyName": "k", "Cookie": { "MaxAge": "-00:00:01" } } }"#,
            "/SessionAffinity/Cookie/MaxAge",
        ),
        (
            r#"{ "SessionAffinity": { "Enabled": ENABLED, "AffinityKeyName": "k", "Cookie": { "Expiration": -1 } } }"#,
            "/SessionAffinity/Cookie/Expiration",
        ),
        (
            r#"{ "HealthCheck": { "Active": { "Enabled": ENABLED, "Interval": "-5s" } } }"#,
            "/HealthCheck/Active/Interval",
        ),
        (
            r#"{ "HealthCheck": { "Passive": { "Enabled": ENABLED, "ReactivationPeriod": "-1.00:00:00" } } }"#,
            "/HealthCheck/Passive/ReactivationPeriod",
        ),
    ] {
        for (enabled, is_error) in [("false", false), ("true", true)] {
            let text = format!(r#"{{ "Clusters": {{ "c": {cluster} }} }}"#);
            let document = parse_document(&text.replace("ENABLED", enabled)).unwrap();
            let result = Snapshot::read(&document, "", &CompileOptions::default());
            assert_eq!(result.is_err(), is_error, "{cluster} {enabled}");
            let problems = match result {
                Ok((_, warnings)) => warnings,
                Err(problems) => problems,
            };
            let found: Vec<_> = problems.iter().map(|p| (&*p.code, &*p.pointer)).collect();
            assert_eq!(found, [("not_positive", &*format!("/Clusters/c{place}"))]);
        }
    }
}

#[test]
fn thousands_of_problems_in_one_list_are_found_soon() {
    // With a sort for each of them this took minutes.
    let hosts: Vec<String> = (0..200_000).map(|i| format!("\"{i}\":\"a b\"")).collect();
    let text = format!(
        r#"{{ "Routes": {{ "r": {{ "Match": {{ "Hosts": {{ {} }} }} }} }} }}"#,
        hosts.join(",")
    );
    assert_eq!(found(&text).len(), crate::Problems::MAX);
}
