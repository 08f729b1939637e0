//! Errors of request bodies.

use std::error::Error as StdError;

use http::StatusCode;

use super::TOO_LARGE;

/// The reason why a request's body is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestBodyError {
    /// The body is larger than [`Limits::body_bytes`](crate::server::Limits::body_bytes).
    #[error("the request's body is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The client is slower than [`Limits::data_rate`](crate::server::Limits::data_rate).
    #[error("the request's body arrives too slowly")]
    TooSlow,
    /// The body is followed by more trailer fields than
    /// [`Limits::header_fields`](crate::server::Limits::header_fields).
    #[error("the request has more than {limit} trailer fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// The trailer section behind a body of HTTP/1.1 is larger than
    /// [`Limits::header_bytes`](crate::server::Limits::header_bytes).
    #[error("the request's trailers are larger than {limit} bytes")]
    TrailersTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The client went away, or broke the protocol.
    #[error("the request's body could not be read")]
    Read(#[source] Box<dyn StdError + Send + Sync>),
}

impl RequestBodyError {
    /// The status for the client, if the response has not begun.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyFields { .. } | Self::TrailersTooLarge { .. } => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Read(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns true if the body exceeds a limit of the server, false if it is invalid.
    pub(crate) fn is_of_limit(&self) -> bool {
        !matches!(self, Self::Read(_))
    }
}
