//! Clusters and destinations by the thousand.

use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig, RouteMatch};

/// A cluster of `destinations`. Weighted ones have weights from 1 to 4; otherwise they are equal.
pub fn cluster(destinations: usize, weighted: bool) -> ClusterConfig {
    let destination = |i: usize| DestinationConfig {
        address: address(i, 8080),
        weight: weighted.then_some(1 + (i % 4) as u32),
        ..DestinationConfig::default()
    };
    let named = |i: usize| (format!("destination-{i:04}").into(), destination(i));
    ClusterConfig {
        destinations: (0..destinations).map(named).collect(),
        ..ClusterConfig::default()
    }
}

/// Clusters with the given number of destinations each, and a route with its own host for every
/// cluster.
pub fn clusters(clusters: usize, destinations: usize) -> ProxyConfig {
    let mut config = ProxyConfig::default();
    for i in 0..clusters {
        let id = format!("cluster-{i:05}");
        let route = RouteConfig {
            cluster_id: Some(id.as_str().into()),
            r#match: RouteMatch {
                hosts: Some(vec![format!("service-{i:05}.example.com")]),
                path: Some("/{**rest}".to_owned()),
                ..RouteMatch::default()
            },
            ..RouteConfig::default()
        };
        config.routes.insert(format!("route-{i:05}").into(), route);
        config
            .clusters
            .insert(id.into(), cluster(destinations, false));
    }
    config
}

/// Returns `config` with another address for every `nth` destination, and the number of these.
pub fn moved(config: &ProxyConfig, nth: usize) -> (ProxyConfig, usize) {
    let mut config = config.clone();
    let all = config
        .clusters
        .values_mut()
        .flat_map(|cluster| cluster.destinations.values_mut());
    let mut count = 0;
    for (i, destination) in all.enumerate().step_by(nth) {
        destination.address = address(i, 9090);
        count += 1;
    }
    (config, count)
}

fn address(i: usize, port: u16) -> String {
    format!(
        "http://10.{}.{}.{}:{port}/",
        i >> 16 & 0xff,
        i >> 8 & 0xff,
        i & 0xff
    )
}
