//! One request over a connection, whatever version of HTTP it speaks, up to the head of its response.

use std::task::{Context, Poll};

#[cfg(feature = "http2")]
use http::Response;

use super::error::SendError;
use super::http1::{self, Http1Connection, Http1Error};
#[cfg(feature = "http2")]
use super::http2::Http2RoundTrip;
#[cfg(feature = "http2")]
use super::incoming::IncomingBody;
use crate::http1::RawResponse;

/// A request on its way.
pub(crate) enum RoundTrip {
    Http1(http1::Http1RoundTrip),
    #[cfg(feature = "http2")]
    Http2(Http2RoundTrip),
}

/// The final head of a response.
pub(crate) enum Answer {
    /// Bytes at the front of the connection's input.
    Http1(RawResponse),
    #[cfg(feature = "http2")]
    Http2(Box<Response<IncomingBody>>),
}

impl RoundTrip {
    /// Sends on; ready with the final head. `connection` is the one of HTTP/1.1, if it is one.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn poll(
        &mut self,
        connection: Option<&mut Http1Connection>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, SendError>> {
        match self {
            Self::Http1(round_trip) => match connection {
                Some(connection) => round_trip
                    .poll(connection, cx)
                    .map(|answered| answered.map(Answer::Http1)),
                None => Poll::Ready(Err(SendError::fatal(Http1Error::NoResponse))),
            },
            #[cfg(feature = "http2")]
            Self::Http2(round_trip) => round_trip.poll(cx).map(|answered| {
                answered.map(|response| Answer::Http2(Box::new(response.map(IncomingBody::Http2))))
            }),
        }
    }

    /// Returns whether something came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        match self {
            Self::Http1(round_trip) => round_trip.take_news(),
            #[cfg(feature = "http2")]
            Self::Http2(round_trip) => round_trip.take_news(),
        }
    }
}
