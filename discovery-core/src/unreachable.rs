//! Reports from the data plane to discovery: clusters that it cannot reach.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_model::ClusterId;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Maximum number of clusters that wait for discovery. Further ones are reported again by the next request.
const MOST_WAITING: usize = 1_024;

/// The least time between two times that clusters are taken, so that failing requests do not wake discovery each.
const PACE: Duration = Duration::from_millis(100);

/// The kind of failure of a cluster that requests cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unreachable {
    /// A failed connection to one of its destinations: it was rejected, or timed out.
    Destination,
    /// The cluster has no available destination: it has none, or all are unhealthy.
    Cluster,
}

/// A service that requests do not get through to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreachableService {
    /// The service's name in the source's last result.
    pub name: Arc<str>,
    /// The kind of failure.
    pub seen: Unreachable,
}

impl UnreachableService {
    /// Creates the report of a service, with the kind of failure.
    pub fn new(name: impl Into<Arc<str>>, seen: Unreachable) -> Self {
        Self {
            name: name.into(),
            seen,
        }
    }
}

/// Clusters that the data plane cannot reach, queued for discovery.
///
/// The data plane [reports](Self::report) each failure, as often as it occurs; discovery takes all
/// [waiting](Self::next) clusters at once. Each cluster waits once, and at most 1,024 do. Discovery is
/// notified of the first report at once; while reports go on, it is notified ten times a second,
/// independent of the number of failing requests.
#[derive(Debug, Default)]
pub struct UnreachableClusters {
    waiting: Mutex<HashMap<ClusterId, Unreachable>>,
    arrived: Notify,
    /// The time at which clusters may be taken again; `None` for now. Only the taker waits for this lock.
    take_from: Mutex<Option<Instant>>,
}

impl UnreachableClusters {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports a cluster. It never waits: while another thread reports, this report is dropped, and the
    /// next failure repeats it.
    pub fn report(&self, cluster: &ClusterId, seen: Unreachable) {
        let Some(mut waiting) = self.waiting.try_lock() else {
            return;
        };
        if let Some(known) = waiting.get_mut(cluster) {
            if seen == Unreachable::Cluster {
                *known = seen;
            }
        } else if waiting.len() < MOST_WAITING {
            waiting.insert(cluster.clone(), seen);
            drop(waiting);
            self.arrived.notify_one();
        }
    }

    /// Returns the clusters that were reported since the last call. Waits until there is one, and until 100
    /// ms have passed since the last call.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; nothing is lost.
    pub async fn next(&self) -> Vec<(ClusterId, Unreachable)> {
        // No listener meanwhile, so that reports cause no wake-ups.
        let take_from = *self.take_from.lock();
        if let Some(take_from) = take_from {
            sleep_until(take_from).await;
        }
        loop {
            let arrived = self.arrived.notified();
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if !waiting.is_empty() {
                *self.take_from.lock() = Some(Instant::now() + PACE);
                return waiting.into_iter().collect();
            }
            arrived.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_cluster_waits_once_with_the_worst_that_was_seen() {
        let clusters = UnreachableClusters::new();
        for _ in 0..10 {
            clusters.report(&"a".into(), Unreachable::Destination);
            clusters.report(&"b".into(), Unreachable::Destination);
        }
        clusters.report(&"B".into(), Unreachable::Cluster);
        clusters.report(&"b".into(), Unreachable::Destination);
        let mut taken = clusters.next().await;
        taken.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        let expected = [
            ("a".into(), Unreachable::Destination),
            ("b".into(), Unreachable::Cluster),
        ];
        assert_eq!(taken, expected);
        let later = async {
            tokio::task::yield_now().await;
            clusters.report(&"c".into(), Unreachable::Cluster);
        };
        let (next, ()) = tokio::join!(clusters.next(), later);
        assert_eq!(next, [("c".into(), Unreachable::Cluster)]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_invents_names_gets_no_memory() {
        let clusters = UnreachableClusters::new();
        for i in 0..5_000 {
            clusters.report(&ClusterId::new(i.to_string()), Unreachable::Cluster);
        }
        assert_eq!(clusters.next().await.len(), MOST_WAITING);
    }
}
