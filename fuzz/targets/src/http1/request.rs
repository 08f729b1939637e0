//! Requests of an HTTP/1.1 connection.

use proxy_model::RequestHead;
use proxy_runtime::http1::{
    ClassSet, FieldClass, Framing, HeadLimits, HeadTable, Method, RequestRewrite, RequestView,
    Status, parse_request, write_request,
};

use super::ours::{End, requests, start};
use super::theirs;
use crate::input::MAX_BYTES;

/// The request behind a connection that ended cleanly. It must be read as the next, separate
/// request.
const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n";

/// Fuzzes the bytes of a connection with any number of requests.
///
/// * Every accepted request is accepted by hyper with the same method, target, fields, body and
///   trailers.
/// * Both find the next request at the same byte: a canary behind the last one is a separate
///   request.
/// * A head in pieces is the same head.
/// * The forwarded head is one request for us and for hyper, with the same framing, authority and
///   method, and without connection fields.
/// * Routing sees the path and the authority of the input.
pub fn http1_request(data: &[u8]) {
    let bytes = &data[..data.len().min(MAX_BYTES)];
    let (ours, end) = requests(bytes);
    if let Some((first, table)) = whole_head(bytes) {
        check_pieces(bytes, &first, &table);
        check_view(bytes, &first, &table);
        check_rewritten(bytes, &first, &table);
    }
    if ours.is_empty() {
        return;
    }
    let mut stream = bytes.to_vec();
    if end == End::Clean {
        stream.extend_from_slice(CANARY);
    }
    let mut theirs = theirs::requests(stream);
    if end == End::Clean {
        let canary = theirs.pop().expect("there is the canary at least");
        let (expected, _) = requests(CANARY);
        assert_eq!(canary, expected[0]);
    }
    match end {
        End::Clean | End::Last => assert_eq!(theirs, ours),
        End::Partial | End::Rejected(_) => {
            assert!(theirs.len() >= ours.len(), "{theirs:?}\n{ours:?}");
            assert_eq!(theirs[..ours.len()], ours);
        }
    }
}

type ParsedHead = proxy_runtime::http1::RawRequest;

fn whole_head(bytes: &[u8]) -> Option<(ParsedHead, HeadTable)> {
    let mut table = HeadTable::new();
    match parse_request(bytes, &HeadLimits::default(), &mut table) {
        Ok(Status::Complete(head)) => Some((head, table)),
        Ok(Status::Partial) | Err(_) => None,
    }
}

fn check_pieces(bytes: &[u8], head: &ParsedHead, table: &HeadTable) {
    // A size that varies but is the same for the same input.
    let piece = 1 + bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 61;
    let mut again = HeadTable::new();
    let mut end = 0;
    let read = loop {
        end = (end + piece).min(bytes.len());
        match parse_request(&bytes[..end], &HeadLimits::default(), &mut again) {
            Ok(Status::Complete(read)) => break read,
            Ok(Status::Partial) => assert!(end < bytes.len(), "pieces of {piece} do not end"),
            Err(rejection) => panic!("pieces of {piece}: {rejection}"),
        }
    };
    assert_eq!(format!("{read:?}"), format!("{head:?}"));
    assert_eq!(again.fields(), table.fields());
}

fn check_view(bytes: &[u8], head: &ParsedHead, table: &HeadTable) {
    let view = RequestView::new(bytes, head, table, false);
    assert!(view.path().starts_with('/') || view.path() == "*" || head.method() == Method::Connect);
    assert_eq!(view.authority().as_bytes(), head.authority().get(bytes));
    let mut seen = 0;
    view.for_each_header("host", &mut |host| {
        assert_eq!(host, view.authority().as_bytes());
        seen += 1;
        true
    });
    assert_eq!(seen, usize::from(!view.authority().is_empty()));
}

fn check_rewritten(bytes: &[u8], head: &ParsedHead, table: &HeadTable) {
    // CONNECT is not forwarded, and neither is a request without an authority.
    if head.method() == Method::Connect || head.authority().is_empty() {
        return;
    }
    let mut out = Vec::new();
    write_request(bytes, head, table, &RequestRewrite::default(), &mut out);
    let (again, again_table) =
        whole_head(&out).unwrap_or_else(|| panic!("not a head: {}", out.escape_ascii()));
    assert_eq!(again.head_length(), out.len());
    assert_eq!(again.framing(), head.framing());
    assert_eq!(again.authority().get(&out), head.authority().get(bytes));
    assert_eq!(again.method_span().get(&out), head.method_span().get(bytes));
    let allowed = match head.framing() {
        Framing::Chunked => ClassSet::EMPTY.with(FieldClass::TransferEncoding),
        _ => ClassSet::EMPTY,
    };
    let left = ClassSet::CONNECTION.intersection(again_table.classes());
    assert_eq!(left, allowed.with(FieldClass::Host));
    // With an empty body, so that it is complete.
    match head.framing() {
        Framing::Chunked => out.extend_from_slice(b"0\r\n\r\n"),
        Framing::None | Framing::Length(0) => {}
        _ => return,
    }
    let theirs = theirs::requests(out.clone());
    assert_eq!(theirs.len(), 1, "{}", out.escape_ascii());
    assert_eq!(theirs[0].start, start(&out, &again));
}
