//! The traffic flow that the page draws: sources → routes → clusters → destinations.

use std::collections::{BTreeSet, HashMap};

use proxy_model::ClusterId;
use serde::Serialize;

use super::cluster_list::{ClusterCondition, destination_state, rate};
use super::route_list::takes;
use super::state::AdminState;
use crate::status::{ClusterStatus, RouteStatus};

/// Maximum number of drawn nodes of each kind. Nodes that need attention, and then busy ones, come first.
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

    let drawn = Drawn::choose(routes, clusters);
    flow.hidden.routes = routes.len() - drawn.routes.len();
    flow.routes = drawn
        .routes
        .iter()
        .map(|&index| route_node(admin, &routes[index]))
        .collect();
    flow.hidden.clusters = clusters.len() - drawn.clusters.len();
    // Space that one cluster leaves is for the next ones.
    let mut room = DESTINATIONS;
    for &index in &drawn.clusters {
        room -= add_cluster(&mut flow, &clusters[index], room);
    }
    flow
}

/// The routes and clusters that are drawn, by their indices: what needs attention, and then the others in the order of
/// the configuration, so that they keep their places as traffic changes.
struct Drawn {
    routes: Vec<usize>,
    clusters: Vec<usize>,
}

impl Drawn {
    /// Chooses related nodes: clusters that need attention with the routes to them, then the busiest routes with
    /// their clusters, then the busiest clusters.
    fn choose(routes: &[RouteStatus], clusters: &[ClusterStatus]) -> Self {
        let index_of: HashMap<&str, usize> = clusters
            .iter()
            .enumerate()
            .map(|(index, cluster)| (cluster.id.as_str(), index))
            .collect();
        let targets = |route: usize| {
            let shares = routes[route].clusters.iter();
            shares.filter_map(|share| index_of.get(&*share.cluster).copied())
        };
        let busiest_clusters = by_rate(clusters, |cluster| &cluster.per_second);
        let busiest_routes = by_rate(routes, |route| &route.per_second);
        let attention = busiest_clusters.iter().copied().filter(|&cluster| {
            matches!(
                ClusterCondition::of(&clusters[cluster]),
                ClusterCondition::Down | ClusterCondition::Degraded
            )
        });
        // Sets keep the order of the configuration, so that nodes stay in place as rates change.
        let mut drawn_clusters = BTreeSet::new();
        fill(&mut drawn_clusters, attention, CLUSTERS);
        let urgent = drawn_clusters.clone();
        let leads_to_urgent =
            |route: &usize| targets(*route).any(|cluster| urgent.contains(&cluster));
        let mut lead_there = HashMap::new();
        for &route in &busiest_routes {
            // The busiest route of each cluster, since routes come in that order.
            for cluster in targets(route).filter(|cluster| urgent.contains(cluster)) {
                lead_there.entry(cluster).or_insert(route);
            }
        }
        let mut drawn_routes = BTreeSet::new();
        // One of each cluster first, so that none is without a route.
        fill(&mut drawn_routes, lead_there.into_values(), ROUTES);
        let others = busiest_routes.iter().copied().filter(leads_to_urgent);
        fill(&mut drawn_routes, others, ROUTES);
        // Of many, idle ones say nothing.
        let is_shown =
            |route: &usize| routes.len() <= ROUTES || rate(&routes[*route].per_second) > 0.0;
        fill(
            &mut drawn_routes,
            busiest_routes.iter().copied().filter(is_shown),
            ROUTES,
        );
        // Without any traffic, some routes are still worth drawing.
        if drawn_routes.is_empty() {
            fill(&mut drawn_routes, busiest_routes.into_iter(), ROUTES);
        }
        for route in &drawn_routes {
            fill(&mut drawn_clusters, targets(*route), CLUSTERS);
        }
        let is_shown = |cluster: &usize| {
            clusters.len() <= CLUSTERS || rate(&clusters[*cluster].per_second) > 0.0
        };
        fill(
            &mut drawn_clusters,
            busiest_clusters.into_iter().filter(is_shown),
            CLUSTERS,
        );
        let mut drawn = Self {
            routes: drawn_routes.into_iter().collect(),
            clusters: drawn_clusters.into_iter().collect(),
        };
        drawn.routes.sort_by_key(|route| !leads_to_urgent(route));
        drawn
            .clusters
            .sort_by_key(|cluster| !urgent.contains(cluster));
        drawn
    }
}

/// The indices of items, the busiest first.
fn by_rate<T>(items: &[T], per_second: impl Fn(&T) -> &[u32]) -> Vec<usize> {
    let rates: Vec<f64> = items.iter().map(|item| rate(per_second(item))).collect();
    let mut indices: Vec<usize> = (0..items.len()).collect();
    indices.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
    indices
}

/// Adds items up to a number.
fn fill(set: &mut BTreeSet<usize>, items: impl Iterator<Item = usize>, most: usize) {
    for item in items {
        if set.len() >= most {
            return;
        }
        set.insert(item);
    }
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
        // A cluster with several partitions is one node.
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

/// Adds a cluster with at most so many of its destinations, those that fail before others. Returns their number.
fn add_cluster(flow: &mut TrafficFlow, cluster: &ClusterStatus, most: usize) -> usize {
    let id = cluster.id.as_str().to_owned();
    let mut destinations: Vec<_> = cluster.destinations.iter().collect();
    destinations.sort_by_key(|destination| destination_state(destination).urgency());
    let shown = destinations.len().min(most);
    flow.hidden.destinations += destinations.len() - shown;
    for destination in destinations.into_iter().take(shown) {
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
    shown
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
