//! Limits of the connections to destinations.

use std::time::Duration;

#[cfg(feature = "dns")]
use super::DnsOptions;
#[cfg(feature = "tls")]
use super::TlsClient;

/// How connections to destinations are made and kept. The defaults suit most programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// How long a request may take to get hold of a connection: waiting for a free one, resolving the name, connecting
    /// and the handshakes of TLS and HTTP/2 together. 15 s by default, as in YARP.
    pub connect_timeout: Duration,
    /// How long a destination may take to say that it wants the body of a request with `Expect: 100-continue`; then the
    /// body is sent without being asked for, since not all destinations know about this. 1 s by default, as in .NET.
    pub continue_timeout: Duration,
    /// How long a connection is kept without a request. 60 s by default; keep it below the destinations' own limit, so
    /// that it is the proxy that closes idle connections.
    pub idle_timeout: Duration,
    /// After how long a silence of a destination the system asks whether it is still there (TCP keep-alive, RFC 9293 section
    /// 3.8.4): every 10 s then, until it answers or, after as many times as the system has it, counts as gone. So a
    /// destination that has vanished without a word is noticed under what may be silent for long, WebSockets and streams of
    /// gRPC. 60 s by default; `None`: never.
    pub tcp_keep_alive: Option<Duration>,
    /// How long the last addresses of a destination's name are used while looking it up fails or takes too long. 1 h by default;
    /// zero: not at all.
    pub stale_addresses: Duration,
    /// How many idle HTTP/1.1 connections are kept per destination and worker. 512 by default.
    pub max_idle_per_destination: usize,
    /// How many requests may wait for a connection to one destination while its
    /// `MaxConnectionsPerServer` are in use; further ones go to another destination, or get 503. 1,024 by default.
    pub max_waiting_per_destination: usize,
    /// How the servers of DNS are asked for the names of destinations. `None`: the operating system looks names up, each in a thread,
    /// and nothing that it finds is kept while look-ups succeed. Default: `None`.
    #[cfg(feature = "dns")]
    pub dns: Option<DnsOptions>,
    /// How `https` destinations are spoken to. Without it their requests get 502; they are never sent in the clear.
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
    /// Whether `https` destinations can be reached.
    pub(crate) fn speaks_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }
}
