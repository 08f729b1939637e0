//! Host names as destinations: one destination per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexSet;
use parking_lot::{Mutex, MutexGuard};
use proxy_model::{ClusterId, Problem, Problems, pointer_to};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::lookup::{Lookup, SrvRecord, SystemLookup};
use super::names::Names;
use super::place::{Place, Placed, is_service, placed, unplaced, weighed};
use super::{DestinationResolver, ResolveError, Resolved};
use crate::contain::{Broken, contained_for};
use crate::discovery::Destinations;
use crate::text::with_causes;

/// Addresses of one name beyond this number are not used.
const MAX_ADDRESSES: usize = 256;
/// Look-ups at the same time, of all clusters together: each may occupy a thread of the system for long.
const LOOKUPS: usize = 16;
/// Maximum number of concurrent look-ups of names that last timed out, so that they do not delay others.
const SLOW_LOOKUPS: usize = 8;
/// A name is looked up no more often than this.
const MIN_REFRESH: Duration = Duration::from_secs(1);
/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(3600);

/// Resolves the host names of destinations.
///
/// A destination `d1` whose address names a host becomes one destination per address of that host, called
/// `d1[10.0.0.1]`. Scheme, port and path stay; the address takes the place of the name in `Address` and in `Health`;
/// and `Host` becomes what the address had named, with its port if it was written, unless the destination has a `Host`
/// of its own. Destinations whose address is an IP address stay as they are.
///
/// A name such as `_http._tcp.orders.example` is that of a service: it becomes one destination per server
/// (RFC 2782), called `d1[server.example:8080]`, if the look-up [knows servers](Lookup::servers). Name and port
/// are the server's, and so is the `Host`; `Priority` and `Weight` follow the records. The names of servers are
/// looked up when connections are opened.
///
/// A name that cannot be looked up in time keeps its last addresses. A name that could never be looked up
/// is left out and reported. The names of a cluster are looked up in parallel, so a hanging one costs the
/// others only the wait for its time limit.
#[derive(Clone)]
pub struct DnsResolver {
    lookup: Arc<dyn Lookup>,
    refresh: Duration,
    family: AddressFamily,
    timeout: Duration,
    lookups: Arc<Semaphore>,
    slow_lookups: Arc<Semaphore>,
    /// The last known addresses of names.
    names: Arc<Mutex<Names>>,
}

/// The reason why a name has no current addresses.
struct Unknown {
    reason: String,
    slow: bool,
}

/// The addresses of a name, and how long they are valid.
type Found = Result<(Vec<Place>, Option<Duration>), Unknown>;

/// The address families that are used.
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
    /// Creates a resolver that uses the operating system, for every name once a minute.
    pub fn new() -> Self {
        Self::with_lookup(SystemLookup)
    }

    /// Creates a resolver that uses another look-up.
    pub fn with_lookup(lookup: impl Lookup + 'static) -> Self {
        Self {
            lookup: Arc::new(lookup),
            refresh: Duration::from_secs(60),
            family: AddressFamily::Any,
            timeout: Duration::from_secs(2),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            slow_lookups: Arc::new(Semaphore::new(SLOW_LOOKUPS)),
            names: Arc::default(),
        }
    }

    /// Sets how often names are looked up, in place of 60 s; at least every second is not. Names whose
    /// addresses are valid for a shorter time are looked up then.
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

    /// Sets the time limit for looking up one name. All names of a cluster take two and a quarter times as
    /// long at most, which should be less than
    /// [`MergeOptions::resolve_timeout`](crate::merge::MergeOptions::resolve_timeout). Default: 2 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Looks names up, every one of them once.
    async fn look_up(&self, cluster: &ClusterId, names: &[Arc<str>]) -> HashMap<Arc<str>, Found> {
        let slow = self.names().ask(cluster, names);
        // Two turns, and something for what happens between them.
        let limit = self.timeout.min(LONGEST) * 9 / 4;
        let deadline = Instant::now() + limit;
        // What is under way when this is dropped is dropped with it.
        let mut running = JoinSet::new();
        for (name, slow) in names.iter().zip(slow) {
            let lane = if slow {
                &self.slow_lookups
            } else {
                &self.lookups
            };
            running.spawn(self.look_up_one(Arc::clone(name), Arc::clone(lane)));
        }
        let mut found = HashMap::with_capacity(names.len());
        while let Ok(Some(ended)) = timeout_at(deadline, running.join_next()).await {
            // Panics are contained inside, and the tasks are never aborted.
            if let Ok((name, addresses)) = ended {
                found.insert(name, addresses);
            }
        }
        found
    }

    fn look_up_one(
        &self,
        name: Arc<str>,
        lane: Arc<Semaphore>,
    ) -> impl Future<Output = (Arc<str>, Found)> + Send + use<> {
        let lookup = Arc::clone(&self.lookup);
        let (family, limit) = (self.family, self.timeout.min(LONGEST));
        async move {
            // It is never closed.
            let _permit = lane.acquire().await;
            let answer = contained_for(limit, look_up(&*lookup, &name, family)).await;
            let failed = |reason, slow| Err(Unknown { reason, slow });
            let found = match answer {
                Ok(Ok((places, _))) if places.is_empty() => {
                    let lacks = if is_service(&name) {
                        "server"
                    } else {
                        "address"
                    };
                    failed(format!("it has no {lacks}"), false)
                }
                Ok(Ok(found)) => Ok(found),
                Ok(Err(error)) => failed(with_causes(&error), false),
                Err(broken) => {
                    let slow = matches!(broken, Broken::TimedOut(_));
                    failed(format!("the look-up {broken}"), slow)
                }
            };
            (name, found)
        }
    }

    /// The places of a name, and what went wrong if they are not of now.
    fn apply_result(&self, name: &str, found: Option<&Found>) -> (Vec<Place>, Option<String>) {
        match found {
            Some(Ok((places, _))) => {
                self.names().found(name, places);
                (places.clone(), None)
            }
            Some(Err(unknown)) => {
                let old = self.names().failed(name, Some(unknown.slow));
                (old, Some(unknown.reason.clone()))
            }
            None => {
                let old = self.names().failed(name, None);
                let reason = "there was no time to look it up, since other names take too long";
                (old, Some(reason.to_owned()))
            }
        }
    }

    pub(super) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock()
    }
}

async fn look_up(
    lookup: &dyn Lookup,
    name: &str,
    family: AddressFamily,
) -> std::io::Result<(Vec<Place>, Option<Duration>)> {
    let (mut places, lasts): (Vec<Place>, _) = if is_service(name) {
        let (servers, lasts) = lookup.servers(name).await?;
        let servers = servers.into_iter().filter(is_usable_server);
        (servers.map(Place::Server).collect(), lasts)
    } else {
        let (addresses, lasts) = lookup.addresses(name).await?;
        let addresses = addresses
            .into_iter()
            .filter(|address| is_of(*address, family));
        (addresses.map(Place::Address).collect(), lasts)
    };
    // Name servers rotate their results. Order must not look like a change.
    places.sort_unstable();
    places.dedup();
    places.truncate(MAX_ADDRESSES);
    Ok((places, lasts))
}

fn is_of(address: IpAddr, family: AddressFamily) -> bool {
    match family {
        AddressFamily::Any => true,
        AddressFamily::V4 => address.is_ipv4(),
        AddressFamily::V6 => address.is_ipv6(),
    }
}

/// Returns false for the target `.`, which means that there is no such service (RFC 2782).
fn is_usable_server(server: &SrvRecord) -> bool {
    server.port != 0
        && matches!(Host::parse(&server.target), Ok(Host::Domain(name)) if !name.is_empty())
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
        cluster: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError> {
        let named: Vec<Option<(Url, Arc<str>)>> = destinations
            .values()
            .map(|destination| named_host(&destination.address))
            .collect();
        let names: IndexSet<&Arc<str>> = named.iter().flatten().map(|(_, name)| name).collect();
        let names: Vec<Arc<str>> = names.into_iter().cloned().collect();
        let found = self.look_up(cluster, &names).await;
        let mut resolved: Vec<Placed> = Vec::with_capacity(destinations.len());
        let mut problems = Problems::new();
        let mut failed = false;
        for ((id, destination), named) in destinations.iter().zip(named) {
            let Some((url, name)) = named else {
                resolved.push(unplaced(id, destination));
                continue;
            };
            let (places, reason) = self.apply_result(&name, found.get(&name));
            if let Some(reason) = reason {
                failed = true;
                let pointer = pointer_to("/Destinations", id.as_str());
                problems.push(if places.is_empty() {
                    let message = format!("`{name}` cannot be resolved: {reason}");
                    Problem::error(pointer, "unresolved_host", message)
                } else {
                    let message = format!(
                        "`{name}` cannot be resolved, its last addresses continue to serve: {reason}"
                    );
                    Problem::warning(pointer, "unresolved_host", message)
                });
            }
            resolved.extend(placed(id, destination, &url, &places));
        }
        let valid = found
            .values()
            .filter_map(|found| found.as_ref().ok()?.1)
            .min();
        let mut answer = Resolved::new(weighed(resolved)).with_problems(problems);
        if !names.is_empty() {
            let wait = if failed {
                MIN_REFRESH * 5
            } else {
                self.refresh
            };
            let valid = valid.map_or(wait, |valid| wait.min(valid.max(MIN_REFRESH)));
            answer = answer.with_refresh_after(valid.min(self.refresh));
        }
        Ok(answer)
    }

    fn forget(&self, cluster: &ClusterId) {
        self.names().forget(cluster);
    }
}

/// The host that an address names, if it names one.
fn named_host(address: &str) -> Option<(Url, Arc<str>)> {
    let url = Url::parse(address).ok()?;
    let Host::Domain(name) = url.host()? else {
        return None;
    };
    let name = name.into();
    Some((url, name))
}
