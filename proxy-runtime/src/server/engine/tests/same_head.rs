//! A head that is written from its bytes and one that is written from `http` types say the same.

use std::collections::BTreeMap;

use http::header::HeaderName;
use http::request::Parts;
use http::{HeaderValue, Request};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proxy_model::Snapshot;

use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::forward::body_kind_of;
use crate::forward::typed::{TypedRequest, framing};
use crate::head::{AddressText, HttpHead};
use crate::http1::{FieldValue, HeadLimits, HeadTable, RequestView, Status, parse_request};
use crate::server::engine::PreparedHead;
use crate::transform::CompiledTransforms;

/// Transforms that a route may have.
const TRANSFORMS: [&str; 27] = [
    "",
    r#"{"RequestHeadersCopy":"false"}"#,
    r#"{"RequestHeadersAllowed":"X-A;Cookie;Accept"}"#,
    r#"{"RequestHeaderOriginalHost":"true"}"#,
    r#"{"RequestHeader":"Host","Set":"fixed.example"}"#,
    r#"{"RequestHeader":"X-A","Set":"route"}"#,
    r#"{"RequestHeader":"X-A","Append":"route"}"#,
    r#"{"RequestHeader":"X-New","Append":"route"}"#,
    r#"{"RequestHeaderRemove":"Cookie"}"#,
    r#"{"RequestHeaderRemove":"X-A"},{"RequestHeader":"X-A","Append":"again"}"#,
    r#"{"X-Forwarded":"Append"}"#,
    r#"{"X-Forwarded":"Off"}"#,
    r#"{"PathPrefix":"/below"},{"QueryValueParameter":"q","Append":"1"}"#,
    r#"{"PathRemovePrefix":"/a"},{"ClientCert":"X-A"}"#,
    r#"{"RequestHeaderRouteValue":"X-A","Set":"all"}"#,
    r#"{"RequestHeaderRouteValue":"X-B","Append":"all"}"#,
    r#"{"RequestHeaderRouteValue":"X-A","Set":"none"}"#,
    r#"{"Forwarded":"proto,host,for,by","ForFormat":"IpAndPort","ByFormat":"Ip"}"#,
    r#"{"Forwarded":"for","ForFormat":"Ip","Action":"Append"}"#,
    r#"{"RequestHeadersAllowed":"TE;Proxy-Authorization;X-A;Keep-Alive"}"#,
    r#"{"RequestHeader":"Proxy-Authorization","Set":"ours"}"#,
    r#"{"RequestHeader":"TE","Set":"gzip"},{"RequestHeader":"Connection","Append":"close"}"#,
    r#"{"RequestHeaderRouteValue":"Host","Set":"all"}"#,
    r#"{"RequestHeaderRouteValue":"Host","Set":"none"}"#,
    r#"{"RequestHeaderRemove":"Host"}"#,
    r#"{"ClientCert":"X-New"}"#,
    r#"{"HttpMethodChange":"get","Set":"PUT"},{"HttpMethodChange":"PUT","Set":"PROPFIND"},{"HttpMethodChange":"POST","Set":"HEAD"}"#,
];

/// Fields that clients send, some of them more than once.
const FIELDS: [(&str, &str); 28] = [
    ("accept", "*/*"),
    ("accept", "text/html"),
    ("x-a", "1"),
    ("x-a", "2"),
    ("x-b", ""),
    ("x_a", "imitated"),
    ("x_b", "imitated"),
    ("user-agent", "test  with   spaces"),
    ("cookie", "a=1"),
    ("cookie", "b=2"),
    ("cookie", "c=3"),
    ("te", "trailers"),
    ("te", "gzip"),
    ("trailer", "x-sum"),
    ("connection", "keep-alive, TE"),
    ("connection", "close"),
    ("connection", "x-a"),
    ("connection", "host, cookie, x-forwarded-for"),
    ("connection", "not-there"),
    ("keep-alive", "timeout=5"),
    ("proxy-authorization", "secret"),
    ("upgrade", "h2c"),
    ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
    ("upgrade-insecure-requests", "1"),
    ("x-forwarded-for", "192.0.2.1"),
    ("x-forwarded-proto", "https"),
    ("forwarded", "for=192.0.2.1"),
    ("authorization", "Basic eHg="),
];

fn route(transforms: &str, address: &str) -> std::sync::Arc<Snapshot> {
    snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**all}}"}},"Transforms":[{transforms}]}}}},
            "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"{address}"}}}}}}}}}}"#
    ))
}

/// The request line, and the lines of each name in their order. Names may come in any order and in any case.
fn said(head: &[u8]) -> (String, BTreeMap<String, Vec<String>>) {
    let text = std::str::from_utf8(head).unwrap();
    let text = text
        .strip_suffix("\r\n\r\n")
        .expect("an empty line is last");
    let mut lines = text.split("\r\n");
    let request = lines.next().unwrap().to_owned();
    let mut fields = BTreeMap::<_, Vec<_>>::new();
    for (number, line) in lines.enumerate() {
        let (name, value) = line.split_once(": ").unwrap();
        let name = name.to_lowercase();
        assert!(name != "host" || number == 0, "Host is the first one");
        fields.entry(name).or_default().push(value.to_owned());
    }
    (request, fields)
}

/// The head of a request in HTTP/1.1, with fields of which `Host` is the first.
fn text(line: &str, fields: &[(&str, &str)]) -> String {
    let fields = fields.iter();
    let fields: String = fields
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("{line} HTTP/1.1\r\nHost: shop.example:81\r\n{fields}\r\n")
}

/// The same in `http` types.
fn parts(line: &str, fields: &[(&str, &str)]) -> Parts {
    let (method, target) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(target);
    let request = request.header("host", "shop.example:81").body(()).unwrap();
    let mut parts = request.into_parts().0;
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = HeaderValue::from_str(value).unwrap();
        parts.headers.append(name, value);
    }
    parts
}

fn connection() -> ConnectionInfo {
    ConnectionInfo::new(([203, 0, 113, 7], 4711).into())
}

/// Returns the head that the destination gets for one in `http` types.
fn from_types(config: &Snapshot, parts: &Parts) -> Vec<u8> {
    let route = &config.routes()[0];
    let head = HttpHead::with_connection(parts, connection());
    let remote = AddressText::new(connection().remote.unwrap().ip());
    let request = TypedRequest {
        head: &head,
        route,
        plan: &CompiledTransforms::of(route, None),
        framing: framing(
            &head,
            body_kind_of(&head, !parts.headers.contains_key("transfer-encoding")).unwrap(),
        ),
        remote: FieldValue::new(remote.as_bytes()),
    };
    let mut out = Vec::new();
    let destination = &config.clusters()[0].destinations()[0];
    request.write(destination, &mut out).unwrap();
    out
}

/// Returns the head that the destination gets for one in bytes.
fn from_bytes(config: &Snapshot, text: &str) -> Vec<u8> {
    let route = &config.routes()[0];
    let buffer = text.as_bytes();
    let mut table = HeadTable::new();
    let parsed = parse_request(buffer, &HeadLimits::default(), &mut table);
    let Ok(Status::Complete(request)) = parsed else {
        panic!("{parsed:?}: {text}");
    };
    let remote = AddressText::new(connection().remote.unwrap().ip());
    let head = PreparedHead {
        buffer,
        request: &request,
        table: &table,
        view: &RequestView::new(buffer, &request, &table, false),
        route,
        plan: &CompiledTransforms::of(route, None),
        edits: None,
        destination: &config.clusters()[0].destinations()[0],
        remote: FieldValue::new(remote.as_bytes()),
        connection: &connection(),
    };
    let mut out = Vec::new();
    head.write(&mut out).unwrap();
    out
}

/// Compares both ways of writing a head.
fn compare(config: &Snapshot, line: &str, fields: &[(&str, &str)]) {
    assert_eq!(
        said(&from_bytes(config, &text(line, fields))),
        said(&from_types(config, &parts(line, fields))),
        "{line} {fields:?}"
    );
}

#[test]
fn what_is_usual_is_the_same() {
    let config = route("", "http://destination:8080/");
    for fields in [
        &FIELDS[..14],
        &[("connection", "keep-alive"), ("accept", "*/*")],
        &[("connection", "close, te, not-there")],
        &[("content-length", "0")],
    ] {
        compare(&config, "GET /a?b=c", fields);
    }
}

#[test]
fn what_is_not_is_the_same_as_well() {
    let config = route("", "http://destination:8080/");
    for (line, field) in [
        ("OPTIONS *", ("x-a", "1")),
        ("POST /", ("content-length", "007")),
        ("GET /", ("connection", "close, X-B")),
    ] {
        compare(&config, line, &[field, ("x-b", "2")]);
    }
}

proptest! {
    #[test]
    fn both_ways_say_the_same(
        transforms in subsequence(&TRANSFORMS[..], 0..=3),
        address in select(&["http://destination:8080/", "http://destination:8080/base/"][..]),
        fields in subsequence(&FIELDS[..], 0..=FIELDS.len()).prop_shuffle(),
        method in select(&["GET", "HEAD", "POST"][..]),
        target in select(&["/", "/a", "/a/b?c=d&e", "/a?", "/a%20b/%C3%A9?q=/?", "/%20a%0Ab", "/%20a%20", "http://other.example:82/a?x"][..]),
        body in select(&[None, Some(("content-length", "12")), Some(("transfer-encoding", "chunked"))][..]),
    ) {
        let transforms: Vec<_> = transforms.into_iter().filter(|one| !one.is_empty()).collect();
        let config = route(&transforms.join(","), address);
        let mut fields = fields;
        fields.extend(body);
        compare(&config, &format!("{method} {target}"), &fields);
    }
}
