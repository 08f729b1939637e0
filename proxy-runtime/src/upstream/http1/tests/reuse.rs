//! Tests of connections that carry another request, or must not.

use super::*;

#[tokio::test]
async fn what_has_no_body_is_over_with_its_head() {
    for (method, bytes) in [
        (Method::Head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (
            Method::Head,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (Method::Get, "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            Method::Get,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ),
        (Method::Get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (
            Method::Get,
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let (mut near, mut far) = connection();
        far.write_all(bytes.as_bytes()).await.unwrap();
        let response = send(&mut near, method).await.unwrap();
        assert!(
            response.body().has_ended(),
            "known without asking: {bytes:?}"
        );
        assert!(near.is_open(), "{bytes:?}");
    }
}

/// Bytes after a response would be taken for the next one.
#[tokio::test]
async fn bytes_behind_a_response_close_the_connection() {
    for (method, bytes) in [
        (
            Method::Head,
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        ),
        (Method::Get, b"HTTP/1.1 204 No Content\r\n\r\nx"),
        (
            Method::Get,
            b"HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ),
        (
            Method::Get,
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
        ),
        (
            Method::Get,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
        ),
    ] {
        let (mut near, mut far) = connection();
        far.write_all(bytes).await.unwrap();
        let response = send(&mut near, method).await.unwrap();
        read(&mut near, response).await.unwrap();
        assert!(!near.is_open(), "{}", bytes.escape_ascii());
    }
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
