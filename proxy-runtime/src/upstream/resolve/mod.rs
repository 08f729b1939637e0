//! From a destination's name to addresses.

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
pub use self::dns::DnsOptions;
use self::in_flight::{InFlight, Part, Ticket};
#[cfg(any(feature = "metrics", test))]
pub(crate) use self::names::NameCounts;
pub(super) use self::names::Names;
pub(crate) use self::names::Unresolved;
use self::names::{Advice, Kind, PATIENCE, Running, SLOW};
use self::order::interleaved;
use self::places::{Place, Places};
use super::UpstreamOptions;

/// The result of a look-up, for all who wait for it.
type Found = Result<Arc<[IpAddr]>, Arc<io::Error>>;

/// The end of a look-up.
#[derive(Debug)]
struct Outcome {
    found: io::Result<Vec<IpAddr>>,
    /// The time for which that holds. `None`: nobody has said, and the next one who wants the name asks again.
    lasts: Option<Duration>,
    /// The full name that has the addresses, where the name may mean several.
    full_name: Option<String>,
    /// True if the addresses are of one family, and nobody has said whether there are others.
    is_part: bool,
    /// The failure of a full name that the name means before the one that was found: the addresses may be another host's.
    unsure: Option<io::Error>,
}

/// A resolver of names.
#[async_trait]
trait LookUp: Send + Sync {
    /// Look-ups that may run at a time.
    fn most(&self) -> Most;

    /// Returns true if a look-up that is dropped costs nothing any more.
    fn can_be_stopped(&self) -> bool;

    /// The number of changes of the files that say how names are looked up, as far as they have been read.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns true if these files are to be read again.
    fn is_due(&self, _now: Instant) -> bool {
        false
    }

    /// Reads these files again.
    async fn reread(&self) {}

    /// The addresses of a name that needs no name server.
    async fn at_hand(&self, name: &str) -> Vec<IpAddr>;

    /// The addresses of a name.
    async fn look_up(&self, name: &str) -> Outcome;
}

/// Look-ups that may run at a time, by kind of name.
#[derive(Clone, Copy, Debug)]
struct Most {
    known: usize,
    new: usize,
    hanging: usize,
}

/// Places of look-ups, by kind of name: names that hang leave room for others, and those that are known to answer do not wait
/// for new ones.
#[derive(Clone)]
struct Kinds {
    known: Arc<Places>,
    new: Arc<Places>,
    hanging: Arc<Places>,
}

/// Resolves names.
///
/// A name is looked up once for all who want it at the same time. What was found is kept for as long as it holds, and the files that
/// say how names are looked up say the same. If later look-ups fail, the last addresses are used for a time.
pub(super) struct Resolver {
    kinds: Kinds,
    names: Arc<Names>,
    in_flight: InFlight,
    look_up: Arc<dyn LookUp>,
}

impl Resolver {
    /// A resolver as the program wants it.
    pub(super) fn new(options: &UpstreamOptions) -> Self {
        let keep = options.stale_addresses;
        #[cfg(feature = "dns")]
        if let Some(dns) = &options.dns {
            return Self::with(keep, Arc::new(dns::Dns::new(dns.clone())));
        }
        Self::with(keep, Arc::new(system::System))
    }

    /// A resolver that uses the last addresses of a name that does not resolve for as long as `keep`.
    fn with(keep: Duration, look_up: Arc<dyn LookUp>) -> Self {
        let most = look_up.most();
        Self {
            kinds: Kinds {
                known: Places::new(most.known),
                new: Places::new(most.new),
                hanging: Places::new(most.hanging),
            },
            names: Arc::new(Names::new(keep)),
            in_flight: InFlight::default(),
            look_up,
        }
    }

    /// The addresses of `host`, in the order in which they should be tried, for a destination of `cluster`. Never empty.
    ///
    /// Cancel-safe. A look-up that has begun goes on; the caller's timeout bounds the wait.
    pub(super) async fn resolve(
        &self,
        cluster: &ClusterId,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Arc<io::Error>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        // The case of letters makes no difference (RFC 4343).
        let found = self.find(cluster, &host.to_ascii_lowercase()).await?;
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        Ok(found.iter().map(with_port).collect())
    }

    /// What is known of names that do not resolve.
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
            Part::Waits(waiting) => waiting,
            Part::Begins(ticket, waiting) => {
                self.begin(cluster, ticket, kind, kept.is_some())?;
                waiting
            }
        };
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

    /// Has files read again. A disk that hangs holds one caller up for a moment, and the others not at all.
    async fn reread(&self) {
        let look_up = Arc::clone(&self.look_up);
        let reading = tokio::spawn(async move { look_up.reread().await });
        // What was read before holds until then.
        let _ = timeout(PATIENCE, reading).await;
    }

    /// Looks a name up in a task of its own: it is for more than the one who asked first. `is_kept`: its last addresses are used
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Look-ups of it hang, and so do too many others.
    fn begin(
        &self,
        cluster: &ClusterId,
        ticket: Ticket,
        kind: Kind,
        is_kept: bool,
    ) -> Result<(), Arc<io::Error>> {
        let place = self.kinds.of(kind).try_take(cluster);
        if place.is_none() && kind == Kind::Hanging && !is_kept {
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
    fn of(&self, kind: Kind) -> &Arc<Places> {
        match kind {
            Kind::Known => &self.known,
            Kind::New => &self.new,
            Kind::Hanging => &self.hanging,
        }
    }
}

fn too_many_hang() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "look-ups of too many names hang")
}

/// A look-up that is to be done.
struct Pending {
    ticket: Ticket,
    running: Running,
    /// The cluster whose place it takes.
    cluster: ClusterId,
    kind: Kind,
    kinds: Kinds,
    look_up: Arc<dyn LookUp>,
    is_kept: bool,
}

impl Pending {
    async fn run(mut self, place: Option<Place>) {
        let name = self.ticket.name();
        let place = match place {
            Some(place) => place,
            None => {
                // A name that needs no name server does not wait for one.
                let found = self.look_up.at_hand(&name).await;
                if !found.is_empty() {
                    return self.end(Outcome::from(Ok(found)));
                }
                self.kinds.of(self.kind).take(&self.cluster).await
            }
        };
        // They may all have gone while it waited for its turn.
        if self.is_kept || !self.ticket.is_forsaken() {
            self.running.start();
            let outcome = self.ask(&name, place).await;
            self.end(outcome);
        }
    }

    /// Asks. A look-up that hangs gives its place to others: it goes on among those that hang, or ends.
    async fn ask(&self, name: &str, place: Place) -> Outcome {
        let mut asked = self.look_up.look_up(name);
        if self.kind == Kind::Hanging || !self.look_up.can_be_stopped() {
            let _place = place;
            return asked.await;
        }
        if let Ok(outcome) = timeout(SLOW, &mut asked).await {
            return outcome;
        }
        let Some(_place) = self.kinds.hanging.try_take(&self.cluster) else {
            return Outcome::from(Err(too_many_hang()));
        };
        drop(place);
        asked.await
    }

    fn end(self, outcome: Outcome) {
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

impl From<io::Result<Vec<IpAddr>>> for Outcome {
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
