//! A worker's own: limits, counts and mode, held by it and by each of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::access_log::AccessLogSink;
use super::limits::Limits;
use super::metrics::WorkerMetrics;
use super::mode::{Mode, ModeCell};
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
        }
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

    /// Counts a connection until the returned value is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Occupied {
        WorkerMetrics::add(&self.metrics.accepted);
        let active = self.metrics.active.fetch_add(1, Relaxed) + 1;
        if active >= self.share && self.mode.change(Mode::Serving, Mode::Full) {
            WorkerMetrics::add(&self.metrics.limit_reached);
            self.tell_full(active);
        }
        Occupied(self.clone())
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

    /// Waits until there is room for a connection. Cancel safe.
    pub(crate) async fn room(&self) {
        self.until_active(|active| active < self.share).await;
    }

    /// Waits until the last connection has ended. Cancel safe.
    pub(crate) async fn empty(&self) {
        self.until_active(|active| active == 0).await;
    }

    async fn until_active(&self, condition: impl Fn(u64) -> bool) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registers before looking, so that nothing is missed in between.
            freed.as_mut().enable();
            if condition(self.active()) {
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
pub(crate) struct Occupied(Arc<WorkerShared>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.leave();
    }
}
