//! Host names as destinations: one destination per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use proxy_model::config::DestinationConfig;
use proxy_model::{ClusterId, DestinationId, Problem, Problems, pointer_to};
use url::{Host, Url};

use super::lookup::{Lookup, SystemLookup};
use super::{DestinationResolver, ResolveError, Resolved};
use crate::discovery::Destinations;

/// Addresses of one name beyond this number are not used.
const MAX_ADDRESSES: usize = 256;
/// Names beyond this number are not remembered.
const MAX_NAMES: usize = 10_000;
/// A name is looked up no more often than this.
const MIN_REFRESH: Duration = Duration::from_secs(1);

/// Resolves the host names of destinations.
///
/// A destination `d1` whose address names a host becomes one destination per address of that host, called
/// `d1[10.0.0.1]`. Scheme, port and path stay; the address takes the place of the name in `Address` and in `Health`;
/// and `Host` becomes what the address had named, with its port if it was written, unless the destination has a `Host`
/// of its own. Destinations whose address is an IP address stay as they are.
///
/// A name that cannot be looked up keeps the addresses that it last had. One that never could be is left out, and is a
/// problem.
#[derive(Clone)]
pub struct DnsResolver {
    lookup: Arc<dyn Lookup>,
    refresh: Duration,
    family: AddressFamily,
    /// What names last stood for.
    last_good: Arc<Mutex<HashMap<String, Vec<IpAddr>>>>,
}

/// Which addresses of a name are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressFamily {
    /// IPv4 and IPv6.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl DnsResolver {
    /// A resolver that asks the operating system, for every name once a minute.
    pub fn new() -> Self {
        Self::with_lookup(SystemLookup)
    }

    /// A resolver that asks somebody else.
    pub fn with_lookup(lookup: impl Lookup + 'static) -> Self {
        Self {
            lookup: Arc::new(lookup),
            refresh: Duration::from_secs(60),
            family: AddressFamily::Any,
            last_good: Arc::default(),
        }
    }

    /// Sets how often names are looked up, in place of 60 s; at least every second is not.
    #[must_use]
    pub fn with_refresh(mut self, refresh: Duration) -> Self {
        self.refresh = refresh.max(MIN_REFRESH);
        self
    }

    /// Sets which addresses are used.
    #[must_use]
    pub fn with_family(mut self, family: AddressFamily) -> Self {
        self.family = family;
        self
    }

    /// The addresses of a name, and what went wrong if they are not of now.
    async fn addresses(&self, name: &str) -> (Vec<IpAddr>, Option<String>) {
        let found = self.lookup.lookup(name).await;
        let found = found.map(|mut addresses| {
            addresses.retain(|address| match self.family {
                AddressFamily::Any => true,
                AddressFamily::V4 => address.is_ipv4(),
                AddressFamily::V6 => address.is_ipv6(),
            });
            // Name servers rotate their answers. Order must not look like a change.
            addresses.sort_unstable();
            addresses.dedup();
            addresses.truncate(MAX_ADDRESSES);
            addresses
        });
        let mut last_good = self
            .last_good
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let reason = match found {
            Ok(addresses) if !addresses.is_empty() => {
                if last_good.len() >= MAX_NAMES && !last_good.contains_key(name) {
                    last_good.clear();
                }
                last_good.insert(name.to_owned(), addresses.clone());
                return (addresses, None);
            }
            Ok(_) => "it has no address".to_owned(),
            Err(error) => error.to_string(),
        };
        let old = last_good.get(name).cloned().unwrap_or_default();
        (old, Some(reason))
    }
}

impl Default for DnsResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DnsResolver")
            .field("refresh", &self.refresh)
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl DestinationResolver for DnsResolver {
    async fn resolve(
        &self,
        _: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError> {
        let mut resolved = Destinations::with_capacity(destinations.len());
        let mut problems = Problems::new();
        let mut names = false;
        let mut failed = false;
        for (id, destination) in destinations {
            let Some((url, name)) = named_host(&destination.address) else {
                resolved.insert(id.clone(), destination.clone());
                continue;
            };
            names = true;
            let (addresses, reason) = self.addresses(&name).await;
            if let Some(reason) = reason {
                failed = true;
                let pointer = pointer_to("/Destinations", id.as_str());
                problems.push(if addresses.is_empty() {
                    let message = format!("`{name}` cannot be resolved: {reason}");
                    Problem::error(pointer, "unresolved_host", message)
                } else {
                    let message = format!(
                        "`{name}` cannot be resolved, its last addresses serve on: {reason}"
                    );
                    Problem::warning(pointer, "unresolved_host", message)
                });
            }
            for address in addresses {
                let id = DestinationId::new(format!("{id}[{address}]"));
                resolved.insert(id, at_address(destination, &url, address));
            }
        }
        let mut answer = Resolved::new(resolved).with_problems(problems);
        if names {
            let wait = if failed {
                MIN_REFRESH * 5
            } else {
                self.refresh
            };
            answer = answer.with_refresh_after(wait.min(self.refresh));
        }
        Ok(answer)
    }
}

/// The host that an address names, if it names one.
fn named_host(address: &str) -> Option<(Url, String)> {
    let url = Url::parse(address).ok()?;
    let Host::Domain(name) = url.host()? else {
        return None;
    };
    let name = name.to_owned();
    Some((url, name))
}

/// The destination at one of the addresses of its host.
fn at_address(destination: &DestinationConfig, url: &Url, ip: IpAddr) -> DestinationConfig {
    let mut at = destination.clone();
    at.address = with_ip(url.clone(), ip);
    at.health = destination.health.as_ref().map(|health| {
        Url::parse(health).map_or_else(|_| health.clone(), |health| with_ip(health, ip))
    });
    at.host.get_or_insert_with(|| authority(url));
    at
}

fn with_ip(mut url: Url, ip: IpAddr) -> String {
    // It fails only for URLs that cannot have a host; those keep what they have.
    let _ = url.set_ip_host(ip);
    url.into()
}

/// Host and port as written; the scheme's own port is not written.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
