//! Requests and responses of HTTP/2 destinations, which the proxy writes and reads in the form of HTTP/1.1.

use h2::client::handshake;
use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use proxy_runtime::harness::StreamHarness;
use proxy_runtime::http1::{
    HeadLimits, HeadTable, RequestInfo, Status, parse_request, parse_response,
};

use crate::input::{MAX_BYTES, paused};

/// Fuzzes the three translations of a stream with the same bytes.
///
/// * As the head of a request: what becomes a request of HTTP/2 is one head that we accept, with the same target and
///   without fields of a connection, and `h2` sends it.
/// * As lines of a response's fields behind a status: the text is one head with these fields, or is rejected.
/// * As a chunked body: splits make no difference.
pub fn http2_heads(data: &[u8]) {
    let data = &data[..data.len().min(MAX_BYTES)];
    if let Some(request) = StreamHarness::request(data, false) {
        check_request(data, request);
    }
    check_response(data);
    let whole = StreamHarness::upload(&[data]);
    for piece in [1, 3, 16] {
        let pieces: Vec<_> = data.chunks(piece).collect();
        let split = StreamHarness::upload(&pieces);
        assert_eq!(split, whole, "in pieces of {piece}");
    }
}

fn check_request(head: &[u8], request: Request<()>) {
    let limits = HeadLimits::default()
        .with_bytes(head.len())
        .with_request_line(head.len())
        .with_fields(usize::MAX);
    let mut table = HeadTable::new();
    let parsed = parse_request(head, &limits, &mut table);
    let Ok(Status::Complete(raw)) = parsed else {
        panic!("{parsed:?}");
    };
    let target = raw.target().get(head);
    let sent = request.uri().path_and_query().expect("it has a path");
    // Nothing is decoded or resolved on the way.
    assert_eq!(sent.as_str().as_bytes(), target);
    for name in [CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE] {
        assert!(!request.headers().contains_key(&name), "{name}");
    }
    let te = request.headers().get(TE);
    assert!(te.is_none_or(|te| te == "trailers"), "{te:?}");
    if *request.method() == Method::CONNECT {
        // `h2` asks for a tunnel only where the other side allows it.
        return;
    }
    let sent = paused().block_on(async {
        let (near, _far) = tokio::io::duplex(1 << 20);
        let (mut send, _connection) = handshake(near).await.expect("there is room");
        send.send_request(request, true).map(drop)
    });
    assert!(sent.is_ok(), "{sent:?}");
}

fn check_response(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let status = lines.next().unwrap_or_default();
    let Ok(status) = StatusCode::from_bytes(status) else {
        return;
    };
    let mut fields = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            fields.append(name, value);
        }
    }
    let text = StreamHarness::response(status, &fields);
    let mut table = HeadTable::new();
    let limits = HeadLimits::default()
        .with_bytes(text.len())
        .with_fields(1_000);
    let asked = RequestInfo::default();
    let Ok(Status::Complete(read)) = parse_response(&text, asked, &limits, &mut table) else {
        return;
    };
    assert_eq!(read.head_length(), text.len(), "no field ends the head");
    assert_eq!(read.status(), status.as_u16());
    let mut there: Vec<_> = table
        .fields()
        .iter()
        .map(|field| {
            let name = field.name().get(&text).to_ascii_lowercase();
            (name, field.value().get(&text).to_vec())
        })
        .collect();
    fields.remove(CONNECTION);
    fields.remove(TRANSFER_ENCODING);
    if status == StatusCode::SWITCHING_PROTOCOLS {
        fields.remove(http::header::CONTENT_LENGTH);
    }
    let mut given: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    there.sort_unstable();
    given.sort_unstable();
    assert_eq!(there, given);
}
