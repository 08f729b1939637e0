use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::client::{ClientError, Connection};
use crate::faults::{self, h2};
use crate::raw::{RawClient, frame};
use crate::time::within;

#[tokio::test]
async fn http2_streams_that_are_reset() {
    let origin = h2::resets_streams(frame::REFUSED_STREAM);
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    for _ in 0..2 {
        let error = client.get("/").await.unwrap_err();
        assert_eq!(
            error.h2_reason(),
            Some(::h2::Reason::REFUSED_STREAM),
            "{error:?}"
        );
    }
    assert_eq!(origin.traffic().counts().accepted, 1);

    let origin = h2::resets_mid_body(frame::INTERNAL_ERROR);
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    let error = client.get("/").await.unwrap_err();
    assert_eq!(error.truncated().unwrap().text(), faults::PARTIAL);
    assert_eq!(error.h2_reason(), Some(::h2::Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn http2_answer_that_stops_the_upload() {
    let origin = h2::answers_and_stops_upload();
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    let (_sender, upload) = crate::body::channel(1);
    let request = client.request("POST", "/").body(upload).unwrap();
    assert_eq!(client.send(request).await.unwrap().text(), faults::PARTIAL);
}

#[tokio::test]
async fn http2_connections_that_allow_no_streams() {
    let origin = h2::allows_one_request();
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    let second = within(Duration::from_millis(50), client.get("/")).await;
    assert!(second.is_err(), "it is not sent");
    assert_eq!(origin.traffic().requests(), 1);

    let origin = h2::allows_nothing();
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    let first = within(Duration::from_millis(50), client.get("/")).await;
    assert!(first.is_err(), "it is not answered");
}

#[tokio::test]
async fn http2_connections_that_go_away_or_stay_silent() {
    let closed = Arc::new(Semaphore::new(0));
    for origin in [
        h2::goes_away_after_answer(),
        h2::closes_after_answer(&closed),
    ] {
        let mut client = Connection::http2(origin.addr()).await.unwrap();
        assert_eq!(client.get("/").await.unwrap().status, 200);
        client.closed().await;
    }
    assert_eq!(closed.available_permits(), 1);

    let origin = h2::goes_away();
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    let error = client.get("/").await.unwrap_err();
    assert!(matches!(error, ClientError::NotSent(_)), "{error:?}");
    client.closed().await;

    let origin = h2::never_answers();
    let mut client = Connection::http2(origin.addr()).await.unwrap();
    tokio::select! {
        answer = client.get("/") => panic!("it never answers: {answer:?}"),
        _ = origin.traffic().wait_for_requests(1) => {}
    }
}

#[tokio::test]
async fn http2_faults_do_not_mistake_http1() {
    let origin = h2::never_answers();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .unwrap();
    client.assert_closed().await;
    let outcome = origin.recording(0).outcome().await.unwrap_err();
    assert!(outcome.starts_with("not HTTP/2: GET / "), "{outcome}");
}
