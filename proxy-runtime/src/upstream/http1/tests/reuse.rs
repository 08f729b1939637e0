//! Tests of connections that carry another request, or must not.

use std::time::Duration;

use tokio::time::timeout;

use super::super::Rest;
use super::*;

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Returns what to do with the connection after this response, and whether it is open.
async fn after(request: Request<OutgoingBody>, bytes: &[u8]) -> (Rest, bool) {
    let (mut near, mut far) = connection();
    far.write_all(bytes).await.unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    let whole = read(&mut near, response).await.unwrap();
    (whole.body.into_rest(), near.is_open())
}

#[tokio::test]
async fn what_has_no_body_is_over_with_its_head() {
    let head = || empty(Request::head("/"));
    for (request, bytes) in [
        (head(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (
            head(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (get(), "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            get(),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ),
        (get(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (
            get(),
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let (mut near, mut far) = connection();
        far.write_all(bytes.as_bytes()).await.unwrap();
        let response = near.send(request).await.map_err(of_http1).unwrap();
        assert!(
            response.body().has_ended(),
            "known without asking: {bytes:?}"
        );
        assert!(matches!(response.into_body().into_rest(), Rest::Nothing));
        assert!(near.is_open(), "{bytes:?}");
    }
}

/// Bytes after a response would be taken for the next one.
#[tokio::test]
async fn bytes_behind_a_response_close_the_connection() {
    for (request, bytes) in [
        (
            empty(Request::head("/")),
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        ),
        (get(), b"HTTP/1.1 204 No Content\r\n\r\nx"),
        (
            get(),
            b"HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ),
        (get(), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!"),
        (
            get(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
        ),
    ] {
        let (_, is_open) = after(request, bytes).await;
        assert!(!is_open, "{}", bytes.escape_ascii());
    }
}

#[tokio::test]
async fn a_connection_that_the_destination_does_not_keep_is_closed() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"[..],
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    ] {
        let (rest, _) = after(get(), bytes).await;
        assert!(matches!(rest, Rest::Close), "{}", bytes.escape_ascii());
    }
    let whole = answer(get(), "HTTP/1.1 200 OK\r\n\r\nhello").await.unwrap();
    assert_eq!(whole.content(), b"hello");
    assert!(matches!(whole.body.into_rest(), Rest::Close));
}

#[tokio::test]
async fn an_idle_connection_is_open_until_something_comes() {
    let (mut near, mut far) = connection();
    assert!(near.is_open());
    far.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        .await
        .unwrap();
    assert!(!near.is_open(), "nobody asked for it");
    let (mut near, far) = connection();
    assert!(near.is_open());
    drop(far);
    assert!(!near.is_open());
}

#[tokio::test]
async fn a_body_that_was_not_read_to_its_end_closes_the_connection() {
    let (mut near, mut far) = connection();
    far.write_all(&HELLO[..HELLO.len() - 1]).await.unwrap();
    let response = near.send(get()).await.map_err(of_http1).unwrap();
    let mut body = response.into_body();
    assert!(next(&mut near, &mut body).await.unwrap().is_ok());
    assert!(matches!(body.into_rest(), Rest::Close));
}

/// The answer is whole before the request is. Who wants the rest of that gets it, and no other request behind it.
#[tokio::test]
async fn an_early_response_waits_for_the_upload() {
    let (mut near, mut far) = connection();
    let (feed, slow) = fed();
    let request = chunked().body(slow).unwrap();
    far.write_all(HELLO).await.unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    let whole = read(&mut near, response).await.unwrap();
    assert_eq!(whole.content(), b"hello");
    let Rest::Upload(mut upload) = whole.body.into_rest() else {
        panic!("it goes on");
    };
    let ((), ()) = tokio::join!(near.finish_upload(&mut upload), async {
        feed.send(data("rest")).unwrap();
        drop(feed);
        received(&mut far, "4\r\nrest\r\n0\r\n\r\n").await;
    });
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_is_cut_after_an_early_response_closes_the_connection() {
    // The destination takes no more.
    let (mut near, mut far) = connection();
    let (feed, slow) = fed();
    far.write_all(HELLO).await.unwrap();
    let request = chunked().body(slow).unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    drop(far);
    feed.send(data("more")).unwrap();
    let whole = read(&mut near, response).await.unwrap();
    assert_eq!(
        whole.content(),
        b"hello",
        "the answer is whole all the same"
    );
    assert!(matches!(whole.body.into_rest(), Rest::Close));

    // It closes while the client sends nothing, or says something else.
    for says in [None, Some(b"HTTP/1.1 400 Bad Request\r\n\r\n")] {
        let (mut near, mut far) = connection();
        let (_feed, slow) = fed();
        far.write_all(HELLO).await.unwrap();
        let request = chunked().body(slow).unwrap();
        let response = near.send(request).await.map_err(of_http1).unwrap();
        let whole = read(&mut near, response).await.unwrap();
        let Rest::Upload(mut upload) = whole.body.into_rest() else {
            panic!("it goes on");
        };
        match says {
            None => drop(far),
            Some(says) => far.write_all(says).await.unwrap(),
        }
        let finished = timeout(Duration::from_secs(1), near.finish_upload(&mut upload));
        finished.await.unwrap();
    }
}

/// The request is sent on while the response is read, and a client that fails cuts the response off.
#[tokio::test]
async fn both_bodies_move_at_once() {
    let (mut near, mut far) = connection();
    let (feed, slow) = fed();
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        .await
        .unwrap();
    let request = chunked().body(slow).unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    received(&mut far, "\r\n\r\n").await;
    let echoing = async {
        for part in ["hello", "world"] {
            feed.send(data(part)).unwrap();
            let chunk = format!("5\r\n{part}\r\n");
            assert_eq!(received(&mut far, &chunk).await, chunk);
            far.write_all(part.as_bytes()).await.unwrap();
        }
        drop(feed);
    };
    let (whole, ()) = tokio::join!(read(&mut near, response), echoing);
    assert_eq!(whole.unwrap().content(), b"helloworld");

    let (mut near, mut far) = connection();
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        .await
        .unwrap();
    let (feed, slow) = fed();
    let request = Request::post("/").header("content-length", 5);
    let request = request.body(slow).unwrap();
    let response = near.send(request).await.map_err(of_http1).unwrap();
    drop(feed);
    let error = read(&mut near, response).await.unwrap_err();
    assert!(matches!(error, Http1Error::BodyTooShort), "{error}");
}
