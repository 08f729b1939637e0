//! Why a connection to a destination could not be had.

use std::io;
use std::sync::Arc;

/// Why a connection to a destination could not be had. No byte of a request was sent.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the destination's name cannot be resolved")]
    Resolve(#[source] Arc<io::Error>),
    #[error("the connection cannot be opened")]
    Open(#[source] Arc<io::Error>),
    #[cfg(feature = "tls")]
    #[error("the TLS handshake failed")]
    Tls(#[source] Arc<io::Error>),
    #[cfg(feature = "tls")]
    #[error("the TLS settings cannot be used")]
    TlsSettings(#[source] Arc<rustls::Error>),
    #[error("the HTTP handshake failed")]
    Handshake(#[source] Arc<hyper::Error>),
    #[cfg(feature = "tls")]
    #[error("the destination does not speak HTTP/2, which the cluster requires")]
    NoHttp2,
    #[cfg(feature = "http2")]
    #[error("the destination has no WebSockets over HTTP/2, which the cluster requires")]
    NoConnect,
    #[error("there was no connection in time")]
    TimedOut,
    #[error("too many requests wait for a connection")]
    Saturated,
    #[error("{0}")]
    Unsupported(&'static str),
}
