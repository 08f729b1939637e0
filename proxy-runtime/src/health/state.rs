//! The health of one destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use discovery_core::Timestamp;
use parking_lot::Mutex;

/// The health of a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Health {
    /// No result yet. The destination gets requests.
    #[default]
    Unknown,
    /// The destination gets requests.
    Healthy,
    /// The destination gets no requests while better ones exist.
    Unhealthy,
}

impl Health {
    /// `Unknown`, `Healthy` or `Unhealthy`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of the active check for one destination. Requests read one byte of it; the rest is for
/// the check and for status pages.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    active: AtomicU8,
    /// Made when something is first noted: most destinations are not probed.
    record: Mutex<Option<Box<HealthRecord>>>,
}

/// The history behind the health of a destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct HealthRecord {
    /// The latest verdict.
    pub(crate) health: Health,
    /// The time of the last change; `None` while the health is unknown.
    pub(crate) since: Option<Timestamp>,
    /// The reason for users: the result of the last probe that changed the health.
    pub(crate) reason: Option<Arc<str>>,
    /// Number of completed probes.
    pub(crate) probes: u64,
    /// Number of consecutive failed probes, up to the latest.
    pub(crate) failures: u32,
    /// Number of consecutive successful probes, up to the latest.
    pub(crate) successes: u32,
    /// The result of the latest probe.
    pub(crate) last_result: Option<Arc<str>>,
}

impl HealthState {
    /// The health by the active check. It counts only while that check is enabled.
    pub(crate) fn active(&self) -> Health {
        match self.active.load(Ordering::Relaxed) {
            1 => Health::Healthy,
            2 => Health::Unhealthy,
            _ => Health::Unknown,
        }
    }

    /// A copy of the history.
    pub(crate) fn record(&self) -> HealthRecord {
        self.lock().as_deref().cloned().unwrap_or_default()
    }

    /// Changes the record and publishes its health. The caller must call
    /// [`ClusterLive::health_changed`](crate::live::ClusterLive::health_changed) afterwards.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut HealthRecord) -> T) -> T {
        let mut record = self.lock();
        let record = record.get_or_insert_default();
        let result = change(record);
        let health = match record.health {
            Health::Unknown => 0,
            Health::Healthy => 1,
            Health::Unhealthy => 2,
        };
        self.active.store(health, Ordering::Relaxed);
        result
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Box<HealthRecord>>> {
        // A record is valid after every step of a change, so a panic in the middle breaks nothing.
        self.record.lock()
    }
}
