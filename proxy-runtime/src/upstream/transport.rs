//! Bytes to and from a destination, in the clear or in TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::own::OwnStream;
use super::web_proxy::AbsoluteForm;
use crate::observe::{ConnectPhase, ConnectTimes};

/// Bytes to and from a destination, in the clear or in TLS.
#[derive(Debug)]
pub(super) enum UpstreamTransport {
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    /// A stream of a connector of the program.
    Own(OwnStream),
    /// One stream of an HTTP/2 connection.
    #[cfg(feature = "http2")]
    Http2(Box<super::http2::Http2Io>),
    #[cfg(test)]
    Scripted(Box<dyn super::tests::Scripted>),
}

/// An opened transport and its properties.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) transport: UpstreamTransport,
    /// The address that answered.
    pub(super) peer: SocketAddr,
    /// True if the connection uses HTTP/2.
    pub(super) http2: bool,
    /// The additions to requests for a forward proxy at the other end. Boxed, since few connections have one.
    pub(super) absolute: Option<Box<AbsoluteForm>>,
    pub(super) took: Took,
}

/// The times of the phases of opening a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    /// `None` for an address.
    pub(super) name: Option<Duration>,
    pub(super) tcp: Duration,
    pub(super) tls: Option<Duration>,
}

impl Took {
    /// Passes the times to metrics.
    pub(super) fn record(self, times: &ConnectTimes) {
        let phases = [
            (ConnectPhase::Name, self.name),
            (ConnectPhase::Tcp, Some(self.tcp)),
            (ConnectPhase::Tls, self.tls),
        ];
        for (phase, took) in phases {
            if let Some(took) = took {
                times.record(phase, took);
            }
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            UpstreamTransport::Tcp($stream) => $call,
            #[cfg(feature = "tls")]
            UpstreamTransport::Tls($stream) => $call,
            UpstreamTransport::Own($stream) => $call,
            #[cfg(feature = "http2")]
            UpstreamTransport::Http2($stream) => $call,
            #[cfg(test)]
            UpstreamTransport::Scripted($stream) => $call,
        }
    };
}

impl UpstreamTransport {
    /// The socket, unless it has none of its own.
    pub(super) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Some(stream.get_ref().0),
            Self::Own(_) => None,
            #[cfg(feature = "http2")]
            // A stream shares its socket with others.
            Self::Http2(_) => None,
            #[cfg(test)]
            Self::Scripted(_) => None,
        }
    }
}

impl AsyncRead for UpstreamTransport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for UpstreamTransport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Own(stream) => stream.is_write_vectored(),
            #[cfg(feature = "http2")]
            Self::Http2(stream) => stream.is_write_vectored(),
            #[cfg(test)]
            Self::Scripted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
