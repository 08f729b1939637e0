//! Both ends of the connection to a destination.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::split;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use super::client::read_all;
use super::play::quiet;
use crate::upstream::Scripted;

/// The destination's end of its connection.
pub(super) struct Destination {
    sending: Option<WriteHalf<DuplexStream>>,
    reading: Option<JoinHandle<()>>,
    read: Rc<RefCell<Vec<u8>>>,
    /// The reading half of a destination that reads only after the end.
    unread: Option<ReadHalf<DuplexStream>>,
}

/// The bytes that a destination received.
pub(super) struct Read {
    pub(super) bytes: Vec<u8>,
    /// The proxy has closed.
    pub(super) is_closed: bool,
}

impl Destination {
    pub(super) fn new(stream: DuplexStream, takes_request: bool) -> Self {
        let (receiving, sending) = split(stream);
        let mut destination = Self {
            sending: Some(sending),
            reading: None,
            read: Rc::default(),
            unread: Some(receiving),
        };
        if takes_request {
            destination.begin();
        }
        destination
    }

    fn begin(&mut self) {
        if let Some(mut receiving) = self.unread.take() {
            let read = Rc::clone(&self.read);
            let reading = async move { read_all(&mut receiving, &read).await };
            self.reading = Some(spawn_local(reading));
        }
    }

    pub(super) async fn say(&mut self, bytes: &[u8]) {
        // The proxy may have closed.
        let sending = self.sending.as_mut().unwrap();
        let _ = timeout(Duration::from_millis(1), sending.write_all(bytes)).await;
    }

    /// Closes before anybody sees what was said last.
    pub(super) async fn close(&mut self) {
        if let Some(mut sending) = self.sending.take() {
            sending.shutdown().await.unwrap();
        }
        self.unread = None;
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }

    pub(super) async fn look(&mut self) -> Read {
        self.begin();
        quiet().await;
        let is_finished = self.reading.as_ref().is_none_or(JoinHandle::is_finished);
        Read {
            bytes: self.read.take(),
            is_closed: is_finished,
        }
    }
}

/// A connection to a destination; a fresh one passes for TLS, which is not tried again if the method is not idempotent.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) io: DuplexStream,
    pub(super) is_fresh: bool,
}

impl Scripted for Upstream {
    fn is_tls(&self) -> bool {
        self.is_fresh
    }
}

impl AsyncRead for Upstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Upstream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
