//! The socket of a connection to a destination.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(feature = "http2")]
use super::http2::Http2Io;
use super::slot::{ConnectionOwner, Slot};
use super::transport::UpstreamTransport;
use crate::observe::GaugeGuard;
use crate::stream::ByteStream;

pin_project! {
    /// The socket of a connection. It counts as an open connection of its destination for as long as it lives: in the
    /// pool, with a request, or with the two ends of a tunnel.
    #[derive(Debug)]
    pub(crate) struct UpstreamIo {
        #[pin]
        transport: UpstreamTransport,
        _open: Option<GaugeGuard>,
        slot: Option<Slot>,
    }
}

impl UpstreamIo {
    pub(super) fn new(transport: UpstreamTransport, open: GaugeGuard, slot: Slot) -> Self {
        Self {
            transport,
            _open: Some(open),
            slot: Some(slot),
        }
    }

    /// A socket that no pool knows of.
    pub(super) fn uncounted(transport: UpstreamTransport) -> Self {
        Self {
            transport,
            _open: None,
            slot: None,
        }
    }

    /// The pool that it counts for.
    pub(super) fn pool(&self) -> Option<&Weak<dyn ConnectionOwner>> {
        self.slot.as_ref()?.pool()
    }

    /// Returns true for TLS, which accepts bytes before it can send them.
    pub(crate) fn is_tls(&self) -> bool {
        match &self.transport {
            UpstreamTransport::Tcp(_) => false,
            #[cfg(feature = "tls")]
            UpstreamTransport::Tls(_) => true,
            // It may be TLS.
            UpstreamTransport::Own(_) => true,
            #[cfg(feature = "http2")]
            UpstreamTransport::Http2(_) => false,
            #[cfg(test)]
            UpstreamTransport::Scripted(stream) => stream.is_tls(),
        }
    }

    /// The stream of HTTP/2, if it is one.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn stream(&self) -> Option<&Http2Io> {
        match &self.transport {
            UpstreamTransport::Http2(stream) => Some(stream),
            _ => None,
        }
    }

    /// The stream of HTTP/2, if it is one.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn stream_mut(&mut self) -> Option<&mut Http2Io> {
        match &mut self.transport {
            UpstreamTransport::Http2(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns true if the destination has closed the connection or sent unexpected bytes. Costs a system call.
    pub(super) fn has_ended(&mut self) -> bool {
        if let UpstreamTransport::Own(stream) = &mut self.transport {
            return stream.has_ended();
        }
        // A stream has none; its connection notices the end.
        let Some(stream) = self.transport.socket() else {
            return false;
        };
        let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
        // Only an open socket without bytes would block. Bytes, an end and an error all forbid reuse.
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Takes the slot of this connection, for the connection that replaces it.
    pub(super) fn take_slot(&mut self) -> Option<Slot> {
        self.slot.take()
    }

    /// Goes on over another transport, as the same connection.
    #[cfg(test)]
    pub(crate) fn replace(&mut self, transport: impl super::tests::Scripted + 'static) {
        self.transport = UpstreamTransport::Scripted(Box::new(transport));
    }
}

impl AsyncRead for UpstreamIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().transport.poll_read(cx, buf)
    }
}

impl AsyncWrite for UpstreamIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().transport.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().transport.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().transport.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().transport.poll_shutdown(cx)
    }
}

impl ByteStream for UpstreamIo {
    #[inline]
    fn may_be_readable(&self) -> bool {
        match &self.transport {
            UpstreamTransport::Tcp(stream) => stream.may_be_readable(),
            // Others may hold bytes that the socket does not show.
            _ => true,
        }
    }

    #[inline]
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            UpstreamTransport::Tcp(stream) => stream.poll_readable(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            UpstreamTransport::Tcp(stream) => stream.poll_fill(cx, buffer),
            other => pin!(other.read_buf(buffer)).poll(cx),
        }
    }

    #[inline]
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            UpstreamTransport::Tcp(stream) => stream.poll_send(cx, slices),
            other => match slices {
                [only] => Pin::new(other).poll_write(cx, only),
                several => Pin::new(other).poll_write_vectored(cx, several),
            },
        }
    }
}
