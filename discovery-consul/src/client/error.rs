//! The error of a failed call, and its remedy.

use std::error::Error;
use std::time::Duration;

use discovery_core::text::{shortened, with_causes};
use http::StatusCode;

use super::{TransportError, TransportErrorKind};

/// Maximum number of characters of an agent's text that are shown.
const SHOWN: usize = 200;

/// The error of a failed call. The message names the call and contains no token; of the agent's response it
/// has only a short, printable beginning.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {message}")]
pub struct ConsulError {
    kind: ConsulErrorKind,
    call: String,
    message: String,
    status: Option<StatusCode>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a [`ConsulError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConsulErrorKind {
    /// No connection to the agent, or one that ended before the response did.
    Unreachable,
    /// No TLS with the agent: one side does not trust the other's certificate.
    Tls,
    /// No response in time.
    TimedOut,
    /// A token that is missing, unknown, or does not allow the call (401, 403).
    Denied,
    /// A call that the agent does not know, or that this edition of Consul lacks (400, 404, 405).
    Rejected,
    /// Too many connections or requests (429).
    Throttled,
    /// A datacenter that is unknown or cannot be reached from the agent (500).
    NoPathToDatacenter,
    /// No leader among the servers at the moment (500).
    NoLeader,
    /// Any other failure of the servers (5xx).
    Server,
    /// A response that is too large, or not in Consul's format.
    Malformed,
    /// No token to send: its file cannot be read.
    NoToken,
}

/// The retry after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// A retry soon, with a growing back-off and jitter.
    Backoff,
    /// Retry rarely: the failure lasts until an operator changes something, of which there is no notification.
    Slowly,
}

impl ConsulErrorKind {
    /// Returns the retry after this kind of error. The last known good data stay in use in any case.
    pub fn retry(self) -> Retry {
        match self {
            Self::Unreachable
            | Self::TimedOut
            | Self::Throttled
            | Self::NoPathToDatacenter
            | Self::NoLeader
            | Self::Server => Retry::Backoff,
            Self::Tls | Self::Denied | Self::Rejected | Self::Malformed | Self::NoToken => {
                Retry::Slowly
            }
        }
    }

    /// A hint for the operator.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "see that the agent runs and that this is the address of its HTTP API"
            }
            Self::Tls => {
                "see that the CA, the client certificate and the server name are the agent's"
            }
            Self::TimedOut => "see whether the agent is stopped or overloaded",
            Self::Denied => {
                "give a token whose policy has `service_prefix \"\" { policy = \"read\" }` and \
                 `node_prefix \"\" { policy = \"read\" }`"
            }
            Self::Rejected => "see that the options suit this version and edition of Consul",
            Self::Throttled => {
                "see `limits.http_max_conns_per_client` and `limits.request_limits` of the agent"
            }
            Self::NoPathToDatacenter => {
                "see that the datacenter is spelled as Consul spells it, and joined over the WAN"
            }
            Self::NoLeader => "see `consul operator raft list-peers`",
            Self::Server => "see the logs of the Consul servers",
            Self::Malformed => "see that this is the address of a Consul agent",
            Self::NoToken => "see that this process can read the token's file",
        }
    }
}

impl ConsulError {
    pub(crate) fn new(kind: ConsulErrorKind, call: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            call: call.to_owned(),
            message: message.into(),
            status: None,
            source: None,
        }
    }

    pub(super) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(super) fn timed_out(call: &str, limit: Duration) -> Self {
        let message = format!("no answer in {limit:?}");
        Self::new(ConsulErrorKind::TimedOut, call, message)
    }

    pub(super) fn of_transport(call: &str, error: TransportError) -> Self {
        let kind = match error.kind() {
            kind if kind.is_tls() => ConsulErrorKind::Tls,
            TransportErrorKind::TooLarge => ConsulErrorKind::Malformed,
            TransportErrorKind::TimedOut => ConsulErrorKind::TimedOut,
            _ => ConsulErrorKind::Unreachable,
        };
        let failed = Self::new(kind, call, error.to_string());
        match error.into_source() {
            Some(source) => failed.with_source(source),
            None => failed,
        }
    }

    /// Creates the error for an unsuccessful response, with the agent's text.
    pub(crate) fn of_status(call: &str, status: StatusCode, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let kind = kind_of(status, &text);
        let said = shortened(&text, SHOWN);
        let message = match said.is_empty() {
            true => format!("status {status}"),
            false => format!("status {status}: {said}"),
        };
        Self {
            status: Some(status),
            ..Self::new(kind, call, message)
        }
    }

    /// The kind of error.
    pub fn kind(&self) -> ConsulErrorKind {
        self.kind
    }

    /// The retry: [`ConsulErrorKind::retry`].
    pub fn retry(&self) -> Retry {
        self.kind.retry()
    }

    /// The status of the response, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// The message with its causes and a hint for the operator.
    pub fn explained(&self) -> String {
        format!("{}; {}", with_causes(self), self.kind.advice())
    }
}

/// Returns the kind for a status, and for the servers' text where one status has several meanings.
fn kind_of(status: StatusCode, text: &str) -> ConsulErrorKind {
    let says = |words: &str| text.contains(words);
    match status.as_u16() {
        401 | 403 => ConsulErrorKind::Denied,
        429 => ConsulErrorKind::Throttled,
        400..=499 => ConsulErrorKind::Rejected,
        // A rejection by a server in another datacenter comes back as an error of the call to it.
        500.. if says("Permission denied") || says("ACL not found") => ConsulErrorKind::Denied,
        500.. if says("No path to datacenter") => ConsulErrorKind::NoPathToDatacenter,
        500.. if says("No cluster leader") => ConsulErrorKind::NoLeader,
        500.. => ConsulErrorKind::Server,
        _ => ConsulErrorKind::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_words_say_what_to_do() {
        use ConsulErrorKind as Kind;
        for (status, body, kind, retry) in [
            (400, "Invalid index", Kind::Rejected, Retry::Slowly),
            (
                400,
                "Invalid query parameter: \"ns\"",
                Kind::Rejected,
                Retry::Slowly,
            ),
            (403, "Permission denied", Kind::Denied, Retry::Slowly),
            (403, "ACL not found", Kind::Denied, Retry::Slowly),
            (404, "", Kind::Rejected, Retry::Slowly),
            (
                405,
                "method POST not allowed",
                Kind::Rejected,
                Retry::Slowly,
            ),
            (
                429,
                "Your IP is issuing too many concurrent connections",
                Kind::Throttled,
                Retry::Backoff,
            ),
            (
                500,
                "No path to datacenter",
                Kind::NoPathToDatacenter,
                Retry::Backoff,
            ),
            (500, "No cluster leader", Kind::NoLeader, Retry::Backoff),
            (
                500,
                "rpc error making call: EOF",
                Kind::Server,
                Retry::Backoff,
            ),
            (
                500,
                "rpc error making call: Permission denied",
                Kind::Denied,
                Retry::Slowly,
            ),
            (503, "", Kind::Server, Retry::Backoff),
            (302, "", Kind::Malformed, Retry::Slowly),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = ConsulError::of_status("GET /v1/x", status, body.as_bytes());
            assert_eq!(
                (error.kind(), error.retry()),
                (kind, retry),
                "{status} {body}"
            );
            assert_eq!(error.status(), Some(status));
        }
    }

    #[test]
    fn a_message_is_one_short_printable_line() {
        let body = format!("a\r\nb\u{1b}[31m{}", "x".repeat(10_000));
        let error = ConsulError::of_status("GET /v1/x", StatusCode::BAD_GATEWAY, body.as_bytes());
        let text = error.to_string();
        assert!(
            text.starts_with("GET /v1/x: status 502 Bad Gateway: a\\r\\nb\\u{1b}[31mxxx"),
            "{text}"
        );
        assert!(text.len() < 300);
    }
}
