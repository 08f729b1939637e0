use std::time::Duration;

use proxy_runtime::server::{Http2Limits, Limits};
use testkit::client::{Connection, Load};
use testkit::raw::{Closed, RawClient};
use testkit::time::{eventually, guarded};

use crate::support::{Gate, Handler, serve};

const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: t.example\r\n\r\n";

async fn status_of(address: std::net::SocketAddr, request: impl AsRef<[u8]>) -> u16 {
    let response = RawClient::exchange(address, request).await.unwrap();
    assert_eq!(response.header("connection"), Some("close"));
    response.status()
}

/// The client gets to read why, although it was still sending.
#[tokio::test]
async fn a_header_of_a_mebibyte_is_431() {
    let (server, address) = serve(Handler::echo(), Limits::default());
    let large = format!(
        "GET /a HTTP/1.1\r\nHost: t.example\r\nX: {}\r\n\r\n",
        "a".repeat(1 << 20)
    );
    for _ in 0..10 {
        assert_eq!(status_of(address, &large).await, 431);
    }
    eventually("all to be counted", async || {
        server.metrics().counts().malformed_requests == 10
    })
    .await;
    assert_eq!(server.metrics().counts().requests, 0);
}

#[tokio::test]
async fn ten_thousand_header_fields_are_431() {
    let (_server, address) = serve(Handler::echo(), Limits::default());
    let fields = |count: usize| {
        let fields = "X: a\r\n".repeat(count - 1);
        format!("GET /a HTTP/1.1\r\nHost: t.example\r\n{fields}\r\n")
    };
    assert_eq!(status_of(address, fields(10_000)).await, 431);
    assert_eq!(status_of(address, fields(200)).await, 431, "lim-count-200");
    assert_eq!(status_of(address, fields(101)).await, 431);
    let response = RawClient::exchange(address, fields(100)).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn the_number_of_fields_can_be_raised() {
    let (_server, address) = serve(Handler::echo(), Limits::default().with_header_fields(300));
    let request = format!(
        "GET /a HTTP/1.1\r\nHost: t.example\r\n{}\r\n",
        "X: a\r\n".repeat(299)
    );
    let response = RawClient::exchange(address, request).await.unwrap();
    assert_eq!(response.status(), 200);
}

/// A head that never ends is not read for ever either.
#[tokio::test]
async fn an_endless_header_is_cut() {
    let (server, address) = serve(Handler::echo(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all("GET /a HTTP/1.1\r\n").await.unwrap();
    let line = format!("X: {}\r\n", "a".repeat(1000));
    let send = async { while client.write_all(&line).await.is_ok() {} };
    guarded("the server to stop reading", send).await;
    eventually("the connection to be gone", async || {
        server.metrics().counts().active_connections == 0
    })
    .await;
}

#[tokio::test]
async fn a_target_that_is_too_long_is_414() {
    let (_server, address) = serve(Handler::echo(), Limits::default());
    let request = |length: usize| {
        let query = "a".repeat(length);
        format!("GET /?{query} HTTP/1.1\r\nHost: t.example\r\n\r\n")
    };
    for length in [9_000, 100_000] {
        assert_eq!(status_of(address, request(length)).await, 414, "{length}");
    }
    let response = RawClient::exchange(address, request(8000)).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_slow_header_is_408() {
    let limits = Limits::default().with_header_timeout(Duration::from_millis(200));
    let (_server, address) = serve(Handler::echo(), limits);
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all("GET /a HTTP/1.1\r\nHost:").await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status(), 408);
    assert_eq!(client.assert_closed().await, Closed::Ended);

    let mut silent = RawClient::connect(address).await.unwrap();
    assert_eq!(silent.assert_closed().await, Closed::Ended);
}

#[tokio::test]
async fn an_endless_body_is_413() {
    let limits = Limits::default().with_body_bytes(1 << 20);
    let (server, address) = serve(Handler::echo(), limits);
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("POST /a HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    let chunk = testkit::raw::chunk(vec![b'x'; 16 * 1024]);
    // As much as the server reads before and after its decision.
    for _ in 0..80 {
        if client.write_all(&chunk).await.is_err() {
            break;
        }
    }
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(response.header("connection"), Some("close"));
    drop(client);
    eventually("the connection to be gone", async || {
        server.metrics().counts().active_connections == 0
    })
    .await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default().with_connections(2));
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        clients.push(client);
        let expected = clients.len().min(2);
        gate.wait_for_waiting(expected).await;
    }
    let counts = server.metrics().counts();
    assert_eq!(
        (counts.accepted_connections, counts.connection_limit_reached),
        (2, 1)
    );
    assert_eq!(gate.waiting(), 2);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.read_response().await.unwrap().status(), 200);
    }
    assert_eq!(server.metrics().counts().accepted_connections, 3);
}

/// They would be more than memory and open files were counted for.
#[tokio::test]
async fn a_server_that_ends_takes_none_beyond_the_limit() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default().with_connections(2));
    let mut clients = Vec::new();
    for expected in [1, 2, 2] {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        clients.push(client);
        gate.wait_for_waiting(expected).await;
    }
    let shutdown = tokio::spawn(server.shutdown(Duration::from_secs(25)));
    clients.pop().unwrap().assert_closed().await;
    gate.open();
    for client in &mut clients {
        assert_eq!(client.read_response().await.unwrap().status(), 200);
    }
    assert_eq!(shutdown.await.unwrap().cut, 0);
}

#[tokio::test]
async fn connections_with_few_requests_each_lose_none() {
    let limits = Limits::default().with_requests_per_connection(10);
    let (server, address) = serve(Handler::echo(), limits);
    for load in [Load::new(address), Load::new(address).http2()] {
        let report = load
            .connections(4)
            .max_requests(1000)
            .start()
            .finish()
            .await;
        report.assert_no_failure();
        assert!(report.connections >= 50, "{report}");
    }
    assert_eq!(server.metrics().counts().requests, 2000);
}

/// CVE-2023-44487: the connection ends, others do not notice.
#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let gate = Gate::new();
    let limits = Limits::default().with_http2(Http2Limits::default().with_pending_resets(5));
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
    assert_eq!(server.metrics().counts().active_requests, 0);
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

/// RFC 9113 section 4.1; a frame that is cut off ends the list.
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
