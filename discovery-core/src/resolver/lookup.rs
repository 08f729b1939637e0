//! Looking up names.

use std::io;
use std::net::IpAddr;

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
