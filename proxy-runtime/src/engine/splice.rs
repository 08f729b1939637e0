//! Large bodies that pass from socket to socket without the program seeing them.
//!
//! It saves two copies, and costs two calls for what one read and one write do otherwise. So it is for bodies of which the length
//! is known and much is still to come, between two sockets without TLS.

use std::io;
use std::task::{Context, Poll, ready};

use crate::stream::{ByteStream, Pipe};

/// So much has to be still to come.
const LEAST: u64 = 128 * 1024;

/// The way of a body past the program. It has a pipe only while something is in that, or moves.
#[derive(Debug, Default)]
pub(super) struct Splice {
    pipe: Option<Pipe>,
    is_begun: bool,
    /// It cannot be done, be it that there are too many pipes.
    is_refused: bool,
}

impl Splice {
    /// Whether a body of which `left` is to come takes this way. When it has begun, it does to its end.
    #[inline]
    pub(super) fn takes<F, T>(&mut self, left: u64, from: &F, to: &T) -> bool
    where
        F: ByteStream,
        T: ByteStream,
    {
        if left < LEAST && !self.is_begun {
            return false;
        }
        self.is_begun = !self.is_refused && from.can_splice() && to.can_splice();
        self.is_begun
    }

    /// Whether something has come that was not passed on.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| !pipe.is_empty())
    }

    /// Whether what comes is to be read after all.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Takes up to `most` bytes that have come; ready with 0 at the end of the stream.
    ///
    /// # Errors
    ///
    /// The stream's, or [`is_refused`](Self::is_refused).
    pub(super) fn poll_in<F: ByteStream>(
        &mut self,
        from: &mut F,
        cx: &mut Context<'_>,
        most: u64,
    ) -> Poll<io::Result<u64>> {
        let Some(mut pipe) = self.pipe.take().or_else(Pipe::take) else {
            return Poll::Ready(Err(self.refuse()));
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let polled = from.poll_splice_in(cx, &mut pipe, most);
        match polled {
            Poll::Ready(Ok(1..)) => self.pipe = Some(pipe),
            // Who waits holds none.
            _ => pipe.give_back(),
        }
        Poll::Ready(match ready!(polled) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(self.refuse()),
            result => result.map(|moved| moved as u64),
        })
    }

    /// Passes on what was taken, as much as is taken there.
    pub(super) fn poll_out<T: ByteStream>(
        &mut self,
        to: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>> {
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(Ok(0));
        };
        let moved = ready!(to.poll_splice_out(cx, pipe))?;
        if moved == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        Poll::Ready(Ok(moved as u64))
    }

    /// To be polled when something was passed on: not ready when that was all, since it is another connection's turn then.
    ///
    /// What one connection has waiting is as much as a cache holds. Who passes on all of it before it looks at the others meets
    /// all of theirs in memory: that costs what splicing saves (docs/performance.md).
    #[inline]
    pub(super) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.holds() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The body has ended, or is given up.
    #[inline]
    pub(super) fn end(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            pipe.give_back();
        }
        self.is_begun = false;
        self.is_refused = false;
    }

    #[cold]
    fn refuse(&mut self) -> io::Error {
        self.is_refused = true;
        io::ErrorKind::Unsupported.into()
    }
}
