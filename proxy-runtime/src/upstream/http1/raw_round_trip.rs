//! Requests whose heads are written by who sends them.

use std::task::{Context, Poll};

use super::output::Output;
use super::request_head::RequestFraming;
use super::round_trip::RoundTrip;
use super::{Http1Body, Http1Connection, Http1Error, RequestWriter};
use crate::forward::OutgoingBody;
use crate::http1::{self, Asked, HeadTable, RawResponse};

/// A request whose head was written already, on its way, and the head of its response as it came.
///
/// After an error, or if this is dropped before the response has ended, the connection is of no use any more.
pub(crate) struct RawRoundTrip(RoundTrip);

impl RawRoundTrip {
    /// Sends `head`, with the empty line behind it, and `body`, which is framed as that says.
    pub(crate) fn new(
        connection: &Http1Connection,
        head: Output,
        framing: http1::Framing,
        body: OutgoingBody,
        asked: Asked,
    ) -> Self {
        let framing = match framing {
            http1::Framing::Chunked => RequestFraming::Chunked,
            http1::Framing::Length(length @ 1..) => RequestFraming::Length(length),
            _ => RequestFraming::None,
        };
        let second_try = connection.second_try(asked.method);
        let writer = RequestWriter::of_written(head, framing, body, second_try);
        Self(RoundTrip::new(writer, asked, None))
    }

    /// Sends on; ready with the final head, which stays at the front of the connection's input.
    pub(crate) fn poll_head(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RawResponse, Http1Error>> {
        self.0.poll(connection, cx)
    }

    /// Head and body, if after this error they are to be sent over another connection: this one had carried other requests,
    /// and broke before it took a byte, or was closed without an answer to a request that can do no harm the second time.
    pub(crate) fn into_again(self, error: &Http1Error) -> Option<(Output, OutgoingBody)> {
        self.0.into_again(error)
    }

    /// Whether all of the request was sent before anything of the response came, so that the connection can be used again.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.was_sent()
    }

    /// Whether something came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        self.0.take_news()
    }

    /// The fields of the response's head.
    pub(crate) fn table(&self) -> &HeadTable {
        self.0.table()
    }

    /// The body of the response, whose head was taken off the connection's input.
    pub(crate) fn into_body(self, head: &RawResponse) -> Http1Body {
        self.0.into_body(head)
    }
}
