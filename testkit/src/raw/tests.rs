use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::response::ResponseHead;
use super::{Closed, Framing, RECORDED_BYTES, RawClient, RawOrigin};

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

#[tokio::test]
async fn reset_is_seen_as_such_by_a_plain_client() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_until(b"\n").await?;
        connection.reset();
        Ok(())
    });
    let mut plain = TcpStream::connect(origin.addr()).await.unwrap();
    plain.write_all(b"hello\n").await.unwrap();
    let error = plain.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn half_close_ends_one_direction_only() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.half_close().await?;
        let rest = connection.read_to_end().await?;
        assert_eq!(rest, b"still open");
        Ok(())
    });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    assert_eq!(client.read_to_end().await.unwrap(), b"");
    client.write_all("still open").await.unwrap();
    client.half_close().await.unwrap();
    origin.recording(0).outcome().await.unwrap();
    assert_eq!(origin.recording(0).text(), "still open");
}

#[tokio::test]
async fn client_reset_reaches_the_script() {
    let origin = RawOrigin::script(|mut connection| async move {
        let closed = connection.wait_for_close().await?;
        assert_eq!(closed, Closed::Reset);
        Ok(())
    });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    origin.traffic().wait_for_connections(1).await;
    client.reset();
    origin.recording(0).outcome().await.unwrap();
    let error = client.write_all("more").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

#[tokio::test]
async fn script_error_is_kept_and_ends_only_its_connection() {
    let origin = RawOrigin::script(|mut connection| async move {
        if connection.index() == 0 {
            connection.read_request().await?;
        }
        connection
            .write_all("HTTP/1.1 204 No Content\r\n\r\n")
            .await
    });
    let mut first = RawClient::connect(origin.addr()).await.unwrap();
    first.write_all("GET / HT").await.unwrap();
    first.half_close().await.unwrap();
    first.assert_closed().await;
    let outcome = origin.recording(0).outcome().await.unwrap_err();
    assert_eq!(outcome, "connection ended after 8 bytes \"GET / HT\"");

    let answer = RawClient::exchange(origin.addr(), GET).await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(origin.traffic().counts().requests, 0);
}

#[tokio::test]
async fn requests_are_read_one_by_one_with_their_bodies() {
    let origin = RawOrigin::script(|mut connection| async move {
        let (head, body) = connection.read_whole_request().await?;
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("POST", "/a b")
        );
        assert_eq!(head.header_values("X-Twice"), ["1", "2"]);
        assert_eq!(body, b"hello");
        let (head, body) = connection.read_whole_request().await?;
        assert!(head.is_chunked());
        assert_eq!(body, b"hello!");
        let head = connection.read_request().await?;
        assert_eq!(head.headers, [("no colon".to_owned(), String::new())]);
        Ok(())
    });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    let requests = "POST /a b HTTP/1.1\r\nx-twice: 1\r\nX-Twice:2 \r\nContent-Length: 5\r\n\r\nhello\
        POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nT: 1\r\n\r\n\
        GET / HTTP/1.1\r\nno colon\r\n\r\n";
    // In pieces, so that boundaries fall into the middle of every element.
    for piece in requests.as_bytes().chunks(7) {
        client.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    origin.recording(0).outcome().await.unwrap();
    assert_eq!(origin.recording(0).text(), requests);
    assert_eq!(origin.traffic().requests(), 3);
}

#[tokio::test]
async fn recording_is_bounded_and_goes_on_counting() {
    let origin = RawOrigin::script(|mut connection| async move { connection.never_answer().await });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client
        .write_all(vec![b'x'; RECORDED_BYTES + 5])
        .await
        .unwrap();
    client.write_all("end").await.unwrap();
    origin.traffic().wait_for_connections(1).await;
    let recording = origin.recording(0);
    recording.wait_for_total(RECORDED_BYTES as u64 + 8).await;
    assert_eq!(recording.bytes().len(), RECORDED_BYTES);
    recording.wait_for("xxx").await;
}

#[tokio::test(start_paused = true)]
async fn slow_writes_take_virtual_time() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection
            .write_slowly("abcdef", 2, Duration::from_secs(60))
            .await
    });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    let start = Instant::now();
    let mut pieces = Vec::new();
    loop {
        let piece = client.read_some().await.unwrap();
        if piece.is_empty() {
            break;
        }
        pieces.push((piece, start.elapsed().as_secs()));
    }
    let expected = [
        (b"ab".to_vec(), 0),
        (b"cd".to_vec(), 60),
        (b"ef".to_vec(), 120),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(start.elapsed().as_secs(), 180);
}

#[tokio::test]
async fn dropping_the_origin_ends_its_scripts_and_frees_its_port() {
    let addr = std::net::SocketAddr::from(([127, 0, 0, 1], crate::peers::free_port()));
    let origin = RawOrigin::script_on(
        addr,
        |mut connection| async move { connection.hold().await },
    );
    let mut client = RawClient::connect(addr).await.unwrap();
    let traffic = origin.traffic().clone();
    traffic.wait_for_open(1).await;
    drop(origin);
    client.assert_closed().await;
    traffic.wait_for_open(0).await;

    let again = RawOrigin::script_on(
        addr,
        |mut connection| async move { connection.hold().await },
    );
    again.stop().await;
    let error = RawClient::connect(addr).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn ipv6_works_too() {
    let origin =
        RawOrigin::script_ipv6(|mut connection| async move { connection.write_all("6").await });
    assert!(origin.url().starts_with("http://[::1]:"));
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    assert_eq!(client.read_to_end().await.unwrap(), b"6");
}

#[tokio::test]
#[should_panic(expected = "bytes where the connection should be closed: \"late\"")]
async fn assert_closed_does_not_accept_bytes() {
    let origin =
        RawOrigin::script(|mut connection| async move { connection.write_all("late").await });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    client.assert_closed().await;
}

#[tokio::test]
async fn answers_are_read_by_their_own_framing() {
    let cases = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            Framing::Length(5),
            "hello",
        ),
        (
            "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            Framing::Chunked,
            "hello",
        ),
        ("HTTP/1.0 200 OK\r\n\r\nhello", Framing::UntilClose, "hello"),
        ("HTTP/1.1 204 No Content\r\n\r\n", Framing::None, ""),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            Framing::None,
            "",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            Framing::None,
            "",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!",
            Framing::Length(1),
            "!",
        ),
    ];
    for (bytes, framing, body) in cases {
        let origin = RawOrigin::answering_once(bytes);
        let answer = RawClient::exchange(origin.addr(), GET).await.unwrap();
        assert_eq!(
            (answer.framing, answer.text().as_str()),
            (framing, body),
            "{bytes:?}"
        );
    }
    let origin =
        RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1 \r\nx-a:2\r\n\r\n");
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    for _ in 0..2 {
        client
            .write_all("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let answer = client.read_response_to("HEAD").await.unwrap();
        assert_eq!(answer.framing, Framing::None);
        assert_eq!(answer.head.header_values("X-A"), ["1", "2"]);
    }
}

#[tokio::test]
async fn trailers_and_interim_answers_are_kept() {
    let origin = RawOrigin::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 7\r\nX-B:\r\n\r\n",
    );
    let answer = RawClient::exchange(origin.addr(), GET).await.unwrap();
    let interim: Vec<u16> = answer.interim.iter().map(|head| head.status).collect();
    assert_eq!(interim, [103, 100]);
    let trailers = [
        ("X-Sum".to_owned(), "7".to_owned()),
        ("X-B".to_owned(), String::new()),
    ];
    assert_eq!(answer.trailers, trailers);
}

#[tokio::test]
async fn malformed_answers_are_rejected() {
    let cases = [
        "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\rb\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A : a\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 999 OK\r\n\r\n",
        "HTTP/3.7 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n",
    ];
    for bytes in cases {
        let origin = RawOrigin::answering_once(bytes);
        let error = RawClient::exchange(origin.addr(), GET).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{bytes:?}: {error}");
    }
}

#[tokio::test]
async fn answers_cut_short_are_told_from_complete_ones() {
    let cases = [
        (
            "HTTP/1.1 200 OK\r\nContent-Len",
            "HTTP/1.1 200 OK\r\nContent-Len",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "hello"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "hel",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "",
        ),
    ];
    for (bytes, left) in cases {
        let origin = RawOrigin::answering_once(bytes);
        let mut client = RawClient::connect(origin.addr()).await.unwrap();
        client.write_all(GET).await.unwrap();
        let error = client.read_response().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{bytes:?}");
        assert_eq!(client.buffered(), left.as_bytes(), "{bytes:?}");
    }
}

#[test]
fn head_keeps_case_order_and_bytes() {
    let bytes = b"HTTP/1.1 200 All right\r\nB: \xe9\r\na: 1\r\n\r\n".to_vec();
    let head = ResponseHead::strict(bytes.clone()).unwrap();
    assert_eq!(
        (head.version.as_str(), head.reason.as_str()),
        ("HTTP/1.1", "All right")
    );
    let headers = [
        ("B".to_owned(), "é".to_owned()),
        ("a".to_owned(), "1".to_owned()),
    ];
    assert_eq!(head.headers, headers);
    assert_eq!(head.bytes, bytes);
}
