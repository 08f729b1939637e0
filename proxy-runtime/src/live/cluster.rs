//! What of a cluster outlives a generation.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::observe::{ClusterMetrics, OwnLine};

/// Names the settings by which connections are made, for the life of the process. It changes when a reload changes
/// them, so that pools do not use connections that were made by others. What came later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientKey(u64);

impl ClientKey {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What of a cluster is carried over from generation to generation.
#[derive(Debug, Default)]
pub(crate) struct ClusterLive {
    /// Grows with each change of a destination's health, after the change itself is visible. Every generation's list
    /// of available destinations says of which epoch it is; one that is behind is made anew by the next pick. So a
    /// change is never lost, whether it comes before, while or after a generation is built.
    health_epoch: AtomicU64,
    /// Turns that were taken, by all workers: who asks for turns wants them in order.
    cursor: OwnLine<AtomicU64>,
    metrics: ClusterMetrics,
}

impl ClusterLive {
    /// Says that the health of destinations has changed. Called after the change was stored.
    pub(crate) fn health_changed(&self) {
        self.health_epoch.fetch_add(1, Ordering::Release);
    }

    /// What is counted of it.
    pub(crate) fn metrics(&self) -> &ClusterMetrics {
        &self.metrics
    }

    /// Takes the next turn: 0, 1, 2 … and after the last number 0 again.
    pub(crate) fn next_turn(&self) -> u64 {
        self.cursor.0.fetch_add(1, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn set_turn(&self, turn: u64) {
        self.cursor.0.store(turn, Ordering::Relaxed);
    }

    pub(crate) fn health_epoch(&self) -> u64 {
        self.health_epoch.load(Ordering::Acquire)
    }
}
