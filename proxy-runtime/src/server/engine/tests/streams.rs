//! Streams of HTTP/2 whose clients do not do their part.

use std::time::Duration;

use allocation_counter::measure;
use testkit::raw::RawOrigin;
use testkit::raw::frame::{self, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, pause, sleep};

use super::lane;
use super::scene::{connected, connected_with, local, read_to, serve, serve_with};
use crate::ProxyService;
use crate::server::Limits;
use crate::server::http2::peer::{INITIAL_WINDOW_SIZE, Peer};
use crate::server::worker::runtime;

/// A destination in memory, with the one connection that there may be to it. From then on the clock is the test's.
async fn destination() -> (DuplexStream, ProxyService) {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let (destination, transport) = duplex(64 * 1024);
    let (service, lease) = connected(&origin.url(), transport).await;
    pause();
    lease.release(Instant::now());
    (destination, service)
}

/// Filters get heads that are no `http::Request`, and are no reason for the `http` path.
#[tokio::test]
async fn a_route_with_filters_is_forwarded_without_an_http_request() {
    local(async {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let (mut destination, transport) = duplex(64 * 1024);
        let settings = r#","Filters":["breaks"]"#;
        let (service, lease) = connected_with(&origin.url(), settings, transport).await;
        lease.release(Instant::now());
        let mut peer = Peer::open(serve(service, 64 * 1024), &[]).await;
        lane::take_raw();
        peer.get(1, "/").await;
        read_to(&mut destination, "\r\n\r\n").await;
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        destination.write_all(answer).await.unwrap();
        assert_eq!(peer.end_of(1).await.1, None);
        assert_eq!(lane::take_raw(), 1);
    })
    .await;
}

/// Case 251. The destination has its connection back, though it could go on for ever.
#[tokio::test]
async fn a_response_that_is_not_taken_lets_go_of_its_destination() {
    stall(false).await;
}

/// Case 241.
#[tokio::test]
async fn a_response_that_is_taken_byte_by_byte_lets_go_as_well() {
    stall(true).await;
}

async fn stall(trickle: bool) {
    local(async {
        let (mut destination, service) = destination().await;
        let client = serve(service, 64 * 1024);
        let mut peer = Peer::open(client, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        let begin = Instant::now();
        peer.get(1, "/").await;
        read_to(&mut destination, "\r\n\r\n").await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        destination.write_all(head).await.unwrap();
        let sending = tokio::task::spawn_local(async move {
            while destination.write_all(&[b'x'; 1000]).await.is_ok() {}
            Instant::now()
        });
        for tick in 0..700 {
            peer.ping().await;
            if trickle && tick % 400 == 0 {
                peer.open_window(1, 1).await;
            }
            sleep(Duration::from_millis(50)).await;
        }
        let (when, code) = peer.end_of(1).await;
        assert_eq!(code, Some(frame::CANCEL));
        let waited = when - begin;
        let range = Duration::from_secs(30)..Duration::from_secs(31);
        assert!(range.contains(&waited), "{waited:?}");
        assert_eq!(sending.await.unwrap() - begin, waited, "let go of");
        assert!(!peer.has_ended(), "only the stream");
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_the_proxy_that_is_not_taken_is_reset_as_well() {
    local(async {
        let (mut destination, service) = destination().await;
        let client = serve(service, 64 * 1024);
        let mut peer = Peer::open(client, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        peer.get(1, "/").await;
        read_to(&mut destination, "\r\n\r\n").await;
        let begin = Instant::now();
        destination.write_all(b"no HTTP\r\n\r\n").await.unwrap();
        let (when, code) = peer.end_of(1).await;
        assert_eq!(code, Some(frame::CANCEL));
        assert_eq!((when - begin).as_secs(), 30);
    })
    .await;
}

/// The table by which a connection compresses heads stays small, however long the heads are.
#[test]
fn long_heads_leave_little_with_an_idle_connection() {
    const STREAMS: u32 = 100;
    let runtime = runtime().unwrap();
    let (mut destination, mut peer) = runtime.block_on(async {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let (destination, transport) = duplex(64 * 1024);
        let (service, lease) = connected(&origin.url(), transport).await;
        lease.release(Instant::now());
        let peer = Peer::open(serve(service, 64 * 1024), &[]).await;
        (destination, peer)
    });
    let mut left = |first: u32| {
        let exchanges = || {
            runtime.block_on(async {
                for number in first..first + STREAMS {
                    let stream = 2 * number + 1;
                    peer.get(stream, "/").await;
                    read_to(&mut destination, "\r\n\r\n").await;
                    let long = "x".repeat(20_000);
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: {long}\r\nX-Id: {number}\r\n\r\n"
                    );
                    destination.write_all(head.as_bytes()).await.unwrap();
                    assert_eq!(peer.end_of(stream).await.1, None);
                    peer.forget();
                }
            });
        };
        measure(exchanges).bytes_current
    };
    left(0);
    let left = left(STREAMS);
    assert!(left < 64 * 1024, "{left} bytes");
}

/// The destination waits for so many bytes, and not for the end of the stream that they came over.
#[tokio::test]
async fn a_request_is_whole_when_it_is_as_long_as_it_said() {
    local(async {
        let (mut destination, service) = destination().await;
        let mut peer = Peer::open(serve(service, 64 * 1024), &[]).await;
        // The second one needs the only connection that there is.
        for stream in [1, 3] {
            let fields = [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", "h"),
                (":path", "/"),
                ("content-length", "1"),
            ];
            peer.send(Frame::headers(stream, &fields, false)).await;
            peer.send(Frame::data(stream, "x", false)).await;
            read_to(&mut destination, "\r\n\r\nx").await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            destination.write_all(answer).await.unwrap();
            assert_eq!(peer.end_of(stream).await.1, None);
            // RFC 9113 section 8.1: the rest of the request is not needed.
            let is_reset =
                |frame: &Frame| frame.stream == stream && frame.kind == frame::RST_STREAM;
            let (_, reset) = peer.wait_for(is_reset).await;
            assert_eq!(reset.error_code(), Some(frame::NO_ERROR));
        }
    })
    .await;
}

/// A client that goes on sending gets to read why it should not have.
#[tokio::test]
async fn a_body_that_is_rejected_is_read_from_a_little_longer() {
    local(async {
        let (mut destination, service) = destination().await;
        let limits = Limits {
            body_bytes: Some(3),
            requests_per_connection: 2,
            ..Limits::default()
        };
        let client = serve_with(service, 64 * 1024, limits);
        let mut peer = Peer::open(client, &[]).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        peer.send(Frame::data(1, "four", false)).await;
        let is_413 = |frame: &Frame| frame.payload == b"413 Payload Too Large\n";
        peer.wait_for(is_413).await;
        peer.send(Peer::head(3, "POST", "/", false)).await;
        peer.send(Frame::data(3, "four", false)).await;
        let (_, ping) = peer.wait_for(|frame| frame.kind == frame::PING).await;
        let pong = Frame::new(frame::PING, frame::ACK, 0, ping.payload);
        peer.send(pong).await;
        assert_eq!(peer.end().await.1, Some(frame::NO_ERROR));
        assert!(peer.try_send(Frame::data(1, "more", false)).await);
        sleep(Duration::from_secs(3)).await;
        assert!(!peer.try_send(Frame::data(1, "more", false)).await);
        let mut got = Vec::new();
        destination.read_to_end(&mut got).await.unwrap();
    })
    .await;
}
