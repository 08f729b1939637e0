//! Request bodies of layers.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::BoxError;
use crate::error::{Allowance, status_of};
use crate::error::{ForwardError, ForwardErrorKind};

/// The body of a request in a layer: the client's, or one that a layer created.
///
/// Errors that the client caused are [`ForwardError`]s. A layer that passes them on gets the same
/// local reply as without the layer.
pub struct ProxyRequestBody(Content);

enum Content {
    Empty,
    Bytes(Bytes),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl ProxyRequestBody {
    /// An empty body.
    pub const fn empty() -> Self {
        Self(Content::Empty)
    }

    /// Wraps any body.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // Boxing a body of this type again would add an allocation.
        match taken::<_, Self>(body) {
            Ok(same) => same,
            Err(body) if body.is_end_stream() => Self::empty(),
            Err(body) => Self(Content::Stream(Box::pin(WithBoxedError { body }))),
        }
    }

    /// The client's body, limited to the bytes that the route allows.
    pub(crate) fn of_client<B>(body: B, allowed: Option<u64>) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // A body that is known to be empty needs no box.
        if body.is_end_stream() {
            return Self::empty();
        }
        Self(Content::Stream(Box::pin(ClientBody {
            body,
            allowed: Allowance::new(allowed),
        })))
    }

    /// Returns a copy of a body in memory, for layers that retry. A client's body can be read only
    /// once: such a layer must collect it first, up to a limit of its own.
    pub fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Content::Empty => Some(Self::empty()),
            Content::Bytes(bytes) => Some(Self(Content::Bytes(bytes.clone()))),
            Content::Stream(_) => None,
        }
    }
}

/// Returns `value` as `T`, if it is one.
pub(super) fn taken<V: 'static, T: 'static>(value: V) -> Result<T, V> {
    let mut value = Some(value);
    // A comparison of types at run time: specialisation is not stable in Rust.
    match (&mut value as &mut dyn Any).downcast_mut::<Option<T>>() {
        Some(same) => Ok(same.take().expect("it was put there")),
        None => Err(value.expect("it was not taken")),
    }
}

impl From<Bytes> for ProxyRequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(if bytes.is_empty() {
            Content::Empty
        } else {
            Content::Bytes(bytes)
        })
    }
}

impl Default for ProxyRequestBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl Body for ProxyRequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Content::Empty => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Content::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Content::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Empty => true,
            Content::Bytes(_) => false,
            Content::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Empty => SizeHint::with_exact(0),
            Content::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for ProxyRequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyRequestBody")
            .field("size", &self.size_hint())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A body that a layer created.
    struct WithBoxedError<B> {
        #[pin]
        body: B,
    }
}

impl<B> Body for WithBoxedError<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = ready!(self.project().body.poll_frame(cx));
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pin_project! {
    /// The client's body.
    struct ClientBody<B> {
        #[pin]
        body: B,
        // Remaining bytes that the route allows.
        allowed: Allowance,
    }
}

impl<B> Body for ClientBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        let polled = match ready!(this.body.poll_frame(cx)) {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let taken = this.allowed.take(length);
                Some(taken.map_or_else(|status| Err(failed(status).into()), |()| Ok(frame)))
            }
            Some(Err(error)) => {
                let error = error.into();
                let status = status_of(&*error);
                Some(Err(failed(status).with_source(error).into()))
            }
            None => None,
        };
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn failed(status: StatusCode) -> ForwardError {
    ForwardError::new(ForwardErrorKind::RequestBodyClient, status)
}
