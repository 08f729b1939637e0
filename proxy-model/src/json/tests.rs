use super::*;
use crate::config::{HttpVersion, ProxyConfig, VersionPolicy};
use crate::problem::Problems;
use crate::{ClusterId, RouteId};

fn errors(text: &str) -> Problems {
    ProxyConfig::from_json(text).unwrap_err()
}

fn single(text: &str) -> (String, String, String, Option<String>) {
    let problems = errors(text);
    assert_eq!(problems.len(), 1, "{text}\n{problems}");
    let problem = problems.into_iter().next().unwrap();
    (
        problem.pointer,
        problem.code.into_owned(),
        problem.message,
        problem.suggestion,
    )
}

fn route(route: &str) -> String {
    format!(r#"{{ "Routes": {{ "r": {route} }} }}"#)
}

fn cluster(cluster: &str) -> String {
    format!(r#"{{ "Clusters": {{ "c": {cluster} }} }}"#)
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_allowed() {
    let config = ProxyConfig::from_json(
        "\u{feff}{ // routes\n \"Routes\": { /* none */ }, \"Clusters\": { \"c\": {}, }, }",
    )
    .unwrap();
    assert_eq!(config.clusters.len(), 1);
}

#[test]
fn syntax_errors_have_line_and_column_of_the_original() {
    let (pointer, code, message, _) = single("{ // ü\n  \"Routes\": { \"a\" 1 }\n}");
    assert_eq!((&*pointer, &*code), ("", "invalid_json"));
    assert_eq!(message, "not JSON: expected `:` at line 2 column 19");
}

#[test]
fn depth_is_bounded() {
    let (_, code, message, _) = single(&"[".repeat(1_000_000));
    assert_eq!(code, "invalid_json");
    assert!(message.contains("recursion limit"), "{message}");
}

#[test]
fn keys_are_bounded() {
    let (_, code, message, _) = single(&format!("{{ \"{}\": 1 }}", "k".repeat(1_025)));
    assert_eq!(code, "invalid_json");
    assert!(message.contains("1025 bytes, more than 1024"), "{message}");
}

#[test]
fn size_is_bounded() {
    let text = " ".repeat(MAX_DOCUMENT_BYTES + 1);
    assert_eq!(single(&text).1, "document_too_large");
}

#[test]
fn keys_ignore_case_and_order_is_kept() {
    let config = ProxyConfig::from_json(
        r#"{ "rOUTES": { "b": { "match": { "PATH": "/b" } }, "a": {}, "C": {} }, "CLUSTERS": {} }"#,
    )
    .unwrap();
    let ids: Vec<_> = config.routes.keys().map(RouteId::as_str).collect();
    assert_eq!(ids, ["b", "a", "C"]);
    assert_eq!(
        config.routes[&RouteId::new("B")].r#match.path.as_deref(),
        Some("/b")
    );
}

#[test]
fn values_are_converted_as_dot_net_converts_them() {
    let config = ProxyConfig::from_json(&route(
        r#"{
            "Order": "-10", "MaxRequestBodySize": " 5000000000 ", "StrictPaths": "True", "Timeout": "1m30s", "CorsPolicy": null,
            "Match": {
                "Path": 7,
                "Hosts": { "10": "k", "2": "b", "0": "a" },
                "Methods": ["GET", null],
                "Headers": { "0": { "Name": "h", "Mode": "NOTexists", "IsCaseSensitive": "True" } }
            },
            "Metadata": { "a": true, "b": 1.5, "c": null },
            "Transforms": [ { "RequestHeadersCopy": true, "X": 10, "Y": null } ]
        }"#,
    ))
    .unwrap();
    let route = &config.routes[&RouteId::new("r")];
    assert_eq!(
        (route.order, route.max_request_body_size),
        (Some(-10), Some(5_000_000_000))
    );
    assert_eq!(route.strict_paths, Some(true));
    assert_eq!(route.timeout, Some(crate::TimeSpan::from_secs(90)));
    assert_eq!(route.cors_policy, None);
    assert_eq!(route.r#match.path.as_deref(), Some("7"));
    assert_eq!(route.r#match.hosts.as_deref().unwrap(), ["a", "b", "k"]);
    assert_eq!(route.r#match.methods.as_deref().unwrap(), ["GET", ""]);
    let header = &route.r#match.headers.as_ref().unwrap()[0];
    assert_eq!(header.mode, crate::config::HeaderMatchMode::NotExists);
    assert!(header.is_case_sensitive);
    let metadata: Vec<_> = route.metadata.as_ref().unwrap().iter().collect();
    assert_eq!(
        metadata,
        [
            (&"a".to_owned(), &"true".to_owned()),
            (&"b".to_owned(), &"1.5".to_owned())
        ]
    );
    let transform: Vec<_> = route.transforms.as_ref().unwrap()[0].values().collect();
    assert_eq!(transform, ["true", "10"]);
}

#[test]
fn versions_are_numbers_or_text() {
    for (written, expected) in [
        ("\"1.0\"", HttpVersion::Http10),
        ("1", HttpVersion::Http10),
        ("1.1", HttpVersion::Http11),
        ("\"2\"", HttpVersion::Http2),
        ("2.0", HttpVersion::Http2),
        ("\"3.0\"", HttpVersion::Http3),
    ] {
        let text = cluster(&format!(
            r#"{{ "HttpRequest": {{ "Version": {written}, "VersionPolicy": "requestversionEXACT" }} }}"#
        ));
        let config = ProxyConfig::from_json(&text).unwrap();
        let request = config.clusters[&ClusterId::new("c")]
            .http_request
            .clone()
            .unwrap();
        assert_eq!(request.version, Some(expected), "{written}");
        assert_eq!(
            request.version_policy,
            Some(VersionPolicy::RequestVersionExact)
        );
    }
}

#[test]
fn tls_versions_are_a_list_or_a_text_with_commas() {
    for written in [
        r#"["Tls12", "Tls13"]"#,
        r#""Tls12,Tls13""#,
        r#""Tls12, Tls13""#,
    ] {
        let text = cluster(&format!(
            r#"{{ "HttpClient": {{ "SslProtocols": {written} }} }}"#
        ));
        let config = ProxyConfig::from_json(&text).unwrap();
        let client = config.clusters[&ClusterId::new("c")]
            .http_client
            .clone()
            .unwrap();
        assert_eq!(client.ssl_protocols.unwrap(), ["Tls12", "Tls13"]);
    }
}

#[test]
fn numbers_are_texts_as_they_are_written() {
    let numbers = [
        "1.10",
        "1e3",
        "-0",
        "1.0",
        "-7",
        "123456789012345678901",
        "2.5E-1",
    ];
    let metadata: Vec<String> = (numbers.iter().enumerate())
        .map(|(i, number)| format!("\"k{i}\": /* {i}.0 */ {number}"))
        .collect();
    let text = cluster(&format!(
        r#"{{ "Metadata": {{ {} }} }}"#,
        metadata.join(",")
    ));
    let config = ProxyConfig::from_json(&text).unwrap();
    let cluster = &config.clusters[&ClusterId::new("c")];
    let found: Vec<&String> = cluster.metadata.as_ref().unwrap().values().collect();
    assert_eq!(found, numbers);
    // Numbers they are nevertheless.
    let document = parse_document(r#"{ "Share": 2.50e1 }"#).unwrap();
    let read = |object: &mut ObjectReader<'_, '_>| object.number("Share");
    let share = ObjectReader::read(&document, "", &mut Problems::new(), read);
    assert_eq!(share, Some(Some(25.0)));
}

#[test]
fn suggestions_can_be_followed() {
    for (text, suggestion) in [
        (cluster(r#"{ "HttpRequest": { "Version": "1.2" } }"#), None),
        (
            route(r#"{ "Match": { "Hosts": "" } }"#),
            Some("remove `Hosts`"),
        ),
        (
            route(r#"{ "Match": { "Hosts": "a" } }"#),
            Some("write `[\"a\"]`"),
        ),
    ] {
        assert_eq!(single(&text).3.as_deref(), suggestion, "{text}");
    }
}

#[test]
fn wrong_values_say_what_was_expected() {
    for (text, pointer, code, message) in [
        (
            route("[]"),
            "/Routes/r",
            "wrong_type",
            "expected an object, found a list",
        ),
        (
            route(r#"{ "Order": 1.5 }"#),
            "/Routes/r/Order",
            "invalid_number",
            "`1.5` is not a whole number",
        ),
        (
            route(r#"{ "Order": "x" }"#),
            "/Routes/r/Order",
            "invalid_number",
            "`x` is not a whole number",
        ),
        (
            route(r#"{ "Order": "" }"#),
            "/Routes/r/Order",
            "invalid_number",
            "`` is not a whole number",
        ),
        (
            route(r#"{ "Order": 3000000000 }"#),
            "/Routes/r/Order",
            "out_of_range",
            "3000000000 is not between -2147483648 and 2147483647",
        ),
        (
            route(r#"{ "ClusterId": {} }"#),
            "/Routes/r/ClusterId",
            "wrong_type",
            "expected text, found an object",
        ),
        (
            route(r#"{ "Match": { "Headers": [ null ] } }"#),
            "/Routes/r/Match/Headers/0",
            "wrong_type",
            "expected an object, found null",
        ),
        (
            route(r#"{ "Transforms": [ { "PathSet": [] } ] }"#),
            "/Routes/r/Transforms/0/PathSet",
            "wrong_type",
            "expected text, found a list",
        ),
        (
            route(r#"{ "Transforms": [ [] ] }"#),
            "/Routes/r/Transforms/0",
            "wrong_type",
            "expected an object, found a list",
        ),
        (
            cluster(r#"{ "SessionAffinity": { "Enabled": "yes" } }"#),
            "/Clusters/c/SessionAffinity/Enabled",
            "invalid_boolean",
            "`yes` is neither `true` nor `false`",
        ),
        (
            cluster(r#"{ "HttpRequest": { "Version": "4" } }"#),
            "/Clusters/c/HttpRequest/Version",
            "unknown_value",
            "`4` is not one of `1.0`, `1.1`, `2`, `3`, `1`, `2.0` and `3.0`",
        ),
        (
            cluster(r#"{ "Destinations": { "a/b": { "Weight": -1 } } }"#),
            "/Clusters/c/Destinations/a~1b/Weight",
            "out_of_range",
            "-1 is not between 0 and 4294967295",
        ),
        (
            "[]".to_owned(),
            "",
            "wrong_type",
            "expected an object, found a list",
        ),
    ] {
        let found = single(&text);
        assert_eq!(
            (&*found.0, &*found.1, &*found.2),
            (pointer, code, message),
            "{text}"
        );
    }
}

#[test]
fn suggestions_help() {
    for (text, code, suggestion) in [
        (
            route(r#"{ "Match": { "Pth": "/" } }"#),
            "unknown_key",
            "did you mean `Path`?",
        ),
        (
            route(r#"{ "Match": { "Hosts": "a.com" } }"#),
            "wrong_type",
            "write `[\"a.com\"]`",
        ),
        (
            route(r#"{ "Timeout": 30 }"#),
            "invalid_time_span",
            "for seconds write `30s` or `00:00:30`",
        ),
        (
            route(r#"{ "Timeout": "30" }"#),
            "invalid_time_span",
            "for seconds write `30s` or `00:00:30`",
        ),
        (
            route(r#"{ "Match": { "Headers": [ { "Name": "x", "Mode": "Exist" } ] } }"#),
            "unknown_value",
            "did you mean `Exists`?",
        ),
        (
            r#"{ "Routs": {} }"#.to_owned(),
            "unknown_key",
            "did you mean `Routes`?",
        ),
    ] {
        let found = single(&text);
        assert_eq!(
            (&*found.1, found.3.as_deref()),
            (code, Some(suggestion)),
            "{text}"
        );
    }
}

#[test]
fn earlier_formats_are_recognised() {
    for (text, pointer, code) in [
        (
            r#"{ "Routes": [ { "RouteId": "r" } ] }"#.to_owned(),
            "/Routes",
            "old_format",
        ),
        (
            r#"{ "clusters": [] }"#.to_owned(),
            "/clusters",
            "old_format",
        ),
        (
            route(r#"{ "routeId": "r" }"#),
            "/Routes/r/routeId",
            "renamed_key",
        ),
        (
            cluster(r#"{ "ClusterId": "c" }"#),
            "/Clusters/c/ClusterId",
            "renamed_key",
        ),
        (
            cluster(r#"{ "SessionAffinity": { "Mode": "Cookie" } }"#),
            "/Clusters/c/SessionAffinity/Mode",
            "renamed_key",
        ),
        (
            cluster(r#"{ "HttpClient": { "ActivityContextHeaders": "Baggage" } }"#),
            "/Clusters/c/HttpClient/ActivityContextHeaders",
            "renamed_key",
        ),
        (
            cluster(r#"{ "HttpRequest": { "Timeout": "5s" } }"#),
            "/Clusters/c/HttpRequest/Timeout",
            "renamed_key",
        ),
    ] {
        let found = single(&text);
        assert_eq!((&*found.0, &*found.1), (pointer, code), "{text}");
        assert!(found.3.is_some());
    }
}

#[test]
fn the_same_id_twice_is_an_error() {
    // E02, E03
    for (text, pointer) in [
        (r#"{ "Routes": { "r": {}, "r": {} } }"#, "/Routes/r"),
        (r#"{ "Routes": { "r": {}, "R": {} } }"#, "/Routes/R"),
        (r#"{ "Clusters": { "c": {}, "C": {} } }"#, "/Clusters/C"),
        (r#"{ "Routes": {}, "routes": {} }"#, "/routes"),
        (
            r#"{ "Routes": { "r": { "Order": 1, "order": 2 } } }"#,
            "/Routes/r/order",
        ),
        (
            r#"{ "Routes": { "r": { "Transforms": [ { "PathSet": "", "pathset": "" } ] } } }"#,
            "/Routes/r/Transforms/0/pathset",
        ),
        (
            r#"{ "Clusters": { "c": { "Metadata": { "a": "", "A": "" } } } }"#,
            "/Clusters/c/Metadata/A",
        ),
    ] {
        let found = single(text);
        assert_eq!((&*found.0, &*found.1), (pointer, "duplicate_key"), "{text}");
    }
}

#[test]
fn one_problem_does_not_hide_another() {
    let problems = errors(
        r#"{
            "Routes": { "a": { "Order": "x", "Match": { "Hosts": 1, "Oops": 1 } }, "b": 5 },
            "Clusters": { "c": { "HttpRequest": { "ActivityTimeout": "never" } } },
            "Extra": {}
        }"#,
    );
    let pointers: Vec<_> = problems.iter().map(|p| &*p.pointer).collect();
    assert_eq!(
        pointers,
        [
            "/Routes/a/Match/Hosts",
            "/Routes/a/Match/Oops",
            "/Routes/a/Order",
            "/Routes/b",
            "/Clusters/c/HttpRequest/ActivityTimeout",
            "/Extra",
        ]
    );
}

#[test]
fn what_is_wrong_is_left_out_and_the_rest_is_read() {
    let document = parse_document(
        r#"{ "Routes": { "bad": { "Order": "x" }, "good": {}, "GOOD": {} },
             "Clusters": { "bad": { "Destinations": { "d": 1 } }, "good": {} } }"#,
    )
    .unwrap();
    let mut problems = Problems::new();
    let config = read_config(&document, "/ReverseProxy", &mut problems);
    assert_eq!(
        config.routes.keys().collect::<Vec<_>>(),
        [&RouteId::new("good")]
    );
    assert_eq!(
        config.clusters.keys().collect::<Vec<_>>(),
        [&ClusterId::new("good")]
    );
    let pointers: Vec<_> = problems.iter().map(|p| &*p.pointer).collect();
    assert_eq!(
        pointers,
        [
            "/ReverseProxy/Routes/GOOD",
            "/ReverseProxy/Routes/bad/Order",
            "/ReverseProxy/Clusters/bad/Destinations/d",
        ]
    );
}

#[test]
fn many_unknown_keys_are_counted() {
    let keys: Vec<String> = (0..50_000).map(|i| format!("\"k{i}\": 1")).collect();
    let problems = errors(&format!("{{ {} }}", keys.join(",")));
    assert_eq!(problems.len(), 21);
    assert!(
        problems
            .to_string()
            .ends_with("error at /: 49980 more unknown keys")
    );
}

#[test]
fn other_sections_of_a_document_are_left_alone() {
    let config = read_reverse_proxy(
        r#"{ "Logging": { "a": 1, "A": 2 }, "AllowedHosts": "*", "Kestrel": {},
             "reverseproxy": { "$schema": "x", "Clusters": { "c": {} } } }"#,
    )
    .unwrap();
    assert_eq!(config.clusters.len(), 1);
    let problems = read_reverse_proxy(r#"{ "reverseProxy": { "Rutes": {} } }"#).unwrap_err();
    assert_eq!(
        problems.iter().next().unwrap().pointer,
        "/reverseProxy/Rutes"
    );
}

#[test]
fn a_missing_section_is_an_error() {
    let problems = read_reverse_proxy(r#"{ "Routes": {} }"#).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.code, "missing_section");
    assert!(
        problem
            .suggestion
            .as_deref()
            .unwrap()
            .contains("\"ReverseProxy\"")
    );
}

#[test]
fn pointers_are_spelled_as_the_document_spells_keys() {
    let document =
        parse_document(r#"{ "routes": { "A/b": { "MATCH": [ { "path": 1 } ] } } }"#).unwrap();
    for (pointer, spelled) in [
        ("/Routes/a~1B/Match/0/Path", "/routes/A~1b/MATCH/0/path"),
        ("/Routes/x/Path", "/routes/x/Path"),
        ("/Routes/a~1b/Match/9", "/routes/A~1b/MATCH/9"),
        ("", ""),
    ] {
        assert_eq!(document.spelled(pointer), spelled);
    }
}

#[test]
fn serde_reads_with_the_same_reader() {
    let config: ProxyConfig = serde_json::from_str(r#"{ "clusters": { "c": {} } }"#).unwrap();
    assert_eq!(config.clusters.len(), 1);
    let error = serde_json::from_str::<ProxyConfig>(r#"{ "Routs": {} }"#).unwrap_err();
    assert!(
        error.to_string().contains("did you mean `Routes`?"),
        "{error}"
    );
    let route: crate::config::RouteConfig = serde_json::from_str(r#"{ "Order": "3" }"#).unwrap();
    assert_eq!(route.order, Some(3));
    assert!(serde_json::from_str::<crate::config::DestinationConfig>("5").is_err());
}
