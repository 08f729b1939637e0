//! Routes to the parts of a service.

use std::collections::HashMap;

use proxy_model::RouteId;
use proxy_model::config::{
    PartitionedClusters, ProxyConfig, RouteConfig, RouteQueryParameter, TransformConfig,
};

use super::listeners::Listener;
use super::roles::{READS, split};
use super::{Group, Layout};
use crate::labels::ids::longer_route_id;
use crate::labels::partitions::{Division, PARTITION_ID, hash_for};
use crate::labels::read::ServiceRoute;
use crate::labels::replicas::Pool;

/// Makes all routes.
pub(super) fn build(layout: &Layout<'_>, config: &mut ProxyConfig) {
    let groups = layout.groups();
    let listeners = layout.named_listeners();
    for route in &layout.labelled.routes {
        if route.goes_elsewhere() {
            config.routes.insert(route.id.clone(), route.config.clone());
            continue;
        }
        let named = route
            .listener
            .as_deref()
            .and_then(|name| listeners.get(name));
        let listener = named.copied().unwrap_or(&layout.listeners[0]);
        for part in split(&route.config, &layout.labelled.settings.roles, layout.pools) {
            let id = |id: &RouteId| match part.is_reads {
                true => longer_route_id(id, READS),
                false => id.clone(),
            };
            let to = |group| layout.cluster_id(group, listener, part.pool);
            match layout.division {
                Division::Merged => {
                    let mut one = part.route.clone();
                    one.cluster_id = groups.first().map(|&group| to(group));
                    config.routes.insert(id(&route.id), one);
                }
                Division::ById => {
                    for &group in &groups {
                        let partition = group.id.unwrap_or_default();
                        let mut one = only_for(&part.route, partition);
                        one.cluster_id = Some(to(group));
                        let longer = longer_route_id(&route.id, partition);
                        config.routes.insert(id(&longer), one);
                    }
                }
                Division::ByKey => {
                    let mut one = part.route.clone();
                    let clusters = keyed(layout, route, &groups, listener, part.pool);
                    one.partitioned_clusters = Some(clusters);
                    config.routes.insert(id(&route.id), one);
                }
            }
        }
    }
}

impl Layout<'_> {
    fn named_listeners(&self) -> HashMap<&str, &Listener> {
        let named = |listener| Some((Listener::name(listener)?, listener));
        self.listeners.iter().filter_map(named).collect()
    }
}

/// Returns the route for requests with the id of one partition.
fn only_for(route: &RouteConfig, partition: &str) -> RouteConfig {
    let mut route = route.clone();
    let conditions = route.r#match.query_parameters.get_or_insert_default();
    conditions.push(RouteQueryParameter {
        name: PARTITION_ID.to_owned(),
        values: Some(vec![partition.to_owned()]),
        ..RouteQueryParameter::default()
    });
    let removal =
        TransformConfig::from([("QueryRemoveParameter".to_owned(), PARTITION_ID.to_owned())]);
    route.transforms.get_or_insert_default().push(removal);
    route
}

/// The clusters of a route that chooses by key.
fn keyed(
    layout: &Layout<'_>,
    route: &ServiceRoute,
    groups: &[Group<'_, '_>],
    listener: &Listener,
    pool: Pool,
) -> PartitionedClusters {
    let settings = &layout.labelled.settings;
    let (key, hash) = match &route.key {
        Some((key, hash)) => (key, *hash),
        None => (&settings.key, settings.hash),
    };
    PartitionedClusters {
        key: key.clone(),
        hash: hash_for(&layout.keys, hash),
        partitions: layout
            .keys
            .iter()
            .zip(groups)
            .map(|(keys, &group)| keys.entry(layout.cluster_id(group, listener, pool)))
            .collect(),
    }
}
