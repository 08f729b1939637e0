//! What is known of one destination's health.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use discovery_core::Moment;
use parking_lot::Mutex;

/// Whether a destination is fit to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Health {
    /// Nothing is known yet. It gets requests.
    #[default]
    Unknown,
    /// It gets requests.
    Healthy,
    /// It gets no requests while others are better.
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

/// What the active check knows of one destination. Requests read one byte of it; the rest is for the check and for
/// people.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    active: AtomicU8,
    record: Mutex<HealthRecord>,
}

/// How a destination came to be as healthy as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct HealthRecord {
    /// The latest verdict.
    pub(crate) health: Health,
    /// When that became the verdict; `None` while nothing is known.
    pub(crate) since: Option<Moment>,
    /// Why, as a person reads it: what the last probe that changed it found.
    pub(crate) reason: Option<Arc<str>>,
    /// Probes that have ended.
    pub(crate) probes: u64,
    /// Probes in a row that failed, up to the latest.
    pub(crate) failures: u32,
    /// Probes in a row that succeeded, up to the latest.
    pub(crate) successes: u32,
    /// What the latest probe found.
    pub(crate) last_result: Option<Arc<str>>,
}

impl HealthState {
    /// The verdict of the active check. It counts only while that check is on.
    pub(crate) fn active(&self) -> Health {
        match self.active.load(Ordering::Relaxed) {
            1 => Health::Healthy,
            2 => Health::Unhealthy,
            _ => Health::Unknown,
        }
    }

    /// How it came to be.
    pub(crate) fn record(&self) -> HealthRecord {
        self.lock().clone()
    }

    /// Changes the record and publishes its verdict. The caller then says so with
    /// [`ClusterLive::health_changed`](crate::live::ClusterLive::health_changed).
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut HealthRecord) -> T) -> T {
        let mut record = self.lock();
        let result = change(&mut record);
        let health = match record.health {
            Health::Unknown => 0,
            Health::Healthy => 1,
            Health::Unhealthy => 2,
        };
        self.active.store(health, Ordering::Relaxed);
        result
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HealthRecord> {
        // A record is valid after every step of a change, so one that panicked half-way left nothing broken.
        self.record.lock()
    }
}
