//! Resources of other control planes.

use std::collections::BTreeMap;

use discovery_xds::read::{compose, read_cluster, read_endpoints, read_listener, read_routes};
use prost::Message;
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Problems, Snapshot};
use xds_control_plane::bridge::{BridgeOptions, to_envoy};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use crate::input::check_wording;

/// Fuzzes an xDS resource. The first byte selects its type: `c` a cluster, `e` endpoints, `l` a
/// listener, `r` a route configuration. Any other byte means a section `ReverseProxy`.
///
/// * A rejection consists of problems of one line each.
/// * An accepted resource is a configuration that compiles, or its problems say why not.
/// * A configuration that compiles can be written. Read again, it is equal.
pub fn xds_resources(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    match kind {
        b'c' => {
            if let Ok(cluster) = Cluster::decode(body)
                && let Some(read) = told(read_cluster(&cluster))
            {
                let clusters = BTreeMap::from([("c".to_owned(), read)]);
                judge(compose([], &clusters, &BTreeMap::new()).config);
            }
        }
        b'e' => {
            if let Ok(assignment) = ClusterLoadAssignment::decode(body) {
                told(read_endpoints(&assignment));
            }
        }
        b'l' => {
            if let Ok(listener) = Listener::decode(body) {
                told(read_listener(&listener));
            }
        }
        b'r' => {
            if let Ok(routes) = RouteConfiguration::decode(body)
                && let Some(read) = told(read_routes(&routes))
            {
                judge(compose([&read], &BTreeMap::new(), &BTreeMap::new()).config);
            }
        }
        _ => there_and_back(&String::from_utf8_lossy(body)),
    }
}

fn told<T>(read: Result<(T, Problems), Problems>) -> Option<T> {
    let (value, problems) = match read {
        Ok((value, warnings)) => (Some(value), warnings),
        Err(problems) => {
            assert!(problems.has_errors());
            (None, problems)
        }
    };
    problems.iter().for_each(check_wording);
    value
}

fn judge(config: ProxyConfig) {
    if let Err(problems) = Snapshot::compile(config, &CompileOptions::default()) {
        assert!(problems.has_errors());
    }
}

fn there_and_back(json: &str) {
    let Ok(config) = ProxyConfig::from_json(json) else {
        return;
    };
    let (snapshot, _) = Snapshot::compile_isolated(config, &CompileOptions::default());
    let bridged = to_envoy(
        "fuzz",
        &snapshot,
        &BridgeOptions::default().with_carried_source(true),
    );
    bridged.problems.iter().for_each(check_wording);
    let mut routes = RouteConfiguration::default();
    for service in bridged.services {
        routes.virtual_hosts.extend(service.virtual_hosts);
        for cluster in &service.clusters {
            let (read, _) = read_cluster(cluster).expect("what was written is read");
            let name = proxy_model::ClusterId::from(cluster.name.as_str());
            let mut wanted = snapshot.config().clusters[&name].clone();
            wanted.destinations.clear();
            assert_eq!(read.config, wanted);
        }
        for assignment in &service.assignments {
            read_endpoints(assignment).expect("what was written is read");
        }
    }
    let (read, _) = read_routes(&routes).expect("what was written is read");
    for (id, route) in &read.routes {
        assert_eq!(route, &snapshot.config().routes[id]);
    }
}
