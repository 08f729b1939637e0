//! A request for a tunnel over a stream of HTTP/2 (RFC 8441), and the response to it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{Request, Response, request};
use http_body::Frame;

use super::Http2Connection;
use super::carrier::Place;
use super::opening::{OpenStream, open};
use super::tunnel::Http2Tunnel;
use crate::retry::Sent;
use crate::upstream::error::SendError;
use crate::upstream::http1::{Http1Error, MOST_INTERIM};

/// A request on its way over a stream, up to the head of its response.
///
/// Dropped, it resets the stream with `CANCEL`.
pub(crate) struct Http2RoundTrip {
    connection: Arc<Http2Connection>,
    step: StreamStep,
    /// A wait for the word that the destination allows no requests, as long as its settings are not known.
    allowed_nothing: Option<AllowedNothing>,
    interim: u32,
    /// Set when something came that was not the final head.
    has_news: bool,
}

/// A wait for the word that a destination allows no requests.
pub(super) type AllowedNothing = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

enum StreamStep {
    /// Waits for a stream.
    Opening(Pin<Box<dyn Future<Output = Result<OpenStream, SendError>> + Send + Sync>>),
    Open {
        response: ResponseFuture,
        send: Option<SendStream<Bytes>>,
        turn: usize,
        /// Moves on with the body of the response.
        place: Option<Place>,
    },
}

impl Http2RoundTrip {
    /// Sends a request whose head was made for HTTP/2.
    pub(crate) fn new(connection: Arc<Http2Connection>, head: request::Parts) -> Self {
        let request = Request::from_parts(head, ());
        let opening = open(Arc::clone(&connection), request, true);
        Self {
            allowed_nothing: connection.may_allow_nothing(),
            connection,
            step: StreamStep::Opening(Box::pin(opening)),
            interim: 0,
            has_news: false,
        }
    }

    /// Sends on; ready with the head of the response.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Http2Body>, SendError>> {
        if let Poll::Ready(answered) = self.poll_answer(cx) {
            return Poll::Ready(answered);
        }
        match &mut self.allowed_nothing {
            Some(allowed_nothing) => {
                let is_over = allowed_nothing.as_mut().poll(cx);
                is_over.map(|()| Err(SendError::not_allowed(Sent::Something)))
            }
            None => Poll::Pending,
        }
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Http2Body>, SendError>> {
        let (response, send, turn, place) = match &mut self.step {
            StreamStep::Open {
                response,
                send,
                turn,
                place,
            } => (response, send, *turn, place),
            StreamStep::Opening(opening) => {
                let opened = ready!(opening.as_mut().poll(cx))?;
                self.step = StreamStep::Open {
                    response: opened.response,
                    send: opened.send,
                    turn: opened.turn,
                    place: Some(opened.place),
                };
                return self.poll_answer(cx);
            }
        };
        if let Some(failed) = self.connection.not_opened(turn) {
            return Poll::Ready(Err(failed));
        }
        while let Poll::Ready(Some(Ok(_))) = response.poll_informational(cx) {
            self.has_news = true;
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Poll::Ready(Err(SendError::fatal(Http1Error::TooManyInterim)));
            }
        }
        let answered = ready!(Pin::new(response).poll(cx));
        Poll::Ready(match answered {
            Ok(response) => Ok(response.map(|receive| Http2Body {
                receive,
                has_ended: false,
                is_data_over: false,
                send: send.take(),
                place: place.take(),
            })),
            Err(error) => Err(self.connection.failed(error)),
        })
    }

    /// Returns whether something came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

/// The body of a response that comes over a stream.
///
/// Dropped before its end, it resets the stream with `CANCEL`.
#[derive(Debug)]
pub(crate) struct Http2Body {
    receive: RecvStream,
    is_data_over: bool,
    has_ended: bool,
    send: Option<SendStream<Bytes>>,
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
        let next = ready!(poll_next(&mut self.receive, &mut self.is_data_over, cx));
        if !matches!(&next, Some(Ok(frame)) if frame.is_data()) {
            self.has_ended = true;
        }
        // A reset without an error may follow a complete response (RFC 9113 section 8.1): `h2` keeps the end of that.
        // An error here is a response that was cut, whatever its code.
        Poll::Ready(next)
    }

    /// The tunnel that the destination has agreed to.
    pub(crate) fn into_tunnel(self) -> Option<Http2Tunnel> {
        let send = self.send?;
        Some(Http2Tunnel::new(self.receive, send, self.place))
    }
}

/// The next data of a stream, or its trailers behind the last.
pub(super) fn poll_next(
    receive: &mut RecvStream,
    is_data_over: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    if !*is_data_over {
        match ready!(receive.poll_data(cx)) {
            Some(Ok(data)) => {
                // It only fails for more than was received.
                let _ = receive.flow_control().release_capacity(data.len());
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => *is_data_over = true,
        }
    }
    let trailers = ready!(receive.poll_trailers(cx));
    Poll::Ready(
        trailers
            .transpose()
            .map(|trailers| trailers.map(Frame::trailers)),
    )
}
