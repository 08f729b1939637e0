//! The destination's end of a tunnel over HTTP/2 (RFC 8441).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::carrier::Place;
use crate::stream::{Http2Ends, io_error};

/// A stream to a destination that has become a tunnel. Dropped, it is reset unless both sides have ended it.
pub(crate) struct Http2Tunnel(
    Http2Ends,
    #[expect(dead_code, reason = "held as long")] Option<Place>,
);

impl Http2Tunnel {
    pub(super) fn new(receive: RecvStream, send: SendStream<Bytes>, place: Option<Place>) -> Self {
        Self(Http2Ends::new(receive, send), place)
    }
}

impl AsyncRead for Http2Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Http2Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let send = &mut self.0.send;
        send.reserve_capacity(bytes.len());
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let room = send.capacity();
        Poll::Ready(self.0.send(bytes, room))
    }

    /// Does nothing: the connection sends what was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.end())
    }
}

impl fmt::Debug for Http2Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Tunnel").finish_non_exhaustive()
    }
}
