//! Limits of the connections to destinations.

use std::time::Duration;

#[cfg(feature = "dns")]
use super::DnsOptions;
#[cfg(feature = "tls")]
use super::TlsClient;

/// Settings for opening and keeping connections to destinations. The defaults suit most programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// Time limit for getting a connection: waiting for a free one, resolving the name, connecting, and the
    /// handshakes of TLS and HTTP/2 together. Default: 15 s, as in YARP.
    pub connect_timeout: Duration,
    /// Time to wait for the destination's `100 Continue` after a request with `Expect: 100-continue`. After it the
    /// body is sent anyway, because not all destinations support this. Default: 1 s, as in .NET.
    pub continue_timeout: Duration,
    /// Time for which an idle connection is kept. Keep it below the destinations' own limit, so that the proxy closes
    /// idle connections first. Default: 60 s.
    pub idle_timeout: Duration,
    /// Time without data after which the system sends TCP keep-alive probes (RFC 9293 section 3.8.4), then every 10 s
    /// until the destination responds or the system gives up. It detects vanished destinations below quiet WebSockets
    /// and gRPC streams. `None` disables it. Default: 60 s.
    pub tcp_keep_alive: Option<Duration>,
    /// Time for which the last addresses of a name are used while its lookup fails or takes too long. Zero disables it.
    /// Default: 1 h.
    pub stale_addresses: Duration,
    /// Maximum number of idle HTTP/1.1 connections per destination and worker. Default: 512.
    pub max_idle_per_destination: usize,
    /// Maximum number of requests that wait for a connection to one destination while its `MaxConnectionsPerServer`
    /// are in use. Further requests go to another destination, or get 503. Default: 1,024.
    pub max_waiting_per_destination: usize,
    /// Settings of the built-in DNS resolver for names of destinations. `None`: the operating system resolves each
    /// name in a thread, and results are not cached. Default: `None`.
    #[cfg(feature = "dns")]
    pub dns: Option<DnsOptions>,
    /// TLS settings for `https` destinations. Without them their requests get 502, and are never sent in the clear.
    /// Default: none.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsClient>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            continue_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            tcp_keep_alive: Some(Duration::from_secs(60)),
            stale_addresses: Duration::from_secs(3600),
            max_idle_per_destination: 512,
            max_waiting_per_destination: 1024,
            #[cfg(feature = "dns")]
            dns: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl UpstreamOptions {
    /// Returns true if `https` destinations can be reached.
    pub(crate) fn speaks_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }
}
