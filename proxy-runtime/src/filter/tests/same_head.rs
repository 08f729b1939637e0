//! The same changes produce the same head from `http` types and from received bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use http::header::{HOST, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::fixtures::snapshot;
use crate::forward::sent_request;
use crate::forward::typed::final_head;
use crate::head::HeaderMutations;
use crate::http1::{
    FieldValue, OutgoingTarget, RequestInfo, RequestRewrite, ResponseRewrite, parse_response,
    write_request, write_response,
};
use crate::transform::CompiledTransforms;

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Set(&'static str, &'static str),
    Append(&'static str, &'static str),
    Remove(&'static str),
    Path(&'static str),
    Query(Option<&'static str>),
    Host(&'static str),
}

const NAMES: [&str; 10] = [
    "X-A",
    "x-b",
    "X-Hop",
    "Accept",
    "User-Agent",
    "X-Forwarded-For",
    "Forwarded",
    "Authorization",
    "Host",
    "Keep-Alive",
];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["", "1", "a, b", "\tx y ", "bad\r\nvalue"][..])
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = prop::sample::select(&["/", "/x", "/x/%2F/y", "/^|", "no", "/a b"][..]);
    let query = prop::sample::select(&[None, Some(""), Some("a=b"), Some("{}"), Some("a b")][..]);
    let host = prop::sample::select(&["other.example", "[::1]:80", "a b"][..]);
    prop_oneof![
        3 => (name(), value()).prop_map(|(name, value)| Edit::Set(name, value)),
        3 => (name(), value()).prop_map(|(name, value)| Edit::Append(name, value)),
        3 => name().prop_map(Edit::Remove),
        1 => path.prop_map(Edit::Path),
        1 => query.prop_map(Edit::Query),
        1 => host.prop_map(Edit::Host),
    ]
}

/// Lines of a head, without `Host`.
fn lines() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let values = prop::sample::select(&["", "1", "a, b", "x y"][..]);
    let name = name().prop_filter("is there once", |name| *name != "Host");
    prop::collection::vec((name, values), 0..8)
}

/// Makes a change. Returns its result, and the view of the head afterwards.
fn make(head: &mut RequestEdit<'_>, edit: &Edit) -> (Result<(), InvalidEdit>, String) {
    let made = match *edit {
        Edit::Set(name, value) => head.set(name, value),
        Edit::Append(name, value) => head.append(name, value),
        Edit::Remove(name) => head.remove(name),
        Edit::Path(path) => head.set_path(path),
        Edit::Query(query) => head.set_query(query),
        Edit::Host(host) => head.set_host(host),
    };
    let fields: Vec<_> = NAMES
        .iter()
        .map(|name| {
            let all: Vec<_> = head.header_values(name).collect();
            (head.header(name), all)
        })
        .collect();
    let line = (head.path(), head.query(), head.authority());
    let seen = format!("{line:?} {fields:?} {:?}", by_name(head.headers()));
    (made, seen)
}

/// Values by name: the meaning of a head. The order of lines with different names is irrelevant
/// (RFC 9110 section 5.3).
fn by_name<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value).into_owned();
        all.entry(name.to_lowercase()).or_default().push(value);
    }
    all
}

/// Target and fields that are sent for a head in `http` types.
fn sent_from_parts(
    parts: &Parts,
    edits: &HeaderMutations,
) -> (String, BTreeMap<String, Vec<String>>) {
    let config = snapshot(
        r#"{ "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**all}" },
                "Transforms": [ { "X-Forwarded": "Off" }, { "RequestHeaderOriginalHost": "true" } ] } },
             "Clusters": { "c": { "Destinations": { "d": { "Address": "http://d.example/" } } } } }"#,
    );
    let head = HttpHead::new(parts).with_edits(edits);
    let destination = &config.clusters()[0].destinations()[0];
    let route = &config.routes()[0];
    let plan = CompiledTransforms::of(route, None);
    let request = sent_request(&head, route, &plan, destination).unwrap();
    assert!(request.headers().contains_key(HOST));
    let fields = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    (request.uri().to_string(), by_name(fields))
}

/// Target and fields that are sent for a head in its buffer.
fn sent_from_bytes(
    received: &Received,
    edits: &HeaderMutations,
) -> (String, BTreeMap<String, Vec<String>>) {
    let Received {
        buffer,
        table,
        request,
    } = received;
    let operations: Vec<_> = edits.operations().collect();
    let path = match edits.path() {
        Some(path) => path.as_bytes(),
        None => request.path().get(buffer),
    };
    let query = match edits.query() {
        Some(query) => query.map(str::as_bytes),
        None => request.query().map(|query| query.get(buffer)),
    };
    let rewrite = RequestRewrite {
        target: Some(OutgoingTarget::new(path, query).unwrap()),
        host: edits
            .host()
            .map(|host| FieldValue::new(host.as_bytes()).unwrap()),
        operations: &operations,
        ..RequestRewrite::default()
    };
    let mut out = Vec::new();
    write_request(buffer, request, table, &rewrite, &mut out);
    let sent = Received::new(out);
    let text = |span: crate::http1::Span| str::from_utf8(span.get(&sent.buffer)).unwrap();
    let fields = sent
        .table
        .fields()
        .iter()
        .map(|field| (text(field.name()), field.value().get(&sent.buffer)));
    (text(sent.request.target()).to_owned(), by_name(fields))
}

proptest! {
    #[test]
    fn requests_are_the_same(lines in lines(), hop in any::<bool>(), changes in prop::collection::vec(edit(), 0..10)) {
        let mut head = "GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\n".to_owned();
        for (name, value) in &lines {
            head += &format!("{name}: {value}\r\n");
        }
        if hop {
            head += "Connection: x-hop, keep-alive\r\n";
        }
        let received = Received::new(head + "\r\n");
        let parts = received.parts();
        let (mut raw, mut typed) = (HeaderMutations::default(), HeaderMutations::default());
        for change in &changes {
            let left = make(&mut received.edit(&mut raw), change);
            let right = make(&mut RequestEdit::of_http(HttpHead::new(&parts), &mut typed), change);
            prop_assert_eq!(left, right, "{:?}", change);
        }
        prop_assert_eq!(sent_from_bytes(&received, &raw), sent_from_parts(&parts, &typed));
    }

    #[test]
    fn responses_are_the_same(lines in lines(), hop in any::<bool>(), changes in prop::collection::vec(edit(), 0..10)) {
        let mut text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_owned();
        let mut response = Response::builder().header("content-length", 0);
        for (name, value) in &lines {
            text += &format!("{name}: {value}\r\n");
            response = response.header(*name, HeaderValue::from_static(value));
        }
        if hop {
            text += "Connection: x-hop\r\n";
            response = response.header("connection", "x-hop");
        }
        let buffer = Bytes::from(text + "\r\n");
        let mut table = HeadTable::new();
        let parsed = parse_response(&buffer, RequestInfo::default(), &HeadLimits::default(), &mut table);
        let Ok(Status::Complete(raw_response)) = parsed else { panic!("{parsed:?}") };
        let head = response.body(()).unwrap().into_parts().0;

        let (mut raw, mut typed) = (HeaderMutations::default(), HeaderMutations::default());
        let make = |head: &mut ResponseEdit<'_>, change: &Edit| match *change {
            Edit::Set(name, value) => head.set(name, value),
            Edit::Append(name, value) => head.append(name, value),
            Edit::Remove(name) => head.remove(name),
            Edit::Path(_) | Edit::Query(_) | Edit::Host(_) => Ok(()),
        };
        for change in &changes {
            let work = &mut ResponseWork::default();
            let left = ReceivedResponse::of_raw(head.status, &buffer, &table);
            let left = make(&mut left.edit(&mut raw, work), change);
            let right = ReceivedResponse::of_http(head.status, &head.headers);
            let right = make(&mut right.edit(&mut typed, work), change);
            prop_assert_eq!(left, right);
        }

        let operations: Vec<_> = raw.operations().collect();
        let mut rewrite = ResponseRewrite::new(&raw_response);
        rewrite.operations = &operations;
        let mut out = Vec::new();
        write_response(&buffer, &raw_response, &table, &rewrite, &mut out);
        let mut sent = HeadTable::new();
        let parsed = parse_response(&out, RequestInfo::default(), &HeadLimits::default(), &mut sent);
        prop_assert!(matches!(parsed, Ok(Status::Complete(_))));
        let fields = sent.fields().iter().map(|field| {
            (str::from_utf8(field.name().get(&out)).unwrap(), field.value().get(&out))
        });
        let from_bytes = by_name(fields);

        let config = snapshot(r#"{ "Routes": { "r": { "Match": { "Path": "/" } } } }"#);
        let plan = CompiledTransforms::of(&config.routes()[0], None);
        let typed = Some(&typed).filter(|edits| !edits.is_empty());
        let (_, fields) = final_head(&raw_response, &buffer, &table, &plan, typed, 0).unwrap();
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        prop_assert_eq!(from_bytes, by_name(fields));
    }
}
