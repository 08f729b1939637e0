//! The body of a request on its way to a destination.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::continuation::Gate;
use super::error::{ForwardError, ForwardErrorKind};
use super::exchange::{Exchange, Stage};
use super::headers;
use super::timeout::IdleTimer;
use crate::BoxError;

type Client = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// The body of a request on its way to a destination: the client's, counted and checked.
///
/// It is read when the destination takes it and never ahead. Its error ends the request at the destination: the
/// HTTP/1.1 connection closes, the HTTP/2 stream is reset.
pub(crate) struct RequestBody {
    client: Option<Box<Uploading>>,
    /// A frame that was taken and could not be sent. It has been counted.
    put_back: Option<Box<Frame<Bytes>>>,
}

struct Uploading {
    client: Client,
    exchange: Arc<Exchange>,
    /// Bytes that `Content-Length` still promises.
    promised: Option<u64>,
    /// Bytes that the route still allows.
    allowed: Option<u64>,
    gate: Option<Gate>,
    /// The destination was given something, and has taken it when it asks for more.
    was_given: bool,
    idle: IdleTimer,
}

/// What is to be watched while a body is sent.
#[derive(Debug, Default)]
pub(crate) struct UploadLimits {
    /// The value of `Content-Length`.
    pub(crate) promised: Option<u64>,
    /// The most bytes that the route allows.
    pub(crate) allowed: Option<u64>,
    /// Closed until the destination wants the body.
    pub(crate) gate: Option<Gate>,
}

impl RequestBody {
    /// No body.
    pub(crate) const fn empty() -> Self {
        Self {
            client: None,
            put_back: None,
        }
    }

    /// A body for a request to no destination in particular.
    #[cfg(test)]
    pub(crate) fn of<B>(client: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let destination = crate::fixtures::destination();
        let guard = destination.enter();
        let in_flight = crate::state::InFlight::new(destination, guard);
        let exchange = Exchange::new(
            in_flight,
            std::time::Duration::from_secs(100),
            tokio::time::Instant::now(),
        );
        Self::new(client, &Arc::new(exchange), UploadLimits::default())
    }

    /// Makes the frame that was taken last the next one again.
    pub(crate) fn put_back(&mut self, frame: Box<Frame<Bytes>>) {
        self.put_back = Some(frame);
    }

    /// The destination has taken some more of what was taken of it.
    pub(crate) fn has_moved(&self) {
        if let Some(uploading) = &self.client {
            uploading.exchange.activity.touch();
        }
    }

    /// What was taken of it waits for the destination, although the client was asked for more.
    pub(crate) fn wait_for_destination(&self) {
        if let Some(uploading) = &self.client
            && uploading.exchange.upload.stage() == Stage::Client
        {
            uploading.exchange.upload.enter(Stage::Destination);
        }
    }

    /// The client's body.
    pub(crate) fn new<B>(client: B, exchange: &Arc<Exchange>, limits: UploadLimits) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let UploadLimits {
            promised,
            allowed,
            gate,
        } = limits;
        exchange.upload.enter(match gate {
            Some(_) => Stage::Continue,
            None => Stage::Client,
        });
        Self {
            client: Some(Box::new(Uploading {
                client: Box::pin(client.map_err(Into::into)),
                exchange: Arc::clone(exchange),
                promised,
                allowed,
                gate,
                was_given: false,
                idle: IdleTimer::default(),
            })),
            put_back: None,
        }
    }
}

impl Uploading {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.poll_open(cx));
            self.gate = None;
        }
        self.exchange.upload.enter(Stage::Client);
        let was_given = std::mem::replace(&mut self.was_given, true);
        match self.client.as_mut().poll_frame(cx) {
            Poll::Pending => {
                self.was_given = false;
                if was_given {
                    self.exchange.activity.touch();
                }
                let expired = self.idle.poll_expired(cx, &self.exchange.activity);
                ready!(expired);
                Poll::Ready(Some(Err(self.fail(StatusCode::REQUEST_TIMEOUT))))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                self.exchange.activity.touch();
                if let Some(data) = frame.data_ref() {
                    self.count(data.len())?;
                } else if let Some(trailers) = frame.trailers_mut() {
                    headers::strip_trailers(trailers);
                }
                self.exchange.upload.enter(if self.has_ended() {
                    Stage::Done
                } else {
                    Stage::Destination
                });
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let status = if is_too_large(error.as_ref()) {
                    StatusCode::PAYLOAD_TOO_LARGE
                } else {
                    StatusCode::BAD_REQUEST
                };
                Poll::Ready(Some(Err(self.fail(status))))
            }
            Poll::Ready(None) if self.promised.is_some_and(|rest| rest > 0) => {
                Poll::Ready(Some(Err(self.fail(StatusCode::BAD_REQUEST))))
            }
            Poll::Ready(None) => {
                self.exchange.upload.enter(Stage::Done);
                Poll::Ready(None)
            }
        }
    }

    /// Whether nothing more will come, which is known without asking.
    fn has_ended(&self) -> bool {
        match self.promised {
            Some(rest) => rest == 0,
            None => self.client.is_end_stream(),
        }
    }

    fn count(&mut self, length: usize) -> Result<(), UploadError> {
        let length = length as u64;
        let destination = self.exchange.in_flight();
        destination.metrics().sent(length);
        if let Some(promised) = &mut self.promised {
            *promised = match promised.checked_sub(length) {
                Some(rest) => rest,
                None => return Err(self.fail(StatusCode::BAD_REQUEST)),
            };
        }
        if let Some(allowed) = &mut self.allowed {
            *allowed = match allowed.checked_sub(length) {
                Some(rest) => rest,
                None => return Err(self.fail(StatusCode::PAYLOAD_TOO_LARGE)),
            };
        }
        Ok(())
    }

    fn fail(&self, status: StatusCode) -> UploadError {
        let upload = &self.exchange.upload;
        upload.enter(Stage::Done);
        upload.fail(ForwardErrorKind::RequestBodyClient, status);
        UploadError::new()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(frame) = self.put_back.take() {
            return Poll::Ready(Some(Ok(*frame)));
        }
        let Some(uploading) = &mut self.client else {
            return Poll::Ready(None);
        };
        let polled = ready!(uploading.poll_frame(cx));
        let ended = match &polled {
            Some(Ok(frame)) => frame.is_trailers(),
            Some(Err(_)) | None => true,
        };
        if ended {
            // The client's connection is free, and the request is no longer in flight on this side.
            self.client = None;
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.put_back.is_none()
            && match &self.client {
                None => true,
                Some(uploading) => uploading.has_ended() && uploading.client.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        if self.put_back.is_some() {
            return SizeHint::default();
        }
        match &self.client {
            None => SizeHint::with_exact(0),
            Some(uploading) => match uploading.promised {
                Some(rest) => SizeHint::with_exact(rest),
                None => uploading.client.size_hint(),
            },
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody")
            .field("size", &self.size_hint())
            .finish_non_exhaustive()
    }
}

/// The error of a request's body. What happened is noted in the [`Exchange`]; this only ends the request.
#[derive(Debug)]
pub(crate) struct UploadError {
    /// Found by hyper, it becomes the code of the stream's reset (RFC 9113 section 7).
    #[cfg(feature = "http2")]
    reset: h2::Error,
}

impl UploadError {
    fn new() -> Self {
        Self {
            #[cfg(feature = "http2")]
            reset: h2::Reason::CANCEL.into(),
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's body cannot be sent")
    }
}

impl StdError for UploadError {
    #[cfg(feature = "http2")]
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.reset)
    }
}

/// Whether a limit that the program around the proxy set was exceeded.
pub(crate) fn is_too_large(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_refused = |error: &ForwardError| error.status() == StatusCode::PAYLOAD_TOO_LARGE;
        if error.is::<http_body_util::LengthLimitError>()
            || error.downcast_ref().is_some_and(is_refused)
        {
            return true;
        }
        cause = error.source();
    }
    false
}
