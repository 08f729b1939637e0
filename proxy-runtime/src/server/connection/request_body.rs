//! A request's body, as a service gets it.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use super::state::ConnectionState;
use crate::server::limits::DataRate;
use crate::server::metrics::WorkerMetrics;

/// The body of a request that the server received: streams, and obeys [`Limits`](crate::server::Limits).
///
/// Its data are read from the connection as they are asked for; a body that nobody reads holds no more memory than the
/// connection's buffer or, on HTTP/2, the stream's window.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    /// `None` for a request without a body.
    meter: Option<Arc<BodyMeter>>,
    limit: Option<u64>,
    pace: Option<Pace>,
    has_ended: bool,
}

/// Why a request's body ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestBodyError {
    /// The body is larger than [`Limits::body_bytes`](crate::server::Limits::body_bytes).
    #[error("the request's body is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The client is slower than [`Limits::data_rate`](crate::server::Limits::data_rate).
    #[error("the request's body arrives too slowly")]
    TooSlow,
    /// The client went away, or broke the protocol.
    #[error("the request's body could not be read")]
    Read(#[source] Box<dyn StdError + Send + Sync>),
}

impl RequestBodyError {
    /// What the client is told if the response has not begun.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Read(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// What the rest of the exchange wants to know of a body.
#[derive(Debug)]
pub(crate) struct BodyMeter {
    connection: Arc<ConnectionState>,
    received: AtomicU64,
    refusal: AtomicU8,
}

#[repr(u8)]
enum BodyRefusal {
    None,
    TooLarge,
    TooSlow,
}

impl BodyMeter {
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// The status, if the body was refused on the way.
    pub(crate) fn refusal(&self) -> Option<StatusCode> {
        let refusal = self.refusal.load(SeqCst);
        if refusal == BodyRefusal::TooLarge as u8 {
            Some(StatusCode::PAYLOAD_TOO_LARGE)
        } else if refusal == BodyRefusal::TooSlow as u8 {
            Some(StatusCode::REQUEST_TIMEOUT)
        } else {
            None
        }
    }

    fn refuse(&self, refusal: BodyRefusal) {
        self.refusal.store(refusal as u8, SeqCst);
    }
}

impl RequestBody {
    pub(crate) fn new(
        incoming: Incoming,
        connection: &Arc<ConnectionState>,
        is_grpc: bool,
    ) -> Self {
        let limits = &connection.worker.limits;
        let meter = (!incoming.is_end_stream()).then(|| {
            Arc::new(BodyMeter {
                connection: connection.clone(),
                received: AtomicU64::new(0),
                refusal: AtomicU8::new(BodyRefusal::None as u8),
            })
        });
        Self {
            pace: limits
                .data_rate
                .filter(|_| meter.is_some() && !is_grpc)
                .map(Pace::new),
            limit: limits.body_bytes,
            incoming,
            meter,
            has_ended: false,
        }
    }

    pub(crate) fn meter(&self) -> Option<&Arc<BodyMeter>> {
        self.meter.as_ref()
    }

    fn poll_paced(&mut self, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let Some(pace) = &mut self.pace else {
            return polled.map(|frame| frame.map(read));
        };
        match polled {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    pace.arrived(frame.data_ref().map_or(0, Bytes::len) as u64);
                }
                Poll::Ready(frame.map(read))
            }
            Poll::Pending if pace.poll_too_slow(cx).is_ready() => {
                Poll::Ready(Some(Err(RequestBodyError::TooSlow)))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn check(&self, frame: FrameResult) -> FrameResult {
        let Some(meter) = &self.meter else {
            return frame;
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                if matches!(error, RequestBodyError::TooSlow) {
                    meter.refuse(BodyRefusal::TooSlow);
                    WorkerMetrics::add(&meter.connection.metrics().slow_clients);
                }
                return Err(error);
            }
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        let received = meter.received.fetch_add(bytes, Relaxed) + bytes;
        match self.limit {
            Some(limit) if received > limit => {
                meter.refuse(BodyRefusal::TooLarge);
                Err(RequestBodyError::TooLarge { limit })
            }
            _ => Ok(frame),
        }
    }
}

type FrameResult = Result<Frame<Bytes>, RequestBodyError>;

fn read(result: Result<Frame<Bytes>, hyper::Error>) -> FrameResult {
    result.map_err(|error| RequestBodyError::Read(error.into()))
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        if this
            .meter
            .as_ref()
            .is_some_and(|meter| meter.refusal().is_some())
        {
            return Poll::Ready(None);
        }
        let frame = ready!(this.poll_paced(cx)).map(|frame| this.check(frame));
        this.has_ended |= match &frame {
            None => true,
            Some(Ok(frame)) => frame.is_trailers(),
            Some(Err(_)) => false,
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter
            && !self.has_ended
            && !self.incoming.is_end_stream()
        {
            meter.connection.unread.store(true, Relaxed);
        }
    }
}
