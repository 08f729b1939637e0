use std::time::Duration;

#[cfg(feature = "http2")]
use proxy_runtime::server::Http2Limits;
use proxy_runtime::server::{DataRate, Limits};
use serde_json::json;
use testkit::raw::{Closed, RawClient};
use testkit::time::{eventually, guarded};

use crate::changed;
use crate::server::support::{Gate, Handler, loads, serve};
use crate::server::ways::{OK, as_bytes_within, origin, over_types_within, proxy};

const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: t.example\r\n\r\n";

async fn status_of(address: std::net::SocketAddr, request: impl AsRef<[u8]>) -> u16 {
    let response = RawClient::exchange(address, request).await.unwrap();
    assert_eq!(response.header("connection"), Some("close"));
    response.status()
}

/// The client can read the reason, although it was still sending.
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
    let (_server, address) = serve(
        Handler::echo(),
        changed(|limits: &mut Limits| limits.header_fields = 300),
    );
    let request = format!(
        "GET /a HTTP/1.1\r\nHost: t.example\r\n{}\r\n",
        "X: a\r\n".repeat(299)
    );
    let response = RawClient::exchange(address, request).await.unwrap();
    assert_eq!(response.status(), 200);
}

/// A head that never ends is not read forever either.
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
    let limits = changed(|limits: &mut Limits| limits.header_timeout = Duration::from_millis(200));
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
    let limits = changed(|limits: &mut Limits| limits.body_bytes = Some(1 << 20));
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
    let (server, address) = serve(
        gate.handler(),
        changed(|limits: &mut Limits| limits.connections = Some(2)),
    );
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        clients.push(client);
        let expected = clients.len().min(2);
        gate.wait_for_waiting(expected).await;
    }
    eventually("the limit to be reached", async || {
        server.metrics().counts().connection_limit_reached == 1
    })
    .await;
    assert_eq!(server.metrics().counts().accepted_connections, 2);
    assert_eq!(gate.waiting(), 2);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.read_response().await.unwrap().status(), 200);
    }
    assert_eq!(server.metrics().counts().accepted_connections, 3);
}

/// Connections beyond the limit would exceed the memory and open files that were planned for.
#[tokio::test]
async fn a_server_that_ends_takes_none_beyond_the_limit() {
    let gate = Gate::new();
    let (server, address) = serve(
        gate.handler(),
        changed(|limits: &mut Limits| limits.connections = Some(2)),
    );
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
    let report = shutdown.await.unwrap();
    assert_eq!(report.cut, 0);
}

#[tokio::test]
async fn connections_with_few_requests_each_lose_none() {
    let limits = changed(|limits: &mut Limits| limits.requests_per_connection = 10);
    let (server, address) = serve(Handler::echo(), limits);
    let loads = loads(address);
    let requests = loads.len() as u64 * 1000;
    for load in loads {
        let report = load
            .connections(4)
            .max_requests(1000)
            .start()
            .finish()
            .await;
        report.assert_no_failure();
        assert!(report.connections >= 50, "{report}");
    }
    assert_eq!(server.metrics().counts().requests, requests);
}

const STALLED: &str = "POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 5\r\n\r\nhell";

/// Limits of a user who wants no window: a loop of empty waits.
fn windowless(bytes_per_second: u32) -> Limits {
    let mut rate = DataRate::default();
    rate.bytes_per_second = bytes_per_second;
    rate.window = Duration::ZERO;
    changed(|limits: &mut Limits| limits.data_rate = Some(rate))
}

/// More requests than a worker serves in time if it gets a turn only occasionally between endless
/// ones.
const OTHERS: usize = 20;

async fn assert_serves(address: std::net::SocketAddr) {
    for _ in 0..OTHERS {
        let other = RawClient::exchange(address, REQUEST).await.unwrap();
        assert_eq!(other.status(), 200);
    }
}

#[tokio::test]
async fn a_pace_without_a_window_ends_slow_uploads_and_holds_up_nobody() {
    let origin = origin(OK);
    let proxy = proxy(&origin, &json!({}), "");
    for serve in [as_bytes_within, over_types_within] {
        let server = serve(&proxy, windowless(240));
        let address = server.local_addrs()[0];
        let mut slow = RawClient::connect(address).await.unwrap();
        slow.write_all(STALLED).await.unwrap();
        guarded("the others", assert_serves(address)).await;
        assert_eq!(slow.read_response().await.unwrap().status(), 408);
    }
}

#[tokio::test]
async fn a_pace_of_nothing_allows_any_and_holds_up_nobody() {
    let origin = origin(OK);
    let proxy = proxy(&origin, &json!({}), "");
    for serve in [as_bytes_within, over_types_within] {
        let server = serve(&proxy, windowless(0));
        let address = server.local_addrs()[0];
        let mut slow = RawClient::connect(address).await.unwrap();
        slow.write_all(STALLED).await.unwrap();
        // Longer than the minimum window.
        tokio::time::sleep(Duration::from_millis(300)).await;
        guarded("the others", assert_serves(address)).await;
        slow.write_all("o").await.unwrap();
        assert_eq!(slow.read_response().await.unwrap().status(), 200);
    }
}

/// The same for streams, each of which has its own rate.
#[cfg(feature = "http2")]
#[tokio::test]
async fn nor_does_it_hold_up_streams() {
    use bytes::Bytes;

    use crate::server::streams::{Client, get, post};

    let origin = origin(OK);
    let proxy = proxy(&origin, &json!({}), "");
    for serve in [as_bytes_within, over_types_within] {
        for (rate, status) in [(240, 408), (0, 200)] {
            let server = serve(&proxy, windowless(rate));
            let mut client = Client::connect(server.local_addrs()[0]).await;
            let (slow, mut upload) = client.begin(post("/")).await;
            upload.send_data(Bytes::from_static(b"x"), false).unwrap();
            let others = async {
                for _ in 0..OTHERS {
                    let other = client.send(get("/"), None, None).await.unwrap();
                    assert_eq!(other.status, 200);
                }
            };
            guarded("the others", others).await;
            if status == 200 {
                upload.send_data(Bytes::from_static(b"y"), true).unwrap();
            }
            let answer = guarded("the slow one", slow).await.unwrap();
            assert_eq!(answer.status(), status);
        }
    }
}

/// Beyond the maximum window, and below the minimum useful one.
#[cfg(feature = "http2")]
#[tokio::test]
async fn http2_is_spoken_whatever_its_limits_are() {
    use bytes::Bytes;

    use crate::server::streams::{Client, post};

    const BODY: usize = 300_000;
    for value in [0, 1, u32::MAX] {
        let http2 = changed(|http2: &mut Http2Limits| {
            http2.concurrent_streams = value;
            http2.stream_window = value;
            http2.connection_window = value;
            http2.settings_per_second = value;
        });
        let (_server, address) = serve(
            Handler::echo(),
            changed(|limits: &mut Limits| limits.http2 = http2),
        );
        for _ in 0..2 {
            let mut client = Client::connect(address).await;
            let body = Some(Bytes::from(vec![b'x'; BODY]));
            let sent = client.send(post("/a"), body, None);
            let answer = guarded(format!("an answer, {value}"), sent).await.unwrap();
            let text = String::from_utf8(answer.body).unwrap();
            assert!(text.ends_with(&format!(" {BODY}")), "{value}: {text}");
        }
    }
}
