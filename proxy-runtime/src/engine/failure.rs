//! What a relay ends with if it does not end well, which `Run::fail` of either version then answers or counts.

use http::StatusCode;

use crate::forward::ForwardErrorKind;
use crate::upstream::SecondTry;

/// Why an exchange ended before its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not a byte was sent: it can be tried over another connection.
    Unsent,
    /// The connection, which had been idle, was closed without a byte of a response, and the request may be sent twice.
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

    /// The failure, unless the request is to be sent over another connection, given when this one allows that and whether all of the
    /// request `is_kept`.
    pub(super) fn unless_tried_again(self, second_try: SecondTry, is_kept: bool) -> Option<Self> {
        match self {
            Self::Unsent if second_try.if_unsent || is_kept => None,
            // It was kept for that.
            Self::Stale => None,
            failed => Some(failed),
        }
    }
}
