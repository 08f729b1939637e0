//! A connection that was used before and breaks as it is written to.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::scene::{connected, local, read_to, serve, serve_disguised};
use crate::Proxy;
use crate::fixtures::snapshot;
use crate::upstream::Resetting;

/// TLS takes bytes before it knows whether it can send them: that it failed at the first does not tell that none has
/// left.
#[tokio::test]
async fn a_request_is_sent_again_if_it_is_known_that_nothing_of_it_has_left() {
    let answers = [
        (Resetting::after(0, false), "HTTP/1.1 200 OK\r\n", 1),
        (
            Resetting::after(1, false),
            "HTTP/1.1 502 Bad Gateway\r\n",
            0,
        ),
        (Resetting::after(0, true), "HTTP/1.1 502 Bad Gateway\r\n", 0),
        (
            Resetting::after(0, true).stalling(2),
            "HTTP/1.1 502 Bad Gateway\r\n",
            0,
        ),
        (Resetting::after(1, true), "HTTP/1.1 502 Bad Gateway\r\n", 0),
    ];
    local(async {
        for (number, (transport, answer, sent)) in answers.into_iter().enumerate() {
            let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let (service, lease) = connected(&origin.url(), transport).await;
            lease.release(Instant::now());
            let mut client = serve(service, 64 * 1024);
            let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
            client.write_all(request).await.unwrap();
            let head = guarded("the answer", read_to(&mut client, "\r\n\r\n")).await;
            assert!(head.starts_with(answer), "{number}: {head}");
            assert_eq!(origin.traffic().requests(), sent, "{number}");
        }
    })
    .await;
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";

/// A destination that answers one request per connection, and closes that when it is told to; then it tells so.
fn closing_when_told() -> (String, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (close, told) = mpsc::channel();
    let (tell, closed) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"hi") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                bytes.push(byte[0]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .unwrap();
            if told.recv().is_err() {
                return;
            }
            drop(stream);
            // What is idle for less than a millisecond is not looked at.
            let _ = told.recv_timeout(Duration::from_millis(3));
            tell.send(()).unwrap();
        }
    });
    (url, close, closed)
}

/// The system knows that the connection was closed, but the runtime of this thread does not: it was busy meanwhile.
#[tokio::test]
async fn what_cannot_be_repeated_is_not_sent_over_a_connection_that_is_closed() {
    local(async {
        for is_disguised in [false, true] {
            let (url, close, closed) = closing_when_told();
            let snapshot = snapshot(&format!(
                r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
                    "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"{url}"}}}}}}}}}}"#
            ));
            let (proxy, _) = Proxy::builder()
                .snapshot(Arc::clone(&snapshot))
                .build()
                .unwrap();
            let mut client = match is_disguised {
                false => serve(proxy.service(), 64 * 1024),
                true => serve_disguised(proxy.service(), 64 * 1024),
            };
            for request in 0..5 {
                client.write_all(POST).await.unwrap();
                let answer = guarded("the answer", read_to(&mut client, "ok")).await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
                close.send(()).unwrap();
                closed.recv().unwrap();
            }
        }
    })
    .await;
}
