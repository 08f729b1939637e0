use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The activity of a connection, for the server that may need its place.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: Instant,
    /// The time of the last read or write, in milliseconds since `begun`.
    progress: AtomicU64,
    /// True while the server works on a response, so that the client waits and not the server.
    answering: AtomicBool,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            progress: AtomicU64::new(0),
            answering: AtomicBool::new(false),
        }
    }

    /// Returns the time since which the server waits for the client. `None` while the client waits for the
    /// server.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let progress = Duration::from_millis(self.progress.load(Ordering::Relaxed));
        let answering = self.answering.load(Ordering::Relaxed);
        (!answering).then(|| self.begun + progress)
    }

    fn progressed(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.progress.store(since, Ordering::Relaxed);
    }

    fn set_answering(&self, answering: bool) {
        self.progressed();
        self.answering.store(answering, Ordering::Relaxed);
    }

    /// Marks the client as waiting for the server, until the guard is dropped.
    pub(super) fn answering(&self) -> Turn<'_> {
        Turn::begin(self, true)
    }

    /// Marks the server as waiting for the rest of the request, until the guard is dropped.
    pub(super) fn reading(&self) -> Turn<'_> {
        Turn::begin(self, false)
    }
}

/// A guard: one side waits during its life, and the other afterwards.
pub(super) struct Turn<'a> {
    activity: &'a Activity,
    ours: bool,
}

impl<'a> Turn<'a> {
    fn begin(activity: &'a Activity, ours: bool) -> Self {
        activity.set_answering(ours);
        Self { activity, ours }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.activity.set_answering(!self.ours);
    }
}

/// A stream that records its progress, and fails if the other end does not read for too long.
pub(super) struct Watched<'a, S> {
    stream: S,
    activity: &'a Activity,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<'a, S> Watched<'a, S> {
    pub(super) fn new(stream: S, activity: &'a Activity, stall: Duration) -> Self {
        Self {
            stream,
            activity,
            stall,
            stalled: None,
        }
    }

    /// Records the progress of a write, and ends stalled connections.
    fn written<T>(
        &mut self,
        result: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.activity.progressed();
            self.stalled = None;
            return result;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stall)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its answer",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.progressed();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(result, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Flushed bytes were counted when they were written, so a flush is no progress.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.written(Poll::Pending, context),
            flushed @ Poll::Ready(_) => {
                self.stalled = None;
                flushed
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.written(result, context)
    }
}
