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

/// Counts of the endpoints' health states, and Envoy's decision about panic.
///
/// Source: `recalculatePerPriorityState`, `recalculatePerPriorityPanic` and `isHostSetInPanic` of Envoy (commit
/// 00cf9a05) in `source/extensions/load_balancing_policies/common/load_balancer_impl.cc`, with the defaults 50 (the
/// policies' `config.cc`) and 140 (`kDefaultOverProvisioningFactor`). `HostImplBase::setEdsHealthFlag` and
/// `excludeBasedOnHealthFlag` of `source/common/upstream/upstream_impl.cc` map the states: endpoints that drain are not
/// counted at all, in older versions they are unhealthy. The examples of Envoy's documentation
/// (`intro/arch_overview/upstream/load_balancing/panic_threshold`) are a test.
#[derive(Debug, Default)]
struct Statuses {
    priorities: BTreeMap<u32, Availability>,
}

/// Counts of the endpoints of one priority, without those that drain.
#[derive(Debug, Default)]
struct Availability {
    counted: usize,
    healthy: usize,
    degraded: usize,
}

impl Availability {
    /// Returns so many endpoints in percent of `whole`; 0 if none are counted.
    fn part_of(&self, endpoints: usize, whole: usize) -> usize {
        endpoints * whole / self.counted.max(1)
    }

    fn available(&self) -> usize {
        self.healthy + self.degraded
    }

    /// Returns the part of all requests that the priority could take, in percent.
    fn capacity(&self) -> usize {
        let capacity = |endpoints| self.part_of(endpoints, OVERPROVISIONING).min(100);
        capacity(self.healthy) + capacity(self.degraded)
    }

    fn panics(&self) -> bool {
        self.part_of(self.available(), 100) < PANIC_THRESHOLD
    }
}

impl Statuses {
    fn add(&mut self, priority: u32, status: HealthStatus) {
        let counts = self.priorities.entry(priority).or_default();
        match status {
            HealthStatus::Draining => return,
            HealthStatus::Unhealthy | HealthStatus::Timeout => {}
            HealthStatus::Degraded => counts.degraded += 1,
            HealthStatus::Unknown | HealthStatus::Healthy => counts.healthy += 1,
        }
        counts.counted += 1;
    }

    /// Returns true if Envoy would send requests to endpoints that are not available. It does not as long as the
    /// priorities can take all requests together. Otherwise each priority decides for itself, and one without an
    /// available endpoint gets no requests unless all panic.
    fn panics(&self) -> bool {
        let priorities = || self.priorities.values();
        !self.priorities.is_empty()
            && priorities().map(Availability::capacity).sum::<usize>() < 100
            && (priorities().all(Availability::panics)
                || priorities().any(|counts| counts.panics() && counts.available() > 0))
    }

    fn report(&self, reading: &mut Reading) {
        if self.priorities.values().any(|counts| counts.degraded > 0) {
            reading.differs(
                "health_status",
                "degraded endpoints get requests as healthy ones do",
            );
        }
        let has_none = |counts: &Availability| counts.available() == 0;
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
