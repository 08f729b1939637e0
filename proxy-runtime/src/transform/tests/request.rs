//! Headers of requests.

use http::header::HOST;

use super::{config, forwarded, request, values};
use crate::connection::ConnectionInfo;

/// Host of the request that the destination gets.
fn host(transforms: &str, destination: &str) -> String {
    let config = config("/{**all}", transforms, destination);
    let request = request("/", &[("host", "StartHost")]);
    let forwarded = forwarded(&config, &request, ConnectionInfo::default());
    values(forwarded.headers(), "host").join(" | ")
}

#[test]
fn g06_to_g09_host() {
    let original = r#"{ "RequestHeaderOriginalHost": "true" }"#;
    let not_original = r#"{ "RequestHeaderOriginalHost": "false" }"#;
    let no_copy = r#"{ "RequestHeadersCopy": "false" }"#;
    let custom = r#"{ "RequestHeader": "Host", "Set": "CustomHost" }"#;
    let own = r#", "Host": "d1-host""#;
    for (case, transforms, destination, expected) in [
        ("G06", String::new(), "", "destination:8080"),
        ("G06", not_original.into(), "", "destination:8080"),
        ("G07", original.into(), "", "StartHost"),
        ("G07", format!("{original}, {no_copy}"), "", "StartHost"),
        ("G07", original.into(), own, "StartHost"),
        ("G08", String::new(), own, "d1-host"),
        ("G08", not_original.into(), own, "d1-host"),
        ("G09", custom.into(), "", "CustomHost"),
        ("G09", custom.into(), own, "CustomHost"),
        ("G09", format!("{original}, {custom}"), own, "CustomHost"),
        ("G09", format!("{no_copy}, {custom}"), own, "CustomHost"),
    ] {
        assert_eq!(
            host(&transforms, destination),
            expected,
            "{case} {transforms}"
        );
    }
}

#[test]
fn g10_to_g15_request_headers() {
    let named = |action: &str| format!(r#"{{ "RequestHeader": "x-a", {action} }}"#);
    let route_value = |action: &str| format!(r#"{{ "RequestHeaderRouteValue": "x-a", {action} }}"#);
    for (case, transforms, given, expected) in [
        (
            "G10",
            named(r#""Set": "new""#),
            &["start"] as &[&str],
            &["new"] as &[&str],
        ),
        ("G10", named(r#""Set": "new""#), &[], &["new"]),
        ("G10", named(r#""Set": """#), &["start"], &[""]),
        (
            "G11",
            named(r#""Append": "new""#),
            &["start"],
            &["start", "new"],
        ),
        (
            "G11",
            named(r#""Append": "new""#),
            &["a", "b"],
            &["a", "b", "new"],
        ),
        (
            "G13",
            route_value(r#""Append": "a""#),
            &["value"],
            &["value", "6"],
        ),
        ("G13", route_value(r#""Set": "A""#), &["value"], &["6"]),
        (
            "G14",
            route_value(r#""Append": "unknown""#),
            &["value"],
            &["value"],
        ),
        (
            "G14",
            route_value(r#""Set": "unknown""#),
            &["value"],
            &["value"],
        ),
        ("G15", route_value(r#""Set": "rest""#), &["value"], &["7/8"]),
        (
            "remove",
            r#"{ "RequestHeaderRemove": "X-A" }"#.into(),
            &["a", "b"],
            &[],
        ),
    ] {
        let config = config("/{a}/{**rest}", &transforms, "");
        let given: Vec<_> = given.iter().map(|value| ("x-a", *value)).collect();
        let request = request("/6/7/8", &given);
        let forwarded = forwarded(&config, &request, ConnectionInfo::default());
        assert_eq!(
            values(forwarded.headers(), "x-a"),
            expected,
            "{case} {transforms}"
        );
    }
}

/// A client must not be able to keep its own value by a path that makes none.
#[test]
fn a_route_value_that_no_header_has_takes_the_header_away() {
    for (action, path, expected) in [
        ("Set", "/a%0Ab", &[] as &[&str]),
        ("Append", "/a%0Ab", &["theirs"]),
        ("Set", "/%20a%20", &["a"]),
        ("Set", "/%20", &[""]),
        ("Append", "/a", &["theirs", "a"]),
    ] {
        let transforms = format!(r#"{{ "RequestHeaderRouteValue": "x-a", "{action}": "a" }}"#);
        let config = config("/{a}/{**rest}", &transforms, "");
        let request = request(path, &[("x-a", "theirs")]);
        let forwarded = forwarded(&config, &request, ConnectionInfo::default());
        let found = values(forwarded.headers(), "x-a");
        assert_eq!(found, expected, "{action} {path}");
    }
}

#[test]
fn g18_g20_only_listed_headers_are_copied() {
    let config = config(
        "/{**all}",
        r#"{ "RequestHeadersAllowed": "header1;Content-Type;te;transfer-encoding" }, { "X-Forwarded": "Off" }"#,
        "",
    );
    let request = request(
        "/",
        &[
            ("header1", "1"),
            ("header2", "2"),
            ("header1", "3"),
            ("content-type", "text/plain"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
        ],
    );
    let forwarded = forwarded(&config, &request, ConnectionInfo::default());
    let headers = forwarded.headers();
    assert_eq!(values(headers, "header1"), ["1", "3"]);
    assert_eq!(values(headers, "content-type"), ["text/plain"]);
    assert_eq!(
        values(headers, "te"),
        ["trailers"],
        "listed, though hop-by-hop"
    );
    assert!(values(headers, "header2").is_empty());
    assert_eq!(
        values(headers, "transfer-encoding"),
        ["chunked"],
        "the proxy frames the body"
    );
}

#[test]
fn g02_nothing_is_copied() {
    let config = config(
        "/{**all}",
        r#"{ "RequestHeadersCopy": "false" }, { "X-Forwarded": "Off" }"#,
        "",
    );
    let request = request("/", &[("a", "1"), ("host", "h")]);
    let forwarded = forwarded(
        &config,
        &request,
        ConnectionInfo::new(([1, 2, 3, 4], 5).into()),
    );
    let names: Vec<_> = forwarded.headers().keys().collect();
    assert_eq!(names, [&HOST]);
}
