//! From a destination's name to addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::Semaphore;

/// Lookups that may run at a time. A lookup cannot be stopped: one that hangs keeps its thread of tokio's blocking pool,
/// so that without a bound a dead name server would take them all.
const MAX_LOOKUPS: usize = 64;

/// Addresses that are tried at most, so that a name with thousands of them costs no more than others.
const MAX_ADDRESSES: usize = 16;

/// Resolves names by the operating system's rules.
#[derive(Debug)]
pub(super) struct Resolver {
    lookups: Arc<Semaphore>,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self {
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }

    /// The addresses of `host`, in the order in which they should be tried. Never empty.
    ///
    /// Cancel-safe. A lookup that has begun goes on in its thread; the caller's timeout bounds the wait.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let permit = Arc::clone(&self.lookups)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let name = host.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            // Held for as long as the thread is, even if nobody waits any more.
            let _permit = permit;
            (name.as_str(), port)
                .to_socket_addrs()
                .map(|found| interleaved(found.collect()))
        })
        .await
        .map_err(io::Error::other)??;
        if found.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            ));
        }
        Ok(found)
    }
}

/// The addresses with the families alternating, the family of the first one first (RFC 8305 section 4).
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else {
        return addresses;
    };
    let first_is_v6 = first.is_ipv6();
    let (preferred, other): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut mixed = Vec::new();
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    while mixed.len() < MAX_ADDRESSES {
        let before = mixed.len();
        mixed.extend(preferred.next());
        mixed.extend(other.next());
        if mixed.len() == before {
            break;
        }
    }
    mixed.truncate(MAX_ADDRESSES);
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_and_the_first_stays_first() {
        assert_eq!(
            interleaved(addresses(&[
                "[::1]:80",
                "[::2]:80",
                "[::3]:80",
                "1.1.1.1:80",
                "2.2.2.2:80"
            ])),
            addresses(&[
                "[::1]:80",
                "1.1.1.1:80",
                "[::2]:80",
                "2.2.2.2:80",
                "[::3]:80"
            ])
        );
        assert_eq!(
            interleaved(addresses(&["1.1.1.1:80", "[::1]:80"])),
            addresses(&["1.1.1.1:80", "[::1]:80"])
        );
        assert_eq!(interleaved(Vec::new()), Vec::new());
    }

    #[test]
    fn no_more_than_the_limit_is_tried() {
        let many: Vec<SocketAddr> = (0..200)
            .map(|i| SocketAddr::from(([10, 0, 0, i], 80)))
            .collect();
        assert_eq!(interleaved(many.clone()), many[..MAX_ADDRESSES]);
    }

    #[tokio::test]
    async fn literals_need_no_lookup() {
        let resolver = Resolver {
            lookups: Arc::new(Semaphore::new(0)),
        };
        assert_eq!(
            resolver.resolve("::1", 8080).await.unwrap(),
            addresses(&["[::1]:8080"])
        );
    }

    #[tokio::test]
    async fn localhost_is_found() {
        let found = Resolver::new().resolve("localhost", 81).await.unwrap();
        assert!(found.iter().all(|a| a.ip().is_loopback() && a.port() == 81));
        assert!(!found.is_empty());
    }
}
