//! Look-ups for programs that turn names into destinations.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::resolver::{Lookup, SrvRecord};
use tokio::time::timeout;

use super::{Dns, DnsOptions, LONGEST, LookUp};

/// Looks names up as [`DnsOptions`] say, for a [`DnsResolver`](discovery_core::resolver::DnsResolver): addresses,
/// and the servers of services, with their times to live.
pub struct DnsLookup(Dns);

impl DnsLookup {
    /// Creates a look-up by these options.
    pub fn new(options: DnsOptions) -> Self {
        Self(Dns::new(options))
    }
}

#[async_trait]
impl Lookup for DnsLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.addresses(host).await?.0)
    }

    async fn addresses(&self, host: &str) -> io::Result<(Vec<IpAddr>, Option<Duration>)> {
        let outcome = self.0.look_up(&host.to_ascii_lowercase()).await;
        Ok((outcome.found?, outcome.lasts))
    }

    async fn servers(&self, service: &str) -> io::Result<(Vec<SrvRecord>, Option<Duration>)> {
        let found = timeout(LONGEST, self.0.servers(service)).await;
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "no name server answers");
        let (servers, lasts) = found.unwrap_or_else(|_| Err(silent()))?;
        Ok((servers, Some(lasts)))
    }
}

impl fmt::Debug for DnsLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DnsLookup").finish_non_exhaustive()
    }
}
