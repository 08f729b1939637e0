//! Facts about a client's connection, which servers provide to transforms, filters, partitions and logs.

#[cfg_attr(
    not(all(feature = "server", feature = "tls")),
    allow(dead_code, reason = "for handshakes of the server")
)]
mod certificate;
#[cfg_attr(
    not(all(feature = "server", feature = "tls")),
    allow(dead_code, reason = "for handshakes of the server")
)]
mod identity;

use std::net::{IpAddr, SocketAddr};

pub use self::certificate::ClientCertificate;
pub(crate) use self::identity::IdentityKey;
#[cfg(all(feature = "server", feature = "tls"))]
pub(crate) use self::identity::{Covers, Registration};

/// Facts about the connection of a request.
///
/// The server puts them into each request's extensions. A program that embeds [`ProxyService`](crate::ProxyService)
/// in its own server inserts them to have `X-Forwarded-For` and `X-Forwarded-Proto` set. Without them the client's
/// address is unknown, and the scheme is that of the request's URI, else `http`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The client's address.
    pub remote: Option<SocketAddr>,
    /// The address that the client connected to.
    pub local: Option<SocketAddr>,
    /// True if the connection uses TLS.
    pub tls: bool,
    pub(crate) rules: ListenerRules,
    pub(crate) identity: Option<IdentityKey>,
}

/// Optional rules of a listener for requests. Default: none.
#[cfg_attr(
    not(feature = "server"),
    expect(unreachable_pub, reason = "the rules of a server's listener")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerRules {
    /// True if paths must have one meaning for every program behind the proxy: doubled slashes become one,
    /// and a path with an encoded slash or backslash (`%2F`, `%5C`) or with a parameter (`;`, `%3B`)
    /// gets 400. Default: false.
    ///
    /// Set it if routes protect a part of a destination, such as `/admin`, and the destination may read `//admin`,
    /// `/admin;x` or `/x/..%2Fadmin` as the same path.
    pub strict_paths: bool,
    /// True if all clients are trusted proxies. Fields about the origin of a request that no transform sets are then
    /// kept: `X-Real-IP`, `True-Client-IP`, `X-Forwarded-Client-Cert`, and `X-Forwarded-*` except `-For`, `-Host`,
    /// `-Proto` and `-Prefix`. Otherwise they are removed, because applications trust them. Default: false.
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

    /// The certificate that the client presented to the server, which has verified it. `None` once the connection has
    /// ended.
    pub fn client_certificate(&self) -> Option<ClientCertificate> {
        self.identity?.certificate()
    }
}
