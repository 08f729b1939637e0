//! The two directions of an HTTP/2 stream that has become a tunnel (RFC 8441).

use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::ReadBuf;

/// The two directions of a stream that is a tunnel. Dropped, it is reset unless both sides have ended it.
pub(crate) struct Http2Ends {
    pub(crate) receive: RecvStream,
    pub(crate) send: SendStream<Bytes>,
    /// Data that was received and not read yet.
    unread: Bytes,
    has_ended: bool,
}

impl Http2Ends {
    pub(crate) fn new(receive: RecvStream, send: SendStream<Bytes>) -> Self {
        Self {
            receive,
            send,
            unread: Bytes::new(),
            has_ended: false,
        }
    }

    /// Reads what the other side sends.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // An empty DATA frame is no end.
        while self.unread.is_empty() {
            match ready!(self.receive.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Ok(data)) => self.unread = data,
                Some(Err(error)) => {
                    return Poll::Ready(match error.reason() {
                        // RFC 9113 section 8.5: what CANCEL is to a tunnel, an end is to a connection.
                        Some(Reason::NO_ERROR | Reason::CANCEL) => Ok(()),
                        _ => Err(io_error(error)),
                    });
                }
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        // It only fails for more than was received.
        let _ = self.receive.flow_control().release_capacity(count);
        Poll::Ready(Ok(()))
    }

    /// Sends the first of these bytes, for which there is room.
    pub(crate) fn send(&mut self, bytes: &[u8], room: usize) -> io::Result<usize> {
        let count = room.min(bytes.len());
        // `h2` keeps the data until its frame is written.
        let data = Bytes::copy_from_slice(&bytes[..count]);
        let sent = self.send.send_data(data, false);
        sent.map(|()| count).map_err(io_error)
    }

    /// Tells the other side that nothing more comes.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        // A stream cannot be ended twice.
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        let ended = self.send.send_data(Bytes::new(), true);
        ended.map_err(io_error)
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
