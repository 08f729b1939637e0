//! Why a request has failed.

use std::error::Error;
use std::sync::Arc;

use discovery_core::text::shortened;

use crate::wire::messages::{AUTHENTICATION_REQUIRED, HANDSHAKE_REQUIRED, UNSUPPORTED_COMMAND};

/// The most characters of what an agent says that are repeated.
const MOST: usize = 500;

/// A request of a [`SerfClient`](super::SerfClient) has failed. The message says what was asked of whom; what others wrote is
/// short and printable in it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("serf agent {agent}: {command}: {detail}")]
pub struct ClientError {
    kind: ClientErrorKind,
    agent: Arc<str>,
    command: String,
    detail: String,
    agent_error: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What kind of failure it is: what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// Nobody can be connected to.
    Unreachable,
    /// The agent did not answer in time. The connection has ended.
    TimedOut,
    /// The connection has ended, by the agent or because of something else on it. What was asked may have been done.
    Closed,
    /// Who answers is no agent, or one that cannot be understood. The connection has ended.
    Protocol,
    /// The agent wants a key, or another one.
    Denied,
    /// The agent speaks another version of the protocol.
    Version,
    /// The agent does not know the command. It has ended the connection.
    Unsupported,
    /// The agent has understood, and says no; [`agent_error`](ClientError::agent_error) has its words.
    Refused,
    /// The node's tags would take more room than the gossip has for them: 512 bytes. They are as they were.
    TagsTooLong,
    /// The request was not sent: it is too long, there are too many streams, or it has what cannot be said.
    InvalidRequest,
}

impl ClientError {
    pub(crate) fn new(
        kind: ClientErrorKind,
        agent: &Arc<str>,
        command: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            agent: Arc::clone(agent),
            command: command.into(),
            detail: detail.into(),
            agent_error: None,
            source: None,
        }
    }

    pub(crate) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    pub(super) fn with_source_of(mut self, source: Option<Arc<dyn Error + Send + Sync>>) -> Self {
        self.source = source;
        self
    }

    /// Of a reply that says no.
    pub(super) fn refusal(agent: &Arc<str>, command: &str, said: &str) -> Self {
        let words = shortened(said, MOST);
        let (kind, detail) = match said {
            "Invalid authentication token" => (
                ClientErrorKind::Denied,
                format!("the key is not that of the agent's `rpc_auth`, or it has none ({words})"),
            ),
            AUTHENTICATION_REQUIRED => (
                ClientErrorKind::Denied,
                format!("the agent has an `rpc_auth`, so a key is needed ({words})"),
            ),
            "Unsupported IPC version" => (
                ClientErrorKind::Version,
                format!("the agent does not speak version 1 of the protocol ({words})"),
            ),
            UNSUPPORTED_COMMAND => (
                ClientErrorKind::Unsupported,
                format!("the agent does not know the command ({words})"),
            ),
            HANDSHAKE_REQUIRED => (
                ClientErrorKind::Protocol,
                format!("the agent has forgotten the handshake ({words})"),
            ),
            said if said.starts_with("Encoded length of tags exceeds limit") => (
                ClientErrorKind::TagsTooLong,
                format!(
                    "all tags of the node together are too long; they stay as they were ({words})"
                ),
            ),
            _ => (
                ClientErrorKind::Refused,
                format!("the agent refuses: {words}"),
            ),
        };
        let mut error = Self::new(kind, agent, command, detail);
        error.agent_error = Some(words);
        error
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ClientErrorKind {
        self.kind
    }

    /// Whether the same may succeed on a new connection, without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ClientErrorKind::Unreachable
            | ClientErrorKind::TimedOut
            | ClientErrorKind::Closed
            | ClientErrorKind::Protocol => true,
            ClientErrorKind::Denied
            | ClientErrorKind::Version
            | ClientErrorKind::Unsupported
            | ClientErrorKind::Refused
            | ClientErrorKind::TagsTooLong
            | ClientErrorKind::InvalidRequest => false,
        }
    }

    /// The agent's own words, if it has said anything: short and printable.
    pub fn agent_error(&self) -> Option<&str> {
        self.agent_error.as_deref()
    }
}
