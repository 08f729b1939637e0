//! A request's body, as a service gets it.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU16, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};

use super::pace::UploadPace;
use super::state::ConnectionState;
use crate::error::{Allowance, RequestBodyError};
use crate::server::http1::{BodyReader, ChannelError};
#[cfg(feature = "http2")]
use crate::server::http2::StreamReader;
use crate::server::limits::Limits;
use crate::server::metrics::WorkerMetrics;

/// The body of a request that the server received: streams, and obeys [`Limits`](crate::server::Limits).
///
/// Its data are read from the connection on demand; an unread body holds no more memory than the connection's
/// buffer or, on HTTP/2, the stream's window.
#[derive(Debug)]
pub struct RequestBody {
    source: DataSource,
    /// `None` for a request without a body.
    meter: Option<Arc<BodyMeter>>,
    limit: Option<u64>,
    // Boxed: requests without a body, which most are, are moved with it.
    pace: Option<Box<UploadPace>>,
    has_ended: bool,
}

/// The source of the data.
#[derive(Debug)]
enum DataSource {
    /// All data, which arrived with the head.
    Whole(Option<Bytes>),
    Http1(BodyReader),
    #[cfg(feature = "http2")]
    Http2(StreamReader),
}

impl DataSource {
    fn poll_frame(&mut self, limits: &Limits, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        match self {
            Self::Whole(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            Self::Http1(reader) => reader.poll_frame(cx).map_err(|error| match error {
                ChannelError::TooManyTrailers => RequestBodyError::TooManyFields {
                    limit: limits.header_fields,
                },
                ChannelError::TrailersTooLarge => RequestBodyError::TrailersTooLarge {
                    limit: limits.header_bytes,
                },
                other => read_error(other),
            }),
            #[cfg(feature = "http2")]
            Self::Http2(reader) => reader.poll_frame(cx).map_err(read_error),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(data) => data.is_none(),
            Self::Http1(reader) => reader.is_end(),
            #[cfg(feature = "http2")]
            Self::Http2(reader) => reader.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(data) => SizeHint::with_exact(data.as_ref().map_or(0, Bytes::len) as u64),
            Self::Http1(reader) => reader
                .left()
                .map_or_else(SizeHint::default, SizeHint::with_exact),
            #[cfg(feature = "http2")]
            Self::Http2(reader) => reader
                .left()
                .map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// The state of a body for the rest of the exchange.
#[derive(Debug)]
pub(crate) struct BodyMeter {
    connection: Arc<ConnectionState>,
    received: AtomicU64,
    /// The status, once a limit of the server's was exceeded; before, 0.
    rejection: AtomicU16,
}

impl BodyMeter {
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// The status, if a limit of the server's was exceeded on the way.
    pub(crate) fn rejection(&self) -> Option<StatusCode> {
        StatusCode::from_u16(self.rejection.load(SeqCst)).ok()
    }

    fn reject(&self, error: RequestBodyError) -> RequestBodyError {
        if error.is_of_limit() {
            self.rejection.store(error.status().as_u16(), SeqCst);
        }
        if matches!(error, RequestBodyError::TooSlow) {
            WorkerMetrics::add(&self.connection.metrics().slow_clients);
        }
        error
    }
}

impl RequestBody {
    /// No body.
    pub(crate) fn empty() -> Self {
        Self {
            source: DataSource::Whole(None),
            meter: None,
            limit: None,
            pace: None,
            has_ended: false,
        }
    }

    /// Creates a body that arrived with the head.
    pub(crate) fn whole(data: Bytes, connection: &Arc<ConnectionState>) -> Self {
        Self::new(DataSource::Whole(Some(data)), connection, true)
    }

    /// A body that comes over HTTP/1.1.
    pub(crate) fn streamed(reader: BodyReader, connection: &Arc<ConnectionState>) -> Self {
        Self::new(DataSource::Http1(reader), connection, false)
    }

    /// A body that comes over HTTP/2.
    #[cfg(feature = "http2")]
    pub(crate) fn incoming(
        reader: StreamReader,
        connection: &Arc<ConnectionState>,
        is_grpc: bool,
    ) -> Self {
        Self::new(DataSource::Http2(reader), connection, is_grpc)
    }

    /// `is_exempt`: it may come as slowly as it likes.
    fn new(source: DataSource, connection: &Arc<ConnectionState>, is_exempt: bool) -> Self {
        let limits = &connection.worker.limits;
        let meter = (!source.is_end_stream()).then(|| {
            Arc::new(BodyMeter {
                connection: connection.clone(),
                received: AtomicU64::new(0),
                rejection: AtomicU16::new(0),
            })
        });
        Self {
            pace: limits
                .data_rate
                .filter(|_| meter.is_some() && !is_exempt)
                .map(|rate| Box::new(UploadPace::new(rate))),
            limit: limits.body_bytes,
            source,
            meter,
            has_ended: false,
        }
    }

    pub(crate) fn meter(&self) -> Option<&Arc<BodyMeter>> {
        self.meter.as_ref()
    }

    fn poll_paced(&mut self, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        let Some(meter) = &self.meter else {
            return Poll::Ready(None);
        };
        let limits = &meter.connection.worker.limits;
        let polled = self.source.poll_frame(limits, cx);
        let Some(pace) = &mut self.pace else {
            return polled;
        };
        match polled {
            // Data that has arrived is delivered, however late it is.
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    pace.arrived(frame.data_ref().map_or(0, Bytes::len) as u64);
                }
                Poll::Ready(frame)
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
        let frame = frame.map_err(|error| meter.reject(error))?;
        let limit = meter.connection.worker.limits.header_fields;
        if frame
            .trailers_ref()
            .is_some_and(|fields| fields.len() > limit)
        {
            return Err(meter.reject(RequestBodyError::TooManyFields { limit }));
        }
        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        // A body in chunks declares no length, so what has come is counted.
        let received = meter.received.fetch_add(bytes, Relaxed) + bytes;
        match (Allowance::new(self.limit).check(Some(received)), self.limit) {
            (Err(_), Some(limit)) => Err(meter.reject(RequestBodyError::TooLarge { limit })),
            _ => Ok(frame),
        }
    }
}

type FrameResult = Result<Frame<Bytes>, RequestBodyError>;

fn read_error(error: impl StdError + Send + Sync + 'static) -> RequestBodyError {
    RequestBodyError::Read(error.into())
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        // The error was delivered before; a reader that polls again gets no data.
        if this
            .meter
            .as_ref()
            .is_some_and(|meter| meter.rejection().is_some())
        {
            return Poll::Ready(None);
        }
        let frame = ready!(this.poll_paced(cx)).map(|frame| this.check(frame));
        this.has_ended |= match &frame {
            None => true,
            Some(Ok(frame)) => frame.is_trailers(),
            // After an error more of the body may still come, see `drop`.
            Some(Err(_)) => false,
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(meter) = &self.meter else { return };
        match &self.source {
            // It came with the head, and was not read.
            DataSource::Whole(data) => {
                let left = data.as_ref().map_or(0, Bytes::len);
                meter.received.fetch_add(left as u64, Relaxed);
            }
            DataSource::Http1(_) => {}
            #[cfg(feature = "http2")]
            DataSource::Http2(reader) => {
                if !self.has_ended && !reader.is_end() {
                    // More data may still arrive, to which a closed socket would respond with a reset.
                    meter.connection.unread.store(true, Relaxed);
                }
            }
        }
    }
}
