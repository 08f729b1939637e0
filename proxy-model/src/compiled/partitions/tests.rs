use proptest::prelude::*;
use serde_json::{Value, json};

use super::hash::{fnv1a64, spread};
use super::*;
use crate::compiled::RouteTarget;
use crate::config::ProxyConfig;
use crate::{CompileOptions, Snapshot};

/// The partitions of a route with the path `/{tenant=home}/{**rest}`.
fn partitions(config: &Value) -> Partitions {
    let document = json!({
        "Routes": { "r": { "Match": { "Path": "/{tenant=home}/{**rest}" }, "PartitionedClusters": config } },
        "Clusters": {},
    });
    let config = ProxyConfig::from_json(&document.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    match snapshot.routes()[0].target() {
        RouteTarget::Partitioned(partitions) => (**partitions).clone(),
        other => panic!("{other:?}"),
    }
}

fn with_ranges(hash: &str, ranges: &[(i64, i64)]) -> Partitions {
    let partitions_of = |(i, (low, high)): (usize, &(i64, i64))| json!({ "ClusterId": format!("c{i}"), "LowKey": low, "HighKey": high });
    let list: Vec<Value> = ranges.iter().enumerate().map(partitions_of).collect();
    partitions(&json!({ "Key": { "Header": "k" }, "Hash": hash, "Partitions": list }))
}

/// A request by its path, its query and the values of the header `k`.
struct Head(&'static str, Option<&'static str>, &'static [&'static str]);

impl RequestHead for Head {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.0
    }

    fn query(&self) -> Option<&str> {
        self.1
    }

    fn authority(&self) -> &str {
        ""
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        if name == "k" {
            let _ = self.2.iter().all(|value| each(value.as_bytes()));
        }
    }
}

fn served(partitions: &Partitions, head: &Head) -> Result<String, KeyRejection> {
    let target = partitions.find(head)?;
    Ok(target.id().to_string())
}

#[test]
fn the_hash_is_that_of_its_authors() {
    // From the test suite that Fowler, Noll and Vo published with it.
    for (text, hash) in [
        ("", 0xcbf2_9ce4_8422_2325),
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("b", 0xaf63_df4c_8601_f1a5),
        ("fo", 0x0898_5907_b541_d342),
        ("foobar", 0x8594_4171_f739_67e8),
    ] {
        assert_eq!(fnv1a64(text.as_bytes()), hash, "{text}");
    }
}

#[test]
fn a_hash_is_spread_over_the_span() {
    for (hash, low, high, number) in [
        (u64::MAX, i64::MIN, i64::MAX, -1),
        (1 << 63, i64::MIN, i64::MAX, i64::MIN),
        (7, i64::MIN, i64::MAX, 7),
        (u64::MAX, i64::MIN, i64::MAX - 1, i64::MIN),
        (u64::MAX - 1, i64::MIN, i64::MAX - 1, i64::MAX - 1),
        (25, 0, 9, 5),
        (25, -10, -1, -5),
        (25, 3, 3, 3),
    ] {
        assert_eq!(spread(hash, low, high), number, "{hash} {low} {high}");
    }
}

#[test]
fn a_header_has_the_key() {
    let numbers = with_ranges("None", &[(0, 9), (-10, -1), (20, 20)]);
    for (values, expected) in [
        (&["5"] as &[_], Ok("c0")),
        (&["+9"], Ok("c0")),
        (&["-10"], Ok("c1")),
        (&["-001"], Ok("c1")),
        (&["20"], Ok("c2")),
        (&["10"], Err(KeyRejection::NoPartition)),
        (&["19"], Err(KeyRejection::NoPartition)),
        (&["21"], Err(KeyRejection::NoPartition)),
        (&["-11"], Err(KeyRejection::NoPartition)),
        (&["9223372036854775808"], Err(KeyRejection::NotANumber)),
        (&["5.0"], Err(KeyRejection::NotANumber)),
        (&[" 5"], Err(KeyRejection::NotANumber)),
        (&["5, 5"], Err(KeyRejection::NotANumber)),
        (&["x"], Err(KeyRejection::NotANumber)),
        (&[""], Err(KeyRejection::Missing)),
        (&["", ""], Err(KeyRejection::Missing)),
        (&[], Err(KeyRejection::Missing)),
        (&["5", "5", "5"], Ok("c0")),
        (&["5", "05"], Err(KeyRejection::Ambiguous)),
        (&["5", "5", ""], Err(KeyRejection::Ambiguous)),
        (&["", "5"], Err(KeyRejection::Ambiguous)),
        (&["x", "5"], Err(KeyRejection::Ambiguous)),
    ] {
        let found = served(&numbers, &Head("/", None, values));
        assert_eq!(found.as_deref().map_err(|e| *e), expected, "{values:?}");
    }
    let not_text = numbers.partition_of(b"\xff");
    assert_eq!(not_text, Err(KeyRejection::NotANumber));
}

#[test]
fn a_query_parameter_has_the_key() {
    let names = partitions(&json!({
        "Key": { "QueryParameter": "Region" },
        "Partitions": [
            { "ClusterId": "a", "Name": "eu west" },
            { "ClusterId": "b", "Name": "EU" },
            { "ClusterId": "c", "Name": "ö" },
        ],
    }));
    for (query, expected) in [
        (Some("region=EU"), Ok("b")),
        (Some("x=1&REGION=eu+west&y"), Ok("a")),
        (Some("%72egion=%65u%20west"), Ok("a")),
        (Some("region=%C3%B6"), Ok("c")),
        (Some("region=eu"), Err(KeyRejection::NoPartition)),
        (Some("region=EU "), Err(KeyRejection::NoPartition)),
        (Some("region=%F6"), Err(KeyRejection::NoPartition)),
        (Some("region=EU&Region=%45U"), Ok("b")),
        (
            Some("region=EU&region=eu+west"),
            Err(KeyRejection::Ambiguous),
        ),
        (Some("region=EU&region"), Err(KeyRejection::Ambiguous)),
        (Some("region"), Err(KeyRejection::Missing)),
        (Some("region="), Err(KeyRejection::Missing)),
        (Some("regions=EU"), Err(KeyRejection::Missing)),
        (None, Err(KeyRejection::Missing)),
    ] {
        let found = served(&names, &Head("/", query, &[]));
        assert_eq!(found.as_deref().map_err(|e| *e), expected, "{query:?}");
    }
}

#[test]
fn a_route_value_has_the_key() {
    let list = json!([
        { "ClusterId": "a", "Name": "x/y" },
        { "ClusterId": "b", "Name": "acme" },
        { "ClusterId": "c", "Name": "home" },
        { "ClusterId": "d", "Name": "x%2Fy" },
        { "ClusterId": "e", "Name": "50%" },
    ]);
    let names =
        |name: &str| partitions(&json!({ "Key": { "RouteValue": name }, "Partitions": list }));
    for (name, path, expected) in [
        ("Tenant", "/acme/1", Ok("b")),
        ("tenant", "/%61cme", Ok("b")),
        ("tenant", "/", Ok("c")),
        ("tenant", "/ACME", Err(KeyRejection::NoPartition)),
        ("rest", "/acme/x/y", Ok("a")),
        ("rest", "/%20/x/y/", Err(KeyRejection::NoPartition)),
        // A slash in a key is written as one that does not separate segments.
        ("tenant", "/x%2Fy", Ok("a")),
        ("tenant", "/%78%2fy/acme", Ok("a")),
        ("rest", "/acme/x%2Fy", Ok("a")),
        // What was encoded twice is decoded once.
        ("tenant", "/x%252Fy", Ok("d")),
        ("tenant", "/x%252F%79", Ok("d")),
        ("tenant", "/50%25", Ok("e")),
        ("tenant", "/50%", Ok("e")),
        ("tenant", "/%2F", Err(KeyRejection::NoPartition)),
        ("tenant", "/acme%00", Err(KeyRejection::NoPartition)),
        ("rest", "/acme/", Err(KeyRejection::Missing)),
        ("rest", "/acme", Err(KeyRejection::Missing)),
    ] {
        let found = served(&names(name), &Head(path, None, &[]));
        assert_eq!(found.as_deref().map_err(|e| *e), expected, "{name} {path}");
    }
}

#[test]
fn partitions_say_what_they_are() {
    let numbers = with_ranges("Fnv1a64", &[(1, 9), (i64::MIN, 0), (10, 10)]);
    let shown: Vec<_> = numbers
        .targets()
        .iter()
        .map(|t| t.keys().to_string())
        .collect();
    assert_eq!(shown, ["-9223372036854775808 to 0", "1 to 9", "10"]);
    assert_eq!(numbers.key().to_string(), "the header k");
    assert_eq!(numbers.hash(), PartitionHash::Fnv1a64);
    let key = |key: Value| {
        let list = json!([{ "ClusterId": "a", "Name": "n" }]);
        partitions(&json!({ "Key": key, "Partitions": list }))
    };
    let query = key(json!({ "QueryParameter": "Q" }));
    assert_eq!(query.key().to_string(), "the query parameter Q");
    let route = key(json!({ "RouteValue": "REST" }));
    assert_eq!(route.key().to_string(), "the route value rest");
    assert_eq!(route.number(b"5"), Ok(None));
    assert_eq!(route, route.clone());
    assert_ne!(route, key(json!({ "RouteValue": "tenant" })));
    assert_ne!(route, query);
}

/// Ranges that do not overlap, not in order, from numbers of which no two are equal.
fn ranges() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let number = prop_oneof![any::<i64>(), -20..20_i64, Just(i64::MIN), Just(i64::MAX)];
    let numbers = prop::collection::btree_set(number, 2..12);
    let ranges = numbers.prop_map(|numbers| {
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let pairs = numbers.chunks_exact(2);
        pairs.map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    });
    ranges.prop_shuffle()
}

/// Ranges that have every number of 64 bits, in order.
fn whole() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::btree_set(i64::MIN + 1.., 0..8).prop_map(|starts| {
        let starts: Vec<i64> = [i64::MIN].into_iter().chain(starts).collect();
        let ends = starts
            .iter()
            .skip(1)
            .map(|start| start - 1)
            .chain([i64::MAX]);
        starts.iter().copied().zip(ends).collect()
    })
}

/// The hash by its definition, in numbers that never overflow.
fn reference(bytes: &[u8]) -> i128 {
    let mut hash: u128 = 14_695_981_039_346_656_037;
    for byte in bytes {
        let low = (hash % 256) as u8 ^ byte;
        hash = hash - hash % 256 + u128::from(low);
        hash = hash * 1_099_511_628_211 % (1 << 64);
    }
    hash as i128
}

fn by_looking_at_all(partitions: &Partitions, number: i64) -> Vec<&PartitionTarget> {
    let has = |target: &&PartitionTarget| match target.keys {
        PartitionKeys::Range { low, high } => (low..=high).contains(&number),
        PartitionKeys::Name(_) => false,
    };
    partitions.targets().iter().filter(has).collect()
}

proptest! {
    #[test]
    fn with_all_numbers_every_key_is_in_one_partition(
        ranges in whole(),
        key in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let partitions = with_ranges("Fnv1a64", &ranges);
        let hash = reference(&key);
        let number = if hash >= 1 << 63 { hash - (1 << 64) } else { hash };
        let number = i64::try_from(number).unwrap();
        prop_assert_eq!(partitions.number(&key), Ok(Some(number)));
        prop_assert_eq!(by_looking_at_all(&partitions, number), [partitions.partition_of(&key).unwrap()]);
    }

    #[test]
    fn with_some_numbers_the_remainder_counts(
        ranges in ranges(),
        key in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let low = i128::from(ranges.iter().map(|(low, _)| *low).min().unwrap());
        let high = i128::from(ranges.iter().map(|(_, high)| *high).max().unwrap());
        prop_assume!(high - low + 1 < 1 << 64);
        let partitions = with_ranges("Fnv1a64", &ranges);
        let number = i64::try_from(reference(&key) % (high - low + 1) + low).unwrap();
        prop_assert_eq!(partitions.number(&key), Ok(Some(number)));
        let all = by_looking_at_all(&partitions, number);
        let expected = all.first().copied().ok_or(KeyRejection::NoPartition);
        prop_assert_eq!(partitions.partition_of(&key), expected);
    }

    #[test]
    fn numbers_are_found_as_by_looking_at_all(ranges in ranges(), near in any::<prop::sample::Index>(), by in -1..=1_i64) {
        let partitions = with_ranges("None", &ranges);
        let (low, high) = ranges[near.index(ranges.len())];
        for number in [low.saturating_add(by), high.saturating_add(by)] {
            let all = by_looking_at_all(&partitions, number);
            let expected = all.first().copied().ok_or(KeyRejection::NoPartition);
            prop_assert_eq!(partitions.partition_of(number.to_string().as_bytes()), expected);
        }
    }

    #[test]
    fn names_are_found_as_by_looking_at_all(
        names in prop::collection::btree_set("[a-bA-B]{1,3}", 1..8),
        key in "[a-bA-B]{1,3}",
    ) {
        let list: Vec<Value> = (names.iter().rev())
            .map(|name| json!({ "ClusterId": format!("c-{name}"), "Name": name }))
            .collect();
        let partitions = partitions(&json!({ "Key": { "Header": "k" }, "Partitions": list }));
        let found = partitions.partition_of(key.as_bytes()).map(|target| target.id().to_string());
        let expected = names.get(&key).map(|name| format!("c-{name}"));
        prop_assert_eq!(found, expected.ok_or(KeyRejection::NoPartition));
    }
}
