//! The changes between two configurations.

mod apply;
mod fields;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;

pub use self::apply::apply;
pub use self::fields::FieldChange;
use self::fields::{address, changed_fields};
use crate::config::{ClusterConfig, DestinationConfig, PolicyConfigs, ProxyConfig, RouteConfig};
use crate::id::{ClusterId, DestinationId, RouteId};
use crate::suggest::shortened;

/// One difference between two configurations. Shown as a line that a person can read.
///
/// An id that is only spelled otherwise counts as changed, with the new spelling in `id`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A route is new.
    RouteAdded {
        /// The route.
        id: RouteId,
        /// The new route.
        config: Box<RouteConfig>,
    },
    /// A route was removed.
    RouteRemoved {
        /// The route.
        id: RouteId,
    },
    /// The configuration of a route changed.
    RouteChanged {
        /// The route.
        id: RouteId,
        /// The new configuration of the route.
        config: Box<RouteConfig>,
        /// The fields that differ.
        fields: Vec<FieldChange>,
    },
    /// A cluster is new.
    ClusterAdded {
        /// The cluster.
        id: ClusterId,
        /// The new cluster, with its destinations.
        config: Box<ClusterConfig>,
    },
    /// A cluster was removed.
    ClusterRemoved {
        /// The cluster.
        id: ClusterId,
    },
    /// The configuration of a cluster changed, except its destinations.
    ClusterChanged {
        /// The cluster.
        id: ClusterId,
        /// The new configuration of the cluster, without destinations.
        config: Box<ClusterConfig>,
        /// The fields that differ.
        fields: Vec<FieldChange>,
    },
    /// A destination is new in a cluster that is not.
    DestinationAdded {
        /// The cluster.
        cluster: ClusterId,
        /// The destination.
        id: DestinationId,
        /// The new destination.
        config: Box<DestinationConfig>,
    },
    /// A destination was removed from a cluster that stays.
    DestinationRemoved {
        /// The cluster.
        cluster: ClusterId,
        /// The destination.
        id: DestinationId,
    },
    /// The configuration of a destination changed.
    DestinationChanged {
        /// The cluster.
        cluster: ClusterId,
        /// The destination.
        id: DestinationId,
        /// The new configuration of the destination.
        config: Box<DestinationConfig>,
        /// The fields that differ.
        fields: Vec<FieldChange>,
    },
    /// Policies that routes choose by name are new, gone or different. Their settings, which may hold secrets, are not
    /// shown.
    PoliciesChanged {
        /// The policies that differ: `RateLimiter api`.
        names: Vec<String>,
        /// The new policies.
        #[serde(skip)]
        policies: Arc<PolicyConfigs>,
    },
    /// The routes are in another order than removing some and adding others at the end explains.
    RoutesReordered {
        /// All routes, in their new order.
        order: Vec<RouteId>,
    },
    /// The clusters are in another order.
    ClustersReordered {
        /// All clusters, in their new order.
        order: Vec<ClusterId>,
    },
    /// A cluster's destinations are in another order.
    DestinationsReordered {
        /// The cluster.
        cluster: ClusterId,
        /// All destinations, in their new order.
        order: Vec<DestinationId>,
    },
}

/// Returns the changes that turn `old` into `new`.
///
/// The order ensures that no step leaves a route without its cluster: first clusters and destinations that
/// are new or changed, then routes, then removed clusters, then orders. [`apply`] applies the changes.
pub fn diff(old: &ProxyConfig, new: &ProxyConfig) -> Vec<Change> {
    let mut changes = Vec::new();
    for_each_change(old, new, |change| changes.push(change));
    changes
}

/// Calls a function with each change that [`diff`] returns, in that order. A large configuration that is all
/// new is not held a second time.
pub fn for_each_change(old: &ProxyConfig, new: &ProxyConfig, mut found: impl FnMut(Change)) {
    differences(old, new, &mut found);
}

fn differences(old: &ProxyConfig, new: &ProxyConfig, found: &mut dyn FnMut(Change)) {
    if old.policies != new.policies {
        found(Change::PoliciesChanged {
            names: old.policies.differing(&new.policies),
            policies: Arc::clone(&new.policies),
        });
    }
    for (id, config) in &new.clusters {
        match old.clusters.get_key_value(id) {
            Some((old_id, old_config)) => {
                let respelled = old_id.as_str() != id.as_str();
                diff_cluster(id, respelled, old_config, config, found);
            }
            None => found(Change::ClusterAdded {
                id: id.clone(),
                config: Box::new(config.clone()),
            }),
        }
    }
    diff_routes(old, new, found);
    for id in gone(&old.clusters, &new.clusters) {
        found(Change::ClusterRemoved { id: id.clone() });
    }
    if let Some(order) = reordered(&old.clusters, &new.clusters) {
        found(Change::ClustersReordered { order });
    }
}

fn diff_routes(old: &ProxyConfig, new: &ProxyConfig, found: &mut dyn FnMut(Change)) {
    for id in gone(&old.routes, &new.routes) {
        found(Change::RouteRemoved { id: id.clone() });
    }
    for (id, config) in &new.routes {
        let Some((old_id, old_config)) = old.routes.get_key_value(id) else {
            found(Change::RouteAdded {
                id: id.clone(),
                config: Box::new(config.clone()),
            });
            continue;
        };
        if old_id.as_str() != id.as_str()
            || old_config != config
            || !clusters_spelled_alike(old_config, config)
        {
            found(Change::RouteChanged {
                id: id.clone(),
                config: Box::new(config.clone()),
                fields: changed_fields(old_config, config),
            });
        }
    }
    if let Some(order) = reordered(&old.routes, &new.routes) {
        found(Change::RoutesReordered { order });
    }
}

fn diff_cluster(
    id: &ClusterId,
    respelled: bool,
    old: &ClusterConfig,
    new: &ClusterConfig,
    found: &mut dyn FnMut(Change),
) {
    if old == new && !respelled && !destinations_differ(old, new) {
        return;
    }
    let (old_self, new_self) = (without_destinations(old), without_destinations(new));
    if old_self != new_self || respelled {
        found(Change::ClusterChanged {
            id: id.clone(),
            fields: changed_fields(&old_self, &new_self),
            config: Box::new(new_self),
        });
    }
    for gone in gone(&old.destinations, &new.destinations) {
        found(Change::DestinationRemoved {
            cluster: id.clone(),
            id: gone.clone(),
        });
    }
    for (destination, config) in &new.destinations {
        let Some((old_id, old_config)) = old.destinations.get_key_value(destination) else {
            found(Change::DestinationAdded {
                cluster: id.clone(),
                id: destination.clone(),
                config: Box::new(config.clone()),
            });
            continue;
        };
        if old_config != config || old_id.as_str() != destination.as_str() {
            found(Change::DestinationChanged {
                cluster: id.clone(),
                id: destination.clone(),
                config: Box::new(config.clone()),
                fields: changed_fields(old_config, config),
            });
        }
    }
    if let Some(order) = reordered(&old.destinations, &new.destinations) {
        found(Change::DestinationsReordered {
            cluster: id.clone(),
            order,
        });
    }
}

fn without_destinations(config: &ClusterConfig) -> ClusterConfig {
    ClusterConfig {
        load_balancing_policy: config.load_balancing_policy.clone(),
        session_affinity: config.session_affinity.clone(),
        health_check: config.health_check.clone(),
        http_client: config.http_client.clone(),
        http_request: config.http_request.clone(),
        destinations: IndexMap::new(),
        metadata: config.metadata.clone(),
    }
}

/// Returns true if destinations that are equal as maps differ in order or in the spelling of their ids.
fn destinations_differ(old: &ClusterConfig, new: &ClusterConfig) -> bool {
    let old = old.destinations.keys().map(DestinationId::as_str);
    !old.eq(new.destinations.keys().map(DestinationId::as_str))
}

/// Returns true if both routes spell their clusters alike. Ids compare ignoring case, so equal routes may
/// spell them differently.
fn clusters_spelled_alike(old: &RouteConfig, new: &RouteConfig) -> bool {
    fn spellings(config: &RouteConfig) -> impl Iterator<Item = &str> {
        let weighted = config.weighted_clusters.iter().flatten();
        let weighted = weighted.map(|share| &share.cluster_id);
        let partitions = config.partitioned_clusters.iter();
        let partitions = partitions.flat_map(|partitioned| &partitioned.partitions);
        let partitions = partitions.map(|partition| &partition.cluster_id);
        let ids = config.cluster_id.iter().chain(weighted);
        ids.chain(partitions).map(ClusterId::as_str)
    }
    spellings(old).eq(spellings(new))
}

fn gone<'a, I: Hash + Eq, T>(
    old: &'a IndexMap<I, T>,
    new: &'a IndexMap<I, T>,
) -> impl Iterator<Item = &'a I> {
    old.keys().filter(|id| !new.contains_key(*id))
}

/// Returns the order of `new`, if it differs from that of `old` without removed entries and with added ones
/// at the end.
fn reordered<I: Hash + Eq + Clone, T>(
    old: &IndexMap<I, T>,
    new: &IndexMap<I, T>,
) -> Option<Vec<I>> {
    let kept = old.keys().filter(|id| new.contains_key(*id));
    let added = new.keys().filter(|id| !old.contains_key(*id));
    let explained = kept.chain(added).eq(new.keys());
    (!explained).then(|| new.keys().cloned().collect())
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = |fields: &[FieldChange], f: &mut fmt::Formatter<'_>| {
            if fields.is_empty() {
                return f.write_str(" is spelled otherwise");
            }
            for (i, field) in fields.iter().enumerate() {
                let separator = if i == 0 { " " } else { ", " };
                write!(f, "{separator}{field}")?;
            }
            Ok(())
        };
        match self {
            Self::RouteAdded { id, .. } => write!(f, "route {} added", shortened(id.as_str())),
            Self::RouteRemoved { id } => write!(f, "route {} removed", shortened(id.as_str())),
            Self::RouteChanged {
                id,
                fields: changed,
                ..
            } => {
                write!(f, "route {}:", shortened(id.as_str()))?;
                fields(changed, f)
            }
            Self::ClusterAdded { id, config } => {
                let count = config.destinations.len();
                let s = if count == 1 { "" } else { "s" };
                write!(
                    f,
                    "cluster {} added with {count} destination{s}",
                    shortened(id.as_str())
                )
            }
            Self::ClusterRemoved { id } => write!(f, "cluster {} removed", shortened(id.as_str())),
            Self::ClusterChanged {
                id,
                fields: changed,
                ..
            } => {
                write!(f, "cluster {}:", shortened(id.as_str()))?;
                fields(changed, f)
            }
            Self::DestinationAdded {
                cluster,
                id,
                config,
            } => write!(
                f,
                "cluster {}: destination {} added at {}",
                shortened(cluster.as_str()),
                shortened(id.as_str()),
                address(&config.address)
            ),
            Self::DestinationRemoved { cluster, id } => write!(
                f,
                "cluster {}: destination {} removed",
                shortened(cluster.as_str()),
                shortened(id.as_str())
            ),
            Self::DestinationChanged {
                cluster,
                id,
                fields: changed,
                ..
            } => {
                let (cluster, id) = (shortened(cluster.as_str()), shortened(id.as_str()));
                write!(f, "cluster {cluster}: destination {id}:")?;
                fields(changed, f)
            }
            Self::PoliciesChanged { names, .. } if names.is_empty() => {
                f.write_str("policies are in another order")
            }
            Self::PoliciesChanged { names, .. } => {
                f.write_str("policies changed:")?;
                for (i, name) in names.iter().enumerate() {
                    let separator = if i == 0 { " " } else { ", " };
                    write!(f, "{separator}{}", shortened(name))?;
                }
                Ok(())
            }
            Self::RoutesReordered { .. } => f.write_str("routes are in another order"),
            Self::ClustersReordered { .. } => f.write_str("clusters are in another order"),
            Self::DestinationsReordered { cluster, .. } => {
                let cluster = shortened(cluster.as_str());
                write!(f, "cluster {cluster}: destinations are in another order")
            }
        }
    }
}
