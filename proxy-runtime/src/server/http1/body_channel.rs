//! The body of a request on its way from the connection to whoever reads it.
//!
//! The connection reads when it is asked for a frame and not before, so that a body that nobody reads stays with the
//! client. The two sides share a place for one frame, behind a lock since services may ask for a body that they can send
//! to other threads.

mod remainder;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncWrite;

use super::client::Client;
use super::fields::read_trailers;
use crate::http1::{ChunkTracker, Framing, HeadLimits, RawRequest, Refusal};
use crate::server::connection::Transport;
use crate::server::metrics::WorkerMetrics;

/// What is read at most of a body that nobody wants, for the connection to go on.
const DISCARDED: usize = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a body ended before its end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("the connection has ended before the body")]
    Closed,
    #[error("the trailer section is larger than the limit")]
    TrailersTooLarge,
    #[error("the trailer section has more fields than the limit")]
    TooManyTrailers,
    #[error(transparent)]
    Refused(Refusal),
}

impl From<Refusal> for UploadError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::HeadTooLarge => Self::TrailersTooLarge,
            Refusal::TooManyFields => Self::TooManyTrailers,
            other => Self::Refused(other),
        }
    }
}

/// What both sides know.
#[derive(Debug, Default)]
struct Shared {
    /// What has come and has not been taken, in this order.
    frame: Option<Frame<Bytes>>,
    trailers: Option<HeaderMap>,
    end: Option<Result<(), UploadError>>,
    is_wanted: bool,
    is_abandoned: bool,
    /// The response is written, and the connection waits for nothing but the reader.
    outlives_response: bool,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

/// The side of the service, which drops it when it wants no more.
#[derive(Debug)]
pub(crate) struct BodyReader {
    shared: Arc<Mutex<Shared>>,
    /// Bytes to come, if the head has said so.
    left: Option<u64>,
    has_ended: bool,
}

impl BodyReader {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let mut shared = lock(&self.shared);
        let frame = shared.frame.take();
        if let Some(frame) = frame.or_else(|| shared.trailers.take().map(Frame::trailers)) {
            if let (Some(left), Some(data)) = (&mut self.left, frame.data_ref()) {
                *left -= data.len() as u64;
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(end) = shared.end {
            self.has_ended = true;
            return Poll::Ready(end.err().map(Err));
        }
        shared.is_wanted = true;
        let outdated = set_waker(&mut shared.reader, cx.waker());
        // Within the connection's own task the connection looks for itself.
        let waker = shared.connection.as_ref();
        if let Some(waker) = waker.filter(|waker| !waker.will_wake(cx.waker())) {
            waker.wake_by_ref();
        }
        drop(shared);
        drop(outdated);
        Poll::Pending
    }

    /// Whether all of it has been taken.
    pub(crate) fn is_end(&self) -> bool {
        self.has_ended || self.left == Some(0)
    }

    /// Bytes to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.is_abandoned = true;
        // Before that, the connection waits for the service, and looks for itself.
        let connection = match shared.outlives_response {
            true => shared.connection.take(),
            false => None,
        };
        drop(shared);
        if let Some(connection) = connection {
            connection.wake();
        }
    }
}

/// The side of the connection, which fills the channel when the reader asks.
#[derive(Debug)]
pub(crate) struct BodySender {
    shared: Arc<Mutex<Shared>>,
    rest: Rest,
    /// The client waits to be told that its body is wanted.
    awaits_continue: bool,
}

/// What is still to come.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunks(ChunkTracker),
    /// It cannot be known where the next request begins.
    Broken,
}

/// What was found in the input.
enum Part {
    Data(Bytes),
    /// The body is at its end.
    End {
        data: Bytes,
        trailers: Option<HeaderMap>,
    },
}

impl BodySender {
    /// The two sides of a request's body that has not come yet.
    pub(crate) fn new(request: &RawRequest) -> (Self, BodyReader) {
        let (rest, left) = match request.framing() {
            Framing::Length(length) => (Rest::Length(length), Some(length)),
            Framing::Chunked => (Rest::Chunks(ChunkTracker::new()), None),
            _ => (Rest::Length(0), Some(0)),
        };
        let shared = Arc::default();
        let reader = BodyReader {
            shared: Arc::clone(&shared),
            left,
            has_ended: false,
        };
        let sender = Self {
            shared,
            rest,
            awaits_continue: request.expects_continue(),
        };
        (sender, reader)
    }

    /// Whether the whole body was read, so that the next request follows.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.rest {
            Rest::Length(left) => *left == 0,
            Rest::Chunks(tracker) => tracker.has_ended(),
            Rest::Broken => false,
        }
    }

    /// Whether the connection cannot go on whatever is tried: what comes is no body, or the body will not come because
    /// it was not asked for, or nobody takes what is more than would be discarded.
    pub(crate) fn is_lost(&self) -> bool {
        match &self.rest {
            Rest::Broken => true,
            Rest::Length(0) => false,
            Rest::Length(left) if *left > DISCARDED as u64 => {
                self.awaits_continue || lock(&self.shared).is_abandoned
            }
            Rest::Length(_) | Rest::Chunks(_) => self.awaits_continue,
        }
    }

    /// Reads what is asked for. Ready when something was handed over, so that the reader is to be polled again.
    ///
    /// `may_continue`: no final response has begun, so that the client can still be told to go on.
    pub(crate) fn poll_pump<T: Transport>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Client<T>,
        limits: &HeadLimits,
        may_continue: bool,
    ) -> Poll<()> {
        if self.has_ended() || matches!(self.rest, Rest::Broken) {
            return Poll::Pending;
        }
        let mut shared = lock(&self.shared);
        let outdated = set_waker(&mut shared.connection, cx.waker());
        let is_wanted = shared.is_wanted && !shared.is_abandoned;
        drop(shared);
        drop(outdated);
        if !is_wanted {
            return Poll::Pending;
        }
        if may_continue {
            self.tell_to_continue(cx, client);
        }
        let part = loop {
            match self.take_part(client, limits) {
                Ok(Some(part)) => break Ok(part),
                Ok(None) => {}
                Err(refusal) => {
                    if !refusal.is_of_limit() {
                        WorkerMetrics::add(&client.state.metrics().malformed);
                    }
                    break Err(refusal.into());
                }
            }
            match ready!(client.input.poll_read(&mut client.io, cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break Err(UploadError::Closed),
            }
        };
        self.hand_over(part);
        Poll::Ready(())
    }

    /// RFC 9110 section 10.1.1: what the client waits for, unless it has not waited.
    fn tell_to_continue<T: Transport>(&mut self, cx: &mut Context<'_>, client: &mut Client<T>) {
        if std::mem::take(&mut self.awaits_continue) && client.input.is_empty() {
            client.lend_output();
            client.output.extend_from_slice(CONTINUE);
        }
        while !client.output.is_empty() {
            // What is left goes in front of the response, and an error shows itself there.
            match Pin::new(&mut client.io).poll_write(cx, &client.output) {
                Poll::Ready(Ok(count @ 1..)) => drop(client.output.drain(..count)),
                _ => return,
            }
            let _ = Pin::new(&mut client.io).poll_flush(cx);
        }
    }

    /// Takes from the input what there is of the body.
    fn take_part<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        limits: &HeadLimits,
    ) -> Result<Option<Part>, Refusal> {
        let filled = client.input.filled();
        match &mut self.rest {
            Rest::Length(left) => {
                let count =
                    usize::try_from(*left).map_or(filled.len(), |left| left.min(filled.len()));
                if count == 0 {
                    return Ok(None);
                }
                *left -= count as u64;
                let data = client.input.take(count);
                Ok(Some(match *left {
                    0 => Part::End {
                        data,
                        trailers: None,
                    },
                    _ => Part::Data(data),
                }))
            }
            Rest::Chunks(tracker) => {
                let mut data = Vec::with_capacity(filled.len());
                let push = |run: &[u8]| data.extend_from_slice(run);
                let progress = tracker.track_data(filled, limits, &mut client.table, push)?;
                let section = &filled[progress.consumed..][..progress.trailers];
                let trailers = (!section.is_empty()).then(|| read_trailers(section, &client.table));
                client.input.consume(progress.consumed + progress.trailers);
                let data = Bytes::from(data);
                Ok(match progress.ended {
                    true => Some(Part::End { data, trailers }),
                    false if data.is_empty() => None,
                    false => Some(Part::Data(data)),
                })
            }
            Rest::Broken => Ok(None),
        }
    }

    fn hand_over(&mut self, part: Result<Part, UploadError>) {
        let mut shared = lock(&self.shared);
        match part {
            Ok(Part::Data(data)) => shared.frame = Some(Frame::data(data)),
            Ok(Part::End { data, trailers }) => {
                shared.frame = (!data.is_empty()).then(|| Frame::data(data));
                shared.trailers = trailers.filter(|trailers| !trailers.is_empty());
                shared.end = Some(Ok(()));
            }
            Err(error) => {
                shared.end = Some(Err(error));
                self.rest = Rest::Broken;
            }
        }
        shared.is_wanted = false;
        let reader = shared.reader.take();
        drop(shared);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.end.get_or_insert(Err(UploadError::Closed));
        let reader = shared.reader.take();
        let outdated = shared.connection.take();
        drop(shared);
        drop(outdated);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// Returns the waker that was there, to be dropped when the lock is not held any more: the last one of a task drops what
/// the task holds.
fn set_waker(place: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match place {
        Some(known) if known.will_wake(waker) => None,
        place => place.replace(waker.clone()),
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock()
}
