//! From a destination's name to addresses.

mod hosts;
mod in_flight;
mod names;
mod order;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::in_flight::{InFlight, Part, Ticket};
#[cfg(any(feature = "metrics", test))]
pub(crate) use self::names::NameCounts;
pub(super) use self::names::Names;
pub(crate) use self::names::Unresolved;
use self::names::{Advice, Kind, PATIENCE, Running};
use self::order::interleaved;

/// What a look-up found, for all who wait for it.
type Found = Result<Arc<[IpAddr]>, Arc<io::Error>>;

type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

type LookUp = Arc<dyn Fn(Arc<str>) -> Lookup + Send + Sync>;

/// Look-ups that may run at a time, by kind of name.
///
/// A look-up cannot be stopped: one that hangs keeps its thread of tokio's blocking pool. So names that hang share few threads, and
/// those that are known to answer have threads that no new name takes.
#[derive(Clone, Copy, Debug)]
struct Threads {
    known: usize,
    new: usize,
    hanging: usize,
}

const THREADS: Threads = Threads {
    known: 32,
    new: 128,
    hanging: 16,
};

/// Resolves names by the operating system's rules.
///
/// A name is looked up once for all who want it at the same time. What was found is not kept, since names change, unless later
/// look-ups fail: then the last addresses are used for a time.
pub(super) struct Resolver {
    known: Arc<Semaphore>,
    new: Arc<Semaphore>,
    hanging: Arc<Semaphore>,
    names: Arc<Names>,
    in_flight: InFlight,
    look_up: LookUp,
}

impl Resolver {
    /// A resolver that uses the last addresses of a name that does not resolve for as long as `keep`.
    pub(super) fn new(keep: Duration) -> Self {
        Self::with(THREADS, keep, Arc::new(by_the_system))
    }

    fn with(threads: Threads, keep: Duration, look_up: LookUp) -> Self {
        Self {
            known: Arc::new(Semaphore::new(threads.known)),
            new: Arc::new(Semaphore::new(threads.new)),
            hanging: Arc::new(Semaphore::new(threads.hanging)),
            names: Arc::new(Names::new(keep)),
            in_flight: InFlight::default(),
            look_up,
        }
    }

    /// The addresses of `host`, in the order in which they should be tried. Never empty.
    ///
    /// Cancel-safe. A look-up that has begun goes on in its thread; the caller's timeout bounds the wait.
    pub(super) async fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Arc<io::Error>> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        // The case of letters makes no difference (RFC 4343).
        let found = self.find(&host.to_ascii_lowercase()).await?;
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        Ok(found.iter().map(with_port).collect())
    }

    /// What is known of names that do not resolve.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    async fn find(&self, name: &str) -> Found {
        let (kind, kept) = match self.names.advice(name) {
            Advice::Ask(kind, kept) => (kind, kept),
            Advice::Use(kept) => {
                self.names.used_stale();
                return Ok(kept);
            }
            Advice::Fail(error) => return Err(error),
        };
        let waiting = match self.in_flight.join(name) {
            Part::Waits(waiting) => waiting,
            Part::Begins(ticket, waiting) => {
                self.begin(ticket, kind, kept.is_some())?;
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

    /// Looks a name up in a task of its own: it is for more than the one who asked first. `is_kept`: its last addresses are used
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Look-ups of it hang, and so do too many others.
    fn begin(&self, ticket: Ticket, kind: Kind, is_kept: bool) -> Result<(), Arc<io::Error>> {
        let threads = match kind {
            Kind::Known => &self.known,
            Kind::New => &self.new,
            Kind::Hanging => &self.hanging,
        };
        let permit = Arc::clone(threads).try_acquire_owned().ok();
        if permit.is_none() && kind == Kind::Hanging && !is_kept {
            let why = "look-ups of too many names hang";
            return Err(Arc::new(io::Error::new(io::ErrorKind::TimedOut, why)));
        }
        let lookup = Pending {
            running: self.names.begin(ticket.name()),
            threads: Arc::clone(threads),
            look_up: Arc::clone(&self.look_up),
            ticket,
            is_kept,
        };
        tokio::spawn(lookup.run(permit));
        Ok(())
    }
}

/// A look-up that is to be done.
struct Pending {
    ticket: Ticket,
    running: Running,
    threads: Arc<Semaphore>,
    look_up: LookUp,
    is_kept: bool,
}

impl Pending {
    async fn run(mut self, permit: Option<OwnedSemaphorePermit>) {
        let name = self.ticket.name();
        let _permit = match permit {
            Some(permit) => permit,
            None => {
                // A name that needs no name server does not wait for one.
                let found = hosts::find(&name).await;
                if !found.is_empty() {
                    return self.end(checked(Ok(found)));
                }
                let Ok(permit) = Arc::clone(&self.threads).acquire_owned().await else {
                    return;
                };
                permit
            }
        };
        // They may all have gone while it waited for its turn.
        if self.is_kept || !self.ticket.is_forsaken() {
            self.running.start();
            let found = (self.look_up)(name).await;
            self.end(checked(found));
        }
    }

    fn end(self, found: Found) {
        self.running.end(&found);
        self.ticket.end(found);
    }
}

fn by_the_system(name: Arc<str>) -> Lookup {
    let work = move || {
        let found = (&*name, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    };
    let thread = tokio::task::spawn_blocking(work);
    Box::pin(async move { thread.await.map_err(io::Error::other)? })
}

fn checked(found: io::Result<Vec<IpAddr>>) -> Found {
    let found = interleaved(found?);
    if found.is_empty() {
        let why = "the name has no address";
        return Err(Arc::new(io::Error::new(io::ErrorKind::NotFound, why)));
    }
    Ok(found.into())
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}
