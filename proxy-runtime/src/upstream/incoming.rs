//! The body of a response, whatever version of HTTP it comes over.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;

use super::error::ExchangeError;
use super::http1::{Http1Body, Http1Connection};
#[cfg(feature = "http2")]
use super::http2::Http2Body;

/// The body of a response, which is read over the [`Lease`](super::Lease) that the request was sent over.
#[derive(Debug)]
pub(crate) enum IncomingBody {
    /// True if the destination keeps the connection open behind it.
    Http1(Http1Body, bool),
    #[cfg(feature = "http2")]
    Http2(Http2Body),
}

impl IncomingBody {
    /// Returns true if the whole body was read, as far as known without polling.
    pub(crate) fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body, _) => body.has_ended(),
            #[cfg(feature = "http2")]
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    /// Bytes that may have come and were not asked for.
    pub(crate) fn behind(&self) -> u64 {
        match self {
            Self::Http1(..) => 0,
            #[cfg(feature = "http2")]
            Self::Http2(_) => u64::from(super::http2::STREAM_WINDOW),
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        connection: Option<&mut Http1Connection>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        match self {
            Self::Http1(body, _) => match connection {
                Some(connection) => body
                    .poll_frame(connection, cx)
                    .map(|next| next.map(|frame| frame.map_err(ExchangeError::Http1))),
                None => Poll::Ready(None),
            },
            #[cfg(feature = "http2")]
            Self::Http2(body) => body
                .poll_frame(cx)
                .map(|next| next.map(|frame| frame.map_err(ExchangeError::Http2))),
        }
    }
}
