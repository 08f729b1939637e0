//! Looking up names.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;

/// Looks up the addresses of a host name. A seam for tests, and for resolvers other than the system's.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// Returns the addresses of `host`, in any order. An empty list is an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the name does not exist or could not be looked up.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any await point.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Returns the addresses of `host`, and the time for which they are valid if that is known.
    ///
    /// # Errors
    ///
    /// As those of [`lookup`](Self::lookup).
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any await point.
    async fn addresses(&self, host: &str) -> io::Result<(Vec<IpAddr>, Option<Duration>)> {
        Ok((self.lookup(host).await?, None))
    }

    /// Returns the servers of a service (RFC 2782), such as `_http._tcp.orders.example`, and the time for which
    /// they are valid if that is known.
    ///
    /// # Errors
    ///
    /// Returns an error if the service does not exist or could not be looked up, or if this look-up knows
    /// addresses only, as by default.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any await point.
    async fn servers(&self, service: &str) -> io::Result<(Vec<SrvRecord>, Option<Duration>)> {
        let _ = service;
        let why = "SRV records cannot be looked up here";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

/// A server of a service: an SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SrvRecord {
    /// Servers with a greater number are used only while none with a smaller one is available.
    pub priority: u16,
    /// The share of requests, relative to the others of the same priority.
    pub weight: u16,
    /// The name of the server, without a dot at its end.
    pub target: String,
    /// The port.
    pub port: u16,
}

/// The operating system's look-up, as other programs on the machine see it: hosts file, search domains and all.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = tokio::net::lookup_host((host, 0)).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    }
}
