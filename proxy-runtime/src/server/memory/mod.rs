//! The memory that clients make a worker hold, and the reset of connections beyond a limit.
//!
//! Only data that waits counts: responses that clients do not read, requests that destinations do
//! not read, incomplete heads, and tunnels whose clients do not read. A request that never waits
//! counts nothing.

mod choice;
mod holding;
mod machine;

use std::cell::Cell;
use std::collections::HashSet;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::choice::{Candidate, choose};
pub(crate) use self::holding::Holding;
pub(crate) use self::machine::default_memory;
use super::metrics::WorkerMetrics;
use super::offers::Source;
use super::shed::Shed;
use crate::observe::targets;
use crate::stream::recycled;

/// Bytes that a TLS connection may hold once its socket is full: rustls encrypts that much ahead.
pub(crate) const TLS_BUFFER: u64 = 64 * 1024;

/// Bytes that a tunnel holds if the client does not read: the proxy copies 16 KiB at a time, in
/// each direction.
pub(crate) const TUNNEL_BUFFERS: u64 = 32 * 1024;

thread_local! {
    /// The address of the `Memory` of the worker on this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// The memory budget of one worker.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The limit in bytes.
    most: u64,
    /// Bytes of connections that were told to end and have not ended yet.
    leaving: AtomicU64,
    /// Counts changes, to order connections by their last change.
    turn: AtomicU64,
    /// Connections that hold memory, or have held some.
    holders: Mutex<Vec<Arc<Holding>>>,
    /// The time of the last log line about resets.
    logged: Mutex<Option<Instant>>,
}

impl Memory {
    /// Creates a budget of `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            leaving: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            holders: Mutex::default(),
            logged: Mutex::new(None),
        }
    }

    /// Marks the calling thread as the worker's.
    pub(crate) fn claim_thread(&self) {
        OWN.set(ptr::from_ref(self).addr());
    }

    /// Makes further reads of this thread use small buffers while more than half of the budget is
    /// used. Does nothing on other threads, on which services may run tunnels. Called for each
    /// connection and each change, since other threads change the sum as well.
    #[inline]
    pub(crate) fn tighten(&self, metrics: &WorkerMetrics) {
        if OWN.get() == ptr::from_ref(self).addr() {
            recycled::set_tight(metrics.held.load(Relaxed) > self.most / 2);
        }
    }

    /// Adds a connection, unless it is present already.
    pub(crate) fn enter(&self, source: Source, own: &ArcSwapOption<Holding>) -> Arc<Holding> {
        let mut holders = self.holders.lock();
        // Another task of the connection may have added it.
        if let Some(holding) = own.load_full() {
            return holding;
        }
        let holding = Arc::new(Holding::new(source, holders.len()));
        holders.push(Arc::clone(&holding));
        own.store(Some(Arc::clone(&holding)));
        holding
    }

    /// Removes a connection that has ended, with the bytes that it still holds.
    pub(crate) fn leave(&self, holding: &Holding, metrics: &WorkerMetrics) {
        let rest = holding.end();
        metrics.held.fetch_sub(rest, Relaxed);
        self.has_left(holding);
        let mut holders = self.holders.lock();
        let place = holding.place();
        holders.swap_remove(place);
        // `swap_remove` has moved the last one to the freed place.
        if let Some(moved) = holders.get(place) {
            moved.set_place(place);
        }
        drop(holders);
        self.tighten(metrics);
    }

    fn has_left(&self, holding: &Holding) {
        let told = holding.take_marked();
        // Subtracts exactly what was added.
        self.leaving.fetch_sub(told, Relaxed);
    }

    /// Records that a part of a connection holds `after` bytes instead of `before`.
    pub(crate) fn changed(
        &self,
        holding: &Holding,
        before: u64,
        after: u64,
        metrics: &WorkerMetrics,
    ) {
        holding.change(before, after);
        holding.moved(self.turn.fetch_add(1, Relaxed));
        // Only an increase can exceed the budget.
        if after < before {
            metrics.held.fetch_sub(before - after, Relaxed);
            self.tighten(metrics);
            return;
        }
        metrics.held.fetch_add(after - before, Relaxed);
        self.tighten(metrics);
        let held = metrics.held.load(Relaxed);
        // Memory of ending connections counts as free, so that one excess does not end connections twice.
        if held.saturating_sub(self.leaving.load(Relaxed)) > self.most {
            self.shed(held, metrics);
        } else if held > self.most.saturating_add(self.most / 8) {
            // Many connections grow at once, before the ones told to end have run.
            self.reject(holding, metrics);
        }
    }

    /// Tells a growing connection to end, unless its client holds less than the average.
    #[cold]
    fn reject(&self, holding: &Holding, metrics: &WorkerMetrics) {
        let holders = self.holders.lock();
        if !holding.is_shed() && is_greedy(&holders, holding.source) {
            *metrics.last_shed.lock() = Some(shed_now(holding.source, &holders));
            drop(holders);
            self.leaving.fetch_add(holding.mark_shed(), Relaxed);
            WorkerMetrics::add(&metrics.shed);
            holding.wake();
        }
    }

    /// Tells connections to end until an eighth of the budget is free, so that not every further
    /// byte ends one.
    #[cold]
    fn shed(&self, held: u64, metrics: &WorkerMetrics) {
        let goal = self.most - self.most / 8;
        let excess = held
            .saturating_sub(self.leaving.load(Relaxed))
            .saturating_sub(goal);
        let holders = self.holders.lock();
        let candidates = holders.iter().enumerate().filter_map(|(place, holding)| {
            let bytes = holding.bytes();
            (bytes > 0 && !holding.is_shed()).then(|| Candidate {
                source: holding.source,
                bytes,
                turn: holding.turn(),
                place,
            })
        });
        let chosen = choose(candidates.collect(), excess);
        let chosen: Vec<_> = chosen
            .iter()
            .map(|place| Arc::clone(&holders[*place]))
            .collect();
        // The first one is of the client address that holds most.
        if let Some(first) = chosen.first() {
            *metrics.last_shed.lock() = Some(shed_now(first.source, &holders));
        }
        // Released first, since a waker may run any code.
        drop(holders);
        for holding in &chosen {
            self.leaving.fetch_add(holding.mark_shed(), Relaxed);
            WorkerMetrics::add(&metrics.shed);
        }
        self.log_resets(chosen.len(), Instant::now());
        for holding in chosen {
            holding.wake();
        }
    }

    /// Logs at most once a minute: clients decide how often it happens.
    fn log_resets(&self, connections: usize, now: Instant) {
        const PAUSE: Duration = Duration::from_secs(60);
        let mut logged = self.logged.lock();
        if logged.is_none_or(|logged| now - logged >= PAUSE) {
            *logged = Some(now);
            tracing::warn!(
                target: targets::SERVER,
                connections,
                bytes = self.most,
                "a worker holds its share of the memory for clients; the connections that hold most are reset"
            );
        }
    }
}

/// Returns true if a client address holds at least the average of all addresses.
fn is_greedy(holders: &[Arc<Holding>], source: Source) -> bool {
    let mut sources = HashSet::new();
    let (mut all, mut own) = (0, 0);
    for holding in holders.iter().filter(|holding| holding.bytes() > 0) {
        sources.insert(holding.source);
        all += holding.bytes();
        if holding.source == source {
            own += holding.bytes();
        }
    }
    // Multiplied instead of divided, so that nothing is rounded.
    own * sources.len() as u64 >= all
}

/// Records that connections are reset now while `source` holds most.
fn shed_now(source: Source, holders: &[Arc<Holding>]) -> Shed {
    let own = holders.iter().filter(|holding| holding.source == source);
    let own = own
        .map(|holding| holding.bytes())
        .filter(|bytes| *bytes > 0);
    let (bytes, connections) = own.fold((0, 0), |(sum, count), bytes| (sum + bytes, count + 1));
    Shed {
        at: Instant::now(),
        source,
        bytes,
        connections,
    }
}

#[cfg(test)]
mod tests;
