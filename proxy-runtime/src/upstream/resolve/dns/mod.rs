//! A DNS resolver without a thread per look-up.
//!
//! Names are resolved as the C library does with `hosts: files dns` in `nsswitch.conf`: from the
//! table of hosts, then by the servers and search domains of `resolv.conf`. Both files are read
//! again after some seconds.

mod answer;
mod ask;
mod config;
mod lookup;
mod options;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use discovery_core::resolver::SrvRecord;
use futures_util::future::{Either, select};
use hickory_net::proto::rr::{Name, RecordType};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use self::answer::QueryResult;
use self::ask::Servers;
use self::config::Config;
pub use self::lookup::DnsLookup;
pub use self::options::DnsOptions;
use super::{LookUp, LookupOutcome, Most, hosts};

/// Age of the file contents after which they are read again.
const REREAD: Duration = Duration::from_secs(5);

/// Time limit of a look-up, over all servers and domains.
const LONGEST: Duration = Duration::from_secs(10);

/// Wait for the other address family: some servers never respond to AAAA.
const OTHER_FAMILY: Duration = Duration::from_millis(500);

/// Maximum time for which a negative response is used, since many names appear late.
const LONGEST_NEGATIVE: Duration = Duration::from_secs(30);

/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The DNS resolver.
pub(super) struct Dns {
    options: Arc<DnsOptions>,
    servers: Servers,
    machine: ArcSwapOption<Machine>,
    /// Held while the files are read.
    reading: Mutex<()>,
}

/// The contents of the machine's files.
#[derive(Debug)]
struct Machine {
    config: Config,
    hosts: String,
    /// Number of changes of the files.
    generation: u64,
    read: Instant,
}

impl Dns {
    pub(super) fn new(options: DnsOptions) -> Self {
        Self {
            options: Arc::new(options),
            servers: Servers::default(),
            machine: ArcSwapOption::empty(),
            reading: Mutex::new(()),
        }
    }

    /// The contents of the files. While one task reads them, others use the previous contents.
    async fn machine(&self) -> Arc<Machine> {
        let current = self.machine.load_full();
        if let Some(machine) = &current
            && machine.read.elapsed() < REREAD
        {
            return Arc::clone(machine);
        }
        // One task reads; others use the previous contents if there are any.
        let _reading = match (self.reading.try_lock(), current) {
            (Ok(reading), _) => reading,
            (Err(_), Some(current)) => return current,
            (Err(_), None) => self.reading.lock().await,
        };
        // Another task may have read the files during the wait.
        let before = self.machine.load_full();
        if let Some(machine) = &before
            && machine.read.elapsed() < REREAD
        {
            return Arc::clone(machine);
        }
        let options = Arc::clone(&self.options);
        let files = move || (read(&options.resolv_conf), read(&options.hosts));
        // A disk that hangs must not stop the worker.
        let read = tokio::task::spawn_blocking(files).await;
        let (config, hosts) = read.unwrap_or_default();
        let servers = &self.options.servers;
        // A file that cannot be read now keeps its previous contents.
        let config = match (config, &before) {
            (None, Some(before)) => before.config.clone(),
            (text, _) => Config::read(&text.unwrap_or_default(), servers),
        };
        let hosts = match (hosts, &before) {
            (None, Some(before)) => before.hosts.clone(),
            (text, _) => String::from_utf8_lossy(&text.unwrap_or_default()).into_owned(),
        };
        let generation = before.map_or(0, |before| {
            let is_other = config != before.config || hosts != before.hosts;
            before.generation + u64::from(is_other)
        });
        let machine = Arc::new(Machine {
            config,
            hosts,
            generation,
            read: Instant::now(),
        });
        self.machine.store(Some(Arc::clone(&machine)));
        machine
    }

    async fn search(&self, name: &str) -> LookupOutcome {
        let machine = self.machine().await;
        let found = machine.at_hand(name);
        if !found.is_empty() {
            return LookupOutcome {
                // Until the file is read again.
                lasts: Some(REREAD),
                ..LookupOutcome::from(Ok(found))
            };
        }
        let config = &machine.config;
        let mut ends = QueryResult::None("it is no name that DNS could know", PAUSE);
        for candidate in config.candidates(name) {
            match self.both_families(config, &candidate).await {
                QueryResult::None(why, ttl) => {
                    // An uncertain result stays uncertain.
                    if let QueryResult::None(..) = ends {
                        ends = QueryResult::None(why, ttl);
                    }
                }
                // Continues like the C library: not every server knows every domain.
                failed @ QueryResult::Failed(_) => ends = failed,
                QueryResult::Silent => {
                    // Further names would wait for the same servers.
                    ends = QueryResult::Silent;
                    break;
                }
                found @ (QueryResult::Addresses(..)
                | QueryResult::Part(..)
                | QueryResult::Servers(..)) => {
                    return LookupOutcome {
                        full_name: Some(candidate.to_string()),
                        // The name that failed may be the intended one.
                        unsure: match ends {
                            QueryResult::Failed(why) => Some(why),
                            _ => None,
                        },
                        ..self.outcome(found)
                    };
                }
            }
        }
        self.outcome(ends)
    }

    /// The servers of a service, and the time for which they are valid.
    async fn servers(&self, name: &str) -> io::Result<(Vec<SrvRecord>, Duration)> {
        let machine = self.machine().await;
        let config = &machine.config;
        let mut failure =
            io::Error::new(io::ErrorKind::NotFound, "it is no name that DNS could know");
        for candidate in config.candidates(name) {
            match self.servers.ask(config, &candidate, RecordType::SRV).await {
                QueryResult::Servers(servers, ttl) => {
                    return Ok((servers, self.options.bounded(ttl)));
                }
                other => {
                    if let Err(error) = self.outcome(other).found {
                        failure = error;
                    }
                }
            }
        }
        Err(failure)
    }

    async fn both_families(&self, config: &Config, name: &Name) -> QueryResult {
        let v4 = pin!(self.servers.ask(config, name, RecordType::A));
        if config.ipv4_only {
            return v4.await;
        }
        let v6 = pin!(self.servers.ask(config, name, RecordType::AAAA));
        // Both at once, so that the slower one decides about the time.
        match select(v4, v6).await {
            Either::Left((first, rest)) => first.with(rest).await,
            Either::Right((first, rest)) => first.with(rest).await,
        }
    }

    fn outcome(&self, answer: QueryResult) -> LookupOutcome {
        let error = |kind, why| Err(io::Error::new(kind, why));
        let is_part = matches!(answer, QueryResult::Part(..));
        let (found, lasts) = match answer {
            QueryResult::Addresses(addresses, ttl) | QueryResult::Part(addresses, ttl) => {
                (Ok(preferred_first(addresses)), self.options.bounded(ttl))
            }
            QueryResult::None(why, ttl) => {
                let lasts = ttl.clamp(PAUSE, LONGEST_NEGATIVE);
                (error(io::ErrorKind::NotFound, why), lasts)
            }
            QueryResult::Failed(why) => (Err(why), PAUSE),
            QueryResult::Servers(..) => {
                let why = "the answer is to another question";
                (error(io::ErrorKind::InvalidData, why), PAUSE)
            }
            QueryResult::Silent => {
                let why = "no name server answers";
                (error(io::ErrorKind::TimedOut, why), PAUSE)
            }
        };
        LookupOutcome {
            lasts: Some(lasts),
            is_part,
            ..LookupOutcome::from(found)
        }
    }
}

impl QueryResult {
    /// Combines this result of one family with that of the other one.
    async fn with(self, other: impl Future<Output = Self>) -> Self {
        // Found addresses do not wait long for those of the other family.
        let other = match self {
            Self::Addresses(..) => timeout(OTHER_FAMILY, other).await,
            _ => Ok(other.await),
        };
        let other = other.unwrap_or(Self::Silent);
        self.joined(other)
    }
}

#[async_trait]
impl LookUp for Dns {
    fn most(&self) -> Most {
        Most {
            known: 256,
            new: 768,
            hanging: 64,
        }
    }

    fn can_be_stopped(&self) -> bool {
        true
    }

    fn generation(&self) -> u64 {
        let machine = self.machine.load();
        machine.as_ref().map_or(0, |machine| machine.generation)
    }

    fn is_due(&self, now: Instant) -> bool {
        let machine = self.machine.load();
        let is_old = |machine: &Arc<Machine>| now.duration_since(machine.read) >= REREAD;
        // Only one task needs to read them.
        machine.as_ref().is_some_and(is_old) && self.reading.try_lock().is_ok()
    }

    async fn reread(&self) {
        self.machine().await;
    }

    async fn at_hand(&self, name: &str) -> Vec<IpAddr> {
        self.machine().await.at_hand(name)
    }

    async fn look_up(&self, name: &str) -> LookupOutcome {
        let found = timeout(LONGEST, self.search(name)).await;
        found.unwrap_or_else(|_| self.outcome(QueryResult::Silent))
    }
}

impl Machine {
    /// The addresses that need no name server: those of the table of hosts, and loopback for
    /// `localhost` (RFC 6761 section 6.3).
    fn at_hand(&self, name: &str) -> Vec<IpAddr> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let found = hosts::find_in(&self.hosts, name);
        // RFC 6761 section 6.3.
        let is_local = name == "localhost" || name.ends_with(".localhost");
        preferred_first(match found.is_empty() && is_local {
            true => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            false => found,
        })
    }
}

/// `None` if the file cannot be read.
fn read(file: &Path) -> Option<Vec<u8>> {
    std::fs::read(file).ok()
}

/// Sorts IPv6 first if the machine has a route to it (RFC 6724 section 6, rules 1 and 6).
fn preferred_first(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let v6 = addresses.iter().find(|address| address.is_ipv6());
    let is_preferred = v6.is_some_and(|address| has_way_to(*address));
    // The sort is stable, so the order within a family stays.
    addresses.sort_by_key(|address| address.is_ipv6() != is_preferred);
    addresses
}

/// Returns true if the machine has a source address and a route for it. Sends nothing.
fn has_way_to(address: IpAddr) -> bool {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    // Connecting a datagram socket only looks up the route, for which any port will do.
    UdpSocket::bind(any).is_ok_and(|socket| socket.connect((address, 53)).is_ok())
}
