//! The ways in which an exchange ends before its end, which [`settle`](super::settle) then answers or counts.

use http::StatusCode;

use crate::error::ForwardErrorKind;
use crate::http1::Method;
use crate::progress::End;
use crate::retry::{Came, Failed, Sent};
use crate::upstream::Http1Connection;

/// Why an exchange ended before its end.
#[derive(Debug, PartialEq, Eq)]
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

/// Why a response ended before its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// There is no response, or none that can be passed on: the client can be told so.
    Unanswered(End, &'static str),
    /// The connection was closed before a byte of a response came.
    Silence,
    /// The framing of the body is broken from the start, of the response of this status: the client can still be told.
    Broken(StatusCode),
    /// A filter failed at the response of this status.
    Extension(StatusCode),
    /// The destination broke off.
    Destination(&'static str),
    /// The client takes no more.
    Client,
}

/// Why a request ended before its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// By what the client sent, or did not send.
    Client {
        status: StatusCode,
        /// What it sent has no meaning.
        is_malformed: bool,
    },
    /// The destination takes no more.
    Destination {
        /// Not a byte of it was taken.
        is_unsent: bool,
    },
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

impl Cut {
    /// What came is no response, or none that anybody asked for.
    pub(super) const fn meaningless(why: &'static str) -> Self {
        Self::Unanswered(End::Meaningless, why)
    }
}

impl Broken {
    /// By the client, which is told this status.
    pub(super) const fn client(status: StatusCode) -> Self {
        Self::Client {
            status,
            is_malformed: false,
        }
    }

    pub(super) fn is_malformed(&self) -> bool {
        matches!(
            self,
            Self::Client {
                is_malformed: true,
                ..
            }
        )
    }

    pub(super) fn kind(&self) -> ForwardErrorKind {
        match self {
            Self::Client { .. } => ForwardErrorKind::RequestBodyClient,
            Self::Destination { .. } => ForwardErrorKind::RequestBodyDestination,
        }
    }

    /// What the client is told if it has no response.
    pub(super) fn refusal(&self) -> (ForwardErrorKind, StatusCode) {
        let status = match self {
            Self::Client { status, .. } => *status,
            Self::Destination { .. } => StatusCode::BAD_GATEWAY,
        };
        (self.kind(), status)
    }

    /// What this means for an exchange whose client `is_unanswered`, or has all of its response (`is_answered`). `None`: the response
    /// may come, or has come, all the same.
    #[cold]
    pub(super) fn failure(&self, is_unanswered: bool, is_answered: bool) -> Option<Failure> {
        match self {
            Self::Destination { is_unsent: true } => Some(Failure::Unsent),
            Self::Client { status, .. } if is_unanswered => {
                Some(Failure::Unanswered(self.kind(), *status))
            }
            Self::Client { .. } if !is_answered => Some(Failure::Cut(self.kind())),
            // The destination may have answered before it closed, and the client has its answer.
            Self::Client { .. } | Self::Destination { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_ends_early_has_one_meaning() {
        use Failure::{Cut, Unanswered, Unsent};
        const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;
        let client = || Broken::client(TOO_LARGE);
        let destination = |is_unsent| Broken::Destination { is_unsent };
        // Whether the client has no part of its response, and whether it has all.
        const UNANSWERED: (bool, bool) = (true, false);
        const BEGUN: (bool, bool) = (false, false);
        const ANSWERED: (bool, bool) = (false, true);
        let kind = ForwardErrorKind::RequestBodyClient;
        for (broken, client_has, expected) in [
            (client(), UNANSWERED, Some(Unanswered(kind, TOO_LARGE))),
            (client(), BEGUN, Some(Cut(kind))),
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
