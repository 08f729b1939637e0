//! Responses of an origin.

use http::Method as HttpMethod;
use proxy_runtime::http1::{
    ClassSet, FieldClass, Framing, HeadLimits, HeadTable, Method, RequestInfo, ResponseRewrite,
    Status, parse_response, write_response,
};

use super::{ours, theirs};
use crate::input::MAX_BYTES;

/// Fuzzes responses: the first line holds the method of the request, with ` upgrade` behind it if
/// it asks to switch protocols. The bytes of the origin follow.
///
/// * The final response that we accept is accepted by hyper's client with the same status, fields,
///   body and trailers.
/// * A forwarded head is a valid head with the same status and framing, without connection fields.
pub fn http1_response(data: &[u8]) {
    let data = &data[..data.len().min(MAX_BYTES)];
    let line = data.iter().position(|byte| *byte == b'\n');
    let Some(end) = line else {
        return;
    };
    let (line, bytes) = (&data[..end], &data[end + 1..]);
    let (method, is_upgrade) = match line.strip_suffix(b" upgrade") {
        Some(method) => (method, true),
        None => (line, false),
    };
    let method = match method {
        b"HEAD" => HttpMethod::HEAD,
        b"CONNECT" => HttpMethod::CONNECT,
        _ => HttpMethod::GET,
    };
    let asked = RequestInfo {
        method: Method::of(&method),
        upgrade: is_upgrade,
    };
    check_rewritten(bytes, asked);
    let Ok(Some((ours, framing))) = ours::response(bytes, asked) else {
        return;
    };
    let theirs = theirs::response(bytes.to_vec(), &method, is_upgrade);
    assert_eq!(theirs.as_ref(), Some(&ours), "{framing:?}");
    if framing == Framing::None {
        assert!(ours.body.is_empty());
    }
}

fn check_rewritten(bytes: &[u8], asked: RequestInfo) {
    let mut table = HeadTable::new();
    let limits = HeadLimits::default();
    let Ok(Status::Complete(head)) = parse_response(bytes, asked, &limits, &mut table) else {
        return;
    };
    if head.framing() == Framing::Tunnel {
        return;
    }
    let mut out = Vec::new();
    let rewrite = ResponseRewrite::new(&head);
    write_response(bytes, &head, &table, &rewrite, &mut out);
    let mut again_table = HeadTable::new();
    let again = parse_response(&out, asked, &limits, &mut again_table);
    let Ok(Status::Complete(again)) = again else {
        panic!("{again:?}: {}", out.escape_ascii());
    };
    assert_eq!(again.head_length(), out.len());
    assert_eq!(again.status(), head.status());
    assert_eq!(again.framing(), head.framing());
    assert_eq!(again.reason().get(&out), head.reason().get(bytes));
    let allowed = match head.framing() {
        Framing::Chunked => ClassSet::EMPTY.with(FieldClass::TransferEncoding),
        _ => ClassSet::EMPTY,
    };
    // `Host` in a response is no response field; it is removed with the others.
    let left = ClassSet::CONNECTION.intersection(again_table.classes());
    assert_eq!(left, allowed);
    if head.is_bodiless() {
        assert!(!again_table.classes().contains(FieldClass::ContentLength));
    }
}
