//! Errors of exchanges over HTTP/1.1.

use std::io;

use crate::http1::Rejection;

/// The reason why an exchange over HTTP/1.1 failed. The connection cannot be used again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Http1Error {
    /// The response is malformed or ambiguous.
    #[error("the response is not understood")]
    Rejected(#[from] Rejection),
    #[error("too many interim responses came")]
    TooManyInterim,
    #[error("the connection was closed before the response had come")]
    NoResponse,
    #[error("the connection was closed before the response had ended")]
    Truncated,
    #[cfg(feature = "http2")]
    #[error("the body has another length than its head declares")]
    WrongLength,
    #[error("reading the response failed")]
    Read(#[source] io::Error),
    #[error("writing the request failed")]
    Write(#[source] io::Error),
    #[cfg(feature = "http2")]
    #[error("the stream failed before the response had ended")]
    Stream(#[source] h2::Error),
}

impl Http1Error {
    /// Returns true if the response is malformed, and not only incomplete.
    pub(crate) fn is_malformed(&self) -> bool {
        match self {
            Self::Rejected(_) | Self::TooManyInterim => true,
            #[cfg(feature = "http2")]
            Self::WrongLength => true,
            #[cfg(feature = "http2")]
            Self::Stream(error) => error.is_library(),
            Self::NoResponse | Self::Truncated | Self::Read(_) | Self::Write(_) => false,
        }
    }
}
