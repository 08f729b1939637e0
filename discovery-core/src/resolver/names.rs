//! The last known addresses of host names, kept while a cluster uses them.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::ClusterId;

use super::place::Place;

/// The last known addresses of host names. Holds only the names of the configuration.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: HashMap<Arc<str>, Name>,
    /// The names of each cluster, every one once.
    clusters: HashMap<ClusterId, Vec<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Name {
    /// Empty if it could never be looked up.
    places: Vec<Place>,
    /// True if the last look-up timed out.
    slow: bool,
    /// Number of clusters that use the name.
    clusters: usize,
}

impl Names {
    /// Records the names of a cluster, every one once, and returns true for those that were slow. Its
    /// earlier names are forgotten, if no other cluster has them.
    pub(super) fn ask(&mut self, cluster: &ClusterId, names: &[Arc<str>]) -> Vec<bool> {
        for name in names {
            self.names.entry(Arc::clone(name)).or_default().clusters += 1;
        }
        self.forget(cluster);
        if !names.is_empty() {
            self.clusters.insert(cluster.clone(), names.to_vec());
        }
        let slow = |name| self.names.get(name).is_some_and(|name| name.slow);
        names.iter().map(slow).collect()
    }

    /// Forgets a cluster.
    pub(super) fn forget(&mut self, cluster: &ClusterId) {
        for name in self.clusters.remove(cluster).unwrap_or_default() {
            if let Some(known) = self.names.get_mut(&name) {
                known.clusters -= 1;
                if known.clusters == 0 {
                    self.names.remove(&name);
                }
            }
        }
    }

    /// Records the places of a name.
    pub(super) fn found(&mut self, name: &str, places: &[Place]) {
        if let Some(known) = self.names.get_mut(name) {
            known.places = places.to_vec();
            known.slow = false;
        }
    }

    /// Records a failed look-up of a name, and whether it took too long if it was tried. Returns the
    /// earlier result of the name.
    pub(super) fn failed(&mut self, name: &str, slow: Option<bool>) -> Vec<Place> {
        let Some(known) = self.names.get_mut(name) else {
            return Vec::new();
        };
        known.slow = slow.unwrap_or(known.slow);
        known.places.clone()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
