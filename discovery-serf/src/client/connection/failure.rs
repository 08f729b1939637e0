//! The reason for the end of a connection, and the errors of pending requests.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use super::super::{ClientError, ClientErrorKind};
use crate::wire::messages::DecodeError;

/// The reason for the end of a connection.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ClientErrorKind,
    detail: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// The request that it is about, if it is about one.
    seq: Option<u64>,
    /// The agent's error for this request.
    said: Option<Arc<ClientError>>,
}

impl Failure {
    pub(super) fn new(kind: ClientErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            source: None,
            seq: None,
            said: None,
        }
    }

    pub(super) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Attaches the request that caused the failure, and the agent's error for it.
    pub(super) fn about(mut self, seq: u64, said: Option<ClientError>) -> Self {
        self.seq = Some(seq);
        self.said = said.map(Arc::new);
        self.source = self.said.clone().map(|said| said as _);
        self
    }

    /// Creates the failure of a request that has taken too long.
    pub(super) fn timed_out(seq: Option<u64>, timeout: Duration) -> Self {
        let detail = format!("no answer within {timeout:?}");
        Self {
            seq,
            ..Self::new(ClientErrorKind::TimedOut, detail)
        }
    }

    /// Returns the error of the connection.
    pub(super) fn error(&self, agent: &Arc<str>) -> ClientError {
        let error = ClientError::new(self.kind, agent, "connection", &*self.detail);
        error.with_source_of(self.source.clone())
    }

    /// Returns the error of a pending request.
    pub(super) fn error_of(&self, seq: u64, command: &str, agent: &Arc<str>) -> ClientError {
        let is_it = self.seq == Some(seq);
        if is_it && let Some(said) = &self.said {
            return ClientError::clone(said);
        }
        let (kind, detail) = match self.kind {
            kind if is_it || kind == ClientErrorKind::Protocol => (kind, self.detail.clone()),
            ClientErrorKind::Closed if command == "members-filtered" => {
                let why = "it does so when a pattern is no regular expression";
                (ClientErrorKind::Closed, format!("{}; {why}", self.detail))
            }
            _ => {
                let detail = format!("the connection has ended: {}", self.detail);
                (ClientErrorKind::Closed, detail)
            }
        };
        ClientError::new(kind, agent, command, detail).with_source_of(self.source.clone())
    }

    pub(super) fn protocol(detail: impl Into<String>) -> Self {
        Self::new(ClientErrorKind::Protocol, detail)
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::protocol("the other end is no Serf agent").with_source(error)
    }
}
