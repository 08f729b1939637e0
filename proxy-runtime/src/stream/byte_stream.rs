//! Byte streams, as those who read and write messages see them.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// A byte stream that messages are read from and written to, as a whole and not piece by piece.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {
    /// Whether nobody has had to wait for this stream yet, so that the runtime does not know of it and who waits for something
    /// else spares it that by not asking.
    #[cfg(feature = "server")]
    #[inline]
    fn is_early(&self) -> bool {
        false
    }

    /// Whether something has come on a stream that is [early](Self::is_early): the system is asked.
    #[cfg(feature = "server")]
    fn has_come_early(&self) -> bool {
        false
    }

    /// Whether something may have come, as far as that is known without asking the system.
    #[inline]
    fn may_be_readable(&self) -> bool {
        true
    }

    /// Ready when it is worth to read, for which there must be a buffer then. That nothing comes all the same is possible.
    #[inline]
    fn poll_readable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Reads what has come into the room that `buffer` has, and returns how much it was; 0 at the end of the stream.
    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        pin!(self.read_buf(buffer)).poll(cx)
    }

    /// Writes as much of `slices` as the stream takes, and returns how much it was.
    #[inline]
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [only] => Pin::new(self).poll_write(cx, only),
            several => Pin::new(self).poll_write_vectored(cx, several),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl ByteStream for tokio::net::TcpStream {}

#[cfg(test)]
impl ByteStream for tokio::io::DuplexStream {}
