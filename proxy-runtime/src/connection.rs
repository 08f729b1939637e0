//! What servers say of a client's connection, and transforms, filters, partitions and logs read.

use std::net::SocketAddr;

/// What is known of the connection that a request came over.
///
/// The server puts it into each request's extensions. A program that embeds [`ProxyService`](crate::ProxyService) in a
/// server of its own inserts it there to have `X-Forwarded-For` and `X-Forwarded-Proto` set; without it the client's
/// address is unknown and the scheme is taken from the request's URI, else `http`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The client's address.
    pub remote: Option<SocketAddr>,
    /// The address that the client connected to.
    pub local: Option<SocketAddr>,
    /// Whether the connection is TLS.
    pub tls: bool,
    pub(crate) rules: ListenerRules,
}

/// What a listener asks of requests, beyond what all are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenerRules {
    /// Paths that some programs read as others are settled or refused.
    pub(crate) strict_paths: bool,
    /// Who connects is a proxy whose word counts on where requests came from.
    pub(crate) trusts_senders: bool,
}

impl ConnectionInfo {
    /// A cleartext connection from `remote`.
    pub fn new(remote: SocketAddr) -> Self {
        Self {
            remote: Some(remote),
            ..Self::default()
        }
    }

    /// Sets the address that the client connected to.
    #[must_use]
    pub fn with_local(mut self, local: SocketAddr) -> Self {
        self.local = Some(local);
        self
    }

    /// Sets whether the connection is TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }
}
