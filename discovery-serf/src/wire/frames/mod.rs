//! The boundaries between messages.

mod skipper;
#[cfg(test)]
mod tests;

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) use self::skipper::{Skipper, Violation};

/// Minimum and maximum number of bytes that are read at a time.
const READ: (usize, usize) = (4 << 10, 64 << 10);

/// A buffer that has become longer than this, in bytes, is given back after the message that needed it.
const KEPT: usize = 64 << 10;

/// The reason why there is no further message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// A malformed message, or one beyond the limits.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The stream has ended inside of a message.
    #[error("the connection ended in the middle of a message")]
    Truncated,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Cuts a stream into messages.
///
/// The buffer holds one incomplete message of at most `max_frame` bytes, and the bytes that were read after
/// it, which are fewer than [`READ`] allows. A length that a peer only announces allocates nothing.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    io: R,
    buffer: BytesMut,
    skipper: Skipper,
    max_frame: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(io: R, max_frame: usize) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
            skipper: Skipper::new(),
            max_frame,
        }
    }

    /// Returns the next message, or `None` at the end of the stream. No message follows an error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: what has been read is kept.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            if let Some(length) = self.skipper.advance(&self.buffer, self.max_frame)? {
                return Ok(Some(self.split_off(length)));
            }
            if self.buffer.capacity() == self.buffer.len() {
                self.buffer.reserve(self.buffer.len().max(READ.0));
            }
            let mut room = (&mut self.buffer).limit(READ.1);
            if self.io.read_buf(&mut room).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(FrameError::Truncated)
                };
            }
        }
    }

    /// Number of bytes of the incomplete message.
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn split_off(&mut self, length: usize) -> Bytes {
        let frame = self.buffer.split_to(length).freeze();
        if length > KEPT {
            // What is left shares the long buffer, which would live on with it. It is at most one read.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        frame
    }
}
