//! A request and the head of its response.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response, StatusCode, request};

use super::body::{Http1Body, UploadState};
use super::early::Early;
use super::response_head::{MOST_INTERIM, limits, to_response};
use super::{Http1Connection, Http1Error, RequestWriter};
use crate::http1::{
    self, Framing, PooledTable, RawResponse, Rejection, RequestInfo, Status, parse_response,
};
use crate::progress::{Continuation, OutgoingBody};
use crate::retry::{Came, Sent};
use crate::upstream::error::{ExchangeError, SendError};

impl Http1Connection {
    /// Sends a request and waits for the head of its response.
    ///
    /// After an error, or if it is dropped before it is ready, the connection is of no use any more.
    ///
    /// # Errors
    ///
    /// With the body, if all of it is left to be sent over another connection.
    pub(in crate::upstream) async fn send(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<Http1Body>, Box<SendError>> {
        let (head, body) = request.into_parts();
        let mut round_trip =
            Http1RoundTrip::of_fields(self, &head, body, None).map_err(SendError::fatal)?;
        let answer = poll_fn(|cx| round_trip.poll(self, cx)).await?;
        let bytes = self.input.take_head(answer.head_length());
        let response = round_trip.response(&answer, &bytes);
        let response = response.map_err(SendError::fatal)?;
        Ok(response.map(|()| round_trip.into_body(&answer)))
    }
}

/// A request on its way over an [`Http1Connection`], and the head of its response.
///
/// After an error, or if this is dropped before the response has ended, the connection is of no use any more.
pub(crate) struct Http1RoundTrip {
    asked: RequestInfo,
    /// Wants to know what was answered.
    continuation: Option<Arc<Continuation>>,
    /// There until all of the request was sent.
    writer: Option<RequestWriter>,
    /// The request has no body, and can be sent a second time.
    is_repeatable: bool,
    /// All of the request was sent.
    is_sent: bool,
    /// The reason why the rest of the request cannot be sent.
    broken: Option<Http1Error>,
    interim: u32,
    /// Set when something came that was not the final head.
    has_news: bool,
    early: Early,
    /// The fields of the response's head, once something of it has come.
    table: PooledTable,
}

impl Http1RoundTrip {
    /// Sends a head in `http` types and `body`. `continuation` is told whether the destination asks for the body.
    ///
    /// # Errors
    ///
    /// The head does not say where the body ends.
    pub(crate) fn of_fields(
        connection: &Http1Connection,
        head: &request::Parts,
        body: OutgoingBody,
        continuation: Option<Arc<Continuation>>,
    ) -> Result<Self, Http1Error> {
        let asked = RequestInfo {
            method: http1::Method::of(&head.method),
            upgrade: head.headers.contains_key(UPGRADE),
        };
        let writer = RequestWriter::new(head, body, connection.keep(asked.method))?;
        Ok(Self::new(writer, asked, continuation))
    }

    fn new(
        writer: RequestWriter,
        asked: RequestInfo,
        continuation: Option<Arc<Continuation>>,
    ) -> Self {
        Self {
            asked,
            continuation,
            is_repeatable: writer.is_repeatable(),
            writer: Some(writer),
            is_sent: false,
            broken: None,
            interim: 0,
            has_news: false,
            early: Early::default(),
            table: PooledTable::default(),
        }
    }

    /// Sends on; ready with the final head, which stays at the front of the connection's input.
    ///
    /// # Errors
    ///
    /// With the body, if all of it is left to be sent over another connection.
    pub(crate) fn poll(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Box<SendError>>> {
        let answered = ready!(self.poll_head(connection, cx));
        Poll::Ready(answered.map_err(|error| self.fail(error)))
    }

    /// Sends more of the request, and reads up to the final head, which stays at the front of the input.
    fn poll_head(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Http1Error>> {
        if let Some(writer) = &mut self.writer
            && self.broken.is_none()
        {
            if writer.is_begun() {
                let Http1Connection { io, input, .. } = &mut *connection;
                self.has_news |= self.early.look(input, io, cx);
            }
            match writer.poll(&mut connection.io, cx) {
                Poll::Ready(Ok(())) => {
                    self.is_sent = true;
                    self.writer = None;
                }
                // A response may have arrived before the failure, with the reason, so reading continues.
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
                    self.answered(&head)?;
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

    /// Returns the error of a request without a response, with the body if it is complete.
    #[cold]
    fn fail(&mut self, error: Http1Error) -> Box<SendError> {
        let is_silent = error.is_of_connection() && !self.table.is_lent() && self.interim == 0;
        let is_begun = self.writer.as_ref().is_none_or(RequestWriter::is_begun);
        let body = match self.writer.take() {
            // If the client's body failed, no other connection can help.
            _ if !error.is_of_connection() => None,
            Some(writer) => writer.into_again(),
            None => self.is_repeatable.then(OutgoingBody::empty),
        };
        Box::new(SendError {
            error: ExchangeError::Http1(error),
            body,
            sent: match is_begun {
                true => Sent::Something,
                false => Sent::Nothing,
            },
            came: match is_silent {
                true => Came::Nothing,
                false => Came::Something,
            },
        })
    }

    /// Returns true if bytes arrived since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Returns the body of the response and the unsent part of the request, after the head was removed from the input.
    pub(crate) fn into_body(self, head: &RawResponse) -> Http1Body {
        let sending = match self.writer {
            _ if self.is_sent => UploadState::Done {
                is_late: self.early.is_known(),
            },
            None => UploadState::Done { is_late: false },
            Some(_) if self.broken.is_some() => UploadState::Broken,
            Some(writer) => UploadState::Going(Box::new(writer)),
        };
        Http1Body::new(head, self.table, sending)
    }

    fn interim(&mut self, head: &RawResponse) -> Result<(), Http1Error> {
        self.interim += 1;
        if self.interim > MOST_INTERIM {
            return Err(Http1Error::TooManyInterim);
        }
        if let Some(continuation) = &self.continuation {
            let status = StatusCode::from_u16(head.status()).map_err(|_| Rejection::StatusCode)?;
            continuation.answered(status);
        }
        Ok(())
    }

    /// Checks the final head.
    fn answered(&self, head: &RawResponse) -> Result<(), Http1Error> {
        if head.framing() == Framing::Tunnel {
            if head.status() != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
                return Err(Http1Error::UnexpectedTunnel);
            }
            // The rest of the request would become the first bytes of the tunnel.
            if !self.is_sent {
                return Err(Http1Error::EarlySwitch);
            }
        }
        if let Some(continuation) = &self.continuation {
            let status = StatusCode::from_u16(head.status()).map_err(|_| Rejection::StatusCode)?;
            continuation.answered(status);
        }
        Ok(())
    }

    /// Returns the final head in `http` types. `bytes` begin with the head, and the values of its fields share them.
    ///
    /// # Errors
    ///
    /// The head cannot be expressed in these types.
    pub(crate) fn response(
        &self,
        head: &RawResponse,
        bytes: &Bytes,
    ) -> Result<Response<()>, Http1Error> {
        to_response(head, self.table.fields(), bytes)
    }
}
