//! Large downloads at once over one connection of HTTP/2: the size of the reads from their destinations, while the
//! client's socket accepts what comes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use testkit::raw::RawOrigin;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::scene::{connected_over, local, read_to, serve, serve_disguised};
use crate::ProxyService;
use crate::server::http2::peer::{INITIAL_WINDOW_SIZE, Peer};
use crate::upstream::Scripted;

const STREAMS: u32 = 4;

/// Bytes of each response: enough that the first reads, which are small, do not count.
const SIZE: usize = 8 * 1024 * 1024;

/// Bytes that a transport takes before they are read.
const PIPE: usize = 1024 * 1024;

/// Least bytes of a read on average. Nearly all have 64 KiB.
const LEAST: usize = 56 * 1024;

const LARGEST: u32 = (1 << 31) - 1;

/// The transport of a destination, which counts the reads that bring something.
#[derive(Debug)]
struct Counting {
    stream: DuplexStream,
    reads: Arc<AtomicUsize>,
}

impl Scripted for Counting {}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.reads.fetch_add(1, Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Counting {
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

async fn answer(mut stream: DuplexStream) -> DuplexStream {
    read_to(&mut stream, "\r\n\r\n").await;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; SIZE]).await.unwrap();
    stream
}

/// Returns the mean size of the reads of several downloads.
async fn mean(serve: fn(ProxyService, usize) -> DuplexStream) -> usize {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let reads = Arc::<AtomicUsize>::default();
    let mut transports = Vec::new();
    for _ in 0..STREAMS {
        let (far, stream) = duplex(PIPE);
        spawn_local(answer(far));
        let reads = Arc::clone(&reads);
        transports.push(Counting { stream, reads });
    }
    let (service, leases) = connected_over(&origin.url(), "", transports).await;
    for lease in leases {
        lease.release(Instant::now());
    }
    let settings = [(INITIAL_WINDOW_SIZE, LARGEST)];
    let client = serve(service, 16 * PIPE);
    let mut peer = Peer::open_slow(client, &settings, usize::MAX, Duration::ZERO).await;
    peer.open_window(0, LARGEST - 65_535).await;
    for number in 0..STREAMS {
        peer.get(2 * number + 1, "/").await;
    }
    for number in 0..STREAMS {
        let stream = 2 * number + 1;
        assert_eq!(peer.end_of(stream).await.1, None);
        assert_eq!(peer.content(stream).len(), SIZE);
    }
    STREAMS as usize * SIZE / reads.load(Relaxed)
}

#[tokio::test]
async fn large_downloads_at_once_are_read_in_large_pieces() {
    let bytes = local(mean(serve)).await;
    let types = local(mean(serve_disguised)).await;
    for (way, mean) in [("bytes", bytes), ("http types", types)] {
        assert!(mean >= LEAST, "{way}: {mean} bytes");
    }
}
