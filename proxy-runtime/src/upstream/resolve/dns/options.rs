//! Options of the resolver that asks the servers of DNS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the resolver that asks the servers of DNS for the names of destinations. By default it asks as the machine's own
/// programs do: by its `resolv.conf` and its table of hosts, both of which are followed.
///
/// No look-up has a thread of its own, and what was found is kept for its time to live.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DnsOptions {
    /// The servers, instead of those of `resolv.conf`. Default: none.
    pub servers: Vec<SocketAddr>,
    /// The file that names servers, domains to search and options. Default: `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// The table of names that need no server. Default: `/etc/hosts`.
    pub hosts: PathBuf,
    /// The shortest time that addresses are kept, unless they are in doubt: a family is missing, or they may be another host's.
    /// Default: 1 s.
    pub min_ttl: Duration,
    /// The longest time that addresses are kept, whatever their time to live. Default: 1 h.
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
    /// The time that addresses are kept of which a server says that they live for `ttl`.
    pub(super) fn bounded(&self, ttl: Duration) -> Duration {
        ttl.min(self.max_ttl).max(self.min_ttl)
    }
}
