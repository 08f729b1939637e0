//! The state of a cluster that survives a new configuration.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use log_sink::Seldom;

use crate::observe::{ClusterMetrics, LOG_PAUSE, OwnLine};

/// Identifies the connection settings of a cluster for the life of the process. A reload that
/// changes the settings creates a new key, so that pools do not use connections of the old ones.
/// Later keys are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientKey(u64);

impl ClientKey {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The state of a cluster that each generation inherits.
#[derive(Debug, Default)]
pub(crate) struct ClusterLive {
    /// Increases with each change of a destination's health, after the change is visible. The list
    /// of available destinations of each generation has the epoch that it was made from; the next
    /// pick replaces an outdated list. No change is lost, whether it happens before, during or
    /// after the build of a generation.
    health_epoch: AtomicU64,
    /// Number of turns taken by all workers; shared, so that turns are in order. Made for the first turn, since most
    /// policies take none.
    cursor: OnceLock<Box<OwnLine<AtomicU64>>>,
    metrics: ClusterMetrics,
    /// Made for the first line.
    passive_log: OnceLock<Box<PassiveLog>>,
}

/// The limits of what the passive check of a cluster logs. Other clusters have their own.
#[derive(Debug)]
pub(super) struct PassiveLog {
    pub(super) unhealthy: Seldom,
    pub(super) panics: Seldom,
}

impl Default for PassiveLog {
    fn default() -> Self {
        Self {
            unhealthy: Seldom::new(LOG_PAUSE),
            panics: Seldom::new(LOG_PAUSE),
        }
    }
}

impl ClusterLive {
    /// Announces a change of health. Called after the change was stored.
    pub(crate) fn health_changed(&self) {
        // Who sees the new epoch also sees the health that was stored before.
        self.health_epoch.fetch_add(1, Ordering::Release);
    }

    /// The metrics of the cluster.
    pub(crate) fn metrics(&self) -> &ClusterMetrics {
        &self.metrics
    }

    pub(super) fn passive_log(&self) -> &PassiveLog {
        self.passive_log.get_or_init(Box::default)
    }

    /// Takes the next turn: 0, 1, 2 …; wraps around at the end of `u64`.
    pub(crate) fn next_turn(&self) -> u64 {
        self.cursor().fetch_add(1, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn set_turn(&self, turn: u64) {
        self.cursor().store(turn, Ordering::Relaxed);
    }

    #[inline]
    fn cursor(&self) -> &AtomicU64 {
        &self.cursor.get_or_init(Box::default).0
    }

    pub(crate) fn health_epoch(&self) -> u64 {
        self.health_epoch.load(Ordering::Acquire)
    }
}
