//! The setup of the built-in transport.

use std::error::Error;
use std::time::Duration;

use discovery_http::{ReqwestTransport, TransportOptions};

use super::builder::BuildError;
use super::options::ConsulOptions;
use super::tls::client_config;

/// The time for which a connection is kept after its last request. It is shorter than that of agents, so
/// that the client closes first.
const IDLE: Duration = Duration::from_secs(60);

/// Creates a transport with HTTP/1.1 only: a hanging exchange is cancelled by closing its connection, and
/// agents count connections.
///
/// Responses may be compressed with gzip, which makes lists of checks a twentieth of their size. Proxies in
/// environment variables are not used: a token must not be sent elsewhere.
pub(super) fn transport(
    options: &ConsulOptions,
    is_secure: bool,
) -> Result<ReqwestTransport, BuildError> {
    let failed = |error: Box<dyn Error + Send + Sync>| BuildError::Setup(error);
    let tls = client_config(&options.tls, is_secure).map_err(|e| failed(Box::new(e)))?;
    let mut http = TransportOptions::new(concat!(
        env!("CARGO_PKG_NAME"),
        "/",
        env!("CARGO_PKG_VERSION")
    ));
    http.connect_timeout = options.connect_timeout;
    http.idle_timeout = IDLE;
    http.max_idle = options.max_connections;
    http.gzip = true;
    ReqwestTransport::new(tls, &http).map_err(|error| failed(error.into_source()))
}
