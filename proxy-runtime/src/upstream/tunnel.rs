//! A connection that has become a tunnel.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::Http2Tunnel;

/// The destination's end of a tunnel. What came with the head of the response comes first.
#[derive(Debug)]
pub(crate) enum Tunnel {
    Http1(Box<Http1Connection>),
    #[cfg(feature = "http2")]
    Http2(Http2Tunnel),
}

impl AsyncRead for Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http1(connection) => {
                let input = &mut connection.input;
                if input.is_empty() {
                    return Pin::new(&mut connection.io).poll_read(cx, buf);
                }
                let count = input.filled().len().min(buf.remaining());
                buf.put_slice(&input.filled()[..count]);
                input.consume(count);
                input.rest();
                Poll::Ready(Ok(()))
            }
            #[cfg(feature = "http2")]
            Self::Http2(upgraded) => Pin::new(upgraded).poll_read(cx, buf),
        }
    }
}

macro_rules! writer {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Tunnel::Http1(connection) => {
                let $io = Pin::new(&mut connection.io);
                $call
            }
            #[cfg(feature = "http2")]
            Tunnel::Http2(upgraded) => {
                let $io = Pin::new(upgraded);
                $call
            }
        }
    };
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        writer!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        writer!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        writer!(self, io => io.poll_shutdown(cx))
    }
}
