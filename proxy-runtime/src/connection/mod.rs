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
mod network;
mod trusted;

use std::net::{IpAddr, SocketAddr};

pub use self::certificate::ClientCertificate;
pub(crate) use self::identity::IdentityKey;
#[cfg(all(feature = "server", feature = "tls"))]
pub(crate) use self::identity::{Covers, Registration};
pub use self::network::{Network, NetworkError};
pub use self::trusted::{ClientField, TrustedProxies};

/// Facts about the connection of a request.
///
/// The server puts them into each request's extensions. A program that embeds [`ProxyService`](crate::ProxyService)
/// in its own server inserts them to have `X-Forwarded-For` and `X-Forwarded-Proto` set. Without them the client's
/// address is unknown, and the scheme is that of the request's URI, else `http`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The client's address: the other end of the connection, or the client behind it that the PROXY protocol or a
    /// [trusted proxy](ListenerRules::trusted_proxies) reports. The port is 0 where only an address was reported.
    pub remote: Option<SocketAddr>,
    /// The address that the client connected to.
    pub local: Option<SocketAddr>,
    /// True if the client uses TLS: on this connection, or to a trusted proxy that says so.
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
    /// The proxies that report the clients of their requests. Everywhere in the proxy, such a request has the
    /// reported client and scheme: `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` are read and removed.
    /// Other fields about the origin are kept. Clients that are not such a proxy have all of them removed. Default:
    /// no list; transforms decide about these fields.
    pub trusted_proxies: Option<TrustedProxies>,
}

impl ConnectionInfo {
    /// The address by which all parts of a proxy know the client. An IPv4 address in the form of IPv6 is one of IPv4.
    pub fn client_address(&self) -> Option<IpAddr> {
        self.remote.map(|remote| remote.ip().to_canonical())
    }

    /// Applies the rules of a listener to the connection, whose other end is known.
    #[cfg(feature = "server")]
    pub(crate) fn set_rules(&mut self, rules: ListenerRules) {
        let remote = self.remote.map(|remote| remote.ip());
        let is_trusted =
            |proxies: TrustedProxies| remote.is_some_and(|remote| proxies.trust(remote));
        self.rules = rules;
        // Decided once, since the other end of a connection does not change.
        self.rules.trusts_senders = match rules.trusted_proxies {
            Some(proxies) => is_trusted(proxies),
            None => rules.trusts_senders,
        };
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
