//! A connection that has become a tunnel.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http1::Http1Connection;

/// The destination's end of a tunnel. Bytes that arrived with the head of the response come first.
#[derive(Debug)]
pub(crate) struct Tunnel<'c>(&'c mut Http1Connection);

impl<'c> Tunnel<'c> {
    /// The tunnel over this connection, from whose input the head of the response was taken.
    pub(crate) fn new(connection: &'c mut Http1Connection) -> Self {
        Self(connection)
    }
}

impl AsyncRead for Tunnel<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Http1Connection { io, input, .. } = &mut *self.0;
        if input.is_empty() {
            return Pin::new(io).poll_read(cx, buf);
        }
        let count = input.filled().len().min(buf.remaining());
        buf.put_slice(&input.filled()[..count]);
        input.consume(count);
        // A tunnel may live for hours, and needs this buffer no more.
        input.rest();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.io).poll_shutdown(cx)
    }
}
