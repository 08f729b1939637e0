//! A stream of HTTP/2 that is opened for a request.

use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use tokio::sync::MutexGuard;

use super::Http2Connection;
use super::carrier::Place;
use crate::retry::{Came, Sent};
use crate::upstream::error::{ExchangeError, SendError};

/// A wait for the word that a destination allows no requests.
pub(super) type AllowedNothing = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A stream on which the head of a request was sent.
pub(super) struct OpenedStream {
    pub(super) response: ResponseFuture,
    /// The request's side, if more follows the head.
    pub(super) send: Option<SendStream<Bytes>>,
    /// The turn of the connection's task that opens it.
    pub(super) turn: usize,
    pub(super) place: Place,
}

/// Opens a stream, and sends the head on it.
///
/// While one request waits for the destination to allow it a stream, those behind it wait as well, and all of them are
/// unsent.
///
/// `has_body`: more of the request follows the head.
pub(super) async fn open(
    connection: Arc<Http2Connection>,
    request: Request<()>,
    has_body: bool,
) -> Result<OpenedStream, SendError> {
    if has_body && connection.is_idle() {
        // What was taken of a body is not kept, so that it could not be sent again.
        connection.signs.look().await;
    }
    let mut send = StreamTurn {
        send: connection.gate.lock().await,
        is_over: false,
    };
    let turn = poll_fn(|cx| match send.poll_ready(cx) {
        Poll::Ready(Ok(())) => connection.poll_room(cx).map(Ok),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => Poll::Pending,
    });
    match turn.await {
        Ok(true) => {}
        Ok(false) => return Err(SendError::not_allowed(Sent::Nothing)),
        Err(error) => return Err(SendError::unsent(error)),
    }
    // Noted first, since the task may take its turn as soon as it has the stream.
    let turn = poll_fn(|cx| Poll::Ready(connection.signs.hand_over(cx.waker()))).await;
    let (response, stream) = match send.send_request(request, !has_body) {
        Ok(sent) => sent,
        Err(error) if error.is_go_away() => return Err(SendError::unsent(error)),
        Err(error) => return Err(connection.failed(error)),
    };
    let place = Place::take(&connection.signs);
    // The end of the connection is seen where the response is awaited.
    let is_open = poll_fn(|cx| match send.poll_ready(cx) {
        Poll::Ready(_) => Poll::Ready(true),
        // The destination's word that it allows none came just now, and before the stream was opened.
        Poll::Pending if !connection.allows_streams() => Poll::Ready(false),
        Poll::Pending => {
            connection.signs.room.register(cx.waker());
            Poll::Pending
        }
    });
    if !is_open.await {
        // It may be opened when the destination allows streams again, only to be reset.
        return Err(SendError::not_allowed(Sent::Something));
    }
    send.is_over = true;
    Ok(OpenedStream {
        response,
        send: has_body.then_some(stream),
        turn,
        place,
    })
}

impl Http2Connection {
    /// Returns the failure of a stream that the connection's task was to open in this turn, if the destination allowed
    /// none by then. The stream may be opened when the destination allows some again, only to be reset.
    pub(super) fn not_opened(&self, turn: usize) -> Option<SendError> {
        let is_closed = self.signs.is_closed_in(turn);
        is_closed.then(|| SendError::not_allowed(Sent::Something))
    }
}

/// The turn of a request to open a stream.
struct StreamTurn<'a> {
    send: MutexGuard<'a, SendRequest<Bytes>>,
    /// Set when the stream is open.
    is_over: bool,
}

impl Deref for StreamTurn<'_> {
    type Target = SendRequest<Bytes>;

    fn deref(&self) -> &SendRequest<Bytes> {
        &self.send
    }
}

impl DerefMut for StreamTurn<'_> {
    fn deref_mut(&mut self) -> &mut SendRequest<Bytes> {
        &mut self.send
    }
}

impl Drop for StreamTurn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // It may hold on to a stream that was not allowed yet and is not wanted any more.
            *self.send = self.send.clone();
        }
    }
}

impl Http2Connection {
    /// Describes the failure of a request that was sent.
    pub(super) fn failed(&self, error: h2::Error) -> SendError {
        let reason = error.reason();
        let is_rejected = error.is_reset() && reason == Some(Reason::REFUSED_STREAM);
        let is_late = error.is_go_away() && reason == Some(Reason::NO_ERROR);
        SendError {
            // RFC 9113 section 8.7: the destination has not looked at the request if it rejected the stream, or if that
            // came after the last one that the connection still serves.
            came: match error.is_remote() && (is_rejected || is_late) {
                true => Came::Unprocessed,
                // It was closed or reset.
                false if error.is_io() && !self.signs.is_lost() => Came::Nothing,
                false => Came::Something,
            },
            error: ExchangeError::Http2(error),
            sent: Sent::Something,
        }
    }
}
