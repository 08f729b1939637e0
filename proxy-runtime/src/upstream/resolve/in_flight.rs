//! Look-ups in flight, shared by the callers that wait for them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Found;

/// Time for which a look-up can be joined. A longer one may have queried a server that is dead by
/// now, so later callers start another one.
const FRESH: Duration = Duration::from_secs(5);

/// Maximum of look-ups per name: one, and another when that can no longer be joined.
const MOST: usize = 2;

/// Look-ups in flight by name. Clones share them.
#[derive(Clone, Default)]
pub(super) struct LookupsInFlight(Arc<Mutex<ByName>>);

/// The look-ups of each name, in the order of their start.
type ByName = HashMap<Arc<str>, Vec<LookupWaiter>>;

struct LookupWaiter {
    begun: Instant,
    result: watch::Receiver<Option<Found>>,
}

/// The result of joining.
pub(super) enum Joined {
    /// Another caller has started a look-up.
    Waits(LookupWait),
    /// The caller must start the look-up.
    Begins(LookupTicket, LookupWait),
}

/// A look-up to be made. It counts as one of its name until dropped.
pub(super) struct LookupTicket {
    in_flight: LookupsInFlight,
    name: Arc<str>,
    result: watch::Sender<Option<Found>>,
}

/// A wait for the result of a look-up.
pub(super) struct LookupWait(watch::Receiver<Option<Found>>);

impl LookupsInFlight {
    /// Joins a look-up of `host`, or registers a new one. Names are compared ignoring case (RFC
    /// 4343).
    pub(super) fn join(&self, host: &str) -> Joined {
        let now = Instant::now();
        let name = host.to_ascii_lowercase();
        let mut names = self.0.lock();
        let entries = names.get(&*name).map_or(&[][..], Vec::as_slice);
        // Only the newest look-up can be joined.
        if let Some(last) = entries.last()
            && (entries.len() >= MOST || now.duration_since(last.begun) < FRESH)
        {
            return Joined::Waits(LookupWait(last.result.clone()));
        }
        let (sender, receiver) = watch::channel(None);
        let name: Arc<str> = name.into();
        names
            .entry(Arc::clone(&name))
            .or_default()
            .push(LookupWaiter {
                begun: now,
                result: receiver.clone(),
            });
        let ticket = LookupTicket {
            in_flight: self.clone(),
            name,
            result: sender,
        };
        Joined::Begins(ticket, LookupWait(receiver))
    }
}

impl LookupTicket {
    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns true if no caller waits any more.
    pub(super) fn is_forsaken(&self) -> bool {
        // One receiver belongs to the entry.
        self.result.receiver_count() <= 1
    }

    /// Passes the result to all waiting callers.
    pub(super) fn end(self, found: Found) {
        self.result.send_replace(Some(found));
    }
}

impl Drop for LookupTicket {
    fn drop(&mut self) {
        let names = &self.in_flight.0;
        let mut names = names.lock();
        if let Some(entries) = names.get_mut(&self.name) {
            // Only its own entry: a second look-up of the name may be in flight.
            entries.retain(|entry| !entry.result.same_channel(&self.result.subscribe()));
            if entries.is_empty() {
                names.remove(&self.name);
            }
        }
    }
}

impl LookupWait {
    /// Waits for the result. Cancel safe.
    pub(super) async fn found(mut self) -> Found {
        let found = match self.0.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            // The task has ended with its runtime, or by a panic.
            Err(_) => None,
        };
        found.unwrap_or_else(|| {
            let why = "the look-up was given up";
            Err(Arc::new(io::Error::other(why)))
        })
    }
}
