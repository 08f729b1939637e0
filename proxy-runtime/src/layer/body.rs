//! The body of a request as layers see it.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::BoxError;
use crate::error::status_of;
use crate::error::{ForwardError, ForwardErrorKind};

/// The body of a request as layers see it: the client's, or one that a layer made.
///
/// Its errors are [`ForwardError`]s if the client is to blame: a layer that passes them on has them answered as they would
/// be without it.
pub struct ProxyRequestBody(Content);

enum Content {
    Empty,
    Bytes(Bytes),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl ProxyRequestBody {
    /// No body.
    pub const fn empty() -> Self {
        Self(Content::Empty)
    }

    /// Any body.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // What is one already is not boxed once more.
        match taken::<_, Self>(body) {
            Ok(same) => same,
            Err(body) if body.is_end_stream() => Self::empty(),
            Err(body) => Self(Content::Stream(Box::pin(WithBoxedError { body }))),
        }
    }

    /// The client's body, of which the route allows so many bytes.
    pub(crate) fn of_client<B>(body: B, allowed: Option<u64>) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self(Content::Stream(Box::pin(ClientBody { body, allowed })))
    }

    /// Another body like this one, if it is in memory: for layers that ask twice. A body that comes from the client can only
    /// be read once; such a layer collects it first, up to a size that it can bear.
    pub fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Content::Empty => Some(Self::empty()),
            Content::Bytes(bytes) => Some(Self(Content::Bytes(bytes.clone()))),
            Content::Stream(_) => None,
        }
    }
}

/// `value`, if it is a `T`.
pub(super) fn taken<V: 'static, T: 'static>(value: V) -> Result<T, V> {
    let mut value = Some(value);
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
    /// A body that a layer made.
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
        // Bytes that the route still allows.
        allowed: Option<u64>,
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
                match this.allowed.map(|allowed| allowed.checked_sub(length)) {
                    Some(None) => Some(Err(failed(StatusCode::PAYLOAD_TOO_LARGE).into())),
                    rest => {
                        *this.allowed = rest.flatten();
                        Some(Ok(frame))
                    }
                }
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
