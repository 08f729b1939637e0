//! A request and the head of its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response, StatusCode, request};

use super::body::{Http1Body, Sending};
use super::early::Early;
use super::output::Output;
use super::response_head::{MOST_INTERIM, limits, to_response};
use super::{Http1Connection, Http1Error, RequestWriter};
use crate::http1::{self, Asked, LentTable, RawResponse, Refusal, Status, parse_response};
use crate::progress::{Continuation, OutgoingBody};
use crate::retry::{Came, Sent};
use crate::upstream::error::{ExchangeError, SendError};

/// A request without a response.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// Its head and its body, if they are as whole as they were.
    pub(crate) whole: Option<(Output, OutgoingBody)>,
    pub(crate) sent: Sent,
    pub(crate) came: Came,
}

impl Http1Connection {
    /// Sends a request and waits for the head of its response.
    ///
    /// After an error, or if it is dropped before it is ready, the connection is of no use any more.
    ///
    /// # Errors
    ///
    /// With the request, if all of it is left to be sent over another connection.
    pub(in crate::upstream) fn send(&mut self, request: Request<OutgoingBody>) -> SendFuture<'_> {
        let (head, body) = request.into_parts();
        let asked = asked(&head);
        let writer = RequestWriter::new(&head, body, self.keep(asked.method));
        // It stays in the head as well, which may be sent again.
        let continuation = head.extensions.get().cloned();
        let round_trip = writer.map(|writer| RoundTrip::new(writer, asked, continuation));
        SendFuture {
            connection: self,
            asked: Some((head, round_trip)),
        }
    }
}

/// The head of a response to come.
#[must_use = "futures do nothing unless polled"]
pub(crate) struct SendFuture<'a> {
    connection: &'a mut Http1Connection,
    /// The request's head and what becomes of it, until it is over.
    asked: Option<(request::Parts, Result<RoundTrip, Http1Error>)>,
}

impl SendFuture<'_> {
    /// Whether something came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        match &mut self.asked {
            Some((_, Ok(round_trip))) => round_trip.take_news(),
            _ => false,
        }
    }
}

impl Future for SendFuture<'_> {
    type Output = Result<Response<Http1Body>, Box<SendError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { connection, asked } = &mut *self;
        let answered = match asked {
            Some((_, Ok(round_trip))) => ready!(round_trip.poll(connection, cx)),
            _ => Err(Http1Error::NoResponse),
        };
        let (head, round_trip) = match asked.take() {
            Some((head, Ok(round_trip))) => (head, round_trip),
            Some((_, Err(error))) => return Poll::Ready(Err(SendError::fatal(error))),
            // Polled after its end.
            None => return Poll::Ready(Err(SendError::fatal(Http1Error::NoResponse))),
        };
        Poll::Ready(match answered {
            Ok(answer) => {
                let bytes = connection.input.take_head(answer.head_length());
                let response = round_trip.into_response(&answer, &bytes);
                response.map_err(SendError::fatal)
            }
            Err(error) => Err(round_trip.fail(error, head)),
        })
    }
}

fn asked(head: &request::Parts) -> Asked {
    Asked {
        method: http1::Method::of(&head.method),
        upgrade: head.headers.contains_key(UPGRADE),
    }
}

/// A request on its way, and the head of its response.
pub(super) struct RoundTrip {
    asked: Asked,
    /// Wants to know what was answered.
    continuation: Option<Arc<Continuation>>,
    /// There until all of the request was sent, or longer if it can be sent a second time.
    writer: Option<RequestWriter>,
    /// All of the request was sent.
    is_sent: bool,
    /// Why the rest of the request cannot be sent.
    broken: Option<Http1Error>,
    interim: u32,
    /// Something came that was not the final head.
    has_news: bool,
    early: Early,
    /// The fields of the response's head, once something of it has come.
    table: LentTable,
}

impl RoundTrip {
    pub(super) fn new(
        writer: RequestWriter,
        asked: Asked,
        continuation: Option<Arc<Continuation>>,
    ) -> Self {
        Self {
            asked,
            continuation,
            writer: Some(writer),
            is_sent: false,
            broken: None,
            interim: 0,
            has_news: false,
            early: Early::default(),
            table: LentTable::default(),
        }
    }

    /// Sends what is left of the request, and reads up to the final head, which stays at the front of the input.
    pub(super) fn poll(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Http1Error>> {
        if let Some(writer) = &mut self.writer
            && self.broken.is_none()
            && !self.is_sent
        {
            if writer.is_begun() {
                let Http1Connection { io, input, .. } = &mut *connection;
                self.has_news |= self.early.look(input, io, cx);
            }
            match writer.poll(&mut connection.io, cx) {
                Poll::Ready(Ok(())) => {
                    self.is_sent = true;
                    if !writer.is_kept() {
                        self.writer = None;
                    }
                }
                // The answer may have come all the same, and says why.
                Poll::Ready(Err(error @ Http1Error::Write(_))) if writer.is_begun() => {
                    self.broken = Some(error);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        let answered = ready!(self.poll_answer(connection, cx));
        Poll::Ready(answered.map_err(|error| match (error, self.broken.take()) {
            (Http1Error::NoResponse | Http1Error::Read(_), Some(cause)) => cause,
            (error, _) => error,
        }))
    }

    /// Reads heads up to the final one.
    fn poll_answer(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Http1Error>> {
        let input = &mut connection.input;
        loop {
            while !input.is_empty() {
                let filled = input.filled();
                let parsed = parse_response(filled, self.asked, &limits(), &mut self.table)?;
                let Status::Complete(head) = parsed else {
                    break;
                };
                if !head.is_interim() {
                    return Poll::Ready(Ok(head));
                }
                input.consume(head.head_length());
                self.early.passed_interim(input);
                self.interim(&head)?;
            }
            let read = input.poll_read(&mut connection.io, cx);
            if ready!(read).map_err(Http1Error::Read)? == 0 {
                return Poll::Ready(Err(Http1Error::NoResponse));
            }
            self.has_news = true;
        }
    }

    /// Why there is no response, and the request if all of it is left.
    fn fail(self, error: Http1Error, head: request::Parts) -> Box<SendError> {
        let Unanswered { whole, sent, came } = self.into_unanswered(&error);
        Box::new(SendError {
            error: ExchangeError::Http1(error),
            whole: whole.map(|(_, body)| Box::new(Request::from_parts(head, body))),
            sent,
            came,
        })
    }

    /// What is known of the request, which has failed like this, and what is left of it.
    pub(super) fn into_unanswered(self, error: &Http1Error) -> Unanswered {
        let is_silent = error.is_of_connection() && !self.table.is_lent() && self.interim == 0;
        let is_begun = self.writer.as_ref().is_none_or(RequestWriter::is_begun);
        // A request whose own body failed is not whole any more.
        let writer = self.writer.filter(|_| error.is_of_connection());
        Unanswered {
            whole: writer.and_then(RequestWriter::into_again),
            sent: match is_begun {
                true => Sent::Something,
                false => Sent::Nothing,
            },
            came: match is_silent {
                true => Came::Nothing,
                false => Came::Something,
            },
        }
    }

    /// Whether all of the request was sent before anything of the response came.
    #[cfg(feature = "server")]
    pub(super) fn was_sent(&self) -> bool {
        self.is_sent && !self.early.is_known()
    }

    /// Whether something came since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The fields of the response's head.
    #[cfg(feature = "server")]
    pub(super) fn table(&self) -> &http1::HeadTable {
        &self.table
    }

    /// The response's body, and what is left of the request.
    pub(super) fn into_body(self, head: &RawResponse) -> Http1Body {
        let sending = match self.writer {
            _ if self.is_sent => Sending::Done {
                is_late: self.early.is_known(),
            },
            None => Sending::Done { is_late: false },
            Some(_) if self.broken.is_some() => Sending::Broken,
            Some(writer) => Sending::Going(Box::new(writer)),
        };
        Http1Body::new(head, self.table, sending)
    }

    fn interim(&mut self, head: &RawResponse) -> Result<(), Http1Error> {
        self.interim += 1;
        if self.interim > MOST_INTERIM {
            return Err(Http1Error::TooManyInterim);
        }
        if let Some(continuation) = &self.continuation {
            let status = StatusCode::from_u16(head.status()).map_err(|_| Refusal::StatusCode)?;
            continuation.answered(status);
        }
        Ok(())
    }

    fn into_response(
        self,
        head: &RawResponse,
        bytes: &Bytes,
    ) -> Result<Response<Http1Body>, Http1Error> {
        if head.framing() == http1::Framing::Tunnel {
            if head.status() != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
                return Err(Http1Error::UnexpectedTunnel);
            }
            if !self.is_sent {
                return Err(Http1Error::EarlySwitch);
            }
        }
        if let Some(continuation) = &self.continuation {
            let status = StatusCode::from_u16(head.status()).map_err(|_| Refusal::StatusCode)?;
            continuation.answered(status);
        }
        let response = to_response(head, self.table.fields(), bytes)?;
        Ok(response.map(|()| self.into_body(head)))
    }
}
