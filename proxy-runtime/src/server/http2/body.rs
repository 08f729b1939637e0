//! Request bodies of HTTP/2 streams for the `http` path.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::Frame;
use parking_lot::Mutex;

use crate::head::headers::strip_trailers;

/// The body of a request on a stream.
///
/// Flow control: the window opens by the size of a frame when the next frame is requested
/// (backpressure).
#[derive(Debug)]
pub(crate) struct StreamReader {
    stream: RecvStream,
    /// The rest of `Content-Length`, which `h2` enforces.
    left: Option<u64>,
    /// Number of bytes in the last frame that was returned.
    held: usize,
    has_ended: bool,
    /// Set until the first data arrives, if the client expects `100 Continue`.
    expectation: Option<Arc<Expectation>>,
}

/// A client that expects `100 Continue` before it sends its body (RFC 9110 section 10.1.1).
#[derive(Debug, Default)]
pub(super) struct Expectation(Mutex<Wait>);

#[derive(Debug, Default)]
struct Wait {
    /// True if the body is waited for.
    is_awaited: bool,
    /// The stream, which sends the interim response.
    stream: Option<Waker>,
}

impl Expectation {
    /// Records that the body is waited for.
    #[cold]
    fn wait(&self) {
        let stream = {
            let mut wait = self.0.lock();
            wait.is_awaited = true;
            wait.stream.take()
        };
        // Woken after the lock is released.
        if let Some(stream) = stream {
            stream.wake();
        }
    }

    /// Ready when the body is waited for.
    pub(super) fn poll_awaited(&self, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut wait = self.0.lock();
        if wait.is_awaited {
            return Poll::Ready(());
        }
        let before = wait.stream.replace(waker);
        // Dropping a waker may run foreign code, which must not run under the lock.
        drop(wait);
        drop(before);
        Poll::Pending
    }
}

impl StreamReader {
    /// `length`: the declared length of the body, if any.
    pub(super) fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self {
            stream,
            left: length,
            held: 0,
            has_ended: false,
            expectation: None,
        }
    }

    /// Tells `expectation` when the body is waited for, and nothing of it has come.
    pub(super) fn expect_continue(&mut self, expectation: Arc<Expectation>) {
        self.expectation = Some(expectation);
    }

    /// Returns true if the body has ended.
    pub(crate) fn is_end(&self) -> bool {
        self.has_ended || self.stream.is_end_stream()
    }

    /// Number of bytes to come, if known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.is_end() {
            true => Some(0),
            false => self.left,
        }
    }

    /// The next frame.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        // The reader has consumed the previous data: the window opens by it.
        let held = std::mem::take(&mut self.held);
        if held > 0 {
            // The call fails only for more than was received.
            let _ = self.stream.flow_control().release_capacity(held);
        }
        loop {
            let polled = self.stream.poll_data(cx);
            if let Some(expectation) = self.expectation.take()
                && polled.is_pending()
            {
                expectation.wait();
            }
            match ready!(polled) {
                // An empty frame has no news for the reader, and no window to return.
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.held = data.len();
                    self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => {
                    self.has_ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => break,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx));
        self.has_ended = true;
        Poll::Ready(match trailers {
            Ok(trailers) => trailers.map(|mut trailers| {
                strip_trailers(&mut trailers);
                Ok(Frame::trailers(trailers))
            }),
            Err(error) => Some(Err(error)),
        })
    }
}
