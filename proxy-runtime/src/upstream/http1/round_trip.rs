//! A request without a body, and the head of its response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Response, StatusCode, request};

use super::body::Http1Body;
use super::output::Output;
use super::response_head::{MOST_INTERIM, limits, to_response};
use super::{Http1Connection, Http1Error, request_head};
use crate::http1::{self, Framing, PooledTable, RawResponse, RequestInfo, Status, parse_response};
use crate::retry::Came;
use crate::stream::poll_write_all;
use crate::upstream::error::{ExchangeError, SendError};

/// A request on its way over an [`Http1Connection`], and the head of its response.
///
/// After an error, or if this is dropped before the response has ended, the connection is of no use any more.
pub(crate) struct Http1RoundTrip {
    asked: RequestInfo,
    head: Output,
    /// Bytes of the head that were written.
    written: usize,
    interim: u32,
    /// Set when something came that was not the final head.
    has_news: bool,
    /// The fields of the response's head, once something of it has come.
    table: PooledTable,
}

impl Http1RoundTrip {
    /// Sends a head in `http` types.
    pub(crate) fn of_fields(connection: &Http1Connection, head: &request::Parts) -> Self {
        let mut out = Output::acquire();
        request_head::write(head, connection.absolute.as_deref(), &mut out);
        Self {
            asked: RequestInfo {
                method: http1::Method::of(&head.method),
                upgrade: head.headers.contains_key(UPGRADE),
            },
            head: out,
            written: 0,
            interim: 0,
            has_news: false,
            table: PooledTable::default(),
        }
    }

    /// Sends on; ready with the final head, which stays at the front of the connection's input.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn poll(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, SendError>> {
        let answered = ready!(self.poll_head(connection, cx));
        Poll::Ready(answered.map_err(|error| self.fail(connection, error)))
    }

    /// Sends more of the request, and reads up to the final head, which stays at the front of the input.
    fn poll_head(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Http1Error>> {
        if self.written < self.head.len() {
            let parts = [&self.head[..], &[]];
            let written = poll_write_all(&mut connection.io, cx, parts, &mut self.written);
            ready!(written).map_err(Http1Error::Write)?;
        }
        let input = &mut connection.input;
        loop {
            while !input.is_empty() {
                let filled = input.filled();
                let parsed = parse_response(filled, self.asked, &limits(), &mut self.table)?;
                let Status::Complete(head) = parsed else {
                    break;
                };
                if !head.is_interim() {
                    let is_switch = head.status() == StatusCode::SWITCHING_PROTOCOLS.as_u16();
                    return Poll::Ready(match head.framing() == Framing::Tunnel && !is_switch {
                        true => Err(Http1Error::UnexpectedTunnel),
                        false => Ok(head),
                    });
                }
                input.consume(head.head_length());
                self.interim += 1;
                if self.interim > MOST_INTERIM {
                    return Poll::Ready(Err(Http1Error::TooManyInterim));
                }
            }
            let read = input.poll_read(&mut connection.io, cx);
            if ready!(read).map_err(Http1Error::Read)? == 0 {
                return Poll::Ready(Err(Http1Error::NoResponse));
            }
            self.has_news = true;
        }
    }

    /// Returns the error of a request without a response.
    #[cold]
    fn fail(&mut self, connection: &Http1Connection, error: Http1Error) -> SendError {
        let is_silent = error.is_of_connection() && !self.table.is_lent() && self.interim == 0;
        SendError {
            error: ExchangeError::Http1(error),
            sent: connection.sent(self.written > 0),
            came: match is_silent {
                true => Came::Nothing,
                false => Came::Something,
            },
        }
    }

    /// Returns true if bytes arrived since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Returns the body of the response, after the head was removed from the input.
    pub(crate) fn into_body(self, head: &RawResponse, connection: &Http1Connection) -> Http1Body {
        Http1Body::new(head, self.table, connection)
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
