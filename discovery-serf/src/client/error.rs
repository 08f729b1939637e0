//! The error of a failed request.

use std::error::Error;
use std::sync::Arc;

use discovery_core::text::shortened;

use crate::wire::messages::{AUTHENTICATION_REQUIRED, HANDSHAKE_REQUIRED, UNSUPPORTED_COMMAND};

/// Maximum number of characters of an agent's error that are repeated.
const MOST: usize = 500;

/// The error of a request of a [`SerfClient`](super::SerfClient). The message names the request and the
/// agent; texts of the agent are short and printable in it.
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

/// The kind of failure, which decides about the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// No connection is possible.
    Unreachable,
    /// No response in time. The connection has ended.
    TimedOut,
    /// The connection was closed by the agent, or because of another failure on it. The request may have
    /// been executed.
    Closed,
    /// A response that is not the protocol of an agent, or cannot be decoded. The connection has ended.
    Protocol,
    /// A missing or wrong key.
    Denied,
    /// Another version of the protocol.
    Version,
    /// An unknown command. The agent has ended the connection.
    Unsupported,
    /// An error reply of the agent; [`agent_error`](ClientError::agent_error) has its text.
    Rejected,
    /// Tags that would be too long for the gossip: 512 bytes. They are unchanged.
    TagsTooLong,
    /// A request that was not sent: it is too long, there are too many streams, or it contains a value that
    /// the protocol cannot represent.
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

    /// Creates the error for an error reply.
    pub(super) fn rejection(agent: &Arc<str>, command: &str, said: &str) -> Self {
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
                format!("all tags of the node together are too long; the old ones stay ({words})"),
            ),
            _ => (
                ClientErrorKind::Rejected,
                format!("the agent rejects: {words}"),
            ),
        };
        let mut error = Self::new(kind, agent, command, detail);
        error.agent_error = Some(words);
        error
    }

    /// The kind of failure.
    pub fn kind(&self) -> ClientErrorKind {
        self.kind
    }

    /// Returns true if a retry on a new connection may succeed, without a change of the configuration.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ClientErrorKind::Unreachable
            | ClientErrorKind::TimedOut
            | ClientErrorKind::Closed
            | ClientErrorKind::Protocol => true,
            ClientErrorKind::Denied
            | ClientErrorKind::Version
            | ClientErrorKind::Unsupported
            | ClientErrorKind::Rejected
            | ClientErrorKind::TagsTooLong
            | ClientErrorKind::InvalidRequest => false,
        }
    }

    /// The agent's own error text, if there is one: short and printable.
    pub fn agent_error(&self) -> Option<&str> {
        self.agent_error.as_deref()
    }
}
