//! The built-in transport against servers that misbehave, over plain TCP.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::tls::{client_config, provider, rejecting_verifier};
use crate::{ReqwestTransport, Transport, TransportError, TransportErrorKind, TransportOptions};

/// Sends one request, over this scheme, to a server that answers with these bytes and closes.
async fn exchange(
    scheme: &str,
    answer: Vec<u8>,
    gzip: bool,
) -> (Result<Response<Bytes>, TransportError>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("{scheme}://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await.unwrap();
        stream.write_all(&answer).await.unwrap();
        stream.shutdown().await.unwrap();
        String::from_utf8_lossy(&head[..length]).to_lowercase()
    });
    let provider = provider();
    let tls = client_config(provider.clone(), rejecting_verifier(&provider), None).unwrap();
    let mut options = TransportOptions::new("test/1");
    options.gzip = gzip;
    let transport = ReqwestTransport::new(tls, &options).unwrap();
    let request = Request::get(uri).body(Bytes::new()).unwrap();
    let sent = transport.send(request, 1000).await;
    (sent, server.await.unwrap())
}

fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 200 OK\r\n{headers}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

async fn kind(scheme: &str, answer: Vec<u8>, gzip: bool) -> TransportErrorKind {
    exchange(scheme, answer, gzip).await.0.unwrap_err().kind()
}

#[tokio::test]
async fn bodies_are_read_up_to_the_limit_announced_or_not() {
    let full = vec![b'x'; 1000];
    let (sent, _) = exchange("http", answer("", &full), false).await;
    assert_eq!(sent.unwrap().body().len(), 1000);
    let more = vec![b'x'; 1001];
    let unannounced = kind("http", answer("", &more), false).await;
    assert_eq!(unannounced, TransportErrorKind::TooLarge);
    let announced = kind("http", answer("content-length: 1001\r\n", b""), false).await;
    assert_eq!(announced, TransportErrorKind::TooLarge);
}

#[tokio::test]
async fn gzip_is_requested_only_by_option_and_bounded() {
    let encoded = |length: usize| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&vec![b'x'; length]).unwrap();
        answer("content-encoding: gzip\r\n", &encoder.finish().unwrap())
    };
    let (sent, head) = exchange("http", encoded(1000), true).await;
    assert_eq!(sent.unwrap().body().len(), 1000);
    assert!(head.contains("accept-encoding: gzip"), "{head}");
    let bomb = kind("http", encoded(100_000), true).await;
    assert_eq!(bomb, TransportErrorKind::TooLarge);
    let unknown = answer("content-encoding: br\r\n", b"x");
    assert_eq!(
        kind("http", unknown, true).await,
        TransportErrorKind::Interrupted
    );
    let (sent, head) = exchange("http", encoded(1000), false).await;
    assert!(sent.unwrap().headers().contains_key("content-encoding"));
    assert!(!head.contains("accept-encoding"), "{head}");
}

#[tokio::test]
async fn redirects_are_returned_and_not_followed() {
    let redirect =
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let (sent, _) = exchange("http", redirect.to_vec(), false).await;
    assert_eq!(sent.unwrap().status(), 302);
}

#[tokio::test]
async fn failures_have_their_kinds() {
    let torn = kind("http", answer("content-length: 5\r\n", b"x"), false).await;
    assert_eq!(torn, TransportErrorKind::Interrupted);
    let plain = kind("https", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), false).await;
    assert_eq!(plain, TransportErrorKind::NotTls);
    // A fatal alert `internal_error` in a record of TLS 1.2.
    let alert = kind("https", vec![21, 3, 3, 0, 2, 2, 80], false).await;
    assert_eq!(alert, TransportErrorKind::Tls);
    let rejected = kind("https", vec![21, 3, 3, 0, 2, 2, 42], false).await;
    assert_eq!(rejected, TransportErrorKind::CertificateRejected);
}
