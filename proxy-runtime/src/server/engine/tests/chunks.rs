//! Chunks that arrive together.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use testkit::raw::RawOrigin;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::time::Instant;

use super::scene::{connected, local, read_to, serve_over};
use crate::server::connection::Transport;
use crate::stream::ByteStream;

/// Counts how often something is sent.
struct Counting {
    stream: DuplexStream,
    sends: Arc<AtomicUsize>,
}

impl ByteStream for Counting {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.sends.fetch_add(1, Relaxed);
        self.stream.poll_send(cx, slices)
    }
}

impl Transport for Counting {
    fn reset_on_drop(&self) {}

    fn lingers_on_close(&self) -> bool {
        false
    }
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// To which nothing is added.
const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: now\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunks() -> String {
    "a\r\nxxxxxxxxxx\r\n".repeat(16) + "0\r\n\r\n"
}

/// Returns the number of writes to the client for a response that the destination sends in these parts. The client
/// has each part before the next one is sent.
async fn sends(parts: &[String]) -> usize {
    local(async {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let (mut destination, transport) = duplex(64 * 1024);
        let (service, lease) = connected(&origin.url(), transport).await;
        lease.release(Instant::now());
        let (mut client, far) = duplex(64 * 1024);
        let sends = Arc::new(AtomicUsize::new(0));
        let counting = Counting {
            stream: far,
            sends: sends.clone(),
        };
        serve_over(counting, service);
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .unwrap();
        read_to(&mut destination, "\r\n\r\n").await;
        assert_eq!(sends.load(Relaxed), 0);
        for part in parts {
            destination.write_all(part.as_bytes()).await.unwrap();
            // A part has an end that it has only there.
            let end = &part[part.len() - 5..];
            read_to(&mut client, end).await;
        }
        sends.load(Relaxed)
    })
    .await
}

/// The byte path copies them as one run, though they would be sixteen frames in `http` types.
#[tokio::test]
async fn that_arrive_in_one_read_leave_in_one_write() {
    assert_eq!(sends(&[HEAD.to_owned() + &chunks()]).await, 1);
    assert_eq!(sends(&[HEAD.to_owned(), chunks()]).await, 2);
}

/// Chunks are not held back either: a program that streams wants each of them to arrive.
#[tokio::test]
async fn that_arrive_one_by_one_leave_one_by_one() {
    let mut parts = vec![HEAD.to_owned()];
    parts.extend((0..16).map(|i| format!("5\r\ndat{i:02}\r\n")));
    parts.push("0\r\n\r\n".to_owned());
    assert_eq!(sends(&parts).await, 18);
}
