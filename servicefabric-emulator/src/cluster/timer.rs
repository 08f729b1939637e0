//! The clock of a cluster and its timers.

use super::identity::{PartitionId, ReplicaRef};
use super::name::FabricName;
use super::state::Cluster;
use crate::hosting::{Span, Timestamp};

/// A scheduled event. It does nothing if its subject no longer exists or has changed by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClusterTimer {
    /// The close delay of an instance is over.
    DrainEnd(ReplicaRef),
    /// The wait for a failed replica to restart is over. The time is that of the failure.
    RestartWait(ReplicaRef, Timestamp),
    /// The election of a new primary can end.
    Reconfigured(PartitionId),
    /// The address of a replica changes.
    Flap(ReplicaRef),
    /// A node that rejected a replica of the partition may be tried again.
    Reconsider(PartitionId),
    /// The wait of an upgrade is over. The number identifies the wait.
    UpgradeWait(FabricName, u64),
    /// A domain, or an upgrade, has reached its time limit. The number identifies it.
    UpgradeTimeout(FabricName, u64),
}

impl Cluster {
    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the time of the next event. `None` if none is due without outside input.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.is_unsettled() {
            return Some(self.now);
        }
        let timers = self.timers.first_key_value().map(|((at, _), _)| *at);
        let hosts = self
            .nodes
            .values()
            .filter_map(|entry| entry.host.next_due())
            .min();
        let all = [
            timers,
            hosts,
            self.health.next_due(),
            self.reports.next_due(),
        ];
        all.into_iter().flatten().min().map(|due| due.max(self.now))
    }

    /// Advances the clock to `to`. All events that are due until then, `to` included, happen in order. A time
    /// that is not later than now runs only the events that are due now.
    ///
    /// The work grows with the number of events. To limit it, advance step by step with
    /// [`next_due`](Self::next_due).
    pub fn advance(&mut self, to: Timestamp) {
        self.settle();
        // Every step stops at the next due moment, so that timers fire in order.
        while let Some(due) = self.next_due().filter(|due| *due <= to) {
            self.step(due);
        }
        // The clock reaches `to` even if nothing is due then.
        if to > self.now {
            self.step(to);
        }
    }

    /// Runs the events that are due at `now`, which is no earlier than any previous time.
    fn step(&mut self, now: Timestamp) {
        self.now = now;
        for entry in self.nodes.values_mut() {
            entry.host.advance(now);
        }
        self.settle();
        while let Some(((at, _), _)) = self.timers.first_key_value() {
            if *at > now {
                break;
            }
            if let Some((_, timer)) = self.timers.pop_first() {
                self.fire(timer);
                // The next timer reads the state that this one led to.
                self.settle();
            }
        }
        self.reports.flush(&mut self.health, now);
        self.health.expire(now);
    }

    /// Schedules a timer. An infinite span schedules none.
    pub(super) fn plan(&mut self, after: Span, timer: ClusterTimer) {
        if let Some(at) = self.now.after(after) {
            let order = self.next_sequence();
            self.timers.insert((at, order), timer);
        }
    }

    fn fire(&mut self, timer: ClusterTimer) {
        match timer {
            ClusterTimer::DrainEnd(key) => self.end_drain(key),
            ClusterTimer::RestartWait(key, since) => self.end_restart_wait(key, since),
            ClusterTimer::Reconfigured(partition) => {
                self.dirty.insert(partition);
            }
            ClusterTimer::Flap(key) => self.flap(key),
            ClusterTimer::Reconsider(partition) => {
                let now = self.now;
                let mut asked_again = self.rejected.keys().filter(|(id, _)| *id == partition);
                let any = asked_again.next().is_some();
                // A rejection of this moment is newer than the timer.
                self.rejected
                    .retain(|(id, _), at| *id != partition || *at == now);
                if any {
                    self.dirty.insert(partition);
                }
            }
            ClusterTimer::UpgradeWait(application, token) => {
                self.end_upgrade_wait(&application, token)
            }
            ClusterTimer::UpgradeTimeout(application, token) => {
                self.time_out_upgrade(&application, token)
            }
        }
    }
}
