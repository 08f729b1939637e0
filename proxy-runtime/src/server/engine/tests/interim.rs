//! Interim responses that the client has taken a part of.

use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::scene::{connected, local, read_to, serve};

/// Capacity of the client's connection in bytes, less than [`hints`] needs.
const CAPACITY: usize = 256;

/// Number of bytes that the client reads at first.
const READ: usize = 100;

fn hints() -> String {
    let link = format!("</{}>; rel=preload", "x".repeat(4 * CAPACITY));
    format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n")
}

/// A client that has sent `request` and read the beginning of the hints, and the destination, which has sent all of
/// them.
async fn half_hinted(request: &str) -> (DuplexStream, DuplexStream, String) {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let (mut destination, transport) = duplex(64 * 1024);
    let (service, lease) = connected(&origin.url(), transport).await;
    lease.release(Instant::now());
    let mut client = serve(service, CAPACITY);
    client.write_all(request.as_bytes()).await.unwrap();
    read_to(&mut destination, "\r\n\r\n").await;
    destination.write_all(hints().as_bytes()).await.unwrap();
    let mut read = vec![0; READ];
    client.read_exact(&mut read).await.unwrap();
    let read = String::from_utf8(read).unwrap();
    assert!(hints().starts_with(&read), "{read}");
    (client, destination, read)
}

/// The client would take the answer for the rest of the head that it has a part of.
#[tokio::test]
async fn half_a_head_is_not_followed_by_an_answer() {
    local(async {
        let request = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (mut client, _destination, mut text) = half_hinted(request).await;
        client.write_all(b"no chunk\r\n").await.unwrap();
        let rest = client.read_to_string(&mut text);
        guarded("the end", rest).await.unwrap();
        assert!(hints().starts_with(&text), "{text}");
        assert!(text.len() < hints().len());
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_whole_is_followed_by_an_answer() {
    local(async {
        let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let (mut client, destination, text) = half_hinted(request).await;
        drop(destination);
        let rest = read_to(&mut client, "502 Bad Gateway\n");
        let text = text + &guarded("the answer", rest).await;
        let answer = text
            .strip_prefix(&hints())
            .unwrap_or_else(|| panic!("{text}"));
        assert!(
            answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
            "{answer}"
        );
    })
    .await;
}
