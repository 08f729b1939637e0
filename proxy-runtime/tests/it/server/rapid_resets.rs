//! Streams that are opened and reset at once, frame by frame.

use proxy_runtime::server::{Http2Limits, Limits};
use testkit::client::Connection;
use testkit::raw::RawClient;
use testkit::time::eventually;

use crate::changed;
use crate::server::support::{Gate, serve};

/// CVE-2023-44487: the connection ends, and others are not affected.
#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let gate = Gate::new();
    let limits = changed(|limits: &mut Limits| {
        limits.http2 = changed(|http2: &mut Http2Limits| http2.pending_resets = 5)
    });
    let (server, address) = serve(gate.handler(), limits);
    let mut attacker = RawClient::connect(address).await.unwrap();
    attacker.write_all(rapid_resets(2000)).await.unwrap();
    // SETTINGS, then GOAWAY with ENHANCE_YOUR_CALM.
    let received = attacker.read_to_end().await;
    let received = received.unwrap_or_else(|_| attacker.buffered().to_vec());
    let goaway = frames(&received).find(|frame| frame.kind == GOAWAY);
    let payload = goaway.expect("a GOAWAY").payload;
    assert_eq!(payload[4..8], ENHANCE_YOUR_CALM.to_be_bytes());

    gate.open();
    let mut other = Connection::http2(address).await.unwrap();
    assert_eq!(other.get("/").await.unwrap().status, 200);
    drop(other);
    eventually("the connections to be gone", async || {
        server.metrics().counts().active_connections == 0
    })
    .await;
    eventually("no request is left", async || {
        server.metrics().counts().active_requests == 0
    })
    .await;
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

struct Frame<'a> {
    kind: u8,
    payload: &'a [u8],
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Frames by RFC 9113 section 4.1; an incomplete frame ends the list.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_at_checked(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (payload, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(Frame {
            kind: head[3],
            payload,
        })
    })
}

fn rapid_resets(count: u32) -> Vec<u8> {
    const END_STREAM_AND_HEADERS: u8 = 0x5;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    // GET, /, http from the static table; the authority as a literal (RFC 7541 section 6).
    let fields = b"\x82\x84\x86\x41\x01t";
    for index in 0..count {
        let stream = index * 2 + 1;
        bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, fields));
        bytes.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    }
    bytes
}
