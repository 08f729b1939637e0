//! Tests of requests as they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt;

use super::super::Rest;
use super::*;
use crate::retry::Sent;
use crate::upstream::tests::{Counted, Resetting};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Returns the bytes that a destination receives, and the number of writes.
async fn sent(request: Request<OutgoingBody>) -> (String, usize) {
    let (near, mut far) = duplex(ROOM);
    let writes = Arc::new(AtomicUsize::new(0));
    let mut near = over(Counted {
        io: near,
        writes: writes.clone(),
    });
    far.write_all(OK).await.unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    read(&mut near, response).await.unwrap();
    drop(near);
    let mut received = String::new();
    far.read_to_string(&mut received).await.unwrap();
    (received, writes.load(Ordering::Relaxed))
}

#[tokio::test]
async fn the_head_and_what_is_ready_of_the_body_leave_in_one_write() {
    assert_eq!(sent(get()).await, ("GET / HTTP/1.1\r\n\r\n".into(), 1));

    let large = "x".repeat(20_000);
    for content in ["hello", &large] {
        let length = content.len();
        let request = Request::post("/").header("content-length", length);
        let request = request.body(body(vec![data(content.to_owned())])).unwrap();
        let head = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        assert_eq!(sent(request).await, (format!("{head}{content}"), 1));
    }

    let request = chunked().body(body(vec![data("hello")])).unwrap();
    let head = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    let content = "5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(sent(request).await, (format!("{head}{content}"), 1));
}

#[tokio::test]
async fn small_parts_leave_together() {
    let frames = (0..100).map(|_| data("0123456789")).collect();
    let request = chunked().body(body(frames)).unwrap();
    let (received, writes) = sent(request).await;
    assert_eq!(writes, 1);
    let chunks = "a\r\n0123456789\r\n".repeat(100);
    assert!(received.ends_with(&format!("\r\n\r\n{chunks}0\r\n\r\n")));
}

#[tokio::test]
async fn large_parts_are_chunks_of_their_own() {
    let large = "x".repeat(10_000);
    let frames = vec![data("first"), data(large.clone()), data("last")];
    let request = chunked().body(body(frames)).unwrap();
    let (received, _) = sent(request).await;
    let chunks = format!("5\r\nfirst\r\n2710\r\n{large}\r\n4\r\nlast\r\n0\r\n\r\n");
    assert!(received.ends_with(&format!("\r\n\r\n{chunks}")));
}

/// A chunk of no bytes would end the body.
#[tokio::test]
async fn empty_parts_are_left_out() {
    let frames = vec![data(""), data("a"), data(""), data("b"), data("")];
    let request = chunked().body(body(frames)).unwrap();
    let (received, _) = sent(request).await;
    assert!(received.ends_with("\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn trailers_follow_chunks_and_nothing_else() {
    let frames = || vec![data("hello"), trailers("7")];
    let request = chunked().body(body(frames())).unwrap();
    let (received, _) = sent(request).await;
    assert!(received.ends_with("\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"));

    let request = Request::post("/").header("content-length", 5);
    let request = request.body(body(frames())).unwrap();
    let (received, _) = sent(request).await;
    assert!(received.ends_with("\r\n\r\nhello"), "{received}");
}

/// A request is never longer than its head declares, whatever its body does.
#[tokio::test]
async fn no_body_is_longer_or_shorter_than_its_head_says() {
    for (frames, is_long) in [
        (vec![data("123456")], true),
        (vec![data("123"), data("456")], true),
        (vec![data("1234")], false),
        (vec![], false),
        (vec![data("12"), trailers("7")], false),
    ] {
        let (mut near, mut far) = connection();
        let request = Request::post("/").header("content-length", 5);
        let request = request.body(body(frames)).unwrap();
        let failed = near.send(request).await.unwrap_err();
        assert!(failed.body.is_none());
        let error = of_http1(failed);
        match is_long {
            true => assert!(matches!(error, Http1Error::BodyTooLong), "{error}"),
            false => assert!(matches!(error, Http1Error::BodyTooShort), "{error}"),
        }
        drop(near);
        let mut received = String::new();
        far.read_to_string(&mut received).await.unwrap();
        let content = received.split_once("\r\n\r\n").map_or("", |parts| parts.1);
        assert!(content.len() < 5, "{received}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_no_request() {
    let (mut near, _far) = connection();
    let request = Request::post("/").body(body(vec![data("x")])).unwrap();
    let error = near.send(request).await.map_err(of_http1).unwrap_err();
    assert!(matches!(error, Http1Error::Request), "{error}");
}

/// Only a complete request, of which nothing was sent, may be sent again.
#[tokio::test]
async fn only_what_has_not_left_is_given_back() {
    for (is_reused, takes, is_tls, expected) in [
        (true, 0, false, true),
        (true, 1, false, false),
        (true, 40, false, false),
        (true, 0, true, false),
        (false, 0, false, true),
        (false, 1, false, false),
    ] {
        let mut near = over(Resetting::after(takes, is_tls).stalling(3));
        if is_reused {
            near.rest(tokio::time::Instant::now());
        }
        assert_eq!(near.is_reused(), is_reused);
        let frames = vec![data("some "), data("content"), trailers("7")];
        let request = chunked().header("x-name", "value").body(body(frames));
        let failed = near.send(request.unwrap()).await.unwrap_err();
        let case = format!("{is_reused} {takes} {is_tls}");
        assert_eq!(failed.sent == Sent::Nothing, expected, "{case}");
        assert_eq!(failed.body.is_some(), expected, "{case}");
        let Some(unsent) = failed.body else {
            continue;
        };
        let whole = unsent.collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()["x-sum"], "7");
        assert_eq!(whole.to_bytes(), "some content");
    }
}

/// Each part leaves when it comes, though the response is waited for meanwhile.
#[tokio::test]
async fn a_slow_body_is_sent_as_it_comes() {
    let (mut near, mut far) = connection();
    let (feed, slow) = fed();
    let request = chunked().body(slow).unwrap();
    let sending = async {
        let response = near.send(request).await.map_err(of_http1).unwrap();
        read(&mut near, response).await.unwrap()
    };
    let reading = async {
        let head = received(&mut far, "\r\n\r\n").await;
        assert!(head.starts_with("POST / "));
        for part in ["one", "two"] {
            feed.send(data(part)).unwrap();
            let chunk = format!("3\r\n{part}\r\n");
            assert_eq!(received(&mut far, &chunk).await, chunk);
        }
        drop(feed);
        received(&mut far, "0\r\n\r\n").await;
        far.write_all(OK).await.unwrap();
    };
    let (whole, ()) = tokio::join!(sending, reading);
    assert!(matches!(whole.body.into_rest(), Rest::Nothing));
}
