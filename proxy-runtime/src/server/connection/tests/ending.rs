//! Responses that do not come to their end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::*;
use crate::stream::ByteStream;

/// Notes that it was to end with a reset.
struct Resettable {
    stream: DuplexStream,
    is_reset: Arc<AtomicBool>,
}

impl ByteStream for Resettable {}

impl Transport for Resettable {
    fn reset_on_drop(&self) {
        self.is_reset.store(true, Relaxed);
    }

    fn lingers_on_close(&self) -> bool {
        true
    }
}

impl AsyncRead for Resettable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Resettable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Bench {
    /// A connection, its task, and whether it ended with a reset.
    fn connect_resettable(&self, handler: Handler) -> (Client, JoinHandle<()>, Arc<AtomicBool>) {
        let (near, far) = tokio::io::duplex(16 * 1024);
        let is_reset = Arc::new(AtomicBool::new(false));
        let transport = Resettable {
            stream: far,
            is_reset: is_reset.clone(),
        };
        let task = self.serve(transport, handler);
        (Client { stream: near }, task, is_reset)
    }
}

/// Three parts, a second apart; instead of the third, a panic if the path is `/panic`.
fn parts() -> Handler {
    Handler::new(|request| async move {
        let panics = request.uri().path() == "/panic";
        let parts = stream::unfold(0, move |sent| async move {
            sleep(secs(1)).await;
            assert!(!panics || sent < 2, "as intended");
            let part = Frame::data(Bytes::from_static(b"part "));
            (sent < 3).then_some((Ok::<_, BoxError>(part), sent + 1))
        });
        Response::new(StreamBody::new(parts).boxed_unsync())
    })
}

/// RFC 9112 section 8: where the end of the connection is the end of the body, only an error tells a part from the
/// whole.
#[tokio::test(start_paused = true)]
async fn what_ends_with_the_connection_ends_with_a_reset_unless_it_is_whole() {
    local(async {
        for (path, leaves, parts_read, expected) in [
            ("/", false, 3, false),
            ("/", true, 1, true),
            ("/panic", false, 2, true),
        ] {
            let bench = Bench::new(Limits::default());
            let (mut client, task, is_reset) = bench.connect_resettable(parts());
            client.send(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
            if leaves {
                sleep(Duration::from_millis(1500)).await;
                client.stream.shutdown().await.unwrap();
            }
            let response = client.read_to_end().await;
            assert!(
                response.ends_with(&format!("\r\n\r\n{}", "part ".repeat(parts_read))),
                "{path}: {response}"
            );
            let _ = task.await;
            assert_eq!(is_reset.load(Relaxed), expected, "{path} {leaves}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_body_ends_its_connection_and_is_counted() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(parts());
        client.send("GET /panic HTTP/1.1\r\nhost: t\r\n\r\n").await;
        let response = client.read_to_end().await;
        assert!(response.ends_with("part \r\n"), "{response}");
        task.await.unwrap();
        let counts = bench.metrics.counts();
        assert_eq!((counts.panics, counts.active_requests), (1, 0));
    })
    .await;
}
