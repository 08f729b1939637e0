//! The gateway without the feature `tls`: no connection is secured.

use std::convert::Infallible;
use std::io;

use tokio::net::TcpStream;

use crate::gateway::server::Peer;

/// The TLS settings of a listener, of which none can exist without the feature `tls`.
#[derive(Clone)]
pub(crate) struct Tls(Infallible);

impl Tls {
    /// Returns true if client certificates are requested.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        match self.0 {}
    }

    /// Completes the handshake of a client.
    pub(crate) async fn accept(&self, _: TcpStream) -> io::Result<(TcpStream, Peer)> {
        match self.0 {}
    }
}
