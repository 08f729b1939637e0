//! The state of clusters and their destinations.

use discovery_core::Moment;
use proxy_model::compiled::{ActiveCheck, Cluster, Destination};
use proxy_model::transform::path_and_query;
use proxy_model::{ClusterId, DestinationId};
use serde::Serialize;

use super::failing::Failing;
use super::latency::Latency;
use super::{ErrorCounts, add_seconds, error_counts};
use crate::cluster::ClusterState;
use crate::health::Health;
use crate::live::{DestinationState, Ineligible};
use crate::observe::HistogramCounts;
use crate::observe::SECONDS;

/// The state of one cluster.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Its id.
    pub id: ClusterId,
    /// Name of the load balancing policy.
    pub policy: String,
    /// Whether its destinations are probed.
    pub probed: bool,
    /// How many destinations may be picked.
    pub available: usize,
    /// Whether no destination is healthy and all are used nevertheless.
    pub panic: bool,
    /// Requests in flight at all destinations.
    pub in_flight: u32,
    /// Requests that were sent to destinations since the cluster came.
    pub requests: u64,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
    /// Answers of the last minute; `None` without any.
    pub latency: Option<Latency>,
    /// Errors since the cluster came.
    pub errors: ErrorCounts,
    /// Requests that failed in the last 30 seconds; `None` without any.
    pub failing: Option<Failing>,
    /// Its destinations in the order of the configuration.
    pub destinations: Vec<DestinationStatus>,
}

/// The state of one destination.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DestinationStatus {
    /// Its id.
    pub id: DestinationId,
    /// Its URL as configured.
    pub address: String,
    /// Share of the cluster's requests.
    pub weight: u32,
    /// Tier.
    pub priority: u32,
    /// Where it is.
    pub zone: Option<String>,
    /// Whether it may be picked.
    pub eligible: bool,
    /// Why not.
    pub why: Option<String>,
    /// What the active check says: `Unknown` while there is none.
    pub health: Health,
    /// Since when.
    pub since: Option<Moment>,
    /// Why the check says so.
    pub reason: Option<String>,
    /// What probes ask for, without the query; `None` while the check is off.
    pub probe: Option<String>,
    /// Probes that have ended.
    pub probes: u64,
    /// What the latest one found.
    pub last_probe: Option<String>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Open connections, used and idle.
    pub connections: i64,
    /// Connections opened since it came.
    pub connects: u64,
    /// Connections that could not be opened since it came.
    pub connect_failures: u64,
    /// Requests that were sent to it since it came.
    pub requests: u64,
    /// Responses since it came.
    pub responses: ResponseCounts,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
    /// Answers of the last minute; `None` without any.
    pub latency: Option<Latency>,
    /// Errors since it came.
    pub errors: ErrorCounts,
    /// Requests that failed in the last 30 seconds through its fault; `None` without any.
    pub failing: Option<Failing>,
    /// Bytes of request bodies that were sent to it.
    pub bytes_sent: u64,
    /// Bytes of response bodies that were received from it.
    pub bytes_received: u64,
}

/// Responses by the first digit of their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResponseCounts {
    /// 1xx
    #[serde(rename = "1xx")]
    pub informational: u64,
    /// 2xx
    #[serde(rename = "2xx")]
    pub success: u64,
    /// 3xx
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// 4xx
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// 5xx
    #[serde(rename = "5xx")]
    pub server_error: u64,
    /// Anything else.
    pub other: u64,
}

impl ClusterStatus {
    pub(crate) fn of(cluster: &Cluster, state: &ClusterState) -> Self {
        let assessment = state.assess(cluster);
        let mut per_second = vec![0; SECONDS];
        let mut latency = HistogramCounts::default();
        let mut destinations = Vec::with_capacity(cluster.destinations().len());
        let each = cluster.destinations().iter().zip(state.destinations());
        for ((destination, live), why) in each.zip(&assessment.verdicts) {
            let counts = last_minute(live);
            if let Some(counts) = &counts {
                latency.merge(counts);
            }
            let status =
                DestinationStatus::of(cluster, destination, live, why.as_ref(), counts.as_ref());
            add_seconds(&mut per_second, &status.per_second);
            destinations.push(status);
        }
        let available = assessment.eligible().count();
        let failing: Vec<_> = destinations.iter().map(|d| d.failing.clone()).collect();
        Self {
            id: cluster.id().clone(),
            policy: cluster.balancing().name().to_owned(),
            probed: cluster.active_check().is_some(),
            available,
            panic: assessment.panic,
            in_flight: destinations.iter().map(|d| d.in_flight).sum(),
            requests: destinations.iter().map(|d| d.requests).sum(),
            per_second,
            latency: Latency::of(&latency),
            errors: error_counts(&state.live().metrics().errors),
            failing: Failing::of_cluster(state, available, &failing),
            destinations,
        }
    }
}

/// The URL of a destination's probes. The query is left out: it may have a secret in it.
fn probe_url(check: &ActiveCheck, destination: &Destination) -> String {
    let address = destination.health_address();
    let authority = String::from_utf8_lossy(address.authority().as_bytes());
    let path = path_and_query(address, check.path_at(destination), None);
    format!("{}://{authority}{path}", address.scheme().as_str())
}

impl DestinationStatus {
    fn of(
        cluster: &Cluster,
        destination: &Destination,
        live: &DestinationState,
        why: Option<&Ineligible>,
        last_minute: Option<&HistogramCounts>,
    ) -> Self {
        let metrics = live.metrics();
        let check = cluster.active_check();
        let record = check.map(|_| live.health().record()).unwrap_or_default();
        Self {
            id: destination.id().clone(),
            address: destination.config().address.clone(),
            weight: destination.weight(),
            priority: destination.priority(),
            zone: destination.zone().map(str::to_owned),
            eligible: why.is_none(),
            why: why.map(ToString::to_string),
            health: record.health,
            since: record.since,
            reason: record.reason.as_deref().map(str::to_owned),
            probe: check.map(|check| probe_url(check, destination)),
            probes: record.probes,
            last_probe: record.last_result.as_deref().map(str::to_owned),
            in_flight: live.in_flight(),
            connections: metrics.open_connections.get(),
            connects: metrics.connects.get(),
            connect_failures: metrics.connect_failures.get(),
            requests: metrics.requests(),
            responses: ResponseCounts::of(metrics.responses()),
            per_second: live.traffic().per_second(),
            latency: last_minute.and_then(Latency::of),
            errors: error_counts(&metrics.errors),
            failing: Failing::of_destination(live),
            bytes_sent: metrics.bytes_sent(),
            bytes_received: metrics.bytes_received(),
        }
    }
}

impl ResponseCounts {
    fn of(
        [
            other,
            informational,
            success,
            redirection,
            client_error,
            server_error,
        ]: [u64; 6],
    ) -> Self {
        Self {
            informational,
            success,
            redirection,
            client_error,
            server_error,
            other,
        }
    }
}

/// Durations of the answers of about the last minute.
pub(super) fn last_minute(live: &DestinationState) -> Option<HistogramCounts> {
    let now = live.metrics().latency()?;
    Some(live.traffic().last_minute(&now))
}
