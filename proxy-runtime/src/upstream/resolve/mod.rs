//! Name resolution for destinations.

#[cfg(feature = "dns")]
mod dns;
mod hosts;
mod in_flight;
mod names;
mod order;
mod places;
mod system;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use proxy_model::ClusterId;
use tokio::time::{Instant, timeout};

#[cfg(feature = "dns")]
pub use self::dns::{DnsLookup, DnsOptions};
use self::in_flight::{Joined, LookupTicket, LookupsInFlight};
#[cfg(any(feature = "metrics", test))]
pub(crate) use self::names::NameCounts;
pub(super) use self::names::Names;
pub(crate) use self::names::Unresolved;
use self::names::{Advice, NameKind, PATIENCE, Running, SLOW};
use self::order::interleaved;
use self::places::{Permit, Permits};
use super::UpstreamOptions;

/// The result of a look-up for all callers that wait.
type Found = Result<Arc<[IpAddr]>, Arc<io::Error>>;

/// The result of a look-up with its validity.
#[derive(Debug)]
struct LookupOutcome {
    found: io::Result<Vec<IpAddr>>,
    /// The time for which the result is valid. `None` if unknown: the next caller looks up again.
    lasts: Option<Duration>,
    /// The absolute name that has the addresses, if the name may stand for several.
    full_name: Option<String>,
    /// True if only one address family is known.
    is_part: bool,
    /// The failure of an absolute name of higher priority: the addresses may belong to another
    /// host.
    unsure: Option<io::Error>,
}

/// A method of name resolution.
#[async_trait]
trait LookUp: Send + Sync {
    /// Maximum of concurrent look-ups.
    fn most(&self) -> Most;

    /// Returns true if dropping a look-up releases all of its resources.
    fn can_be_stopped(&self) -> bool;

    /// Number of changes of the resolver's configuration files, as of the last read.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns true if the files should be read again.
    fn is_due(&self, _now: Instant) -> bool {
        false
    }

    /// Reads the files again.
    async fn reread(&self) {}

    /// The addresses of a name that needs no name server.
    async fn at_hand(&self, name: &str) -> Vec<IpAddr>;

    /// The addresses of a name.
    async fn look_up(&self, name: &str) -> LookupOutcome;
}

/// Maximum of concurrent look-ups, by kind of name.
#[derive(Clone, Copy, Debug)]
struct Most {
    known: usize,
    new: usize,
    hanging: usize,
}

/// Permits for look-ups, by kind of name: names that hang leave permits for others, and names known
/// to resolve do not wait for new ones.
#[derive(Clone)]
struct Kinds {
    known: Arc<Permits>,
    new: Arc<Permits>,
    hanging: Arc<Permits>,
}

/// Resolves names.
///
/// Concurrent callers of one name share a look-up. Results are cached for their validity, and until
/// the configuration files change. If later look-ups fail, the last known good addresses are used
/// for a limited time.
pub(super) struct Resolver {
    kinds: Kinds,
    names: Arc<Names>,
    in_flight: LookupsInFlight,
    look_up: Arc<dyn LookUp>,
}

impl Resolver {
    /// Creates the resolver that the options describe.
    pub(super) fn new(options: &UpstreamOptions) -> Self {
        let keep = options.stale_addresses;
        #[cfg(feature = "dns")]
        if let Some(dns) = &options.dns {
            return Self::with(keep, Arc::new(dns::Dns::new(dns.clone())));
        }
        Self::with(keep, Arc::new(system::System))
    }

    /// Creates a resolver that uses the last known good addresses of a failing name for at most
    /// `keep`.
    fn with(keep: Duration, look_up: Arc<dyn LookUp>) -> Self {
        let most = look_up.most();
        Self {
            kinds: Kinds {
                known: Permits::new(most.known),
                new: Permits::new(most.new),
                hanging: Permits::new(most.hanging),
            },
            names: Arc::new(Names::new(keep)),
            in_flight: LookupsInFlight::default(),
            look_up,
        }
    }

    /// Returns the addresses of `host` for a destination of `cluster`, in the order of attempts.
    /// Never empty.
    ///
    /// Cancel safe. A look-up in flight continues; the caller's timeout limits the wait.
    pub(super) async fn resolve(
        &self,
        cluster: &ClusterId,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Arc<io::Error>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        // Names are compared ignoring case (RFC 4343).
        let found = self.find(cluster, &host.to_ascii_lowercase()).await?;
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        Ok(found.iter().map(with_port).collect())
    }

    /// The state of all names.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    async fn find(&self, cluster: &ClusterId, name: &str) -> Found {
        let now = Instant::now();
        if self.look_up.is_due(now) {
            self.reread().await;
        }
        let generation = self.look_up.generation();
        let (kind, kept) = match self.names.advice(name, now, generation) {
            Advice::Ask(kind, kept) => (kind, kept),
            Advice::Fresh(found) => return Ok(found),
            Advice::Use(kept) => {
                self.names.used_stale();
                return Ok(kept);
            }
            Advice::Fail(error) => return Err(error),
        };
        let waiting = match self.in_flight.join(name) {
            Joined::Waits(waiting) => waiting,
            Joined::Begins(ticket, waiting) => {
                self.begin(cluster, ticket, kind, kept.is_some())?;
                waiting
            }
        };
        // Without earlier addresses, only the caller's timeout limits the wait.
        let Some(kept) = kept else {
            return waiting.found().await;
        };
        match timeout(PATIENCE, waiting.found()).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) | Err(_) => {
                self.names.used_stale();
                Ok(kept)
            }
        }
    }

    /// Reads the files again. A disk that hangs delays one caller for a moment, and no other one.
    async fn reread(&self) {
        let look_up = Arc::clone(&self.look_up);
        let reading = tokio::spawn(async move { look_up.reread().await });
        // The previous contents are valid until then.
        let _ = timeout(PATIENCE, reading).await;
    }

    /// Starts a look-up in its own task, since several callers may share it. `is_kept`: its last
    /// addresses are used meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if look-ups of this name hang, and those of too many others.
    fn begin(
        &self,
        cluster: &ClusterId,
        ticket: LookupTicket,
        kind: NameKind,
        is_kept: bool,
    ) -> Result<(), Arc<io::Error>> {
        let place = self.kinds.of(kind).try_take(cluster);
        // It would wait for a permit that other hanging names hold, and has no earlier addresses.
        if place.is_none() && kind == NameKind::Hanging && !is_kept {
            return Err(Arc::new(too_many_hang()));
        }
        let lookup = Pending {
            running: self.names.begin(ticket.name(), self.look_up.generation()),
            cluster: cluster.clone(),
            kind,
            kinds: self.kinds.clone(),
            look_up: Arc::clone(&self.look_up),
            ticket,
            is_kept,
        };
        tokio::spawn(lookup.run(place));
        Ok(())
    }
}

impl Kinds {
    fn of(&self, kind: NameKind) -> &Arc<Permits> {
        match kind {
            NameKind::Known => &self.known,
            NameKind::New => &self.new,
            NameKind::Hanging => &self.hanging,
        }
    }
}

fn too_many_hang() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "look-ups of too many names hang")
}

/// A look-up to be made.
struct Pending {
    ticket: LookupTicket,
    running: Running,
    /// The cluster that holds the permit.
    cluster: ClusterId,
    kind: NameKind,
    kinds: Kinds,
    look_up: Arc<dyn LookUp>,
    is_kept: bool,
}

impl Pending {
    async fn run(mut self, place: Option<Permit>) {
        let name = self.ticket.name();
        let place = match place {
            Some(place) => place,
            None => {
                // A name that needs no name server does not wait for a permit.
                let found = self.look_up.at_hand(&name).await;
                if !found.is_empty() {
                    return self.end(LookupOutcome::from(Ok(found)));
                }
                self.kinds.of(self.kind).take(&self.cluster).await
            }
        };
        // All callers may have gone during the wait for a permit.
        if self.is_kept || !self.ticket.is_forsaken() {
            self.running.start();
            let outcome = self.ask(&name, place).await;
            self.end(outcome);
        }
    }

    /// Runs the look-up. One that hangs releases its permit: it continues with one for hanging
    /// names, or ends.
    async fn ask(&self, name: &str, place: Permit) -> LookupOutcome {
        let mut asked = self.look_up.look_up(name);
        if self.kind == NameKind::Hanging || !self.look_up.can_be_stopped() {
            // A look-up that cannot be stopped keeps its thread, and so its permit.
            let _place = place;
            return asked.await;
        }
        if let Ok(outcome) = timeout(SLOW, &mut asked).await {
            return outcome;
        }
        // Names that do not hang need the permit.
        let Some(_place) = self.kinds.hanging.try_take(&self.cluster) else {
            return LookupOutcome::from(Err(too_many_hang()));
        };
        drop(place);
        asked.await
    }

    fn end(self, outcome: LookupOutcome) {
        self.ticket.end(self.running.end(outcome));
    }
}

fn checked(found: io::Result<Vec<IpAddr>>) -> Found {
    let found = interleaved(found?);
    if found.is_empty() {
        let why = "the name has no address";
        return Err(Arc::new(io::Error::new(io::ErrorKind::NotFound, why)));
    }
    Ok(found.into())
}

impl From<io::Result<Vec<IpAddr>>> for LookupOutcome {
    fn from(found: io::Result<Vec<IpAddr>>) -> Self {
        Self {
            found,
            lasts: None,
            full_name: None,
            is_part: false,
            unsure: None,
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}
