//! Tests with the resources of a configuration, as this project's own control plane would send them: with
//! the original in their metadata.

use std::net::SocketAddr;

use prost::Message;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use serde_json::json;
use xds_types::ResourceType;
use xds_types::carried::carry;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use xds_types::pb::google::protobuf::Any;

use super::script::any;

/// The resources of a configuration by type and name: clusters with `http` destinations at IP addresses,
/// and routes that take every path.
pub(super) fn resources(json: &str) -> Vec<(ResourceType, String, Any)> {
    resources_with_routes("main", json)
}

/// The resources of a configuration whose routes have this name.
pub(super) fn resources_with_routes(name: &str, json: &str) -> Vec<(ResourceType, String, Any)> {
    let config = ProxyConfig::from_json(json).unwrap();
    let mut found = Vec::new();
    for (id, cluster) in &config.clusters {
        push(
            &mut found,
            ResourceType::Cluster,
            id.as_str(),
            &written(id.as_str(), cluster),
        );
        let assignment = ClusterLoadAssignment {
            cluster_name: id.as_str().to_owned(),
            endpoints: vec![LocalityLbEndpoints {
                lb_endpoints: (cluster.destinations.iter())
                    .map(|(id, destination)| endpoint(id.as_str(), destination))
                    .collect(),
                ..LocalityLbEndpoints::default()
            }],
            ..ClusterLoadAssignment::default()
        };
        push(&mut found, ResourceType::Endpoint, id.as_str(), &assignment);
    }
    let routes = (config.routes.iter().enumerate())
        .map(|(position, (id, config))| route(position, id.as_str(), config))
        .collect();
    let routes = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: "*".to_owned(),
            domains: vec!["*".to_owned()],
            routes,
            ..VirtualHost::default()
        }],
        ..RouteConfiguration::default()
    };
    push(&mut found, ResourceType::Route, name, &routes);
    found
}

fn push(
    found: &mut Vec<(ResourceType, String, Any)>,
    kind: ResourceType,
    name: &str,
    message: &impl Message,
) {
    found.push((kind, name.to_owned(), any(kind, message)));
}

fn written(name: &str, config: &ClusterConfig) -> Cluster {
    let mut bare = config.clone();
    bare.destinations.clear();
    let mut cluster = Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        ..Cluster::default()
    };
    carry(&mut cluster, &serde_json::to_string(&bare).unwrap());
    cluster
}

fn endpoint(id: &str, config: &DestinationConfig) -> LbEndpoint {
    let address = (config.address.strip_prefix("http://"))
        .map(|rest| rest.trim_end_matches('/'))
        .unwrap();
    let address: SocketAddr = match address.contains(':') {
        true => address.parse().unwrap(),
        false => SocketAddr::new(address.parse().unwrap(), 80),
    };
    let mut endpoint = LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(AddressKind::SocketAddress(SocketAddress {
                    address: address.ip().to_string(),
                    port_specifier: Some(PortSpecifier::PortValue(address.port().into())),
                    ..SocketAddress::default()
                })),
            }),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    };
    let original = json!({ "Tier": 0, "Zone": "", "Id": id, "Destination": config });
    carry(&mut endpoint, &original.to_string());
    endpoint
}

fn route(position: usize, id: &str, config: &RouteConfig) -> Route {
    assert_eq!(config.r#match.path.as_deref(), Some("/{**rest}"));
    let cluster = config.cluster_id.as_ref().unwrap().as_str();
    let mut route = Route {
        name: id.to_owned(),
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
            ..RouteMatch::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
            ..RouteAction::default()
        })),
        ..Route::default()
    };
    let original = json!({ "Position": position, "Route": config });
    carry(&mut route, &original.to_string());
    route
}
