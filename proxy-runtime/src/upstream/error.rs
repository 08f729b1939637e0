//! Why a connection to a destination could not be had, or failed.

use std::io;
use std::sync::Arc;

use http::Request;

use super::http1::Http1Error;
use crate::forward::OutgoingBody;

/// Why a connection to a destination could not be had. No byte of a request was sent.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the destination's name cannot be resolved")]
    Resolve(#[source] Arc<io::Error>),
    #[error("the connection cannot be opened")]
    Open(#[source] Arc<io::Error>),
    #[cfg(feature = "tls")]
    #[error("the TLS handshake failed")]
    Tls(#[source] Arc<io::Error>),
    #[cfg(feature = "tls")]
    #[error("the TLS settings cannot be used")]
    TlsSettings(#[source] Arc<rustls::Error>),
    #[cfg(feature = "http2")]
    #[error("the HTTP handshake failed")]
    Handshake(#[source] Arc<hyper::Error>),
    #[cfg(feature = "tls")]
    #[error("the destination does not speak HTTP/2, which the cluster requires")]
    NoHttp2,
    #[cfg(feature = "http2")]
    #[error("the destination has no WebSockets over HTTP/2, which the cluster requires")]
    NoConnect,
    #[error("there was no connection in time")]
    TimedOut,
    #[error("too many requests wait for a connection")]
    Saturated,
    #[error("{0}")]
    Unsupported(&'static str),
}

impl ConnectError {
    /// Whether it says something of the destination, and not only of the proxy's own settings or load.
    pub(super) fn is_of_destination(&self) -> bool {
        match self {
            Self::Resolve(_) | Self::Open(_) | Self::TimedOut => true,
            #[cfg(feature = "tls")]
            Self::Tls(_) | Self::NoHttp2 => true,
            #[cfg(feature = "tls")]
            Self::TlsSettings(_) => false,
            #[cfg(feature = "http2")]
            Self::Handshake(_) | Self::NoConnect => true,
            Self::Saturated | Self::Unsupported(_) => false,
        }
    }
}

/// Why an exchange over a connection failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error(transparent)]
    Http1(Http1Error),
    #[cfg(feature = "http2")]
    #[error(transparent)]
    Http2(hyper::Error),
}

impl ExchangeError {
    /// Whether what came back was no response, whatever else was going on.
    pub(crate) fn is_malformed_response(&self) -> bool {
        match self {
            Self::Http1(error) => error.is_malformed_response(),
            #[cfg(feature = "http2")]
            Self::Http2(error) => error.is_parse(),
        }
    }

    /// Whether the destination says that it has not looked at the request, so that it can be sent again (RFC 9113 section
    /// 8.7): the stream was refused, or it came after the last one that the connection still serves.
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            Self::Http1(_) => false,
            #[cfg(feature = "http2")]
            Self::Http2(error) => is_unprocessed(error),
        }
    }
}

#[cfg(feature = "http2")]
fn is_unprocessed(error: &hyper::Error) -> bool {
    use std::error::Error as _;

    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let reason = error.reason();
            return error.is_remote()
                && (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM)
                    || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR));
        }
        cause = error.source();
    }
    false
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) error: ExchangeError,
    /// The request, if it is known that nothing of it has left, or if it can do no harm the second time.
    pub(crate) unsent: Option<Box<Request<OutgoingBody>>>,
}
