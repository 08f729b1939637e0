//! Each fault, seen by a client that exposes everything.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use super::h2;

use crate::faults;
use crate::raw::{Closed, Framing, RawClient, RawOrigin, RawResponse};
use crate::time::within;

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const EXPECT: &str =
    "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";

/// A client that has sent a GET.
async fn asked(origin: &RawOrigin) -> RawClient {
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.write_all(GET).await.unwrap();
    client
}

/// Returns true if nothing arrives for a moment. Distinguishes a fault from others; it cannot prove
/// permanent silence.
async fn is_silent(client: &mut RawClient) -> bool {
    within(Duration::from_millis(50), client.read_some())
        .await
        .is_err()
}

async fn answer(origin: &RawOrigin) -> RawResponse {
    asked(origin).await.read_response().await.unwrap()
}

#[tokio::test]
async fn refusing_port_rejects_and_stays_taken() {
    let port = faults::RefusingPort::new();
    for _ in 0..3 {
        let error = TcpStream::connect(port.addr()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    let error = tokio::net::TcpListener::bind(port.addr())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(port.url().ends_with(&port.addr().port().to_string()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn unanswered_port_neither_accepts_nor_rejects() {
    let port = faults::UnansweredPort::default();
    assert!(port.url().starts_with("http://127.0.0.1:"));
    for _ in 0..3 {
        let connecting = within(Duration::from_millis(50), TcpStream::connect(port.addr()));
        connecting.await.unwrap_err();
    }
}

#[tokio::test]
async fn silent_origins_say_nothing_and_stay() {
    for origin in [
        faults::never_answers(),
        faults::never_reads(),
        h2::never_starts(),
    ] {
        let mut client = asked(&origin).await;
        assert!(is_silent(&mut client).await);
        assert_eq!(origin.traffic().wait_for_connections(1).await.open(), 1);
    }
    let origin = faults::never_answers();
    let _client = asked(&origin).await;
    origin.traffic().wait_for_connections(1).await;
    origin.recording(0).wait_for(GET).await;
}

#[tokio::test]
async fn origin_that_never_reads_stalls_the_sender() {
    let origin = faults::never_reads();
    let mut client = asked(&origin).await;
    // More than any socket buffer holds.
    let all = vec![b'x'; 64 << 20];
    within(Duration::from_millis(200), client.write_all(all))
        .await
        .unwrap_err();
    assert_eq!(origin.recording(0).total(), 0);
}

#[tokio::test]
async fn answers_that_stop_in_the_middle() {
    let origin = faults::stops_mid_head();
    let mut client = asked(&origin).await;
    assert_eq!(
        client.read_exact(27).await.unwrap(),
        b"HTTP/1.1 200 OK\r\nContent-Le"
    );
    assert!(is_silent(&mut client).await);

    for chunked in [false, true] {
        let origin = faults::stops_mid_body(chunked);
        let mut client = asked(&origin).await;
        client.read_response_head().await.unwrap();
        client.read_until(faults::PARTIAL.as_bytes()).await.unwrap();
        if chunked {
            client.read_exact(2).await.unwrap();
        }
        assert!(is_silent(&mut client).await);
    }
}

#[tokio::test]
async fn connections_that_end_before_the_answer() {
    let origin = faults::closes_before_answer();
    assert_eq!(asked(&origin).await.assert_closed().await, Closed::Ended);
    let origin = faults::resets_before_answer();
    assert_eq!(asked(&origin).await.assert_closed().await, Closed::Reset);

    let origin = faults::resets_on_accept();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    assert_eq!(client.assert_closed().await, Closed::Reset);
    assert_eq!(origin.recording(0).total(), 0);
}

#[tokio::test]
async fn connections_that_end_mid_body() {
    let cases = [
        (faults::closes_mid_body(), ErrorKind::UnexpectedEof),
        (faults::resets_mid_body(), ErrorKind::ConnectionReset),
        (faults::closes_mid_chunk(), ErrorKind::UnexpectedEof),
        (faults::resets_mid_chunk(), ErrorKind::ConnectionReset),
    ];
    for (origin, kind) in cases {
        let mut client = asked(&origin).await;
        client.read_response_head().await.unwrap();
        client.read_until(faults::PARTIAL.as_bytes()).await.unwrap();
        let error = client.read_exact(100).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn body_may_end_with_the_connection() {
    let answer = answer(&faults::ends_body_by_close()).await;
    assert_eq!(
        (answer.framing, answer.text().as_str()),
        (Framing::UntilClose, faults::PARTIAL)
    );
}

#[tokio::test]
async fn head_that_is_no_head() {
    let origin = faults::garbage();
    let error = asked(&origin).await.read_response().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[tokio::test]
async fn endless_head_goes_on_past_any_limit() {
    let origin = faults::endless_head();
    let mut client = asked(&origin).await;
    let error = client.read_response_head().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    drop(client);
    origin.traffic().wait_for_open(0).await;
}

#[tokio::test]
async fn heads_of_a_given_size() {
    let long = answer(&faults::head_of_bytes(100_000)).await;
    assert_eq!(
        (long.head.bytes.len(), long.text().as_str()),
        (100_000, faults::PARTIAL)
    );
    let many = answer(&faults::head_with_fields(10_000)).await;
    assert_eq!(
        (many.head.headers.len(), many.text().as_str()),
        (10_001, faults::PARTIAL)
    );
}

#[tokio::test]
async fn endless_bodies_go_on_until_the_client_has_enough() {
    for origin in [
        faults::endless_body(),
        faults::endless_chunk_extension(),
        faults::endless_interim(),
    ] {
        let mut client = asked(&origin).await;
        client.read_exact(5 << 20).await.unwrap();
        drop(client);
        origin.traffic().wait_for_open(0).await;
        origin.recording(0).outcome().await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn slow_body_takes_virtual_time() {
    let origin = faults::slow_body(3, Duration::from_secs(40));
    let mut client = asked(&origin).await;
    let start = Instant::now();
    assert_eq!(
        client.read_response().await.unwrap().text(),
        "hellohellohello"
    );
    assert_eq!(start.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn chunks_are_as_many_as_asked_for() {
    for (count, size) in [(10_000, 1), (3, 100_000), (0, 5)] {
        let origin = faults::many_chunks(count, size);
        let mut client = asked(&origin).await;
        client.read_response_head().await.unwrap();
        for _ in 0..count {
            let line = client.read_until(b"\r\n").await.unwrap();
            assert_eq!(line, format!("{size:x}\r\n").as_bytes());
            client.read_exact(size + 2).await.unwrap();
        }
        assert_eq!(client.read_exact(5).await.unwrap(), b"0\r\n\r\n");
    }
}

#[tokio::test]
async fn malformed_bodies() {
    let error = asked(&faults::malformed_chunk())
        .await
        .read_response()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);

    let origin = faults::body_longer_than_told();
    let mut client = asked(&origin).await;
    assert_eq!(
        client.read_response().await.unwrap().text(),
        faults::PARTIAL
    );
    assert_eq!(
        client.read_response().await.unwrap().header("x-evil"),
        Some("1")
    );
}

#[tokio::test]
async fn trailers_are_announced_and_sent() {
    let answer = answer(&faults::trailers(&[("X-A", "1"), ("X-B", "2")])).await;
    assert_eq!(answer.header("trailer"), Some("X-A, X-B"));
    let expected = [("X-A", "1"), ("X-B", "2")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(answer.trailers, expected);
}

#[tokio::test]
async fn expectation_is_met_ignored_or_rejected() {
    let origin = faults::continues();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.write_all(EXPECT).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 100);
    client.write_all("upped").await.unwrap();
    assert_eq!(client.read_response().await.unwrap().text(), "upped");

    let origin = faults::never_continues();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.write_all(EXPECT).await.unwrap();
    assert!(is_silent(&mut client).await);
    client.write_all("upped").await.unwrap();
    let answer = client.read_response().await.unwrap();
    assert_eq!((answer.status(), answer.interim.len()), (200, 0));

    let origin = faults::rejects_expectation(409);
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.write_all(EXPECT).await.unwrap();
    let answer = client.read_response().await.unwrap();
    assert_eq!(
        (answer.status(), answer.header("connection")),
        (409, Some("close"))
    );
    assert_eq!(client.assert_closed().await, Closed::Ended);
}

#[tokio::test]
async fn interim_answers() {
    let hinted = answer(&faults::early_hints(3)).await;
    let hints: Vec<_> = hinted
        .interim
        .iter()
        .map(|hint| hint.header("link").unwrap())
        .collect();
    assert_eq!(
        hints,
        [
            "</0.css>; rel=preload",
            "</1.css>; rel=preload",
            "</2.css>; rel=preload"
        ]
    );
    assert_eq!(hinted.status(), 200);

    let origin = faults::switches_unasked();
    let mut client = asked(&origin).await;
    assert_eq!(client.read_response().await.unwrap().status(), 101);
    assert_eq!(client.read_exact(3).await.unwrap(), b"raw");
}

#[tokio::test]
async fn answers_that_come_before_the_body() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    let origin = faults::answers_early();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    for _ in 0..2 {
        client.write_all(head).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        client.write_all("hello").await.unwrap();
    }

    let origin = faults::answers_early_and_resets();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.write_all(head).await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 200);
    client.write_all("h").await.unwrap();
    assert_eq!(client.assert_closed().await, Closed::Reset);
}

#[tokio::test]
async fn answer_after_half_close() {
    let origin = faults::answers_after_half_close();
    let mut client = asked(&origin).await;
    assert!(is_silent(&mut client).await);
    client.half_close().await.unwrap();
    assert_eq!(
        client.read_response().await.unwrap().text(),
        faults::PARTIAL
    );
}

#[tokio::test]
async fn kept_connections_that_are_not_kept() {
    let origin = faults::closes_after_answer();
    let mut client = asked(&origin).await;
    let answer = client.read_response().await.unwrap();
    assert_eq!((answer.status(), answer.header("connection")), (200, None));
    assert_eq!(client.assert_closed().await, Closed::Ended);

    for (origin, closed) in [
        (faults::closes_at_next_request(), Closed::Ended),
        (faults::resets_at_next_request(), Closed::Reset),
    ] {
        let mut client = asked(&origin).await;
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        assert!(is_silent(&mut client).await);
        client.write_all(GET).await.unwrap();
        assert_eq!(client.assert_closed().await, closed);
        assert_eq!(origin.traffic().requests(), 2);
    }
}
