//! The ways in which an exchange fails. [`finish`](super::finish) sends a local reply or aborts the
//! response.

use http::StatusCode;

use crate::error::ForwardErrorKind;
use crate::http1::Method;
use crate::progress::End;
use crate::retry::{Came, Failed, Over, Sent};
use crate::upstream::Http1Connection;

/// The reason for the failure of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No byte of the request was sent.
    Unsent,
    /// The connection was closed without a byte of a response, and the whole request was kept.
    Stale,
    /// The destination rejects the proxy's certificate, or the lack of one.
    Untrusted,
    /// No part of a response was sent; the client gets this status.
    Unanswered(ForwardErrorKind, StatusCode),
    /// The destination's response, with the first status, is not forwarded; the client gets the
    /// other status.
    Suppressed(StatusCode, ForwardErrorKind, StatusCode),
    /// The client has received a part of the response.
    Truncated(ForwardErrorKind),
    /// The client has disconnected.
    Disconnected(ForwardErrorKind),
}

/// The reason for the failure of a response.
#[derive(Debug)]
pub(crate) enum ResponseFailure {
    /// There is no response, or none that can be forwarded; the client gets an error.
    Unanswered(End, &'static str),
    /// The connection was closed before a byte of a response arrived.
    Silence,
    /// The destination rejects the proxy's certificate, or the lack of one.
    Untrusted,
    /// The body of the response with this status is malformed from its start; the client can still
    /// get an error.
    BrokenBody(StatusCode),
    /// The response with this status is no agreement to the switch of protocols that was asked for, or seems to be one.
    Disagreed(StatusCode),
    /// A filter failed at the response with this status.
    Extension(StatusCode),
    /// A filter failed at the trailers.
    Trailers,
    /// The destination ended the body early.
    Destination(&'static str),
    /// The body is malformed.
    MalformedBody(&'static str),
    /// The client has disconnected.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the clients of a server")
    )]
    Client,
}

/// The reason for the failure of an upload.
#[derive(Debug)]
pub(crate) enum UploadFailure {
    /// The client sent an invalid body, or not all of it.
    Client {
        status: StatusCode,
        /// True if the framing is malformed.
        is_malformed: bool,
    },
    /// The destination closed its connection.
    Destination {
        /// True if no byte of the request was sent.
        is_unsent: bool,
    },
}

impl Failure {
    /// The connection does not speak HTTP/1.1.
    pub(crate) const UNSPOKEN: Self =
        Self::Unanswered(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);

    /// Returns the facts about a failed attempt for the retry rule, or `None` if the failure
    /// permits no retry. `is_kept`: the whole request is still buffered.
    pub(crate) fn attempt(
        &self,
        (connection, over): (&Http1Connection, Over),
        method: Method,
        is_kept: bool,
    ) -> Option<Failed> {
        let (sent, came) = match (self, connection.failed()) {
            // A stream of HTTP/2 reports what was sent and processed.
            (Self::Unsent | Self::Stale, Some(failed)) => (failed.sent, failed.came),
            (Self::Unsent, None) => (connection.sent(false), Came::Nothing),
            // With TLS 1.3, the rejection arrives after the request was sent.
            (Self::Untrusted, _) => (Sent::Something, Came::Nothing),
            // A closed connection of HTTP/1.1 does not tell how much the destination has read.
            (Self::Stale, None) => (Sent::Something, Came::Nothing),
            _ => return None,
        };
        Some(Failed {
            over,
            sent,
            came,
            is_idempotent: method.is_idempotent(),
            // If no byte was sent, a body is still complete as well.
            is_whole: is_kept || sent == Sent::Nothing,
        })
    }
}

impl ResponseFailure {
    /// A malformed or unsolicited response.
    pub(crate) const fn meaningless(why: &'static str) -> Self {
        Self::Unanswered(End::Malformed, why)
    }
}

impl UploadFailure {
    /// A fault of the client, which gets this status.
    pub(crate) const fn client(status: StatusCode) -> Self {
        Self::Client {
            status,
            is_malformed: false,
        }
    }

    pub(crate) fn is_malformed(&self) -> bool {
        matches!(
            self,
            Self::Client {
                is_malformed: true,
                ..
            }
        )
    }

    pub(crate) fn kind(&self) -> ForwardErrorKind {
        match self {
            Self::Client { status, .. } => ForwardErrorKind::RequestBodyClient.told(*status),
            Self::Destination { .. } => ForwardErrorKind::RequestBodyDestination,
        }
    }

    /// Returns the error kind, and the status for a client that has no response.
    pub(crate) fn rejection(&self) -> (ForwardErrorKind, StatusCode) {
        let status = match self {
            Self::Client { status, .. } => *status,
            Self::Destination { .. } => StatusCode::BAD_GATEWAY,
        };
        (self.kind(), status)
    }

    /// Returns the failure of the exchange, or `None` if it can continue. `is_unanswered`: no byte
    /// of a response was sent; `is_answered`: all of it was.
    #[cold]
    pub(crate) fn failure(&self, is_unanswered: bool, is_answered: bool) -> Option<Failure> {
        match self {
            Self::Destination { is_unsent: true } => Some(Failure::Unsent),
            Self::Client { status, .. } if is_unanswered => {
                Some(Failure::Unanswered(self.kind(), *status))
            }
            Self::Client { .. } if !is_answered => Some(Failure::Truncated(self.kind())),
            // The destination may have responded before it closed, or the client has its response.
            Self::Client { .. } | Self::Destination { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_ends_early_has_one_meaning() {
        use Failure::{Truncated, Unanswered, Unsent};
        const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;
        let client = || UploadFailure::client(TOO_LARGE);
        let destination = |is_unsent| UploadFailure::Destination { is_unsent };
        // `is_unanswered` and `is_answered`.
        const UNANSWERED: (bool, bool) = (true, false);
        const BEGUN: (bool, bool) = (false, false);
        const ANSWERED: (bool, bool) = (false, true);
        let kind = ForwardErrorKind::RequestBodyClient;
        for (broken, client_has, expected) in [
            (client(), UNANSWERED, Some(Unanswered(kind, TOO_LARGE))),
            (client(), BEGUN, Some(Truncated(kind))),
            (client(), ANSWERED, None),
            (destination(true), UNANSWERED, Some(Unsent)),
            (destination(false), UNANSWERED, None),
            (destination(false), BEGUN, None),
            (destination(false), ANSWERED, None),
        ] {
            let (is_unanswered, is_answered) = client_has;
            assert_eq!(
                broken.failure(is_unanswered, is_answered),
                expected,
                "{broken:?}, {client_has:?}"
            );
        }
    }
}
