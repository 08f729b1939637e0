//! Transports that do what a test says.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// A transport that does what a test says.
pub(crate) trait Scripted: AsyncRead + AsyncWrite + Unpin + Send + Sync + Debug {
    /// Returns true if it imitates TLS.
    fn is_tls(&self) -> bool {
        false
    }
}

impl Scripted for DuplexStream {}

/// Looks open, takes so many bytes, and is reset then.
#[derive(Debug)]
pub(crate) struct Resetting {
    takes: usize,
    is_tls: bool,
    /// The number of writes that have to wait.
    stalls: usize,
    /// True if reading does not show the reset.
    is_silent: bool,
    is_reset: bool,
}

impl Resetting {
    pub(crate) fn after(takes: usize, is_tls: bool) -> Self {
        Self {
            takes,
            is_tls,
            stalls: 0,
            is_silent: false,
            is_reset: false,
        }
    }

    pub(crate) fn stalling(mut self, times: usize) -> Self {
        self.stalls = times;
        self
    }

    /// Makes every read wait forever.
    #[cfg(feature = "server")]
    pub(crate) fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }
}

impl Scripted for Resetting {
    fn is_tls(&self) -> bool {
        self.is_tls
    }
}

impl AsyncRead for Resetting {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.is_reset && !self.is_silent {
            true => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            false => Poll::Pending,
        }
    }
}

impl AsyncWrite for Resetting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.stalls > 0 {
            self.stalls -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.takes.min(buf.len()) {
            0 => {
                self.is_reset = true;
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
            taken => {
                self.takes -= taken;
                Poll::Ready(Ok(taken))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
