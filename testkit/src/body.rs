//! Bodies for requests and responses in tests.
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

/// Any error, as passed by bodies and handlers to hyper.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any kind.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// An empty body of known length.
pub fn empty() -> Body {
    boxed(Empty::new())
}

/// A body with these bytes and a known length, sent with `Content-Length`.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// A body with these bytes and trailers. The length is unknown, so HTTP/1.1 uses chunked coding.
pub fn with_trailers(bytes: impl Into<Bytes>, trailers: HeaderMap) -> Body {
    frames([Ok(data(bytes)), Ok(Frame::trailers(trailers))])
}

/// A body with these bytes, followed by an error: hyper closes the connection (HTTP/1.1) or resets
/// the stream (HTTP/2).
///
/// An [`h2::Error`] made from a [`Reason`](h2::Reason) decides the code of the reset.
pub fn failing(bytes: impl Into<Bytes>, error: impl Into<BoxError>) -> Body {
    frames([Ok(data(bytes)), Err(error.into())])
}

/// A body with these frames in order, each sent as soon as there is room. The length is unknown.
/// Frames before an error are sent.
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

/// An endless body that repeats `chunk`.
pub fn endless(chunk: impl Into<Bytes>) -> Body {
    boxed(Endless {
        chunk: chunk.into(),
    })
}

/// A body that the test feeds frame by frame; it ends when the sender is dropped.
///
/// Up to `buffer` frames (at least 1) are accepted before [`Sender::send`] waits. With 1, the
/// reader limits the sender, so a test can observe backpressure. [`Sender::abort`] makes the body
/// fail.
pub fn channel(buffer: usize) -> (Sender<Bytes, BoxError>, Body) {
    let (sender, body) = Channel::new(buffer.max(1));
    (sender, body.boxed_unsync())
}

/// Boxes any body of bytes.
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

struct Frames {
    frames: VecDeque<Result<Frame<Bytes>, BoxError>>,
    /// True once hyper was given time to send the frames before an error.
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
            // hyper sends buffered frames when a body is pending, but drops them when the body
            // fails at once.
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
