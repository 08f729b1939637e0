//! From a destination's name to addresses.

mod in_flight;
mod order;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use self::in_flight::{InFlight, Part, Ticket};
use self::order::interleaved;

/// Look-ups that may run at a time. A look-up cannot be stopped: one that hangs keeps its thread of tokio's blocking pool,
/// so that without a bound a dead name server would take them all.
const MAX_LOOKUPS: usize = 64;

/// What a look-up found, for all who wait for it.
type Found = Result<Arc<[IpAddr]>, Arc<io::Error>>;

type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

type LookUp = Arc<dyn Fn(Arc<str>) -> Lookup + Send + Sync>;

/// Resolves names by the operating system's rules.
///
/// A name is looked up once for all who want it at the same time. So one whose name server does not answer takes few of the
/// [`MAX_LOOKUPS`], however many requests there are for it, and leaves the others to other names.
pub(super) struct Resolver {
    lookups: Arc<Semaphore>,
    in_flight: InFlight,
    look_up: LookUp,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self::with(MAX_LOOKUPS, Arc::new(by_the_system))
    }

    fn with(most: usize, look_up: LookUp) -> Self {
        Self {
            lookups: Arc::new(Semaphore::new(most)),
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
        let waiting = match self.in_flight.join(host) {
            Part::Waits(waiting) => waiting,
            Part::Begins(ticket, waiting) => {
                self.begin(ticket);
                waiting
            }
        };
        let found = waiting.found().await?;
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        Ok(found.iter().map(with_port).collect())
    }

    /// Looks a name up in a task of its own: it is for more than the one who asked first.
    fn begin(&self, ticket: Ticket) {
        let lookups = Arc::clone(&self.lookups);
        let look_up = Arc::clone(&self.look_up);
        tokio::spawn(async move {
            let Ok(_permit) = lookups.acquire_owned().await else {
                return;
            };
            // They may all have gone while it waited for its turn.
            if !ticket.is_forsaken() {
                let found = look_up(ticket.name()).await;
                ticket.end(checked(found));
            }
        });
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
