//! A head that is written out of the client's map says what one says that was made by way of a map of its own.

use std::collections::BTreeMap;

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Version};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proxy_model::Snapshot;
use proxy_model::transform::HeaderCopy;

use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::forward::typed::{TypedRequest, framing};
use crate::forward::{BodyKind, OutgoingHead};
use crate::head::AddressText;
use crate::head::HttpHead;
use crate::http1::FieldValue;
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
const FIELDS: [(&str, &str); 30] = [
    ("host", "shop.example:81"),
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
    ("content-length", "0"),
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

/// By way of a map of its own.
fn by_map(config: &Snapshot, head: &HttpHead<'_>, body: BodyKind) -> Vec<u8> {
    let destination = &config.clusters()[0].destinations()[0];
    let outgoing = OutgoingHead::new(head, &config.routes()[0], destination).unwrap();
    let (mut head, ()) = outgoing.into_request((), body, false).unwrap().into_parts();
    if body == BodyKind::Empty && head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(CONTENT_LENGTH, 0.into());
    }
    let host = head.headers.remove(HOST).unwrap();
    let mut out = format!("{} {} HTTP/1.1\r\nhost: ", head.method, head.uri).into_bytes();
    out.extend_from_slice(host.as_bytes());
    for (name, value) in &head.headers {
        out.extend_from_slice(format!("\r\n{name}: ").as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
    out
}

/// Straight from the client's map.
fn straight(config: &Snapshot, head: &HttpHead<'_>, body: BodyKind) -> Vec<u8> {
    let route = &config.routes()[0];
    let plan = CompiledTransforms::of(route, None);
    let remote = AddressText::new(head.connection().remote.unwrap().ip());
    let request = TypedRequest {
        head,
        route,
        plan: &plan,
        framing: framing(head, body),
        remote: FieldValue::new(remote.as_bytes()),
    };
    let mut out = Vec::new();
    request
        .write(&config.clusters()[0].destinations()[0], &mut out)
        .unwrap();
    out
}

fn connection() -> ConnectionInfo {
    ConnectionInfo::new(([203, 0, 113, 7], 4711).into())
}

fn parts(method: Method, version: Version, target: &str, fields: &[(&str, &str)]) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = method;
    parts.version = version;
    parts.uri = target.parse().unwrap();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        parts
            .headers
            .append(name, HeaderValue::from_str(value).unwrap());
    }
    parts
}

/// Compares both ways of writing a head.
fn compare(config: &Snapshot, parts: &Parts, body: BodyKind) {
    let head = HttpHead::with_connection(parts, connection());
    let straight = straight(config, &head, body);
    let (line, mut fields) = said(&straight);
    let copies_all = *config.routes()[0].transforms().request_copy() == HeaderCopy::All;
    if body == BodyKind::Empty && !copies_all && parts.headers.contains_key(CONTENT_LENGTH) {
        // It says nothing new, and servers may insist on it (RFC 9110 section 8.6), whatever a route copies.
        fields.remove("content-length");
    }
    assert_eq!(
        (line, fields),
        said(&by_map(config, &head, body)),
        "{parts:?}"
    );
}

#[test]
fn what_is_usual_is_written_straight() {
    let config = route("", "http://destination:8080/");
    for fields in [
        &FIELDS[..15],
        &[("connection", "keep-alive"), ("accept", "*/*")],
        &[("connection", "close, te, not-there")],
    ] {
        let parts = parts(Method::GET, Version::HTTP_11, "/a?b=c", fields);
        compare(&config, &parts, BodyKind::Empty);
    }
}

#[test]
fn what_is_not_is_written_so_as_well() {
    let config = route("", "http://destination:8080/");
    for (method, target, field) in [
        (Method::OPTIONS, "*", ("x-a", "1")),
        (Method::POST, "/", ("expect", "100-continue")),
        (Method::GET, "/", ("connection", "close, X-B")),
    ] {
        let parts = parts(method, Version::HTTP_11, target, &[field, ("x-b", "2")]);
        compare(&config, &parts, BodyKind::Empty);
    }
}

proptest! {
    #[test]
    fn both_ways_say_the_same(
        transforms in subsequence(&TRANSFORMS[..], 0..=3),
        address in select(&["http://destination:8080/", "http://destination:8080/base/"][..]),
        fields in subsequence(&FIELDS[..], 0..=FIELDS.len()).prop_shuffle(),
        method in select(vec![Method::GET, Method::HEAD, Method::POST]),
        target in select(&["/", "/a", "/a/b?c=d&e", "/a?", "/a%20b/%C3%A9?q=/?", "/%20a%0Ab", "/%20a%20", "http://other.example:82/a?x"][..]),
        is_http2 in any::<bool>(),
        body in select(&[BodyKind::Empty, BodyKind::Length(12), BodyKind::Stream][..]),
    ) {
        let transforms: Vec<_> = transforms.into_iter().filter(|one| !one.is_empty()).collect();
        let config = route(&transforms.join(","), address);
        let version = if is_http2 { Version::HTTP_2 } else { Version::HTTP_11 };
        let parts = parts(method, version, target, &fields);
        compare(&config, &parts, body);
    }
}
