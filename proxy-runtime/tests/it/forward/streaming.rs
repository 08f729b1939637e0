//! Bodies flow at the speed of the slower side, without buffering in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use testkit::body;
use testkit::client::Connection;
use testkit::origin::{Origin, Protocols};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

use crate::forward::front::{Front, config_with, h2c};

/// Maximum bytes in transit: most of them in the kernel on two connections, the rest in the buffers
/// of hyper on four ends. A proxy that reads ahead would take all of the origin's data.
const ON_THE_WAY: usize = 96 << 20;
const CHUNK: usize = 64 * 1024;

/// Waits until a counter stops.
async fn standstill(counter: &AtomicUsize) -> usize {
    let seen = AtomicUsize::new(usize::MAX);
    let still = AtomicUsize::new(0);
    eventually("a standstill", || async {
        let now = counter.load(Ordering::SeqCst);
        if seen.swap(now, Ordering::SeqCst) == now {
            still.fetch_add(1, Ordering::SeqCst);
        } else {
            still.store(0, Ordering::SeqCst);
        }
        still.load(Ordering::SeqCst) >= 30
    })
    .await;
    counter.load(Ordering::SeqCst)
}

/// An origin with an endless response, and the number of bytes taken from it.
fn endless(protocols: Protocols) -> (Origin, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    let origin = Origin::builder().protocols(protocols).start(move |_| {
        let counter = counter.clone();
        let (mut send, answer) = body::channel(1);
        tokio::spawn(async move {
            while send.send_data(Bytes::from(vec![b'x'; CHUNK])).await.is_ok() {
                counter.fetch_add(CHUNK, Ordering::SeqCst);
            }
        });
        async move { Response::new(answer) }
    });
    (origin, taken)
}

async fn slow_reader(front: &Front, mut client: Connection, taken: &AtomicUsize) {
    taken.store(0, Ordering::SeqCst);
    let request = client.request("GET", "/").body(body::empty()).unwrap();
    let mut response = client.send_streaming(request).await.unwrap();
    response.frame().await.unwrap().unwrap();
    let stopped = standstill(taken).await;
    assert!(
        stopped < ON_THE_WAY,
        "{stopped} bytes were taken of a body that nobody reads"
    );
    // The client continues to read, and so does the proxy.
    let mut read = 0;
    while read < stopped + (8 << 20) {
        read += response
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap()
            .len();
    }
    assert!(taken.load(Ordering::SeqCst) > stopped);
    // The client disconnects in the middle, which cancels the request to the origin.
    drop((response, client));
    front.settled().await;
    standstill(taken).await;
}

#[tokio::test]
async fn a_slow_client_makes_the_origin_wait() {
    for (protocols, settings) in [
        (Protocols::Http1, serde_json::json!({})),
        (Protocols::Http2, h2c()),
    ] {
        let (origin, taken) = endless(protocols);
        let front = Front::start(&config_with(&[&origin.url()], &settings));
        slow_reader(&front, front.http1().await, &taken).await;
        slow_reader(&front, front.http2().await, &taken).await;
    }
}

#[tokio::test]
async fn a_slow_origin_makes_the_client_wait() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.hold().await
    });
    // A disconnect of an HTTP/1.1 client is not detected while its bytes wait to be read.
    let settings = serde_json::json!({ "HttpRequest": { "ActivityTimeout": "00:00:05" } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    for mut client in [front.http1().await, front.http2().await] {
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = sent.clone();
        let (mut send, upload) = body::channel(1);
        let feed = tokio::spawn(async move {
            while send.send_data(Bytes::from(vec![b'x'; CHUNK])).await.is_ok() {
                counter.fetch_add(CHUNK, Ordering::SeqCst);
            }
        });
        let request = client.request("POST", "/").body(upload).unwrap();
        let exchange = tokio::spawn(async move { client.send(request).await.map(drop) });
        let stopped = standstill(&sent).await;
        assert!(stopped > 0);
        assert!(
            stopped < ON_THE_WAY,
            "{stopped} bytes were taken for an origin that reads none"
        );
        exchange.abort();
        feed.await.unwrap();
        front.settled().await;
    }
    front.connections(0, 0).await;
}

/// The head of a response does not wait for its body, nor a part of the body for the next.
#[tokio::test]
async fn every_part_is_sent_on_at_once() {
    let (mut send, answer) = body::channel(1);
    let answer = parking_lot::Mutex::new(Some(answer));
    let origin = Origin::start(move |_| {
        let answer = answer.lock().take().unwrap();
        async move { Response::new(answer) }
    });
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    let head = client.read_response_head().await.unwrap();
    assert_eq!(head.status, 200);
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        send.send_data(event.into()).await.unwrap();
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let seen = client.read_exact(chunk.len()).await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&seen).to_uppercase(),
            chunk.to_uppercase()
        );
    }
    drop(send);
    assert_eq!(client.read_exact(5).await.unwrap(), b"0\r\n\r\n");
    front.settled().await;
}
