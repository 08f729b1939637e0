//! Tests of responses as they are read.

use super::*;

#[tokio::test]
async fn a_head_is_what_it_was() {
    let bytes =
        b"HTTP/1.1 299 Very  Good\r\nX-Name: Value\r\nSet-Cookie: a\r\nset-cookie: b\xff\r\n\
                  Content-Length: 2\r\n\r\nok";
    let whole = answer(bytes).await.unwrap();
    let response = &whole.response;
    assert_eq!(response.status(), 299);
    assert_eq!(response.version(), Version::HTTP_11);
    let reason = response.extensions().get::<ReasonPhrase>().unwrap();
    assert_eq!(reason.as_bytes(), b"Very  Good");
    assert_eq!(response.headers()["x-name"], "Value");
    let cookies: Vec<_> = response.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies[0].as_bytes(), b"a");
    assert_eq!(cookies[1].as_bytes(), b"b\xff");
    assert_eq!(whole.content(), b"ok");

    let plain = answer("HTTP/1.0 200 OK\r\n\r\nuntil the end")
        .await
        .unwrap();
    assert_eq!(plain.response.version(), Version::HTTP_10);
    assert!(plain.response.extensions().get::<ReasonPhrase>().is_none());
    assert_eq!(plain.content(), b"until the end");
}

/// The same response results wherever the bytes are split.
#[tokio::test]
async fn a_response_in_pieces_is_the_same() {
    let bytes = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\
                  Transfer-Encoding: chunked\r\nX-A: b\r\n\r\n\
                  5\r\nhello\r\n7;a=b\r\n, world\r\n0\r\nX-Sum: 42\r\n\r\n";
    for piece in [1, 2, 3, 7, 50, bytes.len()] {
        let (mut near, mut far) = connection();
        let feeding = async {
            for part in bytes.chunks(piece) {
                far.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let reading = async {
            let response = send(&mut near, Method::Get).await.unwrap();
            read(&mut near, response).await.unwrap()
        };
        let ((), whole) = tokio::join!(feeding, reading);
        assert_eq!(whole.response.headers()["x-a"], "b");
        assert_eq!(whole.content(), b"hello, world", "pieces of {piece}");
        assert_eq!(whole.trailers.as_ref().unwrap()["x-sum"], "42");
        assert!(near.is_open());
    }
}

#[tokio::test]
async fn chunks_that_come_together_are_handed_on_together() {
    let chunks = "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n";
    let bytes = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunks.repeat(15)
    );
    let whole = answer(bytes).await.unwrap();
    assert_eq!(whole.content().len(), 15 * 1024);
    assert_eq!(whole.frames.len(), 1);
}

#[tokio::test]
async fn a_large_chunk_passes_whole() {
    let content: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n".to_vec();
    bytes.extend_from_slice(&content);
    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    let whole = answer(bytes).await.unwrap();
    assert_eq!(whole.content(), content);
}

#[tokio::test]
async fn what_breaks_off_is_no_response() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n\r\n";
    for bytes in [whole, chunked] {
        let head = bytes.find("\r\n\r\n").unwrap() + 4;
        for end in 0..bytes.len() {
            let error = answer(&bytes[..end]).await.unwrap_err();
            if end < head {
                assert!(matches!(error, Http1Error::NoResponse), "{end}: {error}");
            } else {
                assert!(matches!(error, Http1Error::Truncated), "{end}: {error}");
            }
        }
        answer(bytes).await.unwrap();
    }
}

#[tokio::test]
async fn what_has_two_meanings_is_rejected() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "garbage",
        switch,
    ] {
        let error = answer(bytes).await.unwrap_err();
        assert!(
            matches!(error, Http1Error::Rejected(_)),
            "{bytes:?}: {error}"
        );
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let ok = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
    for (fields, is_taken) in [
        ("X: a\r\n".repeat(999), true),
        ("X: a\r\n".repeat(1000), false),
        (format!("X: {}\r\n", "a".repeat(65_000)), true),
        (format!("X: {}\r\n", "a".repeat(65_536)), false),
    ] {
        let answered = answer(ok(&fields)).await;
        assert_eq!(answered.is_ok(), is_taken, "{} bytes", fields.len());
    }
    let trailer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: {}\r\n\r\n",
        "a".repeat(65_536)
    );
    assert!(answer(trailer).await.is_err());
}

#[tokio::test]
async fn interim_responses_are_bounded() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let last = "HTTP/1.1 204 No Content\r\n\r\n";
    let whole = answer(interim.repeat(16) + last).await.unwrap();
    assert_eq!(whole.response.status(), StatusCode::NO_CONTENT);
    let error = answer(interim.repeat(17) + last).await.unwrap_err();
    assert!(matches!(error, Http1Error::TooManyInterim), "{error}");
}

/// Unrequested data stays unread at the destination.
#[tokio::test]
async fn nothing_is_read_ahead() {
    let (mut near, mut far) = connection();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    far.write_all(head.as_bytes()).await.unwrap();
    let mut response = send(&mut near, Method::Get).await.unwrap();
    assert!(near.input.is_empty());
    far.write_all(&vec![b'x'; ROOM / 2]).await.unwrap();
    let frame = next(&mut near, response.body_mut()).await.unwrap().unwrap();
    assert!(frame.data_ref().unwrap().len() <= 32 * 1024);
    assert!(near.input.is_empty());
}
