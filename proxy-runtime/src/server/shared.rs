//! A worker's own: limits, counts and mode, held by it and by each of its connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::access_log::AccessLogSink;
use super::addresses::Addresses;
use super::limits::Limits;
use super::memory::Memory;
use super::metrics::WorkerMetrics;
use super::mode::{Mode, ModeCell, ModeWatch};
use super::offers::Source;
use crate::observe::targets;

/// What the connections of one worker share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    /// As they are kept to.
    pub(crate) limits: Limits,
    /// The connections that this worker may have.
    share: u64,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) access_log: Option<Arc<dyn AccessLogSink>>,
    mode: ModeCell,
    /// A connection ended.
    freed: Notify,
    /// The sockets that are left are reset, not closed.
    cutting: AtomicBool,
    /// When the log was last told that the worker is full.
    told: Mutex<Option<Instant>>,
    /// What each client address has, where that is limited.
    addresses: Option<Arc<Addresses>>,
    /// What clients may make this worker hold.
    pub(crate) memory: Memory,
}

impl WorkerShared {
    pub(crate) fn new(
        limits: Limits,
        share: usize,
        metrics: Arc<WorkerMetrics>,
        access_log: Option<Arc<dyn AccessLogSink>>,
    ) -> Self {
        Self {
            limits: limits.effective(),
            share: share.max(1) as u64,
            metrics,
            access_log,
            mode: ModeCell::new(),
            freed: Notify::new(),
            cutting: AtomicBool::new(false),
            told: Mutex::new(None),
            addresses: None,
            memory: Memory::new(u64::MAX),
        }
    }

    /// Lets clients make this worker hold so many bytes. Without it, as many as they like.
    pub(crate) fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Memory::new(bytes);
        self
    }

    /// Counts connections of each client address together with other workers.
    pub(crate) fn with_addresses(mut self, addresses: Option<Arc<Addresses>>) -> Self {
        self.addresses = addresses;
        self
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    pub(crate) fn mode_cell(&self) -> &ModeCell {
        &self.mode
    }

    pub(crate) fn active(&self) -> u64 {
        self.metrics.active.load(Relaxed)
    }

    /// The same for a client at `remote`, unless that has as many connections as it may. Where the worker has its share without it,
    /// another connection gives way.
    pub(crate) fn enter_from(self: &Arc<Self>, remote: SocketAddr) -> Option<Occupied> {
        let source = match &self.addresses {
            None => None,
            Some(addresses) => match addresses.enter(remote) {
                Some(source) => Some(source),
                None => {
                    WorkerMetrics::add(&self.metrics.address_limit);
                    return None;
                }
            },
        };
        let mut occupied = self.enter();
        occupied.source = source;
        if self.active() > self.share && self.mode.evict() {
            WorkerMetrics::add(&self.metrics.evicted);
        }
        Some(occupied)
    }

    /// Notes that the connection behind `watch` has asked for nothing yet, if places are getting rare; whether they are.
    pub(crate) fn offer(&self, watch: &ModeWatch, remote: Option<SocketAddr>) -> bool {
        let is_crowded = self.active() * 2 >= self.share;
        if is_crowded {
            watch.offer(Source::of(remote));
            if !self.has_room() {
                self.freed.notify_waiters();
            }
        }
        is_crowded
    }

    /// Counts a connection until the returned value is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Occupied {
        WorkerMetrics::add(&self.metrics.accepted);
        let active = self.metrics.active.fetch_add(1, Relaxed) + 1;
        if active >= self.share && self.mode.change(Mode::Serving, Mode::Full) {
            WorkerMetrics::add(&self.metrics.limit_reached);
            self.tell_full(active);
        }
        Occupied {
            worker: self.clone(),
            source: None,
        }
    }

    /// Now and then only: clients decide how often it happens.
    fn tell_full(&self, connections: u64) {
        const PAUSE: Duration = Duration::from_secs(60);
        let mut told = self.told.lock();
        if told.is_none_or(|told| told.elapsed() >= PAUSE) {
            *told = Some(Instant::now());
            tracing::warn!(
                target: targets::SERVER,
                connections,
                "a worker has its share of the connections; new ones wait until others end"
            );
        }
    }

    /// Whether there is room for a connection.
    pub(crate) fn has_room(&self) -> bool {
        self.active() < self.share
    }

    /// Notes that the connection behind `watch` has asked for something.
    pub(crate) fn withdraw(&self, watch: &ModeWatch) {
        watch.withdraw();
        if !self.has_room() {
            self.freed.notify_waiters();
        }
    }

    /// Accepts a connection once there is room for it, or one that gives way to it. Cancel safe if `accept` makes what is.
    pub(crate) async fn accept<F: Future>(&self, accept: impl Fn() -> F) -> F::Output {
        loop {
            self.until(|| self.may_accept()).await;
            if self.has_room() {
                return accept().await;
            }
            // Those that were accepted just now have their first turn before, so that they are among those that give way: else it
            // would be the only one of another client that has had one.
            yield_now().await;
            // Only as long as one would give way.
            tokio::select! {
                biased;
                () = self.until(|| !self.may_accept()) => {}
                accepted = accept() => return accepted,
            }
        }
    }

    /// One at a time beyond the share, so that it is among those that give way before the next one comes.
    fn may_accept(&self) -> bool {
        self.has_room() || (self.active() == self.share && self.mode.has_offers())
    }

    /// Waits until the last connection has ended. Cancel safe.
    pub(crate) async fn empty(&self) {
        self.until(|| self.active() == 0).await;
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registers before looking, so that nothing is missed in between.
            freed.as_mut().enable();
            if condition() {
                return;
            }
            freed.await;
        }
    }

    pub(crate) fn drain(&self) {
        self.mode.set(Mode::Draining);
    }

    pub(crate) fn cut(&self) {
        self.cutting.store(true, Relaxed);
    }

    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting.load(Relaxed)
    }

    fn leave(&self) {
        let active = self.metrics.active.fetch_sub(1, Relaxed) - 1;
        // An eighth below the limit, so that the worker does not change its mind with every connection.
        if active <= self.share - (self.share / 8).max(1) {
            self.mode.change(Mode::Full, Mode::Serving);
        }
        self.freed.notify_waiters();
    }
}

/// A connection that counts.
#[derive(Debug)]
pub(crate) struct Occupied {
    worker: Arc<WorkerShared>,
    /// Where its client is, if connections of each are counted.
    source: Option<Source>,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if let (Some(source), Some(addresses)) = (self.source, &self.worker.addresses) {
            addresses.leave(source);
        }
        self.worker.leave();
    }
}
