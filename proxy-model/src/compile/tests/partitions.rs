//! Partitioned clusters.

use super::*;
use crate::compiled::PartitionKeys;

const PLACE: &str = "/Routes/r/PartitionedClusters";

fn partitioned(config: Value) -> Value {
    json!({
        "Routes": { "r": {
            "Match": { "Path": "/{tenant}/{**rest}" },
            "PartitionedClusters": config,
        } },
        "Clusters": { "a": {}, "b": {} },
    })
}

fn with(key: Value, partitions: Value) -> Value {
    partitioned(json!({ "Key": key, "Partitions": partitions }))
}

fn by_header(partitions: Value) -> Value {
    with(json!({ "Header": "X-Key" }), partitions)
}

fn range(id: &str, low: i64, high: i64) -> Value {
    json!({ "ClusterId": id, "LowKey": low, "HighKey": high })
}

fn name(id: &str, name: &str) -> Value {
    json!({ "ClusterId": id, "Name": name })
}

fn found(value: Value) -> Vec<(String, String)> {
    let problems = match compile(value) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    let shown = problems.iter().map(|problem| {
        let place = problem.pointer.strip_prefix(PLACE);
        let place = place.unwrap_or(&problem.pointer).to_owned();
        (place, problem.code.to_string())
    });
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    shown
}

#[test]
fn clusters_have_parts_of_the_keys() {
    let ranges = json!([range("B", 0, i64::MAX), range("a", i64::MIN, -1),]);
    let snapshot = accepted(by_header(ranges));
    let RouteTarget::Partitioned(partitions) = snapshot.routes()[0].target() else {
        panic!();
    };
    let parts: Vec<_> = partitions
        .targets()
        .iter()
        .map(|t| (t.id().as_str(), t.cluster(), t.keys().clone()))
        .collect();
    let keys = |low, high| PartitionKeys::Range { low, high };
    assert_eq!(
        parts,
        [
            ("a", Some(ClusterIndex(0)), keys(i64::MIN, -1)),
            ("B", Some(ClusterIndex(1)), keys(0, i64::MAX)),
        ]
    );
    accepted(by_header(json!([
        name("a", "eu"),
        name("b", "EU"),
        name("a", "us")
    ])));
    accepted(with(
        json!({ "QueryParameter": "k" }),
        json!([range("a", 1, 1)]),
    ));
    accepted(with(
        json!({ "RouteValue": "TENANT" }),
        json!([name("a", "n")]),
    ));
}

#[test]
fn numbers_of_64_bits_are_read_exactly() {
    for (low, high) in [
        ("-9223372036854775808", "9223372036854775807"),
        ("\"-9223372036854775808\"", "\"9223372036854775807\""),
    ] {
        let text = format!(
            r#"{{ "Routes": {{ "r": {{ "Match": {{ "Path": "/" }}, "PartitionedClusters": {{
                "Key": {{ "Header": "k" }},
                "Partitions": [ {{ "ClusterId": "a", "LowKey": {low}, "HighKey": {high} }} ] }} }} }} }}"#
        );
        let config = ProxyConfig::from_json(&text).unwrap();
        let partitioned = config.routes[0].partitioned_clusters.as_ref().unwrap();
        let partition = &partitioned.partitions[0];
        assert_eq!(
            (partition.low_key, partition.high_key),
            (Some(i64::MIN), Some(i64::MAX))
        );
        let again = ProxyConfig::from_json(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }
    for number in [
        "9223372036854775808",
        "\"-9223372036854775809\"",
        "1.5",
        "\"x\"",
    ] {
        let text = format!(
            r#"{{ "Routes": {{ "r": {{ "PartitionedClusters": {{ "Partitions": [ {{ "LowKey": {number} }} ] }} }} }} }}"#
        );
        let problems = ProxyConfig::from_json(&text).unwrap_err();
        let found: Vec<_> = problems.iter().map(|p| (&*p.pointer, &*p.code)).collect();
        let place = format!("{PLACE}/Partitions/0/LowKey");
        assert_eq!(found, [(&*place, "invalid_number")], "{number}");
    }
}

#[test]
fn every_mistake_in_partitions_is_named() {
    let one = || json!([range("a", 0, 1)]);
    for (config, expected) in [
        (
            with(json!({}), one()),
            &[("/Key", "missing_partition_key")] as &[_],
        ),
        (
            with(json!({ "Header": "", "RouteValue": "" }), one()),
            &[("/Key", "missing_partition_key")],
        ),
        (
            with(
                json!({ "Header": "a b", "QueryParameter": "q", "RouteValue": "x" }),
                one(),
            ),
            &[
                ("/Key", "conflicting_key_sources"),
                ("/Key/Header", "invalid_header_name"),
                ("/Key/RouteValue", "unknown_route_parameter"),
            ],
        ),
        (
            with(json!({ "Header": "ö" }), one()),
            &[("/Key/Header", "invalid_header_name")],
        ),
        (by_header(json!([])), &[("/Partitions", "no_partitions")]),
        (
            by_header(json!([
                {},
                { "ClusterId": "a" },
                { "ClusterId": "a", "LowKey": 5 },
                { "ClusterId": "a", "HighKey": 5 },
                { "ClusterId": "a", "LowKey": 7, "HighKey": 6 },
                { "ClusterId": "a", "LowKey": 1, "HighKey": 1, "Name": "x" },
                { "ClusterId": "a", "LowKey": 1, "Name": "y" },
                { "ClusterId": "", "LowKey": 1, "HighKey": 2, "Name": "" },
            ])),
            &[
                ("/Partitions/0", "missing_partition_range"),
                ("/Partitions/0/ClusterId", "missing_cluster_id"),
                ("/Partitions/1", "missing_partition_range"),
                ("/Partitions/2/HighKey", "missing_high_key"),
                ("/Partitions/3/LowKey", "missing_low_key"),
                ("/Partitions/4/HighKey", "invalid_range"),
                ("/Partitions/5/Name", "conflicting_partition_keys"),
                ("/Partitions/6/Name", "conflicting_partition_keys"),
                ("/Partitions/7/ClusterId", "missing_cluster_id"),
            ],
        ),
        (
            by_header(json!([name("a", "x"), range("a", 1, 2), name("b", "x")])),
            &[
                ("/Partitions/1/LowKey", "mixed_partitions"),
                ("/Partitions/2/Name", "duplicate_partition_name"),
            ],
        ),
        (
            by_header(json!([range("a", 1, 2), name("b", "x")])),
            &[("/Partitions/1/Name", "mixed_partitions")],
        ),
        (
            partitioned(
                json!({ "Key": { "Header": "k" }, "Hash": "Fnv1a64", "Partitions": [name("a", "x")] }),
            ),
            &[("/Hash", "unexpected_hash")],
        ),
        (
            by_header(json!([range("nobody", 1, 2)])),
            &[("/Partitions/0/ClusterId", "unknown_cluster")],
        ),
    ] {
        let found = found(config.clone());
        let found: Vec<_> = found
            .iter()
            .map(|(place, code)| (&**place, &**code))
            .collect();
        assert_eq!(found, expected, "{config}");
    }
}

#[test]
fn ranges_that_overlap_are_both_named() {
    let ranges = json!([
        range("a", 10, 20),
        range("b", 0, 10),
        range("a", 30, 40),
        range("b", 35, 36),
        range("b", 37, 50),
        range("a", i64::MAX, i64::MAX),
    ]);
    let problems = compile(by_header(ranges)).unwrap_err();
    let found: Vec<_> = problems
        .iter()
        .map(|p| {
            (
                &*p.code,
                p.pointer.strip_prefix(PLACE).unwrap(),
                &*p.message,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "overlapping_ranges",
                "/Partitions/1/LowKey",
                "the range 0 to 10 (`b`) overlaps with that of partition 0, 10 to 20 (`a`)"
            ),
            (
                "overlapping_ranges",
                "/Partitions/3/LowKey",
                "the range 35 to 36 (`b`) overlaps with that of partition 2, 30 to 40 (`a`)"
            ),
            (
                "overlapping_ranges",
                "/Partitions/4/LowKey",
                "the range 37 to 50 (`b`) overlaps with that of partition 2, 30 to 40 (`a`)"
            ),
        ]
    );
}

#[test]
fn a_hash_to_numbers_that_nobody_has_is_a_warning() {
    let hashed = |partitions: Value| {
        partitioned(
            json!({ "Key": { "Header": "k" }, "Hash": "fnv1a64", "Partitions": partitions }),
        )
    };
    let whole = json!([
        range("a", 6, i64::MAX),
        range("b", -4, 5),
        range("a", i64::MIN, -5)
    ]);
    accepted(hashed(whole));
    let gap = json!([range("a", 6, 9), range("b", -4, 4)]);
    warned(
        hashed(gap.clone()),
        "partition_gap",
        &format!("{PLACE}/Partitions"),
    );
    accepted(by_header(gap));
}

#[test]
fn a_route_has_one_way_to_name_its_clusters() {
    let mut both = by_header(json!([range("a", 1, 0)]));
    both["Routes"]["r"]["ClusterId"] = json!("a");
    both["Routes"]["r"]["WeightedClusters"] = json!([{ "ClusterId": "b", "Weight": 0 }]);
    let found = found(both);
    let found: Vec<_> = found
        .iter()
        .map(|(place, code)| (&**place, &**code))
        .collect();
    assert_eq!(
        found,
        [
            ("", "conflicting_clusters"),
            ("/Partitions/0/HighKey", "invalid_range"),
            ("/Routes/r/WeightedClusters", "conflicting_clusters"),
            ("/Routes/r/WeightedClusters", "no_weight"),
        ]
    );
}

#[test]
fn a_bad_path_hides_nothing_and_adds_nothing() {
    let mut config = with(json!({ "RouteValue": "x" }), json!([range("a", 1, 0)]));
    config["Routes"]["r"]["Match"]["Path"] = json!("/{");
    let found = found(config);
    let found: Vec<_> = found
        .iter()
        .map(|(place, code)| (&**place, &**code))
        .collect();
    assert_eq!(
        found,
        [
            ("/Partitions/0/HighKey", "invalid_range"),
            ("/Routes/r/Match/Path", "invalid_path"),
        ]
    );
}
