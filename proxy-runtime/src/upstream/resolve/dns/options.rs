//! Options of the DNS resolver.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the DNS resolver for the names of destinations. By default it follows the machine's
/// `resolv.conf` and table of hosts, including changes.
///
/// Look-ups need no threads, and results are cached for their time to live.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DnsOptions {
    /// The name servers, in place of those of `resolv.conf`. Default: none.
    pub servers: Vec<SocketAddr>,
    /// The file with name servers, search domains and options. Default: `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// The table of hosts. Default: `/etc/hosts`.
    pub hosts: PathBuf,
    /// Minimum time for which addresses are cached, unless they are uncertain: a family is missing,
    /// or they may belong to another host. Default: 1 s.
    pub min_ttl: Duration,
    /// Maximum time for which addresses are cached. Default: 1 h.
    pub max_ttl: Duration,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            resolv_conf: PathBuf::from("/etc/resolv.conf"),
            hosts: PathBuf::from("/etc/hosts"),
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(3600),
        }
    }
}

impl DnsOptions {
    /// The time for which addresses with this time to live are cached.
    pub(super) fn bounded(&self, ttl: Duration) -> Duration {
        ttl.min(self.max_ttl).max(self.min_ttl)
    }
}
