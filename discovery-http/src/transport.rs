//! The seam to HTTP.

use std::error::Error;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

/// Carries one request to a server and its response back.
///
/// `ReqwestTransport` is the built-in implementation. Another one may go over a Unix socket, sign requests, or respond from
/// memory in a test. A transport does not retry, does not follow redirects, does not interpret statuses and has no time
/// limit for the exchange: the client above it does, or decides not to.
///
/// # Cancel safety
///
/// The future is dropped when the client stops waiting. The exchange must end then, with its connection: a connection that
/// hangs must not be used again.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request with an absolute URI, and reads the whole response.
    ///
    /// # Errors
    ///
    /// There is no response, or its body has more than `max_body` bytes. Errors contain nothing of the request's headers and
    /// body, which may hold a credential.
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError>;
}

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    kind: TransportErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a [`TransportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// There is no connection. The request has not been sent.
    Connect,
    /// The TLS handshake failed for a reason that has no kind of its own. The request has not been sent.
    Tls,
    /// TLS failed after the handshake. The request may have been carried out.
    TlsInterrupted,
    /// The server's certificate is not trusted. The request has not been sent.
    Untrusted,
    /// The server does not speak TLS. The request has not been sent.
    NotTls,
    /// The server requires a client certificate, or another one.
    CertificateRejected,
    /// The connection ended, or the response is not HTTP. The request may have been carried out.
    Interrupted,
    /// No response came in time. The request may have been carried out.
    TimedOut,
    /// The body of the response is too large. The request has been carried out.
    TooLarge,
}

impl TransportErrorKind {
    /// Returns whether the two sides do not agree on TLS: one of the kinds [`Tls`](Self::Tls),
    /// [`TlsInterrupted`](Self::TlsInterrupted), [`Untrusted`](Self::Untrusted), [`NotTls`](Self::NotTls) and
    /// [`CertificateRejected`](Self::CertificateRejected).
    pub fn is_tls(self) -> bool {
        matches!(
            self,
            Self::Tls
                | Self::TlsInterrupted
                | Self::Untrusted
                | Self::NotTls
                | Self::CertificateRejected
        )
    }
}

impl TransportError {
    /// An error whose message describes the failure without its cause.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// An error for a body that has more than `max_body` bytes.
    pub fn too_large(max_body: usize) -> Self {
        Self::new(
            TransportErrorKind::TooLarge,
            format!("the answer is larger than {max_body} bytes"),
        )
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }

    /// The cause alone, for an error of the caller whose message includes this one's.
    pub fn into_source(self) -> Option<Box<dyn Error + Send + Sync>> {
        self.source
    }
}
