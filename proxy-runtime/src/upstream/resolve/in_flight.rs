//! Look-ups under way, and who waits for them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Found;

/// How long a look-up is joined. One that has taken longer may have been asked of a server that is dead by now, so that
/// who comes then asks anew.
const FRESH: Duration = Duration::from_secs(5);

/// Look-ups of one name at a time: one, and another when that is not fresh any more.
const MOST: usize = 2;

/// Look-ups under way, by name. Clones share them.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<ByName>>);

/// Those of a name, in the order in which they began.
type ByName = HashMap<Arc<str>, Vec<Entry>>;

struct Entry {
    begun: Instant,
    result: watch::Receiver<Option<Found>>,
}

/// What comes of joining.
pub(super) enum Part {
    /// Somebody else has the name looked up.
    Waits(Waiting),
    /// The caller is to have it looked up.
    Begins(Ticket, Waiting),
}

/// A look-up to be done. Until it is dropped it counts as one of its name.
pub(super) struct Ticket {
    in_flight: InFlight,
    name: Arc<str>,
    result: watch::Sender<Option<Found>>,
}

/// Waits for what a look-up finds.
pub(super) struct Waiting(watch::Receiver<Option<Found>>);

impl InFlight {
    /// Joins a look-up of `host`, or begins one. The case of letters makes no difference (RFC 4343).
    pub(super) fn join(&self, host: &str) -> Part {
        let now = Instant::now();
        let name = host.to_ascii_lowercase();
        let mut names = self.0.lock();
        let entries = names.get(&*name).map_or(&[][..], Vec::as_slice);
        if let Some(last) = entries.last()
            && (entries.len() >= MOST || now.duration_since(last.begun) < FRESH)
        {
            return Part::Waits(Waiting(last.result.clone()));
        }
        let (sender, receiver) = watch::channel(None);
        let name: Arc<str> = name.into();
        names.entry(Arc::clone(&name)).or_default().push(Entry {
            begun: now,
            result: receiver.clone(),
        });
        let ticket = Ticket {
            in_flight: self.clone(),
            name,
            result: sender,
        };
        Part::Begins(ticket, Waiting(receiver))
    }
}

impl Ticket {
    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Whether nobody waits for it any more.
    pub(super) fn is_forsaken(&self) -> bool {
        // One receiver is that of the entry.
        self.result.receiver_count() <= 1
    }

    /// Tells all who wait what was found.
    pub(super) fn end(self, found: Found) {
        self.result.send_replace(Some(found));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let names = &self.in_flight.0;
        let mut names = names.lock();
        if let Some(entries) = names.get_mut(&self.name) {
            entries.retain(|entry| !entry.result.same_channel(&self.result.subscribe()));
            if entries.is_empty() {
                names.remove(&self.name);
            }
        }
    }
}

impl Waiting {
    /// Cancel-safe.
    pub(super) async fn found(mut self) -> Found {
        let found = match self.0.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            // With its runtime, or by a panic.
            Err(_) => None,
        };
        found.unwrap_or_else(|| {
            let why = "the look-up was given up";
            Err(Arc::new(io::Error::other(why)))
        })
    }
}
