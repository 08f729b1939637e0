//! What it means that an exchange ends before its end.

use http::StatusCode;

use crate::error::{ForwardError, ForwardErrorKind};

/// Who the rest of a request waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Nobody: all of it was sent, or no more will be.
    #[default]
    Done,
    /// The client, for more bytes.
    Client,
    /// The destination, which does not take what there is.
    Destination,
    /// The destination, which has not said that it wants the body (`Expect: 100-continue`).
    Continue,
}

/// Why an exchange ends before its end, as far as the destination or a clock is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing has happened for the cluster's `ActivityTimeout`.
    Idle,
    /// The response has not begun by the route's `Timeout`.
    Deadline,
    /// The client sends the rest of its request more slowly than it has to.
    #[cfg_attr(
        not(any(feature = "server", test)),
        expect(dead_code, reason = "a server asks for a rate")
    )]
    TooSlow,
    /// The destination's connection was closed, or failed.
    Closed,
    /// What came is no response, or one that nobody asked for.
    Malformed,
    /// A response that cannot be passed on.
    Unrepresentable,
    /// The framing of the response's body is broken.
    BrokenBody,
}

impl End {
    /// What is told and counted of it, while the rest of the request waited for this and the client had no response or had.
    ///
    /// Timeouts are put down to who was waited for: slow clients are no fault of the destination. The kinds are YARP's.
    #[cold]
    pub(crate) fn verdict(
        self,
        stage: Stage,
        is_unanswered: bool,
    ) -> (ForwardErrorKind, StatusCode) {
        use ForwardErrorKind as Kind;
        match (self, stage) {
            (Self::TooSlow, _) | (Self::Idle, Stage::Client) => {
                (Kind::RequestBodyClient, StatusCode::REQUEST_TIMEOUT)
            }
            // Who has a response waits for that.
            (Self::Idle, _) if !is_unanswered => {
                (Kind::ResponseBodyDestination, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::Idle, Stage::Destination) => {
                (Kind::RequestBodyDestination, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::Idle | Self::Deadline, _) => {
                (Kind::RequestTimedOut, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::BrokenBody, _) => (Kind::ResponseBodyDestination, StatusCode::BAD_GATEWAY),
            (Self::Closed, _) if !is_unanswered => {
                (Kind::ResponseBodyDestination, StatusCode::BAD_GATEWAY)
            }
            (Self::Closed, Stage::Client | Stage::Destination) => {
                (Kind::RequestBodyDestination, StatusCode::BAD_GATEWAY)
            }
            (Self::Closed | Self::Malformed, _) => (Kind::Request, StatusCode::BAD_GATEWAY),
            (Self::Unrepresentable, _) => (Kind::ResponseHeaders, StatusCode::BAD_GATEWAY),
        }
    }

    /// The same, of an exchange without a response, as an error.
    #[cold]
    pub(crate) fn error(self, stage: Stage) -> ForwardError {
        let (kind, status) = self.verdict(stage, true);
        ForwardError::new(kind, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_one_meaning() {
        use ForwardErrorKind as Kind;
        // docs/life-of-a-request.md, "When it fails"
        for (end, stage, unanswered, cut) in [
            (
                End::Idle,
                Stage::Done,
                (Kind::RequestTimedOut, 504),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Idle,
                Stage::Continue,
                (Kind::RequestTimedOut, 504),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Idle,
                Stage::Client,
                (Kind::RequestBodyClient, 408),
                Kind::RequestBodyClient,
            ),
            (
                End::Idle,
                Stage::Destination,
                (Kind::RequestBodyDestination, 504),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Deadline,
                Stage::Done,
                (Kind::RequestTimedOut, 504),
                Kind::RequestTimedOut,
            ),
            (
                End::Deadline,
                Stage::Client,
                (Kind::RequestTimedOut, 504),
                Kind::RequestTimedOut,
            ),
            (
                End::Deadline,
                Stage::Destination,
                (Kind::RequestTimedOut, 504),
                Kind::RequestTimedOut,
            ),
            (
                End::TooSlow,
                Stage::Client,
                (Kind::RequestBodyClient, 408),
                Kind::RequestBodyClient,
            ),
            (
                End::Closed,
                Stage::Done,
                (Kind::Request, 502),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Closed,
                Stage::Continue,
                (Kind::Request, 502),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Closed,
                Stage::Client,
                (Kind::RequestBodyDestination, 502),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Closed,
                Stage::Destination,
                (Kind::RequestBodyDestination, 502),
                Kind::ResponseBodyDestination,
            ),
            (
                End::Malformed,
                Stage::Client,
                (Kind::Request, 502),
                Kind::Request,
            ),
            (
                End::Unrepresentable,
                Stage::Done,
                (Kind::ResponseHeaders, 502),
                Kind::ResponseHeaders,
            ),
            (
                End::BrokenBody,
                Stage::Done,
                (Kind::ResponseBodyDestination, 502),
                Kind::ResponseBodyDestination,
            ),
        ] {
            let (kind, status) = end.verdict(stage, true);
            assert_eq!((kind, status.as_u16()), unanswered, "{end:?} {stage:?}");
            assert_eq!(end.verdict(stage, false).0, cut, "{end:?} {stage:?}");
        }
    }
}
