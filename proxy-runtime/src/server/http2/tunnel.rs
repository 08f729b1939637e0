//! Tunnels over HTTP/2 streams (RFC 8441).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::room::poll_room;
use crate::server::connection::{Held, OpenStream};
use crate::server::memory::TUNNEL_BUFFERS;

/// A stream that became a tunnel. Dropping it resets the stream unless both sides have ended it.
pub(super) struct Tunnel {
    receive: RecvStream,
    send: SendStream<Bytes>,
    /// Received data that was not read yet.
    unread: Bytes,
    has_ended: bool,
    /// The memory that waits while the client does not read.
    held: Held,
    /// Keeps the connection from being idle.
    open: OpenStream,
}

impl Tunnel {
    pub(super) fn new(receive: RecvStream, send: SendStream<Bytes>, open: OpenStream) -> Self {
        open.connection().expect_to_hold();
        Self {
            receive,
            send,
            unread: Bytes::new(),
            has_ended: false,
            held: Held::default(),
            open,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Empty DATA frames carry nothing.
        while self.unread.is_empty() {
            match ready!(self.receive.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Ok(data)) => self.unread = data,
                Some(Err(error)) => {
                    return Poll::Ready(match error.reason() {
                        // CANCEL for a tunnel means what a close means for a connection (RFC 9113
                        // section 8.5).
                        Some(Reason::NO_ERROR | Reason::CANCEL) => Ok(()),
                        _ => Err(io_error(error)),
                    });
                }
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        // The call fails only for more than was received.
        let _ = self.receive.flow_control().release_capacity(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let this = &mut *self;
        let connection = this.open.connection();
        let Poll::Ready(room) = poll_room(&mut this.send, bytes.len(), &connection.backlog, cx)
        else {
            // The memory includes received data, such as `unread`.
            let received = this.receive.flow_control().used_capacity() as u64;
            this.held.set(TUNNEL_BUFFERS + received, connection);
            return Poll::Pending;
        };
        this.held.set(0, connection);
        let Some(room) = room else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let data = Bytes::copy_from_slice(&bytes[..room]);
        let sent = this.send.send_data(data, false);
        Poll::Ready(sent.map(|()| room).map_err(io_error))
    }

    /// Does nothing: the connection sends what was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Poll::Ready(Ok(()));
        }
        let ended = self.send.send_data(Bytes::new(), true);
        Poll::Ready(ended.map_err(io_error))
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").finish_non_exhaustive()
    }
}

fn io_error(error: h2::Error) -> io::Error {
    match error.is_io() {
        true => error
            .into_io()
            .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()),
        false => io::Error::new(io::ErrorKind::ConnectionReset, error),
    }
}
