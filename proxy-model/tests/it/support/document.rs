//! JSON that uses the keys of a configuration, mostly where they do not belong.

use proptest::collection::vec;
use proptest::prelude::*;

/// Keys of the section, and of transforms, with some that do not exist.
const KEYS: &[&str] = &[
    "Routes",
    "Clusters",
    "Match",
    "Path",
    "Hosts",
    "Methods",
    "Headers",
    "QueryParameters",
    "Name",
    "Values",
    "Mode",
    "IsCaseSensitive",
    "ClusterId",
    "WeightedClusters",
    "Weight",
    "PartitionedClusters",
    "Partitions",
    "Key",
    "Hash",
    "Header",
    "QueryParameter",
    "RouteValue",
    "LowKey",
    "HighKey",
    "Order",
    "Timeout",
    "TimeoutPolicy",
    "Transforms",
    "Metadata",
    "Destinations",
    "Address",
    "Health",
    "HealthPath",
    "Host",
    "Priority",
    "SessionAffinity",
    "Enabled",
    "Policy",
    "FailurePolicy",
    "AffinityKeyName",
    "Cookie",
    "MaxAge",
    "HealthCheck",
    "Active",
    "Passive",
    "Interval",
    "Query",
    "HttpClient",
    "SslProtocols",
    "MaxConnectionsPerServer",
    "WebProxy",
    "HttpRequest",
    "Version",
    "VersionPolicy",
    "PathSet",
    "PathPattern",
    "PathRemovePrefix",
    "QueryValueParameter",
    "Set",
    "Append",
    "When",
    "X-Forwarded",
    "For",
    "Forwarded",
    "RequestHeader",
    "HttpMethodChange",
    "RequestHeadersAllowed",
    "HeaderPrefix",
    "0",
    "1",
    "routes",
    "Oops",
    "RouteId",
    "$schema",
    "",
];

const TEXTS: &[&str] = &[
    "",
    "/",
    "/{a}/{**b}",
    "/{",
    "a.com:80",
    "*.a",
    "[::1]",
    "xn--a",
    "GET",
    "http://a/b",
    "https://[::1]:1",
    "5s",
    "5",
    "-1",
    "00:00:01",
    "Exists",
    "true",
    "Random",
    "r",
    "c",
    "Set",
    "Off",
    "for,by",
    "?a=b",
    "a;b",
    "Tls12",
    "2.0",
    "ß",
    "%2F",
    "\u{0}",
];

/// A whole document with routes and clusters in the right places, as text, perhaps with duplicate keys.
pub(crate) fn near_miss() -> impl Strategy<Value = String> {
    let entries = || vec((text(), node()), 0..4).prop_map(|entries| object(&entries));
    (entries(), entries(), node()).prop_map(|(routes, clusters, more)| {
        format!("{{\"Routes\":{routes},\"Clusters\":{clusters},\"x\":{more}}}")
    })
}

/// Any value, as text.
pub(crate) fn node() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => text().prop_map(|text| quoted(&text)),
        1 => prop::sample::select(&["null", "true", "false", "0", "-1", "1.5", "1e300", "99999999999999999999"][..])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            3 => vec((key(), inner.clone()), 0..6).prop_map(|entries| object(&entries)),
            1 => vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(","))),
        ]
    })
}

fn object(entries: &[(String, String)]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}:{value}", quoted(key)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![9 => prop::sample::select(KEYS).prop_map(str::to_owned), 1 => any::<String>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(TEXTS).prop_map(str::to_owned), 1 => any::<String>()]
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
