//! What servers say of a client's connection, and transforms, filters, partitions and logs read.

use std::net::{IpAddr, SocketAddr};

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

/// Rules of a listener for requests, beyond those that all have.
#[cfg_attr(
    not(feature = "server"),
    expect(unreachable_pub, reason = "the rules of a server's listener")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerRules {
    /// Paths must have one reading for every program behind the proxy: doubled slashes become one,
    /// and a path with an encoded slash or backslash (`%2F`, `%5C`) or with a parameter (`;`, `%3B`)
    /// gets 400. Default: false.
    ///
    /// For routes that keep requests from a part of a destination that may read `//admin`,
    /// `/admin;x` or `/x/..%2Fadmin` as `/admin`.
    pub strict_paths: bool,
    /// Clients are proxies that say where requests came from in fields that the transforms of routes know nothing of:
    /// `X-Real-IP`, `True-Client-IP`, `X-Forwarded-Client-Cert`, and all of `X-Forwarded-*` but `-For`, `-Host`, `-Proto` and
    /// `-Prefix`. They are removed from requests otherwise, since applications believe them. Default: false.
    pub trusts_senders: bool,
}

impl ConnectionInfo {
    /// The address by which policies know the client: that of the connection. An IPv4 address in the form of IPv6 is
    /// one of IPv4.
    pub fn client_address(&self) -> Option<IpAddr> {
        self.remote.map(|remote| remote.ip().to_canonical())
    }

    /// A cleartext connection from `remote`.
    pub fn new(remote: SocketAddr) -> Self {
        Self {
            remote: Some(remote),
            ..Self::default()
        }
    }
}
