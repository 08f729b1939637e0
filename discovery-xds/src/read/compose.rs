//! Routes, clusters and endpoints as one configuration.

use std::collections::BTreeMap;

use indexmap::map::Entry;
use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, pointer_to};

use super::cluster;
use super::{NOT_HONOURED, ReadCluster, ReadEndpoints, ReadRoutes};

/// A configuration that is made of resources.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Composed {
    /// The configuration.
    pub config: ProxyConfig,
    /// Problems of resources that do not fit together.
    pub problems: Problems,
}

/// Combines the resources that were read: `clusters` and `endpoints` by name. If two routes in different
/// configurations have one id, the first one stays.
#[must_use]
pub fn compose<'r>(
    routes: impl IntoIterator<Item = &'r ReadRoutes>,
    clusters: &BTreeMap<String, ReadCluster>,
    endpoints: &BTreeMap<String, ReadEndpoints>,
) -> Composed {
    let mut composed = Composed::default();
    for (id, route) in routes.into_iter().flat_map(|routes| &routes.routes) {
        match composed.config.routes.entry(id.clone()) {
            Entry::Vacant(free) => {
                free.insert(route.clone());
            }
            // Configurations for several listeners often repeat the same routes.
            Entry::Occupied(taken) if taken.get() == route => {}
            Entry::Occupied(_) => composed.problems.push(Problem::warning(
                pointer_to("/Routes", id.as_str()),
                NOT_HONOURED,
                "two route configurations have a route of this name; the first serves",
            )),
        }
    }
    let nothing = cluster::none();
    for (name, cluster) in clusters {
        let found = match &cluster.endpoints_from {
            Some(from) => endpoints.get(from).unwrap_or(&nothing),
            None => &cluster.inline,
        };
        let mut config = cluster.config.clone();
        for (id, endpoint) in &found.endpoints {
            let mut destination = endpoint.destination.clone();
            // Envoy configures TLS at the cluster; here it is the scheme of each destination.
            if !endpoint.is_whole {
                let scheme = if cluster.tls.is_on { "https" } else { "http" };
                destination.address = format!("{scheme}://{}/", destination.address);
                let name = &cluster.tls.server_name;
                if !name.is_empty() && destination.host.is_none() {
                    destination.host = Some(name.clone());
                }
            }
            config.destinations.insert(id.clone(), destination);
        }
        composed
            .config
            .clusters
            .insert(name.as_str().into(), config);
    }
    composed
}
