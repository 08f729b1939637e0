//! Errors of connections to destinations.

use std::io;
use std::sync::Arc;

use super::web_proxy::WebProxyError;
use crate::error::is_of_machine;
use crate::retry::{Came, Sent};

/// The reason why no connection to a destination is available. No byte of a request was sent.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the destination's name cannot be resolved")]
    Resolve(#[source] Arc<io::Error>),
    #[error("the connection cannot be opened")]
    Open(#[source] Arc<io::Error>),
    #[error("the program's connector has opened no connection")]
    Connector(#[source] Arc<dyn std::error::Error + Send + Sync>),
    #[error("the forward proxy {proxy} has opened no connection")]
    WebProxy {
        /// Host and port.
        proxy: String,
        #[source]
        error: Arc<WebProxyError>,
    },
    #[cfg(feature = "tls")]
    #[error("the TLS handshake failed")]
    Tls(#[source] Arc<io::Error>),
    #[cfg(feature = "tls")]
    #[error("the TLS settings cannot be used")]
    TlsSettings(#[source] Arc<rustls::Error>),
    #[cfg(feature = "http2")]
    #[error("the HTTP handshake failed")]
    Handshake(#[source] Arc<h2::Error>),
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
    #[error("all connections that `MaxConnectionsPerServer` allows were in use for too long")]
    Queued,
    #[error("{0}")]
    Unsupported(&'static str),
}

impl ConnectError {
    /// Returns true if the destination caused the error, not the proxy's own settings or load.
    pub(super) fn is_of_destination(&self) -> bool {
        match self {
            // A lack of ports or descriptors is this machine's, and no reason to avoid the destination.
            Self::Open(error) => !is_of_machine(error),
            Self::Connector(error) => {
                let error = error.downcast_ref::<io::Error>();
                !error.is_some_and(is_of_machine)
            }
            Self::Resolve(_) | Self::TimedOut => true,
            Self::WebProxy { error, .. } => error.is_of_destination(),
            #[cfg(feature = "tls")]
            Self::Tls(_) | Self::NoHttp2 => true,
            #[cfg(feature = "tls")]
            Self::TlsSettings(_) => false,
            #[cfg(feature = "http2")]
            Self::Handshake(_) | Self::NoConnect => true,
            Self::Saturated | Self::Queued | Self::Unsupported(_) => false,
        }
    }
}

/// The reason why an exchange on a stream of HTTP/2 failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[cfg(feature = "http2")]
    #[error(transparent)]
    Http2(h2::Error),
    #[cfg(feature = "http2")]
    #[error("the destination allows no requests on its connection")]
    NotAllowed,
}

impl ExchangeError {
    /// Returns true if the destination sent a malformed response.
    pub(crate) fn is_malformed_response(&self) -> bool {
        match *self {
            #[cfg(feature = "http2")]
            // `h2` has found the fault itself, so the destination broke the protocol.
            Self::Http2(ref error) => error.is_library(),
            #[cfg(feature = "http2")]
            Self::NotAllowed => false,
        }
    }
}

/// The failure of a request that has no response.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) error: ExchangeError,
    pub(crate) sent: Sent,
    pub(crate) came: Came,
}

impl SendError {
    /// The error for a request on an HTTP/2 connection that accepts none. If something was `sent`, the destination may
    /// have processed the request.
    #[cfg(feature = "http2")]
    pub(super) fn not_allowed(sent: Sent) -> Self {
        Self {
            error: ExchangeError::NotAllowed,
            sent,
            came: Came::Nothing,
        }
    }

    /// Returns the error for a request that was not sent, because its HTTP/2 connection accepts no more.
    #[cfg(feature = "http2")]
    pub(super) fn unsent(error: h2::Error) -> Self {
        // A destination that drains its connections says so as soon as they are open.
        let is_draining = error.is_go_away() && error.is_remote();
        let came = match is_draining && error.reason() == Some(h2::Reason::NO_ERROR) {
            true => Came::Unprocessed,
            false => Came::Nothing,
        };
        Self {
            error: ExchangeError::Http2(error),
            sent: Sent::Nothing,
            came,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_says_nothing_of_destinations() {
        let open = |error: io::Error| ConnectError::Open(Arc::new(error)).is_of_destination();
        assert!(open(io::ErrorKind::ConnectionRefused.into()));
        assert!(open(io::ErrorKind::HostUnreachable.into()));
        assert!(!open(io::ErrorKind::AddrNotAvailable.into()));
        assert!(!open(io::Error::from_raw_os_error(24)));
    }
}
