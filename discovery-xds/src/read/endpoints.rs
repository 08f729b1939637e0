//! Endpoints.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use proxy_model::config::{ClusterConfig, DestinationConfig};
use proxy_model::json::{parse_document, read_cluster as read_model};
use proxy_model::{DestinationId, MAX_WEIGHT, Problems};
use xds_types::pb::envoy::config::core::v3::HealthStatus;
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LocalityLbEndpoints,
};

use super::Reading;
use xds_types::carried;

/// The endpoints of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadEndpoints {
    pub(super) endpoints: IndexMap<DestinationId, ReadEndpoint>,
}

impl ReadEndpoints {
    /// Number of endpoints.
    #[must_use]
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns true if there are no endpoints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadEndpoint {
    /// The destination. Its address has no scheme, unless `is_whole` is true.
    pub(super) destination: DestinationConfig,
    /// True if it is in the model's own form, so that nothing of the cluster has to be added.
    pub(super) is_whole: bool,
}

/// Reads the endpoints of a cluster. Differences from Envoy are warnings.
///
/// # Errors
///
/// Returns all parts of the endpoints that are unsupported.
pub fn read_endpoints(
    assignment: &ClusterLoadAssignment,
) -> Result<(ReadEndpoints, Problems), Problems> {
    let mut reading = Reading::of("endpoints", &assignment.cluster_name);
    let found = endpoints(assignment, &mut reading);
    reading.finish(Some(found))
}

pub(super) fn endpoints(
    assignment: &ClusterLoadAssignment,
    reading: &mut Reading,
) -> ReadEndpoints {
    reading.reject_if(!assignment.named_endpoints.is_empty(), "named_endpoints");
    let drops =
        (assignment.policy.as_ref()).is_some_and(|policy| !policy.drop_overloads.is_empty());
    reading.ignore_if(drops, "drop_overloads");
    let mut found = ReadEndpoints::default();
    let mut statuses = Statuses::default();
    for place in &assignment.endpoints {
        for endpoint in &place.lb_endpoints {
            let status = HealthStatus::try_from(endpoint.health_status).unwrap_or_default();
            statuses.add(place.priority, status);
            // Envoy sends nothing to these either.
            if matches!(
                status,
                HealthStatus::Unhealthy | HealthStatus::Draining | HealthStatus::Timeout
            ) {
                continue;
            }
            if let Some((id, destination)) = sealed(place, endpoint, reading) {
                let endpoint = ReadEndpoint {
                    destination,
                    is_whole: true,
                };
                found.endpoints.insert(id, endpoint);
            } else if let Some((id, destination)) = structure(place, endpoint, reading) {
                let endpoint = ReadEndpoint {
                    destination,
                    is_whole: false,
                };
                found.endpoints.insert(id, endpoint);
            }
        }
    }
    statuses.report(reading);
    found
}

/// Envoy's default of `healthy_panic_threshold`, in percent. A cluster's own is not known here.
const PANIC_THRESHOLD: usize = 50;

/// Envoy's default of `overprovisioning_factor`, in percent: a priority with fewer available endpoints than
/// 100 of 140 passes requests on to the next one.
const OVERPROVISIONING: usize = 140;

/// Counts of the endpoints' health states.
#[derive(Debug, Default)]
struct Statuses {
    priorities: BTreeMap<u32, Availability>,
    degraded: usize,
}

/// Counts of the endpoints of one priority.
#[derive(Debug, Default)]
struct Availability {
    all: usize,
    unhealthy: usize,
}

impl Availability {
    /// Returns the part of endpoints that are not unhealthy, in percent of `whole`.
    fn part_of(&self, whole: usize) -> usize {
        (self.all - self.unhealthy) * whole / self.all.max(1)
    }
}

impl Statuses {
    fn add(&mut self, priority: u32, status: HealthStatus) {
        let counts = self.priorities.entry(priority).or_default();
        counts.all += 1;
        match status {
            HealthStatus::Unhealthy | HealthStatus::Timeout => counts.unhealthy += 1,
            HealthStatus::Degraded => self.degraded += 1,
            _ => {}
        }
    }

    /// Returns true if Envoy would send requests to all endpoints of a priority, healthy or not. It does not
    /// as long as the priorities have enough available endpoints together.
    fn panics(&self) -> bool {
        let priorities = || self.priorities.values();
        let total: usize = priorities()
            .map(|counts| counts.part_of(OVERPROVISIONING).min(100))
            .sum();
        total < 100 && priorities().any(|counts| counts.part_of(100) < PANIC_THRESHOLD)
    }

    fn report(&self, reading: &mut Reading) {
        if self.degraded > 0 {
            reading.differs(
                "health_status",
                "degraded endpoints get requests as healthy ones do",
            );
        }
        let has_none = |counts: &Availability| counts.unhealthy == counts.all;
        if !self.priorities.is_empty() && self.priorities.values().all(has_none) {
            reading.differs(
                "health_status",
                "no endpoint is healthy: requests get 503, where Envoy panics and sends them to all",
            );
        } else if self.panics() {
            reading.differs(
                "health_status",
                "less than half of the endpoints are healthy: they alone get requests, where Envoy panics at its \
                 default threshold and sends them to all",
            );
        }
    }
}

/// Returns the model's own form, if the endpoint carries one, and is at the place in it.
fn sealed(
    place: &LocalityLbEndpoints,
    endpoint: &LbEndpoint,
    reading: &mut Reading,
) -> Option<(DestinationId, DestinationConfig)> {
    let zone = place.locality.as_ref().map(|locality| &*locality.zone);
    reading.carried(&carried::carried(endpoint), |json| {
        let carried: serde_json::Value = serde_json::from_str(json).ok()?;
        let is_there = carried.get("Tier")?.as_u64()? == u64::from(place.priority)
            && carried.get("Zone")?.as_str()? == zone.unwrap_or_default();
        let id = carried.get("Id").filter(|_| is_there)?.as_str()?;
        let destination = carried.get("Destination")?;
        // As a part of a cluster, which is what the model reads.
        let cluster = serde_json::json!({ "Destinations": { id: destination } }).to_string();
        let node = parse_document(&cluster).ok()?;
        let mut problems = Problems::new();
        let cluster: ClusterConfig = read_model(&node, "", &mut problems)?;
        (!problems.has_errors())
            .then(|| cluster.destinations.into_iter().next())
            .flatten()
    })
}

fn structure(
    place: &LocalityLbEndpoints,
    endpoint: &LbEndpoint,
    reading: &mut Reading,
) -> Option<(DestinationId, DestinationConfig)> {
    let Some(HostIdentifier::Endpoint(inner)) = &endpoint.host_identifier else {
        reading.reject(
            "host_identifier",
            "only endpoints with an address can be honoured",
        );
        return None;
    };
    let address = inner
        .address
        .as_ref()
        .and_then(|address| address.address.as_ref());
    let Some(AddressKind::SocketAddress(socket)) = address else {
        reading.reject("address", "only addresses with a port can be honoured");
        return None;
    };
    let port = match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => u16::try_from(port).ok().filter(|port| *port != 0),
        _ => None,
    };
    let Some(port) = port else {
        reading.reject("port_value", format!("`{}` has no port", socket.address));
        return None;
    };
    let authority = match socket.address.contains(':') {
        true => format!("[{}]:{port}", socket.address),
        false => format!("{}:{port}", socket.address),
    };
    let weight = endpoint
        .load_balancing_weight
        .as_ref()
        .map(|weight| weight.value);
    if weight.is_some_and(|weight| weight > MAX_WEIGHT) {
        reading.differs(
            "load_balancing_weight",
            format!("weights end at {MAX_WEIGHT}"),
        );
    }
    let zone = place
        .locality
        .as_ref()
        .map(|locality| locality.zone.clone());
    let config = DestinationConfig {
        address: authority.clone(),
        host: (!inner.hostname.is_empty()).then(|| inner.hostname.clone()),
        weight: weight.map(|weight| weight.min(MAX_WEIGHT)),
        priority: (place.priority > 0).then_some(place.priority),
        zone: zone.filter(|zone| !zone.is_empty()),
        ..DestinationConfig::default()
    };
    Some((authority.into(), config))
}
