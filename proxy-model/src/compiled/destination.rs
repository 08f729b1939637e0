//! Compiled destinations.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;

use super::source::DestinationSource;
use crate::config::DestinationConfig;
use crate::id::DestinationId;

/// Position of a destination in its cluster's list, which is in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationIndex(pub u32);

/// One place that a cluster's requests can go to.
#[derive(Clone, Debug)]
pub struct Destination {
    pub(crate) source: DestinationSource,
    pub(crate) address: Arc<DestinationAddress>,
    pub(crate) health: Option<Arc<DestinationAddress>>,
    pub(crate) health_path: Option<Box<str>>,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) weight: u32,
    pub(crate) priority: u32,
}

impl Destination {
    /// The destination's id, unique in the cluster.
    pub fn id(&self) -> &DestinationId {
        self.source.id()
    }

    /// The configuration that it was made from.
    pub fn config(&self) -> &DestinationConfig {
        self.source.config()
    }

    /// The address that requests are sent to.
    pub fn address(&self) -> &DestinationAddress {
        &self.address
    }

    /// Returns the address as a shared pointer.
    pub fn shared_address(&self) -> &Arc<DestinationAddress> {
        &self.address
    }

    /// The address that probes are sent to: `Health`, or `Address` if that is not set.
    pub fn health_address(&self) -> &DestinationAddress {
        self.health.as_deref().unwrap_or(&self.address)
    }

    /// The percent-encoded path of the destination's own probes, if it has one.
    /// [`ActiveCheck::path_at`](super::ActiveCheck::path_at) returns the path to use.
    pub fn health_path(&self) -> Option<&str> {
        self.health_path.as_deref()
    }

    /// The `Host` header to send instead of the address's authority.
    pub fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// Share of the cluster's requests, relative to the others; 0 gets none.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Tier; smaller is preferred.
    pub fn priority(&self) -> u32 {
        self.priority
    }

    /// The zone of the destination.
    pub fn zone(&self) -> Option<&str> {
        self.config().zone.as_deref()
    }
}

/// Scheme of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Cleartext.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// The scheme, `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port when none is written: 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A destination's URL in parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationAddress {
    pub(crate) scheme: Scheme,
    pub(crate) host: Arc<str>,
    pub(crate) server_name: Arc<str>,
    pub(crate) port: u16,
    pub(crate) authority: HeaderValue,
    pub(crate) path: Arc<str>,
}

impl DestinationAddress {
    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the name or IP address, without the brackets of IPv6. It is used for resolution, connections and
    /// SNI.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The server name that TLS sends (SNI) and that the certificate must match. It is the host of the
    /// address. If that is an IP address and the destination's `Host` is a name, it is that name; resolved
    /// destinations keep their name in this way.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The port. If the address has none, this is the default of its scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port in the form of the `Host` header: brackets around IPv6, default port left out.
    pub fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// The path, percent-encoded: `/` for `http://a`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path that every request's path is appended to, without a trailing `/`: empty for `http://a/`.
    pub fn base_path(&self) -> &str {
        self.path.strip_suffix('/').unwrap_or(&self.path)
    }
}

impl fmt::Display for DestinationAddress {
    /// The URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.authority.to_str().unwrap_or(&self.host);
        write!(f, "{}://{authority}{}", self.scheme.as_str(), self.path)
    }
}
