//! The traffic flow that the page draws: sources → routes → clusters → destinations.

use std::collections::HashMap;

use proxy_model::ClusterId;
use serde::Serialize;

use super::AdminState;
use super::cluster_list::{ClusterCondition, destination_state, rate};
use super::route_list::takes;
use crate::status::{ClusterStatus, RouteStatus};

/// Number of nodes of each kind that are drawn: busy ones, and ones that need attention, come
/// first.
const ROUTES: usize = 14;
const CLUSTERS: usize = 12;
const DESTINATIONS: usize = 18;

#[derive(Default, Serialize)]
pub(super) struct TrafficFlow {
    providers: Vec<Node>,
    routes: Vec<RouteNode>,
    clusters: Vec<Node>,
    destinations: Vec<Node>,
    hidden: Hidden,
}

/// Number of nodes of each kind that are not drawn.
#[derive(Default, Serialize)]
struct Hidden {
    routes: usize,
    clusters: usize,
    destinations: usize,
}

/// Length of an id in bytes beyond which the address of a destination is its label: such ids are mostly those
/// of partitions and replicas.
const LONG_ID: usize = 24;

#[derive(Serialize)]
struct Node {
    id: String,
    /// The text of the node. Without it, the id is drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    state: &'static str,
    requests_per_second: f64,
    /// The cluster of a destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// The tooltip of the node.
    title: String,
}

#[derive(Serialize)]
struct RouteNode {
    id: String,
    title: String,
    provider: Option<String>,
    requests_per_second: f64,
    clusters: Vec<FlowTarget>,
}

#[derive(Serialize)]
struct FlowTarget {
    id: String,
    requests_per_second: f64,
}

pub(super) fn of(
    admin: &AdminState,
    routes: &[RouteStatus],
    clusters: &[ClusterStatus],
) -> TrafficFlow {
    let mut flow = TrafficFlow {
        providers: admin
            .provider_states()
            .map(|(name, state)| Node {
                title: format!("source {name}"),
                id: name,
                label: None,
                state,
                requests_per_second: 0.0,
                cluster: None,
            })
            .collect(),
        ..TrafficFlow::default()
    };

    let mut drawn: Vec<_> = routes.iter().collect();
    drawn.sort_by(|a, b| rate(&b.per_second).total_cmp(&rate(&a.per_second)));
    flow.hidden.routes = drawn.len().saturating_sub(ROUTES);
    drawn.truncate(ROUTES);
    // Nodes are drawn in the order of the configuration, so that they keep their places as traffic
    // changes.
    drawn.sort_by_key(|route| routes.iter().position(|other| other.id == route.id));
    flow.routes = drawn
        .into_iter()
        .map(|route| route_node(admin, route))
        .collect();

    let mut drawn: Vec<_> = clusters.iter().collect();
    // Failing clusters first, then the busiest.
    let attention = |cluster: &ClusterStatus| {
        !matches!(
            ClusterCondition::of(cluster),
            ClusterCondition::Down | ClusterCondition::Degraded
        )
    };
    drawn.sort_by(|a, b| {
        let busier = rate(&b.per_second).total_cmp(&rate(&a.per_second));
        attention(a).cmp(&attention(b)).then(busier)
    });
    flow.hidden.clusters = drawn.len().saturating_sub(CLUSTERS);
    drawn.truncate(CLUSTERS);
    drawn.sort_by_key(|cluster| clusters.iter().position(|other| other.id == cluster.id));
    for cluster in drawn {
        add_cluster(&mut flow, cluster);
    }
    flow
}

fn route_node(admin: &AdminState, route: &RouteStatus) -> RouteNode {
    let total = rate(&route.per_second);
    RouteNode {
        id: route.id.as_str().to_owned(),
        title: takes(route),
        provider: admin.route_provider(&route.id),
        requests_per_second: total,
        clusters: targets(route, total),
    }
}

/// The clusters of a route, each once. Unknown shares are drawn as equal.
fn targets(route: &RouteStatus, total: f64) -> Vec<FlowTarget> {
    let equal = 1.0 / route.clusters.len().max(1) as f64;
    let mut targets: Vec<FlowTarget> = Vec::new();
    let mut positions: HashMap<ClusterId, usize> = HashMap::new();
    for target in &route.clusters {
        let position = *positions
            .entry(target.cluster.as_str().into())
            .or_insert(targets.len());
        if position == targets.len() {
            targets.push(FlowTarget {
                id: target.cluster.clone(),
                requests_per_second: 0.0,
            });
        }
        targets[position].requests_per_second += total * target.share.unwrap_or(equal);
    }
    targets
}

fn add_cluster(flow: &mut TrafficFlow, cluster: &ClusterStatus) {
    let id = cluster.id.as_str().to_owned();
    for destination in &cluster.destinations {
        if flow.destinations.len() >= DESTINATIONS {
            flow.hidden.destinations += 1;
            continue;
        }
        flow.destinations.push(Node {
            id: destination.id.as_str().to_owned(),
            label: label(destination.id.as_str(), &destination.address),
            state: destination_state(destination).name(),
            requests_per_second: rate(&destination.per_second),
            cluster: Some(id.clone()),
            title: format!("{} {}", destination.id, destination.address),
        });
    }
    flow.clusters.push(Node {
        title: format!("{id}, {}", cluster.policy),
        id,
        label: None,
        state: ClusterCondition::of(cluster).name(),
        requests_per_second: rate(&cluster.per_second),
        cluster: None,
    });
}

/// Returns the address without its scheme, if the id of a destination is too long to be drawn.
fn label(id: &str, address: &str) -> Option<String> {
    if id.len() <= LONG_ID {
        return None;
    }
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    Some(authority.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_of_destinations_are_drawn_as_their_address() {
        let replica = "0549175f-1582-8169-a558-000000136557788";
        for (id, address, expected) in [
            ("web-1", "http://10.0.0.7:8080/", None),
            (&"x".repeat(LONG_ID), "http://10.0.0.7:8080/", None),
            (replica, "http://10.0.0.7:8080/", Some("10.0.0.7:8080")),
            (replica, "https://[::1]:81/a/", Some("[::1]:81/a")),
        ] {
            assert_eq!(label(id, address).as_deref(), expected, "{id} {address}");
        }
    }
}
