//! What a relay ends with if it does not end well, which `Run::fail` of either version then answers or counts.

use http::StatusCode;

use crate::error::ForwardErrorKind;
use crate::http1::Method;
use crate::retry::{Came, Failed, Sent};
use crate::upstream::Http1Connection;

/// Why an exchange ended before its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not a byte was sent.
    Unsent,
    /// The connection was closed without a byte of a response, and all of the request was kept.
    Stale,
    /// The client can be told this status.
    Unanswered(ForwardErrorKind, StatusCode),
    /// The destination's response, which had the first status, is not passed on: the client can be told the other one.
    Withheld(StatusCode, ForwardErrorKind, StatusCode),
    /// The client has got a part of the response.
    Cut(ForwardErrorKind),
    /// The client has gone.
    Gone(ForwardErrorKind),
}

impl Failure {
    /// The connection is not one of HTTP/1.1.
    pub(super) const UNSPOKEN: Self =
        Self::Unanswered(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);

    /// What there is to know of an attempt of this `method` that has failed over a connection, given whether all of the request
    /// `is_kept`. `None` if it is none that can be made again.
    pub(super) fn attempt(
        &self,
        connection: &Http1Connection,
        method: Method,
        is_kept: bool,
    ) -> Option<Failed> {
        let sent = match self {
            Self::Unsent => connection.sent(false),
            Self::Stale => Sent::Something,
            _ => return None,
        };
        Some(Failed {
            over: connection.over(),
            sent,
            came: Came::Nothing,
            is_idempotent: method.is_idempotent(),
            is_whole: is_kept || sent == Sent::Nothing,
        })
    }
}
