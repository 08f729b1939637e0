//! A client's body on the typed path, as connections to destinations take it: each polls it, and drops it when it has
//! ended.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::BoxError;
use crate::error::status_of;
use crate::error::{Allowance, ForwardErrorKind};
use crate::head::headers;
use crate::progress::Gate;
use crate::progress::IdleTimer;
use crate::progress::SharedProgress;
use crate::progress::Stage;

type IncomingUpload = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// The body of a request on its way to a destination: the client's, counted and checked.
///
/// It is read when the destination takes it and never ahead. Its error ends the request at the destination: the
/// HTTP/1.1 connection closes, the HTTP/2 stream is reset.
///
/// Who can tell what was sent takes it by [`poll_part`](Self::poll_part), and tells. As a [`Body`] it takes what it
/// has handed out for sent: more cannot be known of who polls it.
pub(crate) struct OutgoingBody {
    client: Option<Box<Uploading>>,
    /// Frames that were taken and could not be sent, the first one last.
    put_back: Vec<Frame<Bytes>>,
    /// There until all was sent.
    progress: Option<Arc<SharedProgress>>,
}

struct Uploading {
    client: IncomingUpload,
    /// Bytes that `Content-Length` still promises.
    promised: Option<u64>,
    /// Bytes that the route still allows.
    allowed: Allowance,
    gate: Option<Gate>,
    /// The destination was given something, and has taken it when it asks for more.
    was_given: bool,
    idle: IdleTimer,
}

/// The limits that are checked while a body is sent.
#[derive(Debug, Default)]
pub(crate) struct UploadLimits {
    /// The value of `Content-Length`.
    pub(crate) promised: Option<u64>,
    /// The most bytes that the route allows.
    pub(crate) allowed: Option<u64>,
    /// Closed until the destination wants the body.
    pub(crate) gate: Option<Gate>,
}

impl OutgoingBody {
    /// No body.
    pub(crate) const fn empty() -> Self {
        Self {
            client: None,
            put_back: Vec::new(),
            progress: None,
        }
    }

    /// A body that is there as a whole, of a request that no client made.
    #[cfg(feature = "http2")]
    pub(crate) fn whole(content: Bytes) -> Self {
        let mut body = Self::empty();
        body.put_back.push(Frame::data(content));
        body
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
        let in_flight = crate::live::InFlight::new(destination, guard);
        let progress = SharedProgress::new(
            in_flight,
            std::time::Duration::from_secs(100),
            tokio::time::Instant::now(),
        );
        Self::new(client, &Arc::new(progress), UploadLimits::default())
    }

    /// Goes to another destination, of which not a byte was sent to the last one.
    pub(crate) fn move_to(&mut self, progress: &Arc<SharedProgress>) {
        if let Some(before) = self.progress.as_mut() {
            progress.upload.enter(before.upload.stage());
            *before = Arc::clone(progress);
        }
    }

    /// Makes the frames that were taken last the next ones again.
    pub(crate) fn put_back(&mut self, frames: Vec<Frame<Bytes>>) {
        self.put_back.extend(frames.into_iter().rev());
    }

    /// The destination has taken some more of what was taken of it.
    pub(crate) fn has_moved(&self) {
        if let Some(progress) = &self.progress {
            progress.activity.touch();
        }
    }

    /// Records that data waits for the destination, although the client was polled for more.
    pub(crate) fn wait_for_destination(&self) {
        if let Some(progress) = &self.progress
            && progress.upload.stage() == Stage::Client
        {
            progress.upload.enter(Stage::Destination);
        }
    }

    /// The destination takes no more of it, whatever the client was asked for.
    pub(crate) fn broke_at_destination(&self) {
        if let Some(progress) = &self.progress
            && progress.upload.stage() != Stage::Continue
        {
            progress.upload.enter(Stage::Destination);
        }
    }

    /// Counts sent content.
    pub(crate) fn sent(&self, bytes: u64) {
        if let Some(progress) = self.progress.as_ref().filter(|_| bytes > 0) {
            progress.in_flight().metrics().sent(bytes);
        }
    }

    /// All of it was sent, or no more will be. It holds nothing any more.
    pub(crate) fn end(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.upload.enter(Stage::Done);
        }
        *self = Self::empty();
    }

    /// The next part. Whether it was sent is told by [`sent`](Self::sent) and [`end`](Self::end); until then it waits
    /// for the destination.
    pub(crate) fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(frame) = self.put_back.pop() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let (Some(uploading), Some(progress)) = (&mut self.client, &self.progress) else {
            return Poll::Ready(None);
        };
        let polled = ready!(uploading.poll_frame(progress, cx));
        let has_ended = match &polled {
            Some(Ok(frame)) => frame.is_trailers(),
            Some(Err(_)) | None => true,
        };
        if has_ended {
            // The client's connection is free.
            self.client = None;
        }
        Poll::Ready(polled)
    }

    /// The client's body.
    pub(crate) fn new<B>(client: B, progress: &Arc<SharedProgress>, limits: UploadLimits) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let UploadLimits {
            promised,
            allowed,
            gate,
        } = limits;
        progress.upload.enter(match gate {
            Some(_) => Stage::Continue,
            None => Stage::Client,
        });
        Self {
            client: Some(Box::new(Uploading {
                client: Box::pin(client.map_err(Into::into)),
                promised,
                allowed: Allowance::new(allowed),
                gate,
                was_given: false,
                idle: IdleTimer::default(),
            })),
            put_back: Vec::new(),
            progress: Some(Arc::clone(progress)),
        }
    }
}

impl Uploading {
    fn poll_frame(
        &mut self,
        progress: &SharedProgress,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.poll_open(cx));
            self.gate = None;
        }
        progress.upload.enter(Stage::Client);
        let was_given = std::mem::replace(&mut self.was_given, true);
        match self.client.as_mut().poll_frame(cx) {
            Poll::Pending => {
                self.was_given = false;
                if was_given {
                    progress.activity.touch();
                }
                ready!(self.idle.poll_expired(cx, &progress.activity));
                Poll::Ready(Some(Err(fail(progress, StatusCode::REQUEST_TIMEOUT))))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                progress.activity.touch();
                if let Some(data) = frame.data_ref() {
                    let checked = self.check(data.len());
                    checked.map_err(|status| fail(progress, status))?;
                } else if let Some(trailers) = frame.trailers_mut() {
                    headers::strip_trailers(trailers);
                }
                progress.upload.enter(Stage::Destination);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let status = status_of(error.as_ref());
                Poll::Ready(Some(Err(fail(progress, status))))
            }
            Poll::Ready(None) if self.promised.is_some_and(|rest| rest > 0) => {
                Poll::Ready(Some(Err(fail(progress, StatusCode::BAD_REQUEST))))
            }
            Poll::Ready(None) => {
                progress.upload.enter(Stage::Destination);
                Poll::Ready(None)
            }
        }
    }

    /// Returns true if the body has ended, as far as known without polling.
    fn has_ended(&self) -> bool {
        match self.promised {
            Some(rest) => rest == 0,
            None => self.client.is_end_stream(),
        }
    }

    /// Checks the length of further data against the limits. Fails with the status for the client.
    fn check(&mut self, length: usize) -> Result<(), StatusCode> {
        let length = length as u64;
        if let Some(promised) = &mut self.promised {
            let rest = promised.checked_sub(length);
            *promised = rest.ok_or(StatusCode::BAD_REQUEST)?;
        }
        self.allowed.take(length)
    }
}

fn fail(progress: &SharedProgress, status: StatusCode) -> UploadError {
    let upload = &progress.upload;
    upload.enter(Stage::Done);
    upload.fail(ForwardErrorKind::RequestBodyClient, status);
    UploadError
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let polled = ready!(self.poll_part(cx));
        if let Some(Ok(frame)) = &polled {
            self.sent(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        let has_ended = self.client.as_ref().is_none_or(|client| client.has_ended());
        if let Some(progress) = &self.progress
            && has_ended
        {
            progress.upload.enter(Stage::Done);
        }
        if self.client.is_none() {
            // The request is no longer in flight on this side.
            self.progress = None;
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.put_back.is_empty()
            && match &self.client {
                None => true,
                Some(uploading) => uploading.has_ended() && uploading.client.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        if !self.put_back.is_empty() {
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

impl fmt::Debug for OutgoingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingBody")
            .field("size", &self.size_hint())
            .finish_non_exhaustive()
    }
}

/// The error of a request's body. What happened is noted in the [`SharedProgress`]; this only ends the request.
#[derive(Debug)]
pub(crate) struct UploadError;

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's body cannot be sent")
    }
}

impl StdError for UploadError {}
