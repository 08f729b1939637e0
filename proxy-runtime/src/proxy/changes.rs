//! The changes of clusters, for programs that keep something for each.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use proxy_model::{ClusterId, Snapshot};
use tokio::sync::watch;

use super::Shared;

/// A change of one cluster: YARP's `IClusterChangeListener`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterChange {
    /// The cluster is new.
    Added(ClusterId),
    /// The cluster's configuration changed, such as a setting or a destination.
    Changed(ClusterId),
    /// The cluster was removed.
    Removed(ClusterId),
}

/// The changes of a proxy's clusters, made by [`Proxy::cluster_changes`](crate::Proxy::cluster_changes).
///
/// No change is lost, however late a program polls: several configurations in between become one step, the
/// difference between the last one seen and the current one.
pub struct ClusterChanges {
    shared: Arc<Shared>,
    generations: watch::Receiver<u64>,
    seen: Arc<Snapshot>,
}

impl ClusterChanges {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            generations: shared.generations(),
            seen: Arc::new(Snapshot::empty()),
            shared,
        }
    }

    /// Waits for a configuration that changes clusters, and returns the changes: those that were removed, then the
    /// others in the order of the configuration. The first call returns the clusters that are there.
    ///
    /// Cancel-safe. It waits forever if nothing changes any more.
    pub async fn next(&mut self) -> Vec<ClusterChange> {
        loop {
            // Before the load, so that a configuration published in between wakes the next call.
            self.generations.borrow_and_update();
            let now = Arc::clone(self.shared.load().snapshot());
            let changes = between(&self.seen, &now);
            self.seen = now;
            if !changes.is_empty() {
                return changes;
            }
            // The sender lives in what `self` holds.
            let _ = self.generations.changed().await;
        }
    }
}

fn between(before: &Snapshot, now: &Snapshot) -> Vec<ClusterChange> {
    let mut left: HashMap<_, _> = before.clusters().iter().map(|it| (it.id(), it)).collect();
    let mut changes = Vec::new();
    for cluster in now.clusters() {
        let id = cluster.id().clone();
        match left.remove(cluster.id()) {
            None => changes.push(ClusterChange::Added(id)),
            Some(before) if before.config() != cluster.config() => {
                changes.push(ClusterChange::Changed(id));
            }
            Some(_) => {}
        }
    }
    let gone = |id: &ClusterId| ClusterChange::Removed(id.clone());
    // In the order of the configuration, which a map does not keep.
    let clusters = before.clusters().iter().map(|cluster| cluster.id());
    let removed = clusters.filter(|id| left.contains_key(id)).map(gone);
    removed.chain(changes).collect()
}

impl fmt::Debug for ClusterChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterChanges").finish_non_exhaustive()
    }
}
