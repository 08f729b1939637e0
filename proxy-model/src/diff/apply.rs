//! The application of a list of changes.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use indexmap::IndexMap;

use super::Change;
use crate::config::{ClusterConfig, ProxyConfig};
use crate::id::ClusterId;

/// `config` after `changes`.
///
/// What [`diff`](super::diff) found between two configurations makes the second of the first. A change that does not
/// fit (a destination for a cluster that does not exist) does nothing.
#[must_use]
pub fn apply(config: &ProxyConfig, changes: &[Change]) -> ProxyConfig {
    let mut config = config.clone();
    remove(&mut config, changes);
    for change in changes {
        match change {
            Change::RouteAdded { id, config: route }
            | Change::RouteChanged {
                id, config: route, ..
            } => put(&mut config.routes, id, (**route).clone()),
            Change::ClusterAdded {
                id,
                config: cluster,
            } => {
                put(&mut config.clusters, id, (**cluster).clone());
            }
            Change::ClusterChanged {
                id,
                config: changed,
                ..
            } => change_cluster(&mut config, id, changed),
            Change::DestinationAdded {
                cluster,
                id,
                config: destination,
            }
            | Change::DestinationChanged {
                cluster,
                id,
                config: destination,
                ..
            } => {
                if let Some(cluster) = config.clusters.get_mut(cluster) {
                    put(&mut cluster.destinations, id, (**destination).clone());
                }
            }
            Change::PoliciesChanged { policies, .. } => config.policies = Arc::clone(policies),
            Change::RoutesReordered { order } => reorder(&mut config.routes, order),
            Change::ClustersReordered { order } => reorder(&mut config.clusters, order),
            Change::DestinationsReordered { cluster, order } => {
                if let Some(cluster) = config.clusters.get_mut(cluster) {
                    reorder(&mut cluster.destinations, order);
                }
            }
            Change::RouteRemoved { .. }
            | Change::ClusterRemoved { .. }
            | Change::DestinationRemoved { .. } => {}
        }
    }
    config
}

/// Removes everything at once: one by one, each would move all that follows it.
fn remove(config: &mut ProxyConfig, changes: &[Change]) {
    let mut routes = HashSet::new();
    let mut clusters = HashSet::new();
    let mut destinations: IndexMap<&ClusterId, HashSet<_>> = IndexMap::new();
    for change in changes {
        match change {
            Change::RouteRemoved { id } => {
                routes.insert(id);
            }
            Change::ClusterRemoved { id } => {
                clusters.insert(id);
            }
            Change::DestinationRemoved { cluster, id } => {
                destinations.entry(cluster).or_default().insert(id);
            }
            _ => {}
        }
    }
    config.routes.retain(|id, _| !routes.contains(id));
    config.clusters.retain(|id, _| !clusters.contains(id));
    for (cluster, gone) in destinations {
        if let Some(cluster) = config.clusters.get_mut(cluster) {
            cluster.destinations.retain(|id, _| !gone.contains(id));
        }
    }
}

fn change_cluster(config: &mut ProxyConfig, id: &ClusterId, changed: &ClusterConfig) {
    let Some(before) = config.clusters.get_mut(id) else {
        return;
    };
    let cluster = ClusterConfig {
        destinations: std::mem::take(&mut before.destinations),
        ..changed.clone()
    };
    put(&mut config.clusters, id, cluster);
}

/// Replaces the value of `id`, or adds it at the end. The id gets the given spelling.
fn put<I: Hash + Eq + Clone, T>(map: &mut IndexMap<I, T>, id: &I, value: T) {
    match map.get_index_of(id) {
        None => {
            map.insert(id.clone(), value);
        }
        Some(position) => {
            // A map keeps the key that it has, so the old spelling must go first.
            map.swap_remove_index(position);
            let (last, _) = map.insert_full(id.clone(), value);
            map.swap_indices(position, last);
        }
    }
}

/// Brings `map` into `order`; what that does not name comes last, as it was.
fn reorder<I: Hash + Eq, T>(map: &mut IndexMap<I, T>, order: &[I]) {
    let mut old = std::mem::take(map);
    for id in order {
        if let Some((id, value)) = old.swap_remove_entry(id) {
            map.insert(id, value);
        }
    }
    map.extend(old);
}
