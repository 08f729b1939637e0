//! `Expect: 100-continue`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body::Frame;
use proxy_runtime::Proxy;
use proxy_runtime::upstream::UpstreamOptions;
use testkit::client::Connection;
use testkit::faults;
use testkit::origin::Origin;
use testkit::raw::{RawClient, RawOrigin};

use crate::changed;
use crate::forward::front::{Front, config, config_with, h2c};

const REQUEST: &str =
    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";

/// A proxy that waits for `100 Continue` this long: forever if the origin must be faster, and not
/// at all if it never sends one.
fn patient(url: &str, patience: Duration) -> Front {
    let options = changed(|options: &mut UpstreamOptions| options.continue_timeout = patience);
    let proxy = Proxy::builder().upstream(options);
    Front::build(&config(&[url]), Origin::builder(), proxy)
}

const FOR_EVER: Duration = Duration::from_secs(1000);
const NOT_AT_ALL: Duration = Duration::ZERO;

#[tokio::test]
async fn the_body_is_asked_for_when_the_origin_asks() {
    let origin = faults::continues();
    let front = patient(&origin.url(), FOR_EVER);
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 100);
    client.write_all("hello").await.unwrap();
    assert_eq!(client.read_response().await.unwrap().text(), "hello");
    assert!(
        origin
            .recording(0)
            .text()
            .to_lowercase()
            .contains("expect: 100-continue")
    );
    front.settled().await;
}

/// `100 Continue` is not an early response.
#[tokio::test]
async fn a_connection_that_asked_serves_the_next_request() {
    let origin = RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            connection
                .write_all("HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
            assert_eq!(connection.read_body(&head).await?, b"hello");
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await?;
        }
    });
    let front = patient(&origin.url(), FOR_EVER);
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    for _ in 0..3 {
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(client.read_response_head().await.unwrap().status, 100);
        client.write_all("hello").await.unwrap();
        assert_eq!(client.read_response().await.unwrap().text(), "ok");
    }
    assert_eq!(origin.traffic().counts().accepted, 1);
    front.settled().await;
}

/// L31: the client gets the response without having sent its body.
#[tokio::test]
async fn l31_a_rejection_comes_before_the_body_is_read() {
    for status in [409, 417, 302] {
        let origin = faults::rejects_expectation(status);
        let front = patient(&origin.url(), FOR_EVER);
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.status(), status);
        assert!(response.interim.is_empty(), "the body was asked for");
        front.settled().await;
        let received = origin.recording(0).text();
        assert!(
            received.ends_with("\r\n\r\n"),
            "a body was sent: {received}"
        );
        front.connections(0, 0).await;
    }
}

/// The origin responds without `100 Continue`. It gets the body nevertheless, or the next request
/// uses a new connection. Either way no request is read as the body of another.
#[tokio::test]
async fn an_answer_instead_of_a_question_mixes_nothing_up() {
    let origin = RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly";
            connection.write_all(answer).await?;
            if connection.read_body(&head).await? != b"hello" {
                return Ok(());
            }
        }
    });
    let front = patient(&origin.url(), FOR_EVER);
    for _ in 0..5 {
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        client
            .write_all([REQUEST.as_bytes(), b"hello"].concat())
            .await
            .unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(
            (response.status(), response.text().as_str()),
            (200, "early")
        );
    }
    front.settled().await;
    drop(front);
    let recordings = origin.recordings();
    assert!(!recordings.is_empty());
    for recording in recordings {
        // It reads until the connection ends, unless it read something that is no body.
        let read = recording.outcome().await;
        assert!(read.is_err(), "another body than the request's");
    }
}

#[tokio::test]
async fn an_origin_that_never_asks_gets_the_body_after_a_while() {
    let origin = faults::never_continues();
    let front = patient(&origin.url(), NOT_AT_ALL);
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 100);
    client.write_all("hello").await.unwrap();
    assert_eq!(
        client.read_response().await.unwrap().text(),
        faults::PARTIAL
    );
    front.settled().await;
}

/// The origin rejects only after the proxy has waited long enough: the body was sent meanwhile, and
/// nothing hangs.
#[tokio::test]
async fn a_late_rejection_is_an_answer_like_any_other() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.read_exact(5).await?;
        connection
            .write_all("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")
            .await?;
        connection.hold().await
    });
    let front = patient(&origin.url(), NOT_AT_ALL);
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 100);
    client.write_all("hello").await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 409);
    front.settled().await;
}

/// HTTP/2 to the origin: the body is not held back, as a stream can be reset at any time.
#[tokio::test]
async fn over_http2_the_body_is_sent_at_once() {
    let origin = Origin::echo();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let mut client: Connection = front.http1().await;
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    let upload = testkit::body::boxed(http_body_util::StreamBody::new(futures_util::stream::once(
        async move {
            seen.store(true, Ordering::SeqCst);
            Ok::<_, testkit::body::BoxError>(Frame::data(bytes::Bytes::from_static(b"hello")))
        },
    )));
    let request = client
        .request("POST", "/")
        .header("expect", "100-continue")
        .body(upload)
        .unwrap();
    let echo: testkit::origin::Echo = client.send(request).await.unwrap().json();
    assert_eq!(echo.body_text.as_deref(), Some("hello"));
    assert!(asked.load(Ordering::SeqCst));
}
