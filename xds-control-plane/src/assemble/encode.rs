//! Encoding of messages.

use std::time::Duration;

use bytes::Bytes;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::filter::ConfigType;
use xds_types::pb::envoy::config::listener::v3::{FilterChain, Listener};
use xds_types::pb::envoy::config::route::v3::VirtualHost;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::google::protobuf::Any;
use prost::Name;

use super::ResourceOptions;
use super::canonical::{encode, put};
use super::config_source::config_source;
use crate::proto::unpacked;
use crate::snapshot::{Bodies, Resource, Subscription};

/// Fields of `envoy.config.route.v3.RouteConfiguration`.
const ROUTE_CONFIGURATION_NAME: u32 = 1;
const ROUTE_CONFIGURATION_VIRTUAL_HOSTS: u32 = 2;

/// Returns true if its endpoints are requested over EDS.
pub(super) fn is_eds(cluster: &Cluster) -> bool {
    cluster.cluster_discovery_type == Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into()))
}

/// Returns the name by which the endpoints of a cluster of type `EDS` are requested: its own, unless it has
/// a separate one.
pub(super) fn eds_name(cluster: &Cluster) -> &str {
    match &cluster.eds_cluster_config {
        Some(eds) if !eds.service_name.is_empty() => &eds.service_name,
        _ => &cluster.name,
    }
}

/// One body for each subscription.
fn per_subscription(encoded: impl Fn(Subscription) -> Bytes) -> Bodies {
    Bodies::PerSubscription {
        aggregated: encoded(Subscription::Aggregated),
        separate: encoded(Subscription::Separate),
        rest: encoded(Subscription::Rest),
    }
}

pub(super) fn cluster(
    cluster: &Cluster,
    refresh_delay: Duration,
    options: &ResourceOptions,
) -> Resource {
    let eds = cluster.eds_cluster_config.as_ref();
    let has_source = eds.is_some_and(|eds| eds.eds_config.is_some());
    if !is_eds(cluster) || has_source {
        let body = encode(cluster);
        return Resource::new(cluster.name.as_str(), Bodies::Same(body));
    }
    let bodies = per_subscription(|subscription| {
        let mut cluster = cluster.clone();
        let eds = cluster
            .eds_cluster_config
            .get_or_insert_with(EdsClusterConfig::default);
        eds.eds_config = Some(config_source(
            subscription,
            &options.xds_cluster,
            refresh_delay,
        ));
        encode(&cluster)
    });
    Resource::new(cluster.name.as_str(), bodies)
}

pub(super) fn assignment(assignment: &ClusterLoadAssignment) -> Resource {
    let body = encode(assignment);
    Resource::new(assignment.cluster_name.as_str(), Bodies::Same(body))
}

pub(super) fn virtual_host(host: &VirtualHost) -> Bytes {
    encode(host)
}

/// A route configuration of virtual hosts that are encoded already.
pub(super) fn route_configuration<'h>(
    name: &str,
    hosts: impl Iterator<Item = &'h Bytes> + Clone,
) -> Resource {
    let length: usize = hosts.clone().map(|host| host.len() + 6).sum();
    let mut body = Vec::with_capacity(length + name.len() + 6);
    put(&mut body, ROUTE_CONFIGURATION_NAME, name.as_bytes());
    for host in hosts {
        put(&mut body, ROUTE_CONFIGURATION_VIRTUAL_HOSTS, host);
    }
    Resource::new(name, Bodies::Same(body.into()))
}

pub(super) fn listener(
    listener: &Listener,
    refresh_delay: Duration,
    options: &ResourceOptions,
) -> Resource {
    let bodies = per_subscription(|subscription| {
        let mut listener = listener.clone();
        let chains = listener
            .filter_chains
            .iter_mut()
            .chain(&mut listener.default_filter_chain);
        for chain in chains {
            fill_in(chain, subscription, refresh_delay, options);
        }
        encode(&listener)
    });
    match bodies {
        Bodies::PerSubscription {
            aggregated,
            separate,
            rest,
        } if aggregated == separate && separate == rest => {
            Resource::new(listener.name.as_str(), Bodies::Same(aggregated))
        }
        bodies => Resource::new(listener.name.as_str(), bodies),
    }
}

/// Sets the source of routes in the connection managers of a chain.
fn fill_in(
    chain: &mut FilterChain,
    subscription: Subscription,
    refresh_delay: Duration,
    options: &ResourceOptions,
) {
    for filter in &mut chain.filters {
        let Some(ConfigType::TypedConfig(config)) = &mut filter.config_type else {
            continue;
        };
        let Some(mut manager) = unpacked::<HttpConnectionManager>(config) else {
            continue;
        };
        if let Some(RouteSpecifier::Rds(rds)) = &mut manager.route_specifier
            && rds.config_source.is_none()
        {
            let source = config_source(subscription, &options.xds_cluster, refresh_delay);
            rds.config_source = Some(source);
        }
        *config = Any {
            type_url: HttpConnectionManager::type_url(),
            value: encode(&manager).into(),
        };
    }
}
