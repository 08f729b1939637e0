//! Groups G and H of the cases: what becomes of headers.

use std::sync::Arc;

use http::header::{FORWARDED, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use proxy_model::Snapshot;

use super::{apply_to_own_response, apply_to_response, apply_to_trailers};
use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::forward::{Framing, HttpHead, OutgoingHead};

/// One route with these transforms, to one destination with these settings.
fn config(path: &str, transforms: &str, destination: &str) -> Arc<Snapshot> {
    snapshot(&format!(
        r#"{{
            "Routes": {{ "r": {{
                "ClusterId": "c", "Match": {{ "Path": "{path}" }}, "Transforms": [{transforms}]
            }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{
                "Address": "http://destination:8080/" {destination}
            }} }} }} }}
        }}"#
    ))
}

/// What a destination gets.
fn forwarded(config: &Snapshot, request: &Parts, connection: ConnectionInfo) -> Request<()> {
    let head = HttpHead::with_connection(request, connection);
    let destination = &config.clusters()[0].destinations()[0];
    OutgoingHead::new(&head, &config.routes()[0], destination)
        .unwrap()
        .into_request((), Framing::Empty, false)
        .unwrap()
}

fn request(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request.body(()).unwrap().into_parts().0
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

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
    assert!(
        values(headers, "transfer-encoding").is_empty(),
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

#[test]
fn g21_to_g27_response_headers() {
    let set = |when: &str| format!(r#"{{ "ResponseHeader": "x-a", "Set": "new"{when} }}"#);
    let append = |when: &str| format!(r#"{{ "ResponseHeader": "x-a", "Append": "new"{when} }}"#);
    let remove = |when: &str| format!(r#"{{ "ResponseHeaderRemove": "x-a"{when} }}"#);
    let success = r#", "When": "Success""#;
    let failure = r#", "When": "failure""#;
    let always = r#", "When": "Always""#;
    for (case, transforms, given, status, expected) in [
        (
            "G21",
            set(success),
            &[] as &[&str],
            200,
            &["new"] as &[&str],
        ),
        ("G21", set(success), &[], 399, &["new"]),
        ("G21", set(success), &[], 400, &[]),
        ("G23", set(always), &[], 400, &["new"]),
        ("G23", set(always), &["start"], 200, &["new"]),
        ("G24", set(failure), &[], 502, &["new"]),
        ("G24", set(failure), &[], 200, &[]),
        ("G25", append(success), &["start"], 200, &["start", "new"]),
        ("G25", append(success), &["start"], 400, &["start"]),
        ("G26", remove(success), &["start"], 200, &[]),
        ("G26", remove(success), &["start"], 404, &["start"]),
        ("G27", remove(failure), &["start"], 200, &["start"]),
        ("G27", remove(failure), &["start"], 404, &[]),
        ("G30", set(""), &[], 200, &["new"]),
        ("G30", set(""), &[], 404, &[]),
    ] {
        let config = config("/{**all}", &transforms, "");
        let transforms = config.routes()[0].transforms();
        let mut headers: HeaderMap = HeaderMap::new();
        for value in given {
            headers.append("x-a", HeaderValue::from_str(value).unwrap());
        }
        apply_to_response(
            transforms,
            StatusCode::from_u16(status).unwrap(),
            &mut headers,
        );
        assert_eq!(values(&headers, "x-a"), expected, "{case} {status}");
    }
}

#[test]
fn g23_g24_changes_are_made_when_no_destination_answered() {
    let config = config(
        "/{**all}",
        r#"{ "ResponseHeader": "x-always", "Set": "new", "When": "Always" },
           { "ResponseHeader": "x-failure", "Set": "new", "When": "Failure" },
           { "ResponseHeader": "x-success", "Set": "new" },
           { "ResponseHeadersCopy": "false" }"#,
        "",
    );
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/plain"));
    let transforms = config.routes()[0].transforms();
    apply_to_own_response(transforms, StatusCode::BAD_GATEWAY, &mut headers);
    let mut names: Vec<_> = headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "x-always", "x-failure"]);
}

#[test]
fn g29_response_trailers() {
    let set =
        |when: &str| format!(r#"{{ "ResponseTrailer": "x-a", "Set": "new", "When": "{when}" }}"#);
    for (when, status, expected) in [
        ("Success", 200, true),
        ("Success", 400, false),
        ("Failure", 200, false),
        ("Failure", 400, true),
    ] {
        let config = config("/{**all}", &set(when), "");
        let mut trailers = HeaderMap::new();
        apply_to_trailers(
            config.routes()[0].transforms(),
            StatusCode::from_u16(status).unwrap(),
            &mut trailers,
        );
        assert_eq!(trailers.contains_key("x-a"), expected, "{when} {status}");
    }
}

#[test]
fn responses_and_trailers_can_be_filtered() {
    let config = config(
        "/{**all}",
        r#"{ "ResponseHeadersAllowed": "a;connection" }, { "ResponseTrailersCopy": "false" }"#,
        "",
    );
    let transforms = config.routes()[0].transforms();
    let given: HeaderMap = [("a", "1"), ("b", "2"), ("connection", "close")]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect();
    let mut headers = given.clone();
    apply_to_response(transforms, StatusCode::OK, &mut headers);
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["a"]);
    let mut trailers = given;
    apply_to_trailers(transforms, StatusCode::OK, &mut trailers);
    assert!(trailers.is_empty());
}

/// What becomes of one header about where a request came from.
struct Told {
    transforms: &'static str,
    name: &'static str,
    remote: Option<&'static str>,
    host: Option<&'static str>,
    existing: &'static [&'static str],
}

impl Told {
    fn values(&self) -> Vec<String> {
        let config = config("/{**all}", self.transforms, "");
        let mut headers: Vec<_> = self.existing.iter().map(|v| (self.name, *v)).collect();
        headers.extend(self.host.map(|host| ("host", host)));
        let mut connection = ConnectionInfo::default().with_tls(self.transforms.contains("proto"));
        connection.remote = self.remote.map(|remote| remote.parse().unwrap());
        let request = request("/", &headers);
        values(
            forwarded(&config, &request, connection).headers(),
            self.name,
        )
    }
}

#[test]
fn h01_to_h17_x_forwarded() {
    const SET: &str = "";
    const APPEND: &str = r#"{ "X-Forwarded": "Append" }"#;
    const REMOVE: &str = r#"{ "X-Forwarded": "Remove" }"#;
    const OFF: &str = r#"{ "X-Forwarded": "Off" }"#;
    let existing: &[&str] = &["existing,Header"];
    let for_ = |transforms, remote, existing| Told {
        transforms,
        name: "x-forwarded-for",
        remote,
        host: None,
        existing,
    };
    let host = |transforms, host, existing| Told {
        transforms,
        name: "x-forwarded-host",
        remote: None,
        host,
        existing,
    };
    let proto = |transforms, existing| Told {
        transforms,
        name: "x-forwarded-proto",
        remote: None,
        host: None,
        existing,
    };
    let prefix = |transforms, existing| Told {
        transforms,
        name: "x-forwarded-prefix",
        remote: None,
        host: None,
        existing,
    };
    let mapped = Some("[::ffff:127.0.0.1]:9");
    let v4 = Some("127.0.0.1:9");
    for (case, told, expected) in [
        ("H01", for_(SET, None, &[]), &[] as &[&str]),
        ("H01", for_(APPEND, None, &[]), &[]),
        ("H01", for_(REMOVE, None, &[]), &[]),
        ("H02", for_(SET, Some("[::1]:9"), &[]), &["::1"]),
        ("H03", for_(SET, mapped, &[]), &["127.0.0.1"]),
        ("H03", for_(APPEND, mapped, &[]), &["127.0.0.1"]),
        ("H04", for_(SET, None, existing), &[]),
        ("H05", for_(APPEND, None, existing), &["existing,Header"]),
        ("H06", for_(SET, v4, existing), &["127.0.0.1"]),
        (
            "H07",
            for_(APPEND, v4, existing),
            &["existing,Header", "127.0.0.1"],
        ),
        ("H08", for_(REMOVE, v4, existing), &[]),
        ("H09", for_(OFF, v4, existing), &["existing,Header"]),
        ("H10", host(SET, Some("ho本st"), &[]), &["xn--host-6j1i"]),
        ("H12", host(SET, Some("[::1]:80"), &[]), &["[::1]:80"]),
        ("H13", host(SET, None, existing), &[]),
        (
            "H14",
            host(APPEND, Some("myHost:80"), existing),
            &["existing,Header", "myHost:80"],
        ),
        ("H17", proto(SET, &["existing"]), &["http"]),
        ("H17", proto(APPEND, &["existing"]), &["existing", "http"]),
        ("prefix", prefix(SET, existing), &[]),
        ("prefix", prefix(APPEND, existing), &["existing,Header"]),
    ] {
        assert_eq!(told.values(), expected, "{case}");
    }
}

#[test]
fn a_prefix_of_ones_own_and_an_action_per_header() {
    let config = config(
        "/{**all}",
        r#"{ "X-Forwarded": "Set", "HeaderPrefix": "X-Mine-", "Host": "Off", "Proto": "Append" }"#,
        "",
    );
    let request = request(
        "/",
        &[
            ("host", "h"),
            ("x-mine-proto", "old"),
            ("x-mine-host", "old"),
        ],
    );
    let forwarded = forwarded(
        &config,
        &request,
        ConnectionInfo::new(([9, 9, 9, 9], 1).into()),
    );
    let headers = forwarded.headers();
    assert_eq!(values(headers, "x-mine-for"), ["9.9.9.9"]);
    assert_eq!(values(headers, "x-mine-proto"), ["old", "http"]);
    assert_eq!(values(headers, "x-mine-host"), ["old"]);
}

#[test]
fn g01_forwarded_is_removed_and_x_forwarded_set_by_default() {
    let config = config("/{**all}", "", "");
    let request = request(
        "/",
        &[
            ("host", "example.com"),
            ("forwarded", "for=evil"),
            ("x-forwarded-for", "evil"),
        ],
    );
    let connection = ConnectionInfo::new(([10, 0, 0, 1], 1).into()).with_tls(true);
    let forwarded = forwarded(&config, &request, connection);
    let headers = forwarded.headers();
    assert!(!headers.contains_key(FORWARDED));
    assert_eq!(values(headers, "x-forwarded-for"), ["10.0.0.1"]);
    assert_eq!(values(headers, "x-forwarded-host"), ["example.com"]);
    assert_eq!(values(headers, "x-forwarded-proto"), ["https"]);
}

#[test]
fn h20_to_h26_forwarded() {
    let told = |transforms, remote, host| Told {
        transforms,
        name: "forwarded",
        remote,
        host,
        existing: &[],
    };
    let v6 = Some("[::1]:10");
    for (case, told, expected) in [
        (
            "H20",
            told(r#"{ "Forwarded": "host" }"#, None, Some("ho本st:80")),
            r#"host="xn--host-6j1i:80""#,
        ),
        (
            "H21",
            told(r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#, None, None),
            "for=unknown",
        ),
        (
            "H22",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "UnknownAndPort" }"#,
                Some("1.1.1.1:2"),
                None,
            ),
            r#"for="unknown:2""#,
        ),
        (
            "H22",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "UnknownAndPort" }"#,
                Some("1.1.1.1:0"),
                None,
            ),
            "for=unknown",
        ),
        (
            "H23",
            told(r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#, v6, None),
            r#"for="[::1]""#,
        ),
        (
            "H24",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "IpAndPort" }"#,
                v6,
                None,
            ),
            r#"for="[::1]:10""#,
        ),
        (
            "H25",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#,
                Some("127.0.0.1:1"),
                None,
            ),
            "for=127.0.0.1",
        ),
        (
            "H26",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "IpAndPort" }"#,
                Some("[::ffff:127.0.0.1]:2"),
                None,
            ),
            r#"for="127.0.0.1:2""#,
        ),
    ] {
        assert_eq!(told.values(), [expected], "{case}");
    }
}

#[test]
fn h29_h30_random_names_are_new_each_time() {
    let told = |transforms| Told {
        transforms,
        name: "forwarded",
        remote: Some("[::1]:10"),
        host: Some("myHost:80"),
        existing: &[],
    };
    let random = told(r#"{ "Forwarded": "for", "ForFormat": "RandomAndRandomPort" }"#);
    let (first, second) = (random.values(), random.values());
    assert_ne!(first, second);
    let text = first[0]
        .strip_prefix("for=\"_")
        .unwrap()
        .strip_suffix('"')
        .unwrap();
    let (name, port) = text.split_once(":_").unwrap();
    assert_eq!((name.len(), port.len()), (9, 9));
    assert!(
        name.bytes()
            .chain(port.bytes())
            .all(|b| b.is_ascii_alphanumeric())
    );

    let all = told(
        r#"{ "Forwarded": "by,for,host,proto", "ForFormat": "IpAndPort", "ByFormat": "Random" }"#,
    );
    let all = all.values();
    let by = all[0]
        .strip_prefix(r#"proto=https;host="myHost:80";for="[::1]:10";by=_"#)
        .unwrap();
    assert_eq!(by.len(), 9);
}

#[test]
fn h31_h32_forwarded_is_appended_and_x_forwarded_removed() {
    let config = config(
        "/{**all}",
        r#"{ "Forwarded": "proto", "Action": "Append" }"#,
        "",
    );
    let request = request(
        "/",
        &[
            ("forwarded", "otherHeader"),
            ("x-forwarded-for", "1"),
            ("x-forwarded-host", "2"),
        ],
    );
    let forwarded = forwarded(
        &config,
        &request,
        ConnectionInfo::new(([1, 1, 1, 1], 1).into()),
    );
    assert_eq!(
        values(forwarded.headers(), "forwarded"),
        ["otherHeader", "proto=http"]
    );
    assert!(
        !forwarded
            .headers()
            .keys()
            .any(|name| name.as_str().starts_with("x-forwarded")),
        "{:?}",
        forwarded.headers()
    );
}

#[test]
fn the_header_for_a_client_certificate_cannot_be_forged() {
    let config = config("/{**all}", r#"{ "ClientCert": "x-cert" }"#, "");
    let request = request("/", &[("x-cert", "forged")]);
    let forwarded = forwarded(&config, &request, ConnectionInfo::default());
    assert!(!forwarded.headers().contains_key("x-cert"));
}
