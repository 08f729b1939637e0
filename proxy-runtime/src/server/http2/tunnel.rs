//! Tunnels over HTTP/2 streams (RFC 8441).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::room::poll_room;
use crate::server::access_log::Draft;
use crate::server::connection::{Held, OpenStream};
use crate::server::memory::TUNNEL_BUFFERS;
use crate::stream::Http2Ends;

/// A stream that became a tunnel. Dropping it resets the stream unless both sides have ended it.
pub(super) struct StreamTunnel {
    ends: Http2Ends,
    /// The memory of bytes that wait for a client that does not read.
    held: Held,
    /// Keeps the connection from being idle.
    open: OpenStream,
    /// The line of the access log.
    draft: Option<Box<Draft>>,
    /// Bytes that the client has sent.
    received: u64,
    /// Bytes that the client was sent.
    sent: u64,
}

impl StreamTunnel {
    pub(super) fn new(
        receive: RecvStream,
        send: SendStream<Bytes>,
        open: OpenStream,
        draft: Option<Box<Draft>>,
    ) -> Self {
        open.connection().expect_to_hold();
        Self {
            ends: Http2Ends::new(receive, send),
            held: Held::default(),
            open,
            draft,
            received: 0,
            sent: 0,
        }
    }
}

impl Drop for StreamTunnel {
    fn drop(&mut self) {
        let log = &self.open.connection().worker.access_log;
        if let (Some(draft), Some(log)) = (self.draft.take(), log) {
            draft.finish_tunnel(log.as_ref(), Some((self.received, self.sent)));
        }
    }
}

impl AsyncRead for StreamTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = self.ends.poll_read(cx, buffer);
        self.received += (buffer.filled().len() - before) as u64;
        polled
    }
}

impl AsyncWrite for StreamTunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // A window for no bytes would be waited for without end.
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let this = &mut *self;
        let connection = this.open.connection();
        let Poll::Ready(room) = poll_room(&mut this.ends.send, bytes.len(), connection, cx) else {
            // The memory includes received data, such as `unread`.
            let received = this.ends.receive.flow_control().used_capacity() as u64;
            this.held.set(TUNNEL_BUFFERS + received, connection);
            return Poll::Pending;
        };
        this.held.set(0, connection);
        let Some(room) = room else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let sent = this.ends.send(bytes, room);
        this.sent += *sent.as_ref().unwrap_or(&0) as u64;
        Poll::Ready(sent)
    }

    /// Does nothing: the connection sends what was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.ends.end())
    }
}

impl fmt::Debug for StreamTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTunnel").finish_non_exhaustive()
    }
}
