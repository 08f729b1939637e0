//! The state of one worker: limits, counters and mode, shared by its connections.

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
use crate::observe::{ProxyMetrics, targets};

/// The state that the connections of one worker share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    /// The effective limits.
    pub(crate) limits: Limits,
    /// Maximum number of connections of this worker.
    share: u64,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) access_log: Option<Arc<dyn AccessLogSink>>,
    /// The metrics of the proxy that is served, for what never reaches it.
    pub(crate) proxy: Option<Arc<ProxyMetrics>>,
    mode: ModeCell,
    /// Notified when a connection ends.
    freed: Notify,
    /// True once remaining sockets are reset instead of closed.
    cutting: AtomicBool,
    /// The time of the last log line about a full worker.
    logged: Mutex<Option<Instant>>,
    /// Connection counts per client address, if they are limited.
    addresses: Option<Arc<Addresses>>,
    /// The memory that clients make this worker hold.
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
            proxy: None,
            mode: ModeCell::new(),
            freed: Notify::new(),
            cutting: AtomicBool::new(false),
            logged: Mutex::new(None),
            addresses: None,
            memory: Memory::new(u64::MAX),
        }
    }

    /// Counts rejected requests for a proxy. Default: for none.
    pub(crate) fn with_proxy(mut self, proxy: Option<Arc<ProxyMetrics>>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Limits the memory that clients can make this worker hold. Default: unlimited.
    pub(crate) fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Memory::new(bytes);
        self
    }

    /// Counts connections per client address together with other workers.
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

    /// Like [`enter`](Self::enter), for a client at `remote`. `None` if its address is at the
    /// maximum. Evicts a connection if the worker is at its share. Without `remote` the client is
    /// [counted later](ConnectionPermit::count_client).
    pub(crate) fn enter_from(
        self: &Arc<Self>,
        remote: Option<SocketAddr>,
    ) -> Option<ConnectionPermit> {
        let source = match remote {
            None => None,
            Some(remote) => self.source_of(remote).ok()?,
        };
        let mut permit = self.enter();
        permit.source = source;
        // This connection is beyond the share: an evictable one makes room.
        if self.active() > self.share && self.mode.evict() {
            WorkerMetrics::add(&self.metrics.evicted);
        }
        Some(permit)
    }

    /// Counts a connection of an address, if connections are limited by address.
    ///
    /// # Errors
    ///
    /// The address is at the maximum.
    fn source_of(&self, remote: SocketAddr) -> Result<Option<Source>, ()> {
        let Some(addresses) = &self.addresses else {
            return Ok(None);
        };
        let source = addresses.enter(remote);
        if source.is_none() {
            WorkerMetrics::add(&self.metrics.address_limit);
        }
        source.map(Some).ok_or(())
    }

    /// Marks the connection of `watch` as evictable if connections are scarce. Returns true if they
    /// are.
    pub(crate) fn offer(&self, watch: &ModeWatch, remote: Option<SocketAddr>) -> bool {
        // An offer takes a lock, so none is made before half of the share is in use.
        let is_crowded = self.active() * 2 >= self.share;
        if is_crowded {
            watch.offer(Source::of(remote));
            // A waiting acceptor can now accept a connection, which evicts this one.
            if !self.has_room() {
                self.freed.notify_waiters();
            }
        }
        is_crowded
    }

    /// Counts a connection until the permit is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> ConnectionPermit {
        WorkerMetrics::add(&self.metrics.accepted);
        let active = self.metrics.active.fetch_add(1, Relaxed) + 1;
        if active >= self.share && self.mode.change(Mode::Serving, Mode::Full) {
            WorkerMetrics::add(&self.metrics.limit_reached);
            self.log_full(active);
        }
        ConnectionPermit {
            worker: self.clone(),
            source: None,
        }
    }

    /// Logs at most once a minute: clients decide how often it happens.
    fn log_full(&self, connections: u64) {
        const PAUSE: Duration = Duration::from_secs(60);
        let mut logged = self.logged.lock();
        if logged.is_none_or(|logged| logged.elapsed() >= PAUSE) {
            *logged = Some(Instant::now());
            tracing::warn!(
                target: targets::SERVER,
                connections,
                "a worker has its share of the connections; new ones wait until others end"
            );
        }
    }

    /// Returns true if the worker may accept a connection.
    pub(crate) fn has_room(&self) -> bool {
        self.active() < self.share
    }

    /// Records that the connection of `watch` has a complete request.
    pub(crate) fn withdraw(&self, watch: &ModeWatch) {
        watch.withdraw();
        if !self.has_room() {
            self.freed.notify_waiters();
        }
    }

    /// Accepts a connection once there is room, or one that can be evicted. Cancel safe if `accept`
    /// returns cancel-safe futures.
    pub(crate) async fn accept<F: Future>(&self, accept: impl Fn() -> F) -> F::Output {
        loop {
            self.until(|| self.may_accept()).await;
            if self.has_room() {
                return accept().await;
            }
            // New connections run first, so that they are evictable as well: otherwise only a
            // connection of another client would be.
            yield_now().await;
            // Accepts beyond the share only while a connection is evictable.
            tokio::select! {
                biased;
                () = self.until(|| !self.may_accept()) => {}
                accepted = accept() => return accepted,
            }
        }
    }

    /// Beyond the share one at a time, so that the new connection is evictable before the next one
    /// comes.
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
            // Registers before the check, so that no notification is lost in between.
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
        // An eighth below the limit, so that the mode does not change with every connection.
        if active <= self.share - (self.share / 8).max(1) {
            self.mode.change(Mode::Full, Mode::Serving);
        }
        self.freed.notify_waiters();
    }
}

/// A permit of one open connection.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    worker: Arc<WorkerShared>,
    /// The source of the client, if connections per address are limited.
    source: Option<Source>,
}

impl ConnectionPermit {
    /// Counts the connection for its client, which was not known at the accept. Returns false if the client's
    /// address is at the maximum.
    pub(crate) fn count_client(&mut self, remote: SocketAddr) -> bool {
        let source = self.worker.source_of(remote);
        if let Ok(source) = source {
            self.source = source;
        }
        source.is_ok()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        if let (Some(source), Some(addresses)) = (self.source, &self.worker.addresses) {
            addresses.leave(source);
        }
        self.worker.leave();
    }
}
