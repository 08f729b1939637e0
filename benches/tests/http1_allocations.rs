//! Forwarding of a message without allocations.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use allocation_counter::measure;
use proxy_model::RequestHead;
use proxy_runtime::http1::{
    ChunkTracker, FieldName, FieldOperation, FieldValue, HeadLimits, HeadTable, RequestInfo,
    RequestRewrite, RequestView, ResponseRewrite, Status, parse_request, parse_response,
    write_request, write_response, write_trailers,
};

const REQUEST: &[u8] = b"POST http://o.example:81/a/b?c=d HTTP/1.1\r\nHost: t.example\r\nConnection: keep-alive, X-Hop\r\n\
    X-Hop: 1\r\nX_Y: 2\r\nExpect: 100-continue\r\nTE: trailers\r\nX-Forwarded-For: 1.2.3.4\r\nTransfer-Encoding: chunked\r\n\r\n";

const RESPONSE: &[u8] =
    b"HTTP/1.0 200 OK\r\nContent-Length: 128\r\nDate: now\r\nConnection: keep-alive\r\n\r\n";

const BODY: &[u8] = b"5;a=\"b\"\r\nhello\r\na\r\nhellohello\r\n0\r\nX-T: 1\r\n\r\n";

/// Parses a request with a body and its response in pieces, routes it and writes both.
fn exchange(table: &mut HeadTable, name: &FieldName, out: &mut Vec<u8>) {
    let limits = HeadLimits::default();
    out.clear();
    assert!(matches!(
        parse_request(&REQUEST[..100], &limits, table),
        Ok(Status::Partial)
    ));
    let Ok(Status::Complete(request)) = parse_request(REQUEST, &limits, table) else {
        panic!("it is complete");
    };
    let view = RequestView::new(REQUEST, &request, table, false);
    assert_eq!(view.authority(), "o.example:81");
    let client = FieldValue::new(b"203.0.113.7").unwrap();
    let operations = [FieldOperation::Set(name, client)];
    let mut rewrite = RequestRewrite::default();
    rewrite.operations = &operations;
    write_request(REQUEST, &request, table, &rewrite, out);
    let mut tracker = ChunkTracker::new();
    let progress = tracker.track(BODY, &limits, table).unwrap();
    assert!(progress.ended);
    write_trailers(&BODY[progress.consumed..], table, out);
    let Ok(Status::Complete(response)) =
        parse_response(RESPONSE, RequestInfo::default(), &limits, table)
    else {
        panic!("it is complete");
    };
    let rewrite = ResponseRewrite::new(&response);
    write_response(RESPONSE, &response, table, &rewrite, out);
    assert!(parse_request(b"GET / HTTP/1.1\n", &limits, table).is_err());
}

#[test]
fn a_message_that_passes_through_allocates_nothing() {
    let mut table = HeadTable::new();
    let name = FieldName::new("X-Forwarded-For").unwrap();
    let mut out = Vec::with_capacity(4096);
    let allocations = measure(|| {
        for _ in 0..100 {
            exchange(&mut table, &name, &mut out);
        }
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
    assert!(out.starts_with(b"POST /a/b?c=d HTTP/1.1\r\nHost: o.example:81\r\n"));
}

/// Once the table has held a head with the most fields, neither such a head nor a rejected larger one allocates.
#[test]
fn a_table_grows_to_its_limit_and_stays() {
    let head = |fields: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
            "X: a\r\n".repeat(fields)
        )
        .into_bytes()
    };
    let limits = HeadLimits::default();
    let mut table = HeadTable::new();
    assert!(parse_request(&head(99), &limits, &mut table).is_ok());
    let (large, too_large) = (head(99), head(100_000));
    let allocations = measure(|| {
        assert!(parse_request(&large, &limits, &mut table).is_ok());
        assert!(parse_request(&too_large, &limits, &mut table).is_err());
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
    assert_eq!(table.fields().len(), 100);
}
