//! A response's body on its way to the client: counts it, and notices its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use log_sink::Seldom;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::record::RequestRecord;
use super::state::ConnectionState;
use crate::BoxError;
use crate::error::{Cause, Dropping};
use crate::forward::exchange::downstream::Record;
use crate::observe::{LOG_PAUSE, targets};
use crate::progress::{ClientReadLimit, ClientReadTimeout};
use crate::response::BodyError;
#[cfg(feature = "http2")]
use crate::server::access_log::Draft;
use crate::server::metrics::WorkerMetrics;
use crate::server::outcome::Outcome;

pin_project! {
    /// A response's body on its way to the client.
    pub(crate) struct ResponseBody<B> {
        #[pin]
        content: BodyContent<B>,
        tracking: Tracking,
    }
}

pin_project! {
    #[project = ContentProjection]
    enum BodyContent<B> {
        Service { #[pin] body: B },
        Text { text: Option<Bytes> },
    }
}

impl<B: Body> ResponseBody<B> {
    /// The body of the service's response. `limit`: the service's limit for a client that does not take it.
    pub(crate) fn service(
        body: B,
        record: RequestRecord,
        expected: Expected,
        limit: Option<ClientReadLimit>,
    ) -> Self {
        let is_complete = expected.is_complete(0) || body.is_end_stream();
        let mut tracking = Tracking::new(record, expected, is_complete);
        tracking.limit = limit;
        Self {
            content: BodyContent::Service { body },
            tracking,
        }
    }

    /// Returns the timeout of a client without a minimum rate: the server sets none, or the response
    /// `may_be_exempt` and is.
    pub(crate) fn read_timeout(&self, may_be_exempt: bool) -> Option<ClientReadTimeout> {
        let Tracking {
            record, expected, ..
        } = &self.tracking;
        let has_rate = record.connection.worker.limits.data_rate.is_some();
        let is_exempt = may_be_exempt && expected.is_exempt;
        // The minimum rate ends a client that takes nothing.
        if has_rate && !is_exempt {
            return None;
        }
        match self.tracking.limit {
            Some(limit) => Some(ClientReadTimeout::new(limit)),
            None if is_exempt => None,
            None => Some(ClientReadTimeout::new(ClientReadLimit::default())),
        }
    }

    /// The time at which a client that has not taken all of it times out.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.tracking.limit.and_then(|limit| limit.until())
    }

    /// Bytes that may wait behind a part of it that its client does not take.
    pub(crate) fn behind(&self) -> u64 {
        let limit = self.tracking.limit.filter(|_| !self.tracking.is_complete);
        limit.map_or(0, |limit| limit.behind())
    }

    /// Takes the line of the access log, for the tunnel that follows.
    #[cfg(feature = "http2")]
    pub(crate) fn take_draft(self: Pin<&mut Self>) -> Option<Box<Draft>> {
        self.project().tracking.record.draft.take()
    }

    /// Ends the response, which its client does not get whole for this cause.
    pub(crate) fn give_up(self: Pin<&mut Self>, cause: Cause) {
        let mut this = self.project();
        this.tracking.record.disconnected(cause);
        let _dropping = Dropping::because(cause);
        this.content.set(BodyContent::Text { text: None });
    }

    /// Records how many of the accepted bytes, framing included, are still unwritten, and whether the socket was
    /// flushed. For writers that write themselves; otherwise accepted data counts as written.
    pub(crate) fn written(self: Pin<&mut Self>, left: u64, is_flushed: bool) {
        let tracking = self.project().tracking;
        tracking.unwritten = left;
        tracking.is_flushed = is_flushed;
    }

    /// Creates the body of a local reply, a fixed text.
    pub(crate) fn text(text: Bytes, record: RequestRecord) -> Self {
        let expected = Expected::default();
        Self {
            content: BodyContent::Text { text: Some(text) },
            tracking: Tracking::new(record, expected, true),
        }
    }
}

/// The length of a response, as its head declares it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// True if the response has no body, whatever its head declares: to HEAD, 204, 304, and after a protocol switch.
    pub(crate) is_bodiless: bool,
    /// `Content-Length`.
    pub(crate) length: Option<u64>,
    /// gRPC and the like: a slow reader is no attacker.
    pub(crate) is_exempt: bool,
}

impl Expected {
    fn is_complete(&self, sent: u64) -> bool {
        self.is_bodiless || self.length.is_some_and(|length| sent >= length)
    }
}

/// The part of a body that does not depend on where the data come from.
struct Tracking {
    record: RequestRecord,
    expected: Expected,
    /// The client has been handed data that it has not taken.
    is_unsent: bool,
    is_complete: bool,
    unwritten: u64,
    is_flushed: bool,
    /// The service's limit for a client that does not take it.
    limit: Option<ClientReadLimit>,
}

impl Tracking {
    fn new(record: RequestRecord, expected: Expected, is_complete: bool) -> Self {
        Self {
            record,
            expected,
            is_unsent: false,
            is_complete,
            unwritten: 0,
            is_flushed: true,
            limit: None,
        }
    }

    fn connection(&self) -> &Arc<ConnectionState> {
        &self.record.connection
    }

    /// Records that there is room for more data: the accepted data is written, or waits within the connection's
    /// bounds.
    fn taken(&mut self) {
        if std::mem::take(&mut self.is_unsent) {
            self.connection().unacknowledged.fetch_sub(1, Relaxed);
        }
    }

    fn handed_over(&mut self, bytes: u64, is_end: bool) {
        self.record.sent += bytes;
        self.is_complete |= is_end || self.expected.is_complete(self.record.sent);
        if bytes > 0 && !self.expected.is_exempt {
            self.is_unsent = true;
            self.connection().unacknowledged.fetch_add(1, Relaxed);
        }
    }

    fn failed(&mut self, error: &BoxError) {
        self.record.outcome = Outcome::Failed;
        if let Some(draft) = &mut self.record.draft {
            draft.failed(error.downcast_ref::<BodyError>().map(BodyError::kind));
        }
    }
}

impl Drop for Tracking {
    fn drop(&mut self) {
        self.taken();
        let sent = &mut self.record.sent;
        // `unwritten` includes the framing, which `sent` does not.
        *sent = sent.saturating_sub(self.unwritten);
        if self.is_complete && self.is_flushed {
            self.record.outcome = Outcome::Complete;
        }
    }
}

impl<B> Body for ResponseBody<B>
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
        // The transport polls for more only once it has room.
        this.tracking.taken();
        let mut body = match this.content.project() {
            ContentProjection::Service { body } => body,
            ContentProjection::Text { text } => {
                let Some(text) = text.take() else {
                    return Poll::Ready(None);
                };
                this.tracking.handed_over(text.len() as u64, true);
                return Poll::Ready(Some(Ok(Frame::data(text))));
            }
        };
        // One request's bug is not that of its connection. The error ends the body, so that it is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll_frame(cx)));
        let frame = match polled {
            Ok(polled) => ready!(polled).map(|frame| frame.map_err(Into::into)),
            Err(_) => {
                WorkerMetrics::add(&this.tracking.connection().metrics().panics);
                static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
                if let Some(left_out) = SELDOM.pass() {
                    tracing::error!(target: targets::SERVER, left_out, "a response's body panicked");
                }
                Some(Err("the response's body panicked".into()))
            }
        };
        Poll::Ready(match frame {
            None => {
                this.tracking.is_complete = true;
                None
            }
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                let is_end = frame.is_trailers() || body.is_end_stream();
                this.tracking.handed_over(bytes as u64, is_end);
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                this.tracking.failed(&error);
                Some(Err(error))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            BodyContent::Service { body } => body.is_end_stream(),
            BodyContent::Text { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            BodyContent::Service { body } => body.size_hint(),
            BodyContent::Text { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}
