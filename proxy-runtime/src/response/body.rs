//! The body of a response of the tower service: the program polls it, and its end, or dropping it, finishes the
//! request's metrics.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::BoxError;
use crate::error::{Cause, ForwardError, ForwardErrorKind};
use crate::response::ExchangeBody;
use crate::response::OpenRecorder;

/// The body of a response on its way to the client.
///
/// It is read from the destination when the client takes it, and never ahead by more than the buffers of the
/// connection. An error means that the response is cut off: a server has to end the connection (HTTP/1.1) or reset
/// the stream (HTTP/2), so that the client does not take what it got for the whole. With hyper this happens by
/// itself; the reset has the code `INTERNAL_ERROR`.
///
/// Dropped before its end, it cancels the request at the destination.
pub struct ProxyBody {
    source: BodySource,
    recorder: Option<(OpenRecorder, Option<ForwardErrorKind>)>,
    hook: Option<Hook>,
    bytes: u64,
}

type Hook = Box<dyn FnOnce(BodyEnd) + Send>;

enum BodySource {
    Empty,
    Text(Bytes),
    Exchange(ExchangeBody),
    /// The body that a layer made.
    Mapped(Pin<Box<dyn Body<Data = Bytes, Error = ForwardErrorKind> + Send>>),
    /// The body has failed, and the next poll returns the error.
    Failed(ForwardErrorKind),
}

/// The end of the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyEnd {
    /// Bytes that were handed to the client's connection, without trailers and framing.
    pub bytes: u64,
    /// The error; `None` after the whole body.
    pub error: Option<ForwardErrorKind>,
}

/// The body of a response was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyError {
    kind: ForwardErrorKind,
}

impl ProxyBody {
    /// No body.
    pub fn empty() -> Self {
        Self::from_source(BodySource::Empty)
    }

    /// A short text.
    pub fn text(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return Self::empty();
        }
        Self::from_source(BodySource::Text(text))
    }

    /// Takes the text of a local reply. Empty for other bodies.
    pub(crate) fn take_text(&mut self) -> Bytes {
        match std::mem::replace(&mut self.source, BodySource::Empty) {
            BodySource::Text(text) => text,
            other => {
                self.source = other;
                Bytes::new()
            }
        }
    }

    pub(crate) fn exchange(body: ExchangeBody) -> Self {
        Self::from_source(BodySource::Exchange(body))
    }

    /// Creates a body from one that a layer made.
    pub(crate) fn mapped<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // A body that has ended needs no box.
        if body.is_end_stream() {
            return Self::empty();
        }
        let body = body.map_err(|error| kind_of(&*error.into()));
        Self::from_source(BodySource::Mapped(Box::pin(body)))
    }

    fn from_source(source: BodySource) -> Self {
        Self {
            source,
            recorder: None,
            hook: None,
            bytes: 0,
        }
    }

    /// Calls `hook` once, when the body has ended, failed, or is dropped. A further hook is called after those that
    /// were there before.
    pub fn on_end(&mut self, hook: impl FnOnce(BodyEnd) + Send + 'static) {
        let hook: Hook = match self.hook.take() {
            None => Box::new(hook),
            Some(first) => Box::new(move |end| {
                first(end);
                hook(end);
            }),
        };
        self.hook = Some(hook);
    }

    /// Counts the request when the body ends: as failed if the body reports `error`.
    ///
    /// If there is one already that counts an attempt, it ends together with the request.
    pub(crate) fn recorder(&mut self, mut recorder: OpenRecorder, error: Option<ForwardErrorKind>) {
        if let Some((attempt, earlier)) = self.recorder.take() {
            recorder.ends_with(attempt, earlier);
        }
        self.recorder = Some((recorder, error));
    }

    fn end(&mut self, error: Option<ForwardErrorKind>) {
        self.source = BodySource::Empty;
        if let Some((recorder, earlier)) = self.recorder.take() {
            recorder.end(earlier.or(error));
        }
        if let Some(hook) = self.hook.take() {
            hook(BodyEnd {
                bytes: self.bytes,
                error,
            });
        }
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let polled = match &mut this.source {
            BodySource::Empty => None,
            BodySource::Text(text) => {
                let text = std::mem::take(text);
                this.source = BodySource::Empty;
                Some(Ok(Frame::data(text)))
            }
            BodySource::Exchange(body) => ready!(body.poll_frame(cx)),
            BodySource::Mapped(body) => ready!(body.as_mut().poll_frame(cx)),
            BodySource::Failed(kind) => {
                let kind = *kind;
                this.end(Some(kind));
                return Poll::Ready(Some(Err(BodyError { kind })));
            }
        };
        match polled {
            Some(Ok(frame)) => {
                this.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                // A server does not poll a body again that says that it has ended.
                if this.is_end_stream() {
                    this.end(None);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(kind)) => {
                // A server may throw away what it has not sent yet when a body fails. Given the time, it sends it.
                this.source = BodySource::Failed(kind);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                this.end(None);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Empty => true,
            BodySource::Text(_) | BodySource::Failed(_) => false,
            BodySource::Exchange(body) => body.has_ended(),
            BodySource::Mapped(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Empty => SizeHint::with_exact(0),
            BodySource::Text(text) => SizeHint::with_exact(text.len() as u64),
            BodySource::Exchange(body) => body.size_hint(),
            BodySource::Mapped(body) => body.size_hint(),
            BodySource::Failed(_) => SizeHint::default(),
        }
    }
}

/// An abandoned body counts as complete if nothing of it is left, else as cancelled.
impl Drop for ProxyBody {
    fn drop(&mut self) {
        let error = match self.source {
            // Dropped before the poll that would have returned the error.
            BodySource::Failed(kind) => Some(kind),
            BodySource::Exchange(ref body) if body.is_whole() => None,
            // A text is there as a whole. That of a response to HEAD is not read.
            BodySource::Text(_) => None,
            _ if self.is_end_stream() => None,
            _ => Some(ForwardErrorKind::ResponseBodyCanceled.because(Cause::of_drop())),
        };
        self.end(error);
    }
}

impl Default for ProxyBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for ProxyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyBody")
            .field("size", &self.size_hint())
            .field("sent", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Returns the kind of error for a failed body that a layer made.
fn kind_of(error: &(dyn StdError + 'static)) -> ForwardErrorKind {
    let mut cause = Some(error);
    // A layer may have wrapped the error.
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<BodyError>() {
            return error.kind();
        }
        if let Some(error) = error.downcast_ref::<ForwardError>() {
            return error.kind();
        }
        cause = error.source();
    }
    ForwardErrorKind::Extension
}

impl BodyError {
    /// Returns the kind of error.
    pub fn kind(&self) -> ForwardErrorKind {
        self.kind
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the response was cut off: {}", self.kind)
    }
}

/// An error without a source, on purpose: hyper looks for an HTTP/2 error in the sources and resets the client's
/// stream with its code; the code that a destination chose (`REFUSED_STREAM`, say) would tell the client something
/// untrue.
impl StdError for BodyError {}
