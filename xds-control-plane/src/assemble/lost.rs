//! Virtual hosts whose clusters are not served, or not to every client.

use std::collections::BTreeSet;

use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{Route, RouteMatch, VirtualHost};

use crate::proto::{number, unavailable};

/// The clusters that a virtual host routes to by name.
pub(crate) fn targets(host: &VirtualHost) -> impl Iterator<Item = &str> {
    host.routes.iter().flat_map(|route| {
        let specifier = match &route.action {
            Some(Action::Route(action)) => action.cluster_specifier.as_ref(),
            _ => None,
        };
        let (one, weighted) = match specifier {
            Some(ClusterSpecifier::Cluster(name)) => (Some(name.as_str()), None),
            Some(ClusterSpecifier::WeightedClusters(weighted)) => (None, Some(weighted)),
            _ => (None, None),
        };
        let weighted = weighted.into_iter().flat_map(|weighted| &weighted.clusters);
        one.into_iter()
            .chain(weighted.map(|cluster| cluster.name.as_str()))
    })
}

/// Returns the host without the routes to the clusters that are `lost`. `None` if it has no routes at all.
///
/// Shares of lost clusters go to the others of their route. A route without any cluster left is removed if
/// a later one takes all of its requests: those of a branch go to its service. Otherwise it responds with 503, as
/// Envoy does if a cluster is missing: without the route its requests would get to another service, and 404
/// would deny that there is any. A route of another cluster between the two gets the requests that it
/// matches; no translated host has one.
pub(crate) fn without(host: &VirtualHost, lost: &BTreeSet<&str>) -> Option<VirtualHost> {
    let mut routes = Vec::with_capacity(host.routes.len());
    let mut rest = host.routes.iter();
    while let Some(route) = rest.next() {
        if let Some(left) = left_of(route, lost) {
            routes.push(left);
        } else if !rest.clone().any(|later| takes_all_of(later, route)) {
            routes.push(Route {
                action: Some(unavailable()),
                ..route.clone()
            });
        }
    }
    let host = VirtualHost {
        routes,
        ..host.clone()
    };
    (!host.routes.is_empty()).then_some(host)
}

/// Returns the route without its shares for lost clusters. `None` if it leads to nothing else.
fn left_of(route: &Route, lost: &BTreeSet<&str>) -> Option<Route> {
    let mut route = route.clone();
    let Some(Action::Route(action)) = &mut route.action else {
        return Some(route);
    };
    let is_left = match &mut action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => !lost.contains(name.as_str()),
        Some(ClusterSpecifier::WeightedClusters(weighted)) => {
            let clusters = &mut weighted.clusters;
            clusters.retain(|cluster| !lost.contains(cluster.name.as_str()));
            let weight = |cluster: &ClusterWeight| cluster.weight.map_or(0, |w| w.value);
            let is_idle = clusters.iter().all(|cluster| weight(cluster) == 0);
            // Envoy requires some weight above zero.
            if let Some(first) = clusters.first_mut().filter(|_| is_idle) {
                first.weight = Some(number(100));
            }
            !clusters.is_empty()
        }
        _ => true,
    };
    is_left.then_some(route)
}

/// Returns true if a route matches all paths of another one, without further conditions.
fn takes_all_of(route: &Route, other: &Route) -> bool {
    let (Some(of_route), Some(of_other)) = (&route.r#match, &other.r#match) else {
        return false;
    };
    let paths_only = RouteMatch {
        path_specifier: of_other.path_specifier.clone(),
        case_sensitive: of_other.case_sensitive,
        ..RouteMatch::default()
    };
    *of_route == paths_only
}

#[cfg(test)]
mod tests {
    use xds_types::pb::envoy::config::route::v3::HeaderMatcher;
    use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;

    use super::*;
    use crate::assemble::testing::host_to;

    /// Routes for these prefixes, those with a `?` for requests with a header only, to these clusters.
    fn host(routes: &[(&str, &str)]) -> VirtualHost {
        let one = |(prefix, cluster): &(&str, &str)| {
            let mut route = host_to("h", &["h.example"], cluster).routes.remove(0);
            let prefix = PathSpecifier::Prefix(prefix.trim_end_matches('?').to_owned());
            let wanted = route.r#match.get_or_insert_default();
            wanted.path_specifier = Some(prefix);
            route
        };
        let mut all = host_to("h", &["h.example"], "unused");
        all.routes = routes.iter().map(one).collect();
        for (route, (prefix, _)) in all.routes.iter_mut().zip(routes) {
            if prefix.ends_with('?') {
                let header = HeaderMatcher {
                    name: "x-branch-name".to_owned(),
                    ..HeaderMatcher::default()
                };
                route.r#match.get_or_insert_default().headers.push(header);
            }
        }
        all
    }

    fn left(routes: &[(&str, &str)]) -> Vec<String> {
        let host = host(routes);
        let Some(left) = without(&host, &BTreeSet::from(["lost"])) else {
            return Vec::new();
        };
        let action = |route: &Route| match &route.action {
            Some(Action::Route(_)) => {
                let only = VirtualHost {
                    routes: vec![route.clone()],
                    ..VirtualHost::default()
                };
                targets(&only).collect::<Vec<_>>().concat()
            }
            Some(Action::DirectResponse(answer)) => answer.status.to_string(),
            other => panic!("{other:?}"),
        };
        left.routes.iter().map(action).collect()
    }

    #[test]
    fn requests_for_what_is_lost_get_to_nobody_else() {
        for (routes, wanted) in [
            // A branch is the service in another form.
            (&[("/?", "lost"), ("/", "main")][..], &["main"][..]),
            (
                &[("/?", "lost"), ("/?", "other"), ("/", "main")],
                &["other", "main"],
            ),
            // Another path is something else.
            (&[("/api", "lost"), ("/", "main")], &["503", "main"]),
            (
                &[("/api?", "lost"), ("/api", "api"), ("/", "main")],
                &["api", "main"],
            ),
            // Who comes after it may not take all of its requests.
            (&[("/?", "lost"), ("/?", "other")], &["503", "other"]),
            (&[("/?", "lost"), ("/", "lost")], &["503"]),
            (&[("/", "lost")], &["503"]),
            (&[("/", "main")], &["main"]),
            (&[], &[]),
        ] {
            assert_eq!(left(routes), wanted, "{routes:?}");
        }
    }
}
