//! The seam to HTTP.

use std::error::Error;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

/// Carries one request to the resource manager, or to who hands out tokens, and its answer back.
///
/// `ReqwestTransport` is the one that is built in; [`TowerTransport`](super::TowerTransport) makes one of any `tower`
/// service. It does not retry, does not follow redirects, does not look at statuses and has no time limit of its own: the
/// client does, or refuses to.
///
/// # Cancel safety
///
/// The future is dropped when the client does not want to wait any longer. The exchange must end then.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request with an absolute URI, and reads the whole answer.
    ///
    /// # Errors
    ///
    /// There is no answer, or its body has more than `max_body` bytes. Errors say nothing of the request's headers and body,
    /// which may have a credential.
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    kind: TransportErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What kind of [`TransportError`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// There is no connection, so the request has certainly not been sent.
    Connect,
    /// The two do not agree on TLS. The request has not been sent.
    Tls,
    /// The connection ended, or what came is not HTTP. The request may have been carried out.
    Interrupted,
    /// The answer's body is too large. The request has been carried out.
    TooLarge,
}

impl TransportError {
    /// An error whose message says what happened, without the cause.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }
}
