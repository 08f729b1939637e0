//! The meaning of exchanges that end early.

use http::StatusCode;

use crate::error::{Cause, ForwardError, ForwardErrorKind};

/// The party that the rest of a request waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// No party: the request was sent completely, or no more will be sent.
    #[default]
    Done,
    /// The client, for more bytes.
    Client,
    /// The destination, which does not read the available bytes.
    Destination,
    /// The destination, which has not sent `100 Continue` yet.
    Continue,
}

/// The reason why an exchange ends early, if the destination or a time limit causes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// There was no progress for the cluster's `ActivityTimeout`.
    Idle,
    /// The response has not begun by the route's `Timeout`, or ended if that includes the body.
    Deadline,
    /// The client sends its request more slowly than the minimum rate.
    TooSlow,
    /// The destination's connection was closed, or failed.
    Closed,
    /// The destination sent a malformed or unexpected response.
    Malformed,
    /// A response that cannot be passed on.
    Unrepresentable,
    /// The framing of the response's body is broken.
    BrokenBody,
}

impl End {
    /// Returns the kind of the error and the client's status. `stage`: the party that the request waited for.
    /// `is_unanswered`: the client has no response yet.
    ///
    /// A timeout is attributed to the party that was waited for: slow clients are no fault of the destination. The
    /// kinds are YARP's.
    #[cold]
    pub(crate) fn verdict(
        self,
        stage: Stage,
        is_unanswered: bool,
    ) -> (ForwardErrorKind, StatusCode) {
        use ForwardErrorKind as Kind;
        match (self, stage) {
            (Self::TooSlow, _) | (Self::Idle, Stage::Client) => {
                let kind = Kind::RequestBodyClient.because(Cause::ClientTooSlow);
                (kind, StatusCode::REQUEST_TIMEOUT)
            }
            (Self::Deadline, Stage::Client) if !is_unanswered => {
                let kind = Kind::RequestBodyClient.because(Cause::ClientTooSlow);
                (kind, StatusCode::REQUEST_TIMEOUT)
            }
            // After the head, only the rest of the response is awaited.
            (Self::Deadline, _) if !is_unanswered => {
                let kind = Kind::ResponseBodyDestination.because(Cause::BodyTimeout);
                (kind, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::Idle, _) if !is_unanswered => {
                let kind = Kind::ResponseBodyDestination.because(Cause::ActivityTimeout);
                (kind, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::Idle, Stage::Destination) => {
                let kind = Kind::RequestBodyDestination.because(Cause::ActivityTimeout);
                (kind, StatusCode::GATEWAY_TIMEOUT)
            }
            // The kind and status of YARP; the cause names the client.
            (Self::Deadline, Stage::Client) => {
                let kind = Kind::RequestTimedOut.because(Cause::ClientTooSlow);
                (kind, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::Idle | Self::Deadline, _) => {
                (Kind::RequestTimedOut, StatusCode::GATEWAY_TIMEOUT)
            }
            (Self::BrokenBody, _) => {
                let kind = Kind::ResponseBodyDestination.because(Cause::MalformedResponse);
                (kind, StatusCode::BAD_GATEWAY)
            }
            (Self::Closed, _) if !is_unanswered => {
                (Kind::ResponseBodyDestination, StatusCode::BAD_GATEWAY)
            }
            (Self::Closed, Stage::Client | Stage::Destination) => {
                (Kind::RequestBodyDestination, StatusCode::BAD_GATEWAY)
            }
            (Self::Closed, _) => (Kind::Request, StatusCode::BAD_GATEWAY),
            (Self::Malformed, _) => {
                let kind = Kind::Request.because(Cause::MalformedResponse);
                (kind, StatusCode::BAD_GATEWAY)
            }
            (Self::Unrepresentable, _) => (Kind::ResponseHeaders, StatusCode::BAD_GATEWAY),
        }
    }

    /// Returns the error of an exchange without a response.
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
                Kind::ResponseBodyDestination,
            ),
            (
                End::Deadline,
                Stage::Client,
                (Kind::RequestTimedOut, 504),
                Kind::RequestBodyClient,
            ),
            (
                End::Deadline,
                Stage::Destination,
                (Kind::RequestTimedOut, 504),
                Kind::ResponseBodyDestination,
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

    #[test]
    fn each_end_has_its_cause() {
        for (end, stage, unanswered, cut) in [
            (
                End::Idle,
                Stage::Done,
                Cause::HeaderTimeout,
                Cause::ActivityTimeout,
            ),
            (
                End::Idle,
                Stage::Client,
                Cause::ClientTooSlow,
                Cause::ClientTooSlow,
            ),
            (
                End::Idle,
                Stage::Destination,
                Cause::ActivityTimeout,
                Cause::ActivityTimeout,
            ),
            (
                End::Deadline,
                Stage::Done,
                Cause::HeaderTimeout,
                Cause::BodyTimeout,
            ),
            // A client that withholds its body does not count against the destination.
            (
                End::Deadline,
                Stage::Client,
                Cause::ClientTooSlow,
                Cause::ClientTooSlow,
            ),
            (
                End::Deadline,
                Stage::Destination,
                Cause::HeaderTimeout,
                Cause::BodyTimeout,
            ),
            (
                End::TooSlow,
                Stage::Client,
                Cause::ClientTooSlow,
                Cause::ClientTooSlow,
            ),
            (
                End::Closed,
                Stage::Done,
                Cause::ResetBeforeResponse,
                Cause::ResetWhileResponding,
            ),
            (
                End::Closed,
                Stage::Destination,
                Cause::ResetWhileSending,
                Cause::ResetWhileResponding,
            ),
            (
                End::Malformed,
                Stage::Done,
                Cause::MalformedResponse,
                Cause::MalformedResponse,
            ),
            (
                End::BrokenBody,
                Stage::Done,
                Cause::MalformedResponse,
                Cause::MalformedResponse,
            ),
            (
                End::Unrepresentable,
                Stage::Done,
                Cause::MalformedResponse,
                Cause::MalformedResponse,
            ),
        ] {
            let of = |is_unanswered| end.verdict(stage, is_unanswered).0.cause();
            assert_eq!(
                (of(true), of(false)),
                (unanswered, cut),
                "{end:?} {stage:?}"
            );
        }
    }
}
