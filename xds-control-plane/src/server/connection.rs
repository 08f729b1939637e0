//! One connection.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
#[cfg(feature = "tls")]
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::listen::Place;

/// The preface of HTTP/2 connections (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The client's address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The transport of a connection.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection, with its permit among the open ones.
///
/// The reader waits without a limit for the bytes that distinguish the versions of HTTP; these have a
/// separate time limit. Afterwards, pings and time limits for heads detect silent clients.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    transport: Transport,
    peer: SocketAddr,
    opening: Option<Opening>,
    _place: Place,
}

#[derive(Debug)]
struct Opening {
    /// Number of bytes of the preface received so far.
    matched: usize,
    until: Pin<Box<Sleep>>,
}

impl Opening {
    /// Records the bytes that were read. Returns true if the version is known.
    fn is_over(&mut self, bytes: &[u8]) -> bool {
        let wanted = PREFACE.get(self.matched..).unwrap_or_default();
        let same = bytes.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        self.matched += same;
        self.matched == PREFACE.len() || same < bytes.len()
    }
}

impl AcceptedConnection {
    /// Creates a connection. Its first bytes must arrive before `until`.
    pub(crate) fn new(
        transport: Transport,
        peer: SocketAddr,
        until: Instant,
        place: Place,
    ) -> Self {
        let opening = Opening {
            matched: 0,
            until: Box::pin(sleep_until(until)),
        };
        Self {
            transport,
            peer,
            opening: Some(opening),
            _place: place,
        }
    }
}

impl Connected for AcceptedConnection {
    type ConnectInfo = PeerAddress;

    fn connect_info(&self) -> PeerAddress {
        PeerAddress(self.peer)
    }
}

impl AsyncRead for AcceptedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.transport).poll_read(context, buffer);
        let Some(opening) = &mut self.opening else {
            return read;
        };
        if read.is_ready() {
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            if bytes.is_empty() || opening.is_over(bytes) {
                self.opening = None;
            }
            return read;
        }
        ready!(opening.until.as_mut().poll(context));
        let message = "the first request has not arrived in time";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl AsyncWrite for AcceptedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(context)
    }
}

/// Calls a method of the inner stream, with or without TLS.
macro_rules! either {
    ($transport:expr, $stream:ident => $call:expr) => {
        match $transport {
            Transport::Plain($stream) => $call,
            #[cfg(feature = "tls")]
            Transport::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}
