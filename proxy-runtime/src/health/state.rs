//! The health of one destination.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use discovery_core::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::passive::{Counts, FailureWindow};

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

/// A health that many threads read.
#[derive(Debug, Default)]
struct ShownHealth(AtomicU8);

impl ShownHealth {
    fn get(&self) -> Health {
        match self.0.load(Ordering::Relaxed) {
            1 => Health::Healthy,
            2 => Health::Unhealthy,
            _ => Health::Unknown,
        }
    }

    fn set(&self, health: Health) {
        let number = match health {
            Health::Unknown => 0,
            Health::Healthy => 1,
            Health::Unhealthy => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }
}

/// The health of one destination by its active and its passive check, and as the program assigned it.
/// Requests read one byte of each; the rest is for the checks and for status pages.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    active: ShownHealth,
    assigned: ShownHealth,
    /// Made with the first request that is judged.
    passive: OnceLock<Box<PassiveHealth>>,
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
        self.active.get()
    }

    /// The health that the program assigned.
    pub(crate) fn assigned(&self) -> Health {
        self.assigned.get()
    }

    /// Assigns a health, and returns true if that is a change. The caller must call
    /// [`ClusterLive::health_changed`](crate::live::ClusterLive::health_changed) afterwards.
    pub(crate) fn assign(&self, health: Health) -> bool {
        let is_change = self.assigned.get() != health;
        self.assigned.set(health);
        is_change
    }

    /// The health by the passive check. It counts only while that check is enabled.
    pub(crate) fn passive(&self) -> Health {
        let passive = self.passive.get();
        passive.map_or(Health::Unknown, |passive| passive.shown.get())
    }

    /// The state of the passive check.
    pub(crate) fn passive_state(&self) -> &PassiveHealth {
        self.passive.get_or_init(Box::default)
    }

    /// Ends the time out of a destination that is unhealthy by its passive check, if it is over at
    /// `now`. Returns when it will be over, if it is not.
    pub(crate) fn reactivate(&self, now: Instant) -> Option<Instant> {
        self.passive.get()?.reactivate(now)
    }

    /// Returns the time and reason of the last change by the passive check.
    pub(crate) fn passive_change(&self) -> Option<(Timestamp, Arc<str>)> {
        self.passive.get()?.judged.lock().change.clone()
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
        // Under the lock, so that requests see the health of the last change.
        self.active.set(record.health);
        result
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Box<HealthRecord>>> {
        // A record is valid after every step of a change, so a panic in the middle breaks nothing.
        self.record.lock()
    }
}

/// The health of one destination by its passive check.
#[derive(Debug, Default)]
pub(crate) struct PassiveHealth {
    shown: ShownHealth,
    /// True if the log has reported the destination as unhealthy.
    reported: AtomicBool,
    judged: Mutex<Judged>,
}

#[derive(Debug, Default)]
struct Judged {
    window: FailureWindow,
    /// The time at which an unhealthy destination gets requests again.
    until: Option<Instant>,
    /// The time and reason of the last change.
    change: Option<(Timestamp, Arc<str>)>,
}

impl PassiveHealth {
    /// The health before a request that is counted now, and the counts of the window with it.
    pub(crate) fn count(
        &self,
        now: Instant,
        window: Duration,
        is_failure: bool,
    ) -> (Health, Counts) {
        let mut judged = self.judged.lock();
        let counts = judged.window.add(now, window, is_failure);
        (self.shown.get(), counts)
    }

    /// Changes the health, for at most `reactivation` if the destination is to be left out. Returns true
    /// if that is a change. The caller must call
    /// [`ClusterLive::health_changed`](crate::live::ClusterLive::health_changed) afterwards.
    pub(crate) fn change(
        &self,
        health: Health,
        now: Instant,
        reactivation: Duration,
        reason: impl FnOnce() -> Arc<str>,
    ) -> bool {
        let mut judged = self.judged.lock();
        // Under the lock, so that of several verdicts at a time only one is a change.
        if self.shown.get() == health {
            return false;
        }
        let is_out = health == Health::Unhealthy;
        // A time beyond the range of the clock never comes.
        judged.until = is_out.then(|| now.checked_add(reactivation)).flatten();
        judged.change = Some((Timestamp::now(), reason()));
        self.shown.set(health);
        true
    }

    /// Records that the log has reported the destination as unhealthy.
    pub(crate) fn note_reported(&self) {
        self.reported.store(true, Ordering::Relaxed);
    }

    /// Returns true once for each such note.
    pub(crate) fn take_reported(&self) -> bool {
        self.reported.swap(false, Ordering::Relaxed)
    }

    fn reactivate(&self, now: Instant) -> Option<Instant> {
        // Most destinations are not left out, and need no lock here.
        if self.shown.get() != Health::Unhealthy {
            return None;
        }
        let mut judged = self.judged.lock();
        let until = judged.until?;
        if until > now {
            return Some(until);
        }
        judged.until = None;
        judged.change = Some((Timestamp::now(), "its time out is over".into()));
        self.shown.set(Health::Unknown);
        None
    }
}
