//! An in-memory connection whose peer has already sent all its bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};

/// Returns its bytes and then the end. Accepts and drops all writes.
pub(super) struct Memory {
    bytes: Vec<u8>,
    at: usize,
    /// True once the client has written its request. Before that, it reads nothing.
    is_asked: bool,
    waiting: Option<Waker>,
}

impl Memory {
    /// The input of a server.
    pub(super) fn of_client(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            at: 0,
            is_asked: true,
            waiting: None,
        }
    }

    /// The input of a client.
    pub(super) fn of_server(bytes: Vec<u8>) -> Self {
        Self {
            is_asked: false,
            ..Self::of_client(bytes)
        }
    }
}

impl Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_asked {
            self.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let rest = &self.bytes[self.at..];
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        self.at += length;
        Poll::Ready(Ok(()))
    }
}

impl Write for Memory {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
