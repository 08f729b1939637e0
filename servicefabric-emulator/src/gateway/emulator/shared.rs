use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::clock::Clock;
use super::dialect::Dialect;
use crate::cluster::{Cluster, Effect};
use crate::gateway::faults::Faults;
use crate::gateway::security::Security;
use crate::gateway::wire::ClockStart;
use crate::hosting::Timestamp;

/// The time that the cluster computes before it releases the lock.
const SLICE: Duration = Duration::from_millis(20);
/// The pause between two such slices. Without it the same thread takes the lock again and again.
pub(super) const TURN: Duration = Duration::from_millis(1);

/// The state that the gateway, the driver and the owner of an emulator share.
#[derive(Debug)]
pub(crate) struct Shared {
    cluster: Mutex<Cluster>,
    clock: Clock,
    faults: Faults,
    security: Security,
    cluster_id: Option<String>,
    dialect: Dialect,
    epoch: ClockStart,
    changed: Notify,
}

/// The result of letting a cluster follow its clock.
#[derive(Debug)]
pub(super) struct Tick {
    /// The requests to real workloads.
    pub(super) effects: Vec<Effect>,
    /// The time of the next event.
    pub(super) due: Option<Timestamp>,
    /// True if the cluster has reached the present moment. Otherwise it needs another turn.
    pub(super) caught_up: bool,
}

/// Advances the cluster to `to`, but for at most [`SLICE`]. Returns true if that moment is reached.
fn follow(cluster: &mut Cluster, to: Timestamp) -> bool {
    let begun = Instant::now();
    while let Some(due) = cluster.next_due().filter(|due| *due <= to) {
        cluster.advance(due);
        if begun.elapsed() >= SLICE {
            return false;
        }
    }
    cluster.advance(to);
    true
}

/// Rounds to whole milliseconds, which the clock counts.
fn whole(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// The properties of a gateway that are fixed before it starts.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) security: Security,
    pub(super) cluster_id: Option<String>,
    pub(super) dialect: Dialect,
}

impl Shared {
    pub(super) fn new(cluster: Cluster, clock: Clock, surroundings: Surroundings) -> Self {
        Self {
            epoch: ClockStart::at(cluster.date(Timestamp::ZERO)),
            cluster: Mutex::new(cluster),
            clock,
            faults: Faults::default(),
            security: surroundings.security,
            cluster_id: surroundings.cluster_id,
            dialect: surroundings.dialect,
            changed: Notify::new(),
        }
    }

    /// Reads or changes the cluster at the present moment, and notifies the driver.
    ///
    /// If the cluster falls behind its clock because of too many events, the call sees the state reached so
    /// far.
    pub(crate) fn with_cluster<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        let result = {
            let mut cluster = self.lock();
            // All that is due happens first, so that the caller reads the current state.
            self.follow(&mut cluster);
            look(&mut cluster)
        };
        // The lock is released before the driver wakes up.
        self.changed.notify_one();
        result
    }

    /// Brings the cluster to the present moment, or nearer to it. Returns the requests to workloads, and the
    /// time of the next event.
    pub(super) fn tick(&self) -> Tick {
        let mut cluster = self.lock();
        let caught_up = self.follow(&mut cluster);
        Tick {
            effects: cluster.take_effects(),
            due: cluster.next_due(),
            caught_up,
        }
    }

    /// Lets the cluster follow its clock, for at most [`SLICE`]. Returns true if it has caught up.
    fn follow(&self, cluster: &mut Cluster) -> bool {
        follow(cluster, self.clock.now())
    }

    /// Moves clock and cluster together from event to event, for at most [`SLICE`]. Returns the remainder of
    /// `by`.
    fn skip_some(&self, mut by: Duration) -> Duration {
        let begun = Instant::now();
        let mut cluster = self.lock();
        if !self.follow(&mut cluster) {
            // A cluster behind its clock must catch up before it skips more time.
            return by;
        }
        while !by.is_zero() {
            let now = self.clock.now();
            let ahead = cluster.next_due().map_or(by, |due| {
                Duration::from_millis(due.as_millis().saturating_sub(now.as_millis()))
            });
            let step = ahead.min(by);
            self.clock.skip(step);
            by = by.saturating_sub(step);
            cluster.advance(self.clock.now());
            if begun.elapsed() >= SLICE {
                break;
            }
        }
        by
    }

    /// Waits until the cluster is accessed or the clock is moved. Cancel safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Moves the clock, and the cluster with it. Returns after all due events; the lock is released between
    /// slices.
    pub(super) fn skip(&self, by: Duration) {
        self.clock.skip(by);
        // A running clock moves on meanwhile: waiting for it could take forever.
        let to = self.clock.now();
        while !follow(&mut self.lock(), to) {}
        self.changed.notify_one();
    }

    /// Moves the clock like [`skip`](Self::skip), but releases the lock between slices. Returns the time that
    /// is left after `patience` of real time.
    ///
    /// Cancel safe: if it is dropped, the clock keeps the progress so far.
    pub(crate) async fn skip_in_turns(&self, by: Duration, patience: Duration) -> Duration {
        let begun = Instant::now();
        let mut left = whole(by);
        loop {
            left = self.skip_some(left);
            self.changed.notify_one();
            if left.is_zero() || begun.elapsed() >= patience {
                return left;
            }
            // Requests take the lock between two turns.
            sleep(TURN).await;
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(crate) fn security(&self) -> &Security {
        &self.security
    }

    pub(crate) fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.as_deref()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn epoch(&self) -> ClockStart {
        self.epoch
    }

    /// Locks the cluster, even if its last change panicked: an emulator with a damaged state is more useful
    /// than one that does not respond, and the panic was logged.
    fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock()
    }
}
