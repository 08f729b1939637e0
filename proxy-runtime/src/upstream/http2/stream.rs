//! One request over a stream of HTTP/2, and the response to it.

use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, request};
use http_body::{Body, Frame};
use tokio::runtime::Handle;
use tokio::sync::MutexGuard;

use super::Http2Connection;
use super::carrier::Place;
use super::tunnel::Http2Tunnel;
use super::upload::{Http2Upload, UploadTask};
use crate::progress::OutgoingBody;
use crate::retry::{Came, Sent};
use crate::upstream::error::{ExchangeError, SendError};
use crate::upstream::http1::{Http1Error, MOST_INTERIM};

/// A request on its way over a stream, up to the head of its response.
///
/// Dropped, it resets the stream with `CANCEL`.
pub(crate) struct Http2RoundTrip {
    connection: Arc<Http2Connection>,
    step: StreamStep,
    /// A wait for the word that the destination allows no requests, as long as its settings are not known.
    allowed_nothing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    interim: u32,
    /// Set when something came that was not the final head.
    has_news: bool,
}

enum StreamStep {
    /// Waits for a stream.
    Opening(Pin<Box<dyn Future<Output = OpenResult> + Send>>),
    Open(SentStream),
}

type OpenResult = Result<SentStream, Box<SendError>>;

/// A stream on which the head was sent.
struct SentStream {
    response: ResponseFuture,
    rest: ClientSide,
    /// The turn of the connection's task that opens it.
    turn: usize,
    /// Moves on with the body of the response.
    place: Option<Place>,
}

/// The use that is left for the client's side of a stream.
#[derive(Debug)]
enum ClientSide {
    /// No use: all was sent, or a task sends it.
    Sent(Option<UploadTask>),
    Upload(Box<Http2Upload>),
    /// Half of a tunnel, if the destination agrees to one.
    Tunnel(SendStream<Bytes>),
}

impl Http2RoundTrip {
    /// Sends a request whose head was made for HTTP/2.
    pub(crate) fn new(
        connection: Arc<Http2Connection>,
        head: request::Parts,
        body: OutgoingBody,
    ) -> Self {
        let opening = open(Arc::clone(&connection), head, body);
        let allowed_nothing = (!connection.has_settings())
            .then(|| Box::pin(Arc::clone(&connection).allowed_nothing()) as Pin<Box<_>>);
        Self {
            connection,
            step: StreamStep::Opening(Box::pin(opening)),
            allowed_nothing,
            interim: 0,
            has_news: false,
        }
    }

    /// Sends on; ready with the head of the response.
    ///
    /// # Errors
    ///
    /// There is none. With the body, if nothing of the request was sent.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Http2Body>, Box<SendError>>> {
        if let Poll::Ready(answered) = self.poll_answer(cx) {
            return Poll::Ready(answered);
        }
        match &mut self.allowed_nothing {
            Some(allowed_nothing) => {
                let is_over = allowed_nothing.as_mut().poll(cx);
                is_over.map(|()| Err(SendError::not_allowed(None)))
            }
            None => Poll::Pending,
        }
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Http2Body>, Box<SendError>>> {
        let stream = match &mut self.step {
            StreamStep::Open(stream) => stream,
            StreamStep::Opening(opening) => {
                let opened = ready!(opening.as_mut().poll(cx))?;
                self.step = StreamStep::Open(opened);
                return self.poll_answer(cx);
            }
        };
        if self.connection.signs.is_closed_in(stream.turn) {
            // It may be opened when the destination allows streams again, only to be reset.
            return Poll::Ready(Err(SendError::not_allowed(None)));
        }
        stream.rest.begin(cx);
        while let Poll::Ready(Some(Ok(_))) = stream.response.poll_informational(cx) {
            self.has_news = true;
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Poll::Ready(Err(SendError::fatal(Http1Error::TooManyInterim)));
            }
        }
        let answered = ready!(Pin::new(&mut stream.response).poll(cx));
        Poll::Ready(match answered {
            Ok(response) => Ok(response.map(|receive| Http2Body {
                connection: Arc::clone(&self.connection),
                receive,
                has_ended: false,
                is_data_over: false,
                rest: std::mem::replace(&mut stream.rest, ClientSide::Sent(None)),
                place: stream.place.take(),
            })),
            Err(error) => Err(self.connection.failed(error)),
        })
    }

    /// Returns whether something came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

/// Opens a stream, and sends the head on it.
///
/// While one request waits for the destination to allow it a stream, those behind it wait as well, and all of them are
/// unsent.
async fn open(
    connection: Arc<Http2Connection>,
    head: request::Parts,
    body: OutgoingBody,
) -> OpenResult {
    if !body.is_end_stream() && connection.is_idle() {
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
        Ok(false) => return Err(SendError::not_allowed(Some(body))),
        Err(error) => return Err(SendError::unsent(error, body)),
    }
    let is_connect = head.method == Method::CONNECT;
    let is_last = !is_connect && body.is_end_stream();
    let turn = poll_fn(|cx| Poll::Ready(connection.signs.hand_over(cx.waker()))).await;
    let (response, stream) = match send.send_request(Request::from_parts(head, ()), is_last) {
        Ok(sent) => sent,
        Err(error) if error.is_go_away() => return Err(SendError::unsent(error, body)),
        Err(error) => return Err(connection.failed(error)),
    };
    let place = Some(Place::take(&connection.signs));
    let rest = match (is_connect, is_last) {
        (true, _) => ClientSide::Tunnel(stream),
        (false, true) => ClientSide::Sent(None),
        (false, false) => ClientSide::Upload(Box::new(Http2Upload::new(stream, body))),
    };
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
        return Err(SendError::not_allowed(None));
    }
    send.is_over = true;
    Ok(SentStream {
        response,
        rest,
        turn,
        place,
    })
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

impl ClientSide {
    /// Begins to send the body.
    fn begin(&mut self, cx: &mut Context<'_>) {
        if matches!(self, Self::Upload(_))
            && let Self::Upload(upload) = std::mem::replace(self, Self::Sent(None))
        {
            *self = Self::Sent(upload.begin(cx));
        }
    }
}

/// The body of a response that comes over a stream.
///
/// Dropped before its end, it resets the stream with `CANCEL`, whatever is still uploaded.
#[derive(Debug)]
pub(crate) struct Http2Body {
    connection: Arc<Http2Connection>,
    receive: RecvStream,
    is_data_over: bool,
    has_ended: bool,
    rest: ClientSide,
    place: Option<Place>,
}

impl Http2Body {
    /// Returns whether all of it was read, which is known without asking.
    pub(crate) fn is_end_stream(&self) -> bool {
        self.has_ended || self.receive.is_end_stream()
    }

    /// The next part.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_next(cx));
        if !matches!(&next, Some(Ok(frame)) if frame.is_data()) {
            self.has_ended = true;
        }
        // A reset without an error may follow a complete response (RFC 9113 section 8.1): `h2` keeps the end of that.
        // An error here is a response that was cut, whatever its code.
        Poll::Ready(next)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.is_data_over {
            match ready!(self.receive.poll_data(cx)) {
                Some(Ok(data)) => {
                    // It only fails for more than was received.
                    let _ = self.receive.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.is_data_over = true,
            }
        }
        let trailers = ready!(self.receive.poll_trailers(cx));
        Poll::Ready(
            trailers
                .transpose()
                .map(|trailers| trailers.map(Frame::trailers)),
        )
    }

    /// The response is over. What is still uploaded goes on, until `give_up` ends and says whether it is the
    /// destination that takes no more of it. The stream is reset then, and no other one harmed.
    ///
    /// What a destination holds back of the connection's window is not given back with the stream. So no further
    /// request goes over a connection on which it takes no more.
    pub(crate) fn finish<F>(self, give_up: impl FnOnce() -> F)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let ClientSide::Sent(Some(mut upload)) = self.rest else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (connection, place, give_up) = (self.connection, self.place, give_up());
        runtime.spawn(async move {
            let _place = place;
            tokio::select! {
                biased;
                () = upload.ended() => {}
                is_destination = give_up => {
                    if is_destination {
                        connection.retire();
                    }
                }
            }
        });
    }

    /// The tunnel that the destination has agreed to; `None` if none was asked for.
    pub(crate) fn into_tunnel(self) -> Option<Http2Tunnel> {
        match self.rest {
            ClientSide::Tunnel(send) => Some(Http2Tunnel::new(self.receive, send, self.place)),
            ClientSide::Sent(_) | ClientSide::Upload(_) => None,
        }
    }
}

impl Http2Connection {
    /// Returns what is known of a request that was sent and has failed like this.
    fn failed(&self, error: h2::Error) -> Box<SendError> {
        let reason = error.reason();
        let is_rejected = error.is_reset() && reason == Some(Reason::REFUSED_STREAM);
        let is_late = error.is_go_away() && reason == Some(Reason::NO_ERROR);
        Box::new(SendError {
            // RFC 9113 section 8.7: the destination has not looked at the request if it rejected the stream, or if that
            // came after the last one that the connection still serves.
            came: match error.is_remote() && (is_rejected || is_late) {
                true => Came::Unprocessed,
                // It was closed or reset.
                false if error.is_io() && !self.signs.is_lost() => Came::Nothing,
                false => Came::Something,
            },
            error: ExchangeError::Http2(error),
            body: None,
            sent: Sent::Something,
        })
    }
}
