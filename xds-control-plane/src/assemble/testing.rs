//! Resources for tests, good ones.

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use xds_types::pb::envoy::config::core::v3::address::Address as AnyAddress;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, Locality, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::envoy::config::listener::v3::filter::ConfigType;
use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{Route, RouteAction, RouteMatch, VirtualHost};
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier as TcpTarget;

use super::{Owner, ServiceResources};
use crate::proto::any;

/// A service with a cluster, an endpoint on port 80 and a virtual host, all of its name.
pub(crate) fn service(source: &str, name: &str) -> ServiceResources {
    ServiceResources {
        clusters: vec![cluster(name)],
        assignments: vec![assignment(name, &[80])],
        virtual_hosts: vec![host(name, &[&format!("{name}.example")])],
        ..ServiceResources::new(Owner::new(source, name))
    }
}

pub(crate) fn cluster(name: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        ..Cluster::default()
    }
}

pub(crate) fn assignment(name: &str, ports: &[u32]) -> ClusterLoadAssignment {
    let endpoints = ports.iter().map(|port| endpoint("10.0.0.1", *port));
    with_endpoints(name, endpoints.collect())
}

pub(crate) fn assignment_at(name: &str, address: &str, port: u32) -> ClusterLoadAssignment {
    with_endpoints(name, vec![endpoint(address, port)])
}

fn with_endpoints(name: &str, lb_endpoints: Vec<LbEndpoint>) -> ClusterLoadAssignment {
    let locality = LocalityLbEndpoints {
        lb_endpoints,
        ..LocalityLbEndpoints::default()
    };
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![locality],
        ..ClusterLoadAssignment::default()
    }
}

pub(crate) fn address(address: &str, port: u32) -> Address {
    let socket = SocketAddress {
        address: address.to_owned(),
        port_specifier: Some(PortSpecifier::PortValue(port)),
        ..SocketAddress::default()
    };
    Address {
        address: Some(AnyAddress::SocketAddress(socket)),
    }
}

fn endpoint(host: &str, port: u32) -> LbEndpoint {
    let endpoint = Endpoint {
        address: Some(address(host, port)),
        ..Endpoint::default()
    };
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    }
}

/// Endpoints by datacenter with its priority, by their ports.
pub(crate) fn assignment_in(cluster: &str, zones: &[(&str, u32, &[u32])]) -> ClusterLoadAssignment {
    let locality = |(zone, priority, ports): &(&str, u32, &[u32])| {
        let of_ports = assignment(cluster, ports).endpoints.into_iter().next();
        LocalityLbEndpoints {
            locality: Some(Locality {
                zone: (*zone).to_owned(),
                ..Locality::default()
            }),
            priority: *priority,
            ..of_ports.unwrap_or_default()
        }
    };
    ClusterLoadAssignment {
        endpoints: zones.iter().map(locality).collect(),
        ..assignment(cluster, &[])
    }
}

pub(crate) fn ports(assignment: &ClusterLoadAssignment) -> Vec<u32> {
    let endpoints = assignment
        .endpoints
        .iter()
        .flat_map(|locality| &locality.lb_endpoints);
    let port = |endpoint: &LbEndpoint| match &endpoint.host_identifier {
        Some(HostIdentifier::Endpoint(endpoint)) => {
            match endpoint.address.as_ref()?.address.as_ref()? {
                AnyAddress::SocketAddress(socket) => match socket.port_specifier {
                    Some(PortSpecifier::PortValue(port)) => Some(port),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    };
    endpoints.filter_map(port).collect()
}

pub(crate) fn host(name: &str, domains: &[&str]) -> VirtualHost {
    host_to(name, domains, name)
}

pub(crate) fn host_to(name: &str, domains: &[&str], cluster: &str) -> VirtualHost {
    let action = RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
        ..RouteAction::default()
    };
    let everything = RouteMatch {
        path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
        ..RouteMatch::default()
    };
    let route = Route {
        r#match: Some(everything),
        action: Some(Action::Route(action)),
        ..Route::default()
    };
    VirtualHost {
        name: name.to_owned(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        routes: vec![route],
        ..VirtualHost::default()
    }
}

/// A listener for TCP.
pub(crate) fn listener(name: &str, port: u32) -> Listener {
    let proxy = TcpProxy {
        stat_prefix: name.to_owned(),
        cluster_specifier: Some(TcpTarget::Cluster("a".to_owned())),
        ..TcpProxy::default()
    };
    let filter = Filter {
        name: "envoy.filters.network.tcp_proxy".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&proxy))),
    };
    let chain = FilterChain {
        filters: vec![filter],
        ..FilterChain::default()
    };
    Listener {
        name: name.to_owned(),
        address: Some(address("0.0.0.0", port)),
        filter_chains: vec![chain],
        ..Listener::default()
    }
}
