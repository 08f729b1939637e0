use std::io;

use super::Answer;
use crate::time::Elapsed;

/// The reason why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No TCP connection.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// No TLS session.
    #[error("TLS handshake failed")]
    Tls(#[source] io::Error),
    /// The connection was closed before any byte of the request was sent, or the server's GOAWAY
    /// reports that it was not processed: it can be retried on another connection (RFC 9113 6.8).
    #[error("connection closed before the request was sent")]
    NotSent(#[source] hyper::Error),
    /// No response head arrived.
    #[error("no answer")]
    NoAnswer(#[source] hyper::Error),
    /// The head of a response arrived, but its body did not end properly.
    #[error("body cut off after {} bytes", .received.body.len())]
    Truncated {
        /// The response with the received part of the body.
        received: Box<Answer>,
        /// The error in place of the end.
        #[source]
        source: hyper::Error,
    },
    /// The body is longer than 64 MiB; for more, use
    /// [`Connection::send_streaming`](super::Connection::send_streaming).
    #[error("body longer than 64 MiB")]
    TooLong,
    /// The server did not switch protocols.
    #[error("no upgrade: status {}", .0.status)]
    NotUpgraded(Box<Answer>),
    /// The protocol after the upgrade failed.
    #[error("WebSocket failed")]
    WebSocket(#[source] tokio_tungstenite::tungstenite::Error),
    /// No progress for [`GUARD`](crate::time::GUARD) of real time.
    #[error("gave up waiting")]
    TimedOut(#[source] Elapsed),
}

impl ClientError {
    /// The received part of a response whose body was truncated.
    pub fn truncated(&self) -> Option<&Answer> {
        match self {
            Self::Truncated { received, .. } => Some(received),
            _ => None,
        }
    }

    /// The code of the HTTP/2 reset (or GOAWAY) that caused this.
    pub fn h2_reason(&self) -> Option<h2::Reason> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(h2) = error.downcast_ref::<h2::Error>() {
                return h2.reason();
            }
            cause = error.source();
        }
        None
    }

    /// The error and its causes on one line.
    pub fn chain(&self) -> String {
        let mut chain = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            chain.push_str(": ");
            chain.push_str(&error.to_string());
            cause = error.source();
        }
        chain
    }
}
