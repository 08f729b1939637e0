//! A connection that has become a tunnel.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "http2")]
use hyper::upgrade::{OnUpgrade, Upgraded};
#[cfg(feature = "http2")]
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http1::Http1Connection;

/// A connection, or a stream of one, that is about to become a tunnel.
#[derive(Debug)]
pub(crate) enum Switching {
    Http1(Box<Http1Connection>),
    #[cfg(feature = "http2")]
    Http2(OnUpgrade),
}

impl Switching {
    /// Waits until it is a tunnel.
    #[cfg_attr(
        not(feature = "http2"),
        expect(clippy::unused_async, reason = "as with HTTP/2")
    )]
    pub(crate) async fn ready(self) -> io::Result<Tunnel> {
        match self {
            Self::Http1(connection) => Ok(Tunnel::Http1(connection)),
            #[cfg(feature = "http2")]
            Self::Http2(upgrade) => {
                let upgraded = upgrade.await.map_err(io::Error::other)?;
                Ok(Tunnel::Http2(TokioIo::new(upgraded)))
            }
        }
    }
}

/// The destination's end of a tunnel. What came with the head of the response comes first.
#[derive(Debug)]
pub(crate) enum Tunnel {
    Http1(Box<Http1Connection>),
    #[cfg(feature = "http2")]
    Http2(TokioIo<Upgraded>),
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
