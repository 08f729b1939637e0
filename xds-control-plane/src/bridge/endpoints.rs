//! Destinations as endpoints.

use std::collections::BTreeMap;

use proxy_model::compiled::{Cluster, Destination, DestinationAddress};
use proxy_model::config::DestinationConfig;
use serde::Serialize;
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, Locality, Metadata, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::cluster_load_assignment::Policy;
use xds_types::pb::envoy::config::endpoint::v3::endpoint::HealthCheckConfig;
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::google::protobuf::UInt32Value;

use super::{BridgeOptions, source, tls};

/// A destination as its endpoint carries it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Carried<'d> {
    /// The endpoint's tier, which is not in its own fields.
    tier: usize,
    zone: &'d str,
    id: &'d str,
    destination: &'d DestinationConfig,
}

/// The endpoints of a cluster, by priority and zone.
pub(super) fn assignment(cluster: &Cluster, options: &BridgeOptions) -> ClusterLoadAssignment {
    // A weight of 0 takes no requests, unless all have it.
    let all_idle = cluster
        .destinations()
        .iter()
        .all(|destination| destination.weight() == 0);
    let used = || {
        (cluster.destinations().iter())
            .filter(move |destination| all_idle || destination.weight() > 0)
    };
    let mut tiers: Vec<u32> = used().map(Destination::priority).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let mut places: BTreeMap<(usize, &str), Vec<LbEndpoint>> = BTreeMap::new();
    for destination in used() {
        // Envoy counts priorities without gaps.
        let tier = tiers
            .binary_search(&destination.priority())
            .unwrap_or_default();
        let zone = destination.zone().unwrap_or_default();
        places.entry((tier, zone)).or_default().push(endpoint(
            cluster,
            destination,
            (tier, zone),
            all_idle,
            options,
        ));
    }
    let count = used().count();
    ClusterLoadAssignment {
        cluster_name: cluster.id().as_str().to_owned(),
        endpoints: (places.into_iter())
            .map(|((tier, zone), lb_endpoints)| LocalityLbEndpoints {
                locality: (!zone.is_empty()).then(|| Locality {
                    zone: zone.to_owned(),
                    ..Locality::default()
                }),
                priority: u32::try_from(tier).unwrap_or(u32::MAX),
                lb_endpoints,
                ..LocalityLbEndpoints::default()
            })
            .collect(),
        // So high that a tier with one healthy destination takes all requests: 140 would pass some on from 71 % down.
        policy: (tiers.len() > 1).then(|| Policy {
            overprovisioning_factor: Some(UInt32Value {
                value: u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(100),
            }),
            ..Policy::default()
        }),
        ..ClusterLoadAssignment::default()
    }
}

fn endpoint(
    cluster: &Cluster,
    destination: &Destination,
    (tier, zone): (usize, &str),
    all_idle: bool,
    options: &BridgeOptions,
) -> LbEndpoint {
    let address = destination.address();
    let hostname = (destination.host().unwrap_or_else(|| address.authority()))
        .to_str()
        .unwrap_or_default()
        .to_owned();
    let probed = destination.health_address();
    let health_check_config = cluster.active_check().map(|_| HealthCheckConfig {
        hostname: hostname.clone(),
        address: (probed.host() != address.host()).then(|| socket(probed)),
        port_value: match probed.port() == address.port() {
            true => 0,
            false => probed.port().into(),
        },
        ..HealthCheckConfig::default()
    });
    let metadata = tls::endpoint_match(cluster, destination).map(|filter_metadata| Metadata {
        filter_metadata,
        ..Metadata::default()
    });
    let mut written = LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(socket(address)),
            hostname,
            health_check_config,
            ..Endpoint::default()
        })),
        // Envoy rejects a weight of 0. Destinations that all have it share the requests equally.
        load_balancing_weight: (!all_idle).then(|| UInt32Value {
            value: destination.weight(),
        }),
        metadata,
        ..LbEndpoint::default()
    };
    if options.carry_source {
        source::carry(
            &mut written,
            &Carried {
                tier,
                zone,
                id: destination.id().as_str(),
                destination: destination.config(),
            },
        );
    }
    written
}

fn socket(address: &DestinationAddress) -> Address {
    Address {
        address: Some(AddressKind::SocketAddress(SocketAddress {
            address: address.host().to_owned(),
            port_specifier: Some(PortSpecifier::PortValue(address.port().into())),
            ..SocketAddress::default()
        })),
    }
}
