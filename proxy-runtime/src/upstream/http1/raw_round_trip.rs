//! Requests whose heads are written by who sends them.

use std::task::{Context, Poll};

use super::output::Output;
use super::request_head::RequestFraming;
use super::round_trip::{RoundTrip, Unanswered};
use super::{Http1Body, Http1Connection, Http1Error, RequestWriter};
use crate::http1::{self, Asked, HeadTable, RawResponse};
use crate::progress::OutgoingBody;

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
        let keep = connection.keep(asked.method);
        let writer = RequestWriter::of_written(head, framing, body, keep);
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

    /// What is known of a request that has failed like this, and what is left of it.
    pub(crate) fn into_unanswered(self, error: &Http1Error) -> Unanswered {
        self.0.into_unanswered(error)
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
