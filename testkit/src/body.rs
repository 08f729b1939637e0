//! Bodies for requests and answers, as tests want them.
//!
//! ```
//! use testkit::body;
//!
//! let text = body::full("hello");
//! let upload = body::frames([Ok(body::data("one, ")), Ok(body::data("two"))]);
//! let broken = body::failing("first half", "the disk is gone");
//! # drop((text, upload, broken));
//! ```

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// Any error, as bodies and handlers hand it to hyper.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any kind.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Nothing, and known to be nothing.
pub fn empty() -> Body {
    boxed(Empty::new())
}

/// These bytes, with their length known (so sent with `Content-Length`).
pub fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// These bytes, then these trailers. Of unknown length, so sent with chunked coding over HTTP/1.1.
pub fn with_trailers(bytes: impl Into<Bytes>, trailers: HeaderMap) -> Body {
    frames([Ok(data(bytes)), Ok(Frame::trailers(trailers))])
}

/// These bytes, then an error: hyper cuts the connection (HTTP/1.1) or resets the stream (HTTP/2).
///
/// An [`h2::Error`] made from a [`Reason`](h2::Reason) decides the code of the reset.
pub fn failing(bytes: impl Into<Bytes>, error: impl Into<BoxError>) -> Body {
    frames([Ok(data(bytes)), Err(error.into())])
}

/// These frames, in this order, each as soon as there is room for it. Of unknown length. What comes before an error is sent.
pub fn frames(frames: impl IntoIterator<Item = Result<Frame<Bytes>, BoxError>>) -> Body {
    boxed(Frames {
        frames: frames.into_iter().collect(),
        flushed: false,
    })
}

/// A frame of data, for [`frames`] and [`channel`].
pub fn data(bytes: impl Into<Bytes>) -> Frame<Bytes> {
    Frame::data(bytes.into())
}

/// The same chunk without end.
pub fn endless(chunk: impl Into<Bytes>) -> Body {
    boxed(Endless {
        chunk: chunk.into(),
    })
}

/// A body that the test feeds frame by frame; it ends when the sender is dropped.
///
/// Up to `buffer` frames (at least 1) are taken before [`Sender::send`] waits, so with 1 the sender is held back by
/// the reader: that is how a test sees back-pressure. [`Sender::abort`] makes the body fail.
pub fn channel(buffer: usize) -> (Sender<Bytes, BoxError>, Body) {
    let (sender, body) = Channel::new(buffer.max(1));
    (sender, body.boxed_unsync())
}

/// Any body of bytes as a [`Body`].
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

struct Frames {
    frames: VecDeque<Result<Frame<Bytes>, BoxError>>,
    /// Whether hyper was given the time to send what came before an error.
    flushed: bool,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if matches!(this.frames.front(), Some(Err(_))) && !this.flushed {
            // hyper sends what it has when a body has to be waited for, but drops it all when the body fails at once.
            this.flushed = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(this.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }
}

struct Endless {
    chunk: Bytes,
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}
