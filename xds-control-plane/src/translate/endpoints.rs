//! EDS: live instances, by datacenter.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use discovery_core::address::is_of_one_host;
use xds_types::pb::envoy::config::core::v3::address::Address as AnyAddress;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, Locality, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};

use super::model::{CatalogService, StaticEndpoint, UNLISTED};
use crate::assemble::UnknownZones;

/// Maximum number of unusable instances of a service that are reported.
const MOST_PROBLEMS: usize = 10;

/// The live instances, by datacenter.
#[derive(Debug, Default)]
pub(super) struct Live {
    zones: BTreeMap<Arc<str>, BTreeSet<(IpAddr, u16)>>,
    /// The datacenters with unknown endpoints.
    unknown: BTreeSet<Arc<str>>,
    /// The problems of instances: a code and a message.
    pub(super) problems: Vec<(&'static str, String)>,
}

impl Live {
    /// Returns the live instances of a service.
    pub(super) fn of(service: Option<&CatalogService>) -> Self {
        let mut live = Self {
            unknown: service
                .iter()
                .flat_map(|service| service.unknown.union(&service.unread).cloned())
                .collect(),
            ..Self::default()
        };
        for (datacenter, instances) in service.iter().flat_map(|service| &service.datacenters) {
            for instance in instances.iter().filter(|instance| instance.is_live) {
                let place = match instance.address.parse::<IpAddr>() {
                    Ok(_) if instance.port == 0 => Err(("no_port", "has no port".to_owned())),
                    // An unspecified, broadcast or multicast address belongs to no single host.
                    Ok(address) if !is_of_one_host(address) => Err((
                        "no_ip_address",
                        format!("is at {address}, which is no host's address"),
                    )),
                    Ok(address) => Ok((address, instance.port)),
                    Err(_) => {
                        let address = discovery_core::text::shortened(&instance.address, 100);
                        Err((
                            "no_ip_address",
                            format!("is at {address:?}, which is no IP address"),
                        ))
                    }
                };
                match place {
                    Ok(place) => {
                        live.zones
                            .entry(Arc::clone(datacenter))
                            .or_default()
                            .insert(place);
                    }
                    Err((code, why)) => {
                        let id = discovery_core::text::shortened(&instance.id, 100);
                        live.problem(
                            code,
                            format!("the instance {id} in {datacenter} {why}; it is left out"),
                        );
                    }
                }
            }
        }
        live
    }

    /// Records a problem, if there are not too many yet: thousands of instances may have the same.
    fn problem(&mut self, code: &'static str, message: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push((code, message));
        } else if self.problems.len() == MOST_PROBLEMS {
            let message = "more instances are left out for the same or like reasons".to_owned();
            self.problems.push((code, message));
        }
    }

    /// Returns the instances of a static file; those without a zone are in the own datacenter.
    pub(super) fn written(endpoints: &[StaticEndpoint], own: &Arc<str>) -> Self {
        let mut live = Self::default();
        for endpoint in endpoints {
            let zone = endpoint.zone.as_ref().unwrap_or(own);
            let places = live.zones.entry(Arc::clone(zone)).or_default();
            places.insert((endpoint.address, endpoint.port));
        }
        live
    }

    pub(super) fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Returns the datacenters whose instances are unknown, if there are any. An empty own datacenter sends
    /// requests to others, and no instance anywhere fails them: neither is concluded from a failed read.
    pub(super) fn unknown(&self, own: &str) -> Option<UnknownZones> {
        (!self.unknown.is_empty()).then(|| UnknownZones {
            own: own.into(),
            zones: self.unknown.clone(),
            are_unlisted: self.unknown.contains(UNLISTED),
        })
    }

    /// The own datacenter first, all others together after it; if the own one has none, all others together first.
    pub(super) fn assignment(&self, cluster: &str, own: &str) -> ClusterLoadAssignment {
        let has_own = self.zones.contains_key(own);
        let mut groups: Vec<_> = self
            .zones
            .iter()
            .map(|(zone, places)| (u32::from(has_own && **zone != *own), zone, places))
            .collect();
        groups.sort();
        let mut seen = BTreeSet::new();
        let localities = groups.into_iter().filter_map(|(priority, zone, places)| {
            // An instance in two datacenters counts for the nearer one.
            let places: Vec<_> = places.iter().filter(|place| seen.insert(**place)).collect();
            (!places.is_empty()).then(|| LocalityLbEndpoints {
                locality: Some(Locality {
                    zone: zone.to_string(),
                    ..Locality::default()
                }),
                lb_endpoints: places.into_iter().map(endpoint).collect(),
                priority,
                ..LocalityLbEndpoints::default()
            })
        });
        ClusterLoadAssignment {
            cluster_name: cluster.to_owned(),
            endpoints: localities.collect(),
            ..ClusterLoadAssignment::default()
        }
    }
}

fn endpoint((address, port): &(IpAddr, u16)) -> LbEndpoint {
    let endpoint = Endpoint {
        address: Some(socket_address(*address, *port)),
        ..Endpoint::default()
    };
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    }
}

pub(super) fn socket_address(address: IpAddr, port: u16) -> Address {
    let socket = SocketAddress {
        address: address.to_string(),
        port_specifier: Some(PortSpecifier::PortValue(port.into())),
        ..SocketAddress::default()
    };
    Address {
        address: Some(AnyAddress::SocketAddress(socket)),
    }
}
