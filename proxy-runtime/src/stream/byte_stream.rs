//! Byte streams for reading and writing messages.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// A byte stream that one task reads and writes.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {
    /// True if the stream is not registered with the runtime yet, since no task has waited for it. A caller that
    /// waits for another event should not poll it then, which would register it.
    #[cfg(feature = "server")]
    #[inline]
    fn is_early(&self) -> bool {
        false
    }

    /// True if an [early](Self::is_early) stream has received data. Makes a system call.
    #[cfg(feature = "server")]
    fn has_come_early(&self) -> bool {
        false
    }

    /// True if data may be available, as far as is known without a system call.
    #[inline]
    fn may_be_readable(&self) -> bool {
        true
    }

    /// Ready when a read is worth while, for which a buffer is needed. The read may still find no
    /// data.
    #[inline]
    fn poll_readable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Reads into the spare capacity of `buffer`. Returns the number of bytes; 0 at the end of the
    /// stream.
    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        pin!(self.read_buf(buffer)).poll(cx)
    }

    /// Writes as much of `slices` as the stream accepts. Returns the number of bytes.
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
