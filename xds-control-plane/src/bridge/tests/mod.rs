//! Tests of what the bridge writes.

mod clusters;
mod envoy;
mod paths;
mod policies;
mod replies;
mod round_trip;
mod routes;
mod said;
mod validate;

use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::route::v3::VirtualHost;

use super::{BridgeOptions, Bridged, to_envoy};

/// The section `ReverseProxy` of these routes and clusters.
fn compiled(json: &str) -> Snapshot {
    let config = ProxyConfig::from_json(json).unwrap();
    let options = CompileOptions::default()
        .with_filters(["audit"])
        .with_authorization_policies(["staff"])
        .with_balancing_policies(["nearest"]);
    Snapshot::compile(config, &options).unwrap().0
}

fn bridged(json: &str) -> (Snapshot, Bridged) {
    let snapshot = compiled(json);
    let bridged = to_envoy("test", &snapshot, &BridgeOptions::default());
    (snapshot, bridged)
}

fn hosts(bridged: &Bridged) -> Vec<VirtualHost> {
    (bridged.services.iter())
        .flat_map(|service| service.virtual_hosts.clone())
        .collect()
}

fn cluster<'b>(bridged: &'b Bridged, name: &str) -> &'b Cluster {
    (bridged.services.iter())
        .flat_map(|service| &service.clusters)
        .find(|cluster| cluster.name == name)
        .unwrap()
}
