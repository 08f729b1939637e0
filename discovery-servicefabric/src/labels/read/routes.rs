//! The routes of a service.

use std::collections::HashSet;

use discovery_core::labels::{LabelNode, RouteLabels, is_route_name, read_route};
use proxy_model::config::{PartitionHash, PartitionKey, RouteConfig, TransformConfig};
use proxy_model::{ClusterId, Problem, RouteId};

use super::settings::{Settings, key};
use super::{no_effect, require_values};
use crate::labels::ids::route_id;
use crate::labels::options::PartitionMode;
use crate::labels::path;
use crate::service::ServiceDescription;

/// Name of the route that a service without routes may get.
const DEFAULT_ROUTE: &str = "default";

const LABELS: RouteLabels = RouteLabels {
    headers: "MatchHeaders",
    query_parameters: "MatchQueries",
    // An empty value would be taken for no value otherwise, and the condition would mean something else.
    keep_empty_values: true,
};

/// A route as the labels describe it.
#[derive(Debug)]
pub(in crate::labels) struct ServiceRoute {
    pub(in crate::labels) id: RouteId,
    pub(super) name: String,
    /// The route's configuration. The cluster is missing, unless the labels name clusters that are not made
    /// here.
    pub(in crate::labels) config: RouteConfig,
    /// The listener that it chooses, if it does.
    pub(in crate::labels) listener: Option<String>,
    /// The part of a request that holds its partition key, if it differs from that of other routes.
    pub(in crate::labels) key: Option<(PartitionKey, PartitionHash)>,
}

impl ServiceRoute {
    /// Returns the route's name in the labels.
    pub(in crate::labels) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if labels name the clusters of the route, or have it respond itself.
    pub(in crate::labels) fn goes_elsewhere(&self) -> bool {
        let config = &self.config;
        config.cluster_id.is_some()
            || config.weighted_clusters.is_some()
            || config.partitioned_clusters.is_some()
            || config.redirect.is_some()
            || config.respond.is_some()
    }
}

pub(super) fn read(
    root: &LabelNode<'_>,
    service: &ServiceDescription,
    settings: &Settings,
    cluster: &ClusterId,
) -> Vec<ServiceRoute> {
    let base = path::of_service(&service.name);
    let mut seen = HashSet::new();
    let mut routes = Vec::new();
    let named = root.named("Routes");
    for (name, node) in &named {
        if !is_route_name(name) {
            let message = "a route's name has ASCII letters, digits, `_` and `-` only";
            node.report_here("invalid_route_name", message);
        }
        let mut route = ServiceRoute {
            id: route_id(cluster, name),
            name: (*name).to_owned(),
            config: config(node),
            listener: node.child("ServiceFabric").text("ListenerName"),
            key: key(&node.child("ServiceFabric")),
        };
        if !seen.insert(route.id.clone()) {
            let message = "another route has this name in another case";
            node.report_here("duplicate_route_name", message);
        }
        check(node, &route, settings);
        if settings.path_prefix {
            path::add_prefix(&mut route.config, &base);
        }
        routes.push(route);
    }
    if named.is_empty() && settings.default_route {
        routes.push(default_route(cluster, &base));
    }
    routes
}

fn config(node: &LabelNode<'_>) -> RouteConfig {
    // A slip in a list would leave a condition or a change out.
    for list in [
        LABELS.headers,
        LABELS.query_parameters,
        "Transforms",
        "WeightedClusters",
    ] {
        node.child(list).reject_unknown();
    }
    for list in [LABELS.headers, LABELS.query_parameters] {
        for (_, condition) in node.elements(list) {
            require_values(&condition, &["IsCaseSensitive"]);
        }
    }
    let config = read_route(node, &LABELS);
    let positions = node.elements("Transforms");
    for ((_, node), transform) in positions.iter().zip(config.transforms.iter().flatten()) {
        if let Some(twice) = repeated_key(transform) {
            let message = format!("`{twice}` is there twice, in different case");
            node.report_error(twice, "duplicate_label", message);
        }
    }
    config
}

/// The first key that was there before in another case.
fn repeated_key(transform: &TransformConfig) -> Option<&str> {
    let mut seen = HashSet::new();
    let mut keys = transform.keys();
    keys.find(|key| !seen.insert(key.to_ascii_lowercase()))
        .map(String::as_str)
}

/// Reports labels that contradict each other, or have no effect.
fn check(node: &LabelNode<'_>, route: &ServiceRoute, settings: &Settings) {
    if route.listener.is_some() && route.goes_elsewhere() {
        let pointer = node.locate(["ServiceFabric", "ListenerName"]);
        let message =
            "a listener belongs to this service, and the route goes to a cluster that is named";
        node.report(Problem::error(pointer, "conflicting_clusters", message));
    }
    if route.key.is_some() && (settings.partitions != PartitionMode::Key || route.goes_elsewhere())
    {
        let message =
            "keys are looked at with `PartitionMode` = `Key` only, for the service's own clusters";
        no_effect(node, &["ServiceFabric", "PartitionKey"], message);
    }
}

/// The route of a service that has none: everything below its name.
fn default_route(cluster: &ClusterId, base: &str) -> ServiceRoute {
    let mut config = RouteConfig::default();
    path::add_prefix(&mut config, base);
    ServiceRoute {
        id: route_id(cluster, DEFAULT_ROUTE),
        name: DEFAULT_ROUTE.to_owned(),
        config,
        listener: None,
        key: None,
    }
}
