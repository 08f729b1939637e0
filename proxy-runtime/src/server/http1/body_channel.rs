//! The channel for a request body between the connection and its reader.
//!
//! The connection reads only when a frame is requested, so a body that is not read stays with the
//! client (backpressure). Both sides share a slot for one frame. It has a lock, since services may
//! need a body that they can send to other threads.

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
use crate::http1::{ChunkTracker, Framing, HeadLimits, RawRequest, Rejection};
use crate::server::connection::Transport;
use crate::server::metrics::WorkerMetrics;

/// Maximum number of bytes of an unread body that are discarded to keep the connection.
const DISCARDED: usize = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The reason why a body ended early.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error("the connection has ended before the body")]
    Closed,
    #[error("the trailer section is larger than the limit")]
    TrailersTooLarge,
    #[error("the trailer section has more fields than the limit")]
    TooManyTrailers,
    #[error(transparent)]
    Rejected(Rejection),
}

impl From<Rejection> for ChannelError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::HeadTooLarge => Self::TrailersTooLarge,
            Rejection::TooManyFields => Self::TooManyTrailers,
            other => Self::Rejected(other),
        }
    }
}

/// The state that both sides share.
#[derive(Debug, Default)]
struct ChannelState {
    /// Received data that was not taken yet. Taken in the order of the next three fields.
    frame: Option<Frame<Bytes>>,
    trailers: Option<HeaderMap>,
    end: Option<Result<(), ChannelError>>,
    is_wanted: bool,
    is_abandoned: bool,
    /// True once the response is written and the connection waits only for the reader.
    outlives_response: bool,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

/// The reader's side. Dropping it abandons the rest of the body.
#[derive(Debug)]
pub(crate) struct BodyReader {
    shared: Arc<Mutex<ChannelState>>,
    /// Number of bytes to come, if the head declares a length.
    left: Option<u64>,
    has_ended: bool,
}

impl BodyReader {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ChannelError>>> {
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
        // On the connection's own task the connection polls the channel anyway.
        let waker = shared.connection.as_ref();
        if let Some(waker) = waker.filter(|waker| !waker.will_wake(cx.waker())) {
            waker.wake_by_ref();
        }
        drop(shared);
        drop(outdated);
        Poll::Pending
    }

    /// Returns true if the whole body was taken.
    pub(crate) fn is_end(&self) -> bool {
        self.has_ended || self.left == Some(0)
    }

    /// Number of bytes to come, if known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.is_abandoned = true;
        // Before that, the connection polls the channel anyway while it waits for the service.
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

/// The connection's side, which fills the channel on request.
#[derive(Debug)]
pub(crate) struct BodySender {
    shared: Arc<Mutex<ChannelState>>,
    rest: RemainingBody,
    /// True if the client waits for `100 Continue`.
    awaits_continue: bool,
}

/// The rest of the body.
#[derive(Debug)]
enum RemainingBody {
    Length(u64),
    Chunks(ChunkTracker),
    /// The start of the next request is unknown.
    Broken,
}

/// A part of the body.
enum ChannelPart {
    Data(Bytes),
    /// The end of the body.
    End {
        data: Bytes,
        trailers: Option<HeaderMap>,
    },
}

impl BodySender {
    /// Creates the two sides for a request whose body was not read yet.
    pub(crate) fn new(request: &RawRequest) -> (Self, BodyReader) {
        let (rest, left) = match request.framing() {
            Framing::Length(length) => (RemainingBody::Length(length), Some(length)),
            Framing::Chunked => (RemainingBody::Chunks(ChunkTracker::new()), None),
            _ => (RemainingBody::Length(0), Some(0)),
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

    /// Returns true if the whole body was read, so that the next request follows.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.rest {
            RemainingBody::Length(left) => *left == 0,
            RemainingBody::Chunks(tracker) => tracker.has_ended(),
            RemainingBody::Broken => false,
        }
    }

    /// Returns true if the connection cannot be reused: the body is invalid, or the client still
    /// waits for `100 Continue`, or the rest exceeds what would be discarded.
    pub(crate) fn is_lost(&self) -> bool {
        match &self.rest {
            RemainingBody::Broken => true,
            RemainingBody::Length(0) => false,
            RemainingBody::Length(left) if *left > DISCARDED as u64 => {
                self.awaits_continue || lock(&self.shared).is_abandoned
            }
            RemainingBody::Length(_) | RemainingBody::Chunks(_) => self.awaits_continue,
        }
    }

    /// Returns true if unread data of the body remains and the reader does not request it now.
    pub(crate) fn is_unread(&self) -> bool {
        !self.has_ended()
            && !matches!(self.rest, RemainingBody::Broken)
            && !lock(&self.shared).is_wanted
    }

    /// Reads a requested frame. Ready once a frame was passed on, so that the reader must be polled
    /// again.
    ///
    /// `may_continue`: no final response has begun, so `100 Continue` may still be sent.
    pub(crate) fn poll_pump<T: Transport>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Client<T>,
        limits: &HeadLimits,
        may_continue: bool,
    ) -> Poll<()> {
        if self.has_ended() || matches!(self.rest, RemainingBody::Broken) {
            return Poll::Pending;
        }
        let mut shared = lock(&self.shared);
        let outdated = set_waker(&mut shared.connection, cx.waker());
        let is_wanted = shared.is_wanted && !shared.is_abandoned;
        drop(shared);
        drop(outdated);
        // A body that is not read stays with the client.
        if !is_wanted {
            return Poll::Pending;
        }
        if may_continue {
            self.send_continue(cx, client);
        }
        let part = loop {
            match self.take_part(client, limits) {
                Ok(Some(part)) => break Ok(part),
                Ok(None) => {}
                Err(rejection) => {
                    // Limits are the server's choice: only invalid bytes count as malformed.
                    if !rejection.is_of_limit() {
                        WorkerMetrics::add(&client.state.metrics().malformed);
                    }
                    break Err(rejection.into());
                }
            }
            match ready!(client.input.poll_read(&mut client.io, cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break Err(ChannelError::Closed),
            }
        };
        self.hand_over(part);
        Poll::Ready(())
    }

    /// Sends `100 Continue` (RFC 9110 section 10.1.1), unless the client has already begun to send.
    fn send_continue<T: Transport>(&mut self, cx: &mut Context<'_>, client: &mut Client<T>) {
        if std::mem::take(&mut self.awaits_continue) && client.input.is_empty() {
            client.acquire_output();
            client.output.extend_from_slice(CONTINUE);
        }
        while !client.output.is_empty() {
            // Unwritten bytes precede the response; an error will recur there.
            match Pin::new(&mut client.io).poll_write(cx, &client.output) {
                Poll::Ready(Ok(count @ 1..)) => drop(client.output.drain(..count)),
                _ => return,
            }
            let _ = Pin::new(&mut client.io).poll_flush(cx);
        }
    }

    /// Takes the available part of the body from the input.
    fn take_part<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        limits: &HeadLimits,
    ) -> Result<Option<ChannelPart>, Rejection> {
        let filled = client.input.filled();
        match &mut self.rest {
            RemainingBody::Length(left) => {
                let count =
                    usize::try_from(*left).map_or(filled.len(), |left| left.min(filled.len()));
                if count == 0 {
                    return Ok(None);
                }
                *left -= count as u64;
                let data = client.input.take(count);
                Ok(Some(match *left {
                    0 => ChannelPart::End {
                        data,
                        trailers: None,
                    },
                    _ => ChannelPart::Data(data),
                }))
            }
            RemainingBody::Chunks(tracker) => {
                // Removes the chunk framing: data of several chunks become one frame.
                let mut data = Vec::with_capacity(filled.len());
                let push = |run: &[u8]| data.extend_from_slice(run);
                let progress = tracker.track_data(filled, limits, &mut client.table, push)?;
                let section = &filled[progress.consumed..][..progress.trailers];
                let trailers = (!section.is_empty()).then(|| read_trailers(section, &client.table));
                client.input.consume(progress.consumed + progress.trailers);
                let data = Bytes::from(data);
                Ok(match progress.ended {
                    true => Some(ChannelPart::End { data, trailers }),
                    false if data.is_empty() => None,
                    false => Some(ChannelPart::Data(data)),
                })
            }
            RemainingBody::Broken => Ok(None),
        }
    }

    fn hand_over(&mut self, part: Result<ChannelPart, ChannelError>) {
        let mut shared = lock(&self.shared);
        match part {
            // The slot is empty: a frame is read only after the previous one was taken.
            Ok(ChannelPart::Data(data)) => shared.frame = Some(Frame::data(data)),
            Ok(ChannelPart::End { data, trailers }) => {
                shared.frame = (!data.is_empty()).then(|| Frame::data(data));
                shared.trailers = trailers.filter(|trailers| !trailers.is_empty());
                shared.end = Some(Ok(()));
            }
            Err(error) => {
                shared.end = Some(Err(error));
                // The end of this body is unknown, so no request can follow.
                self.rest = RemainingBody::Broken;
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
        // Only if the body has not ended: a reader must not wait forever.
        shared.end.get_or_insert(Err(ChannelError::Closed));
        let reader = shared.reader.take();
        let outdated = shared.connection.take();
        drop(shared);
        drop(outdated);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// Returns the previous waker, which must be dropped without the lock: dropping the last waker of a
/// task drops the task.
fn set_waker(place: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match place {
        Some(known) if known.will_wake(waker) => None,
        place => place.replace(waker.clone()),
    }
}

fn lock(shared: &Mutex<ChannelState>) -> MutexGuard<'_, ChannelState> {
    shared.lock()
}
