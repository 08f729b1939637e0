//! The state of clusters and their destinations.

use discovery_core::Timestamp;
use proxy_model::compiled::{ActiveCheck, Cluster, Destination};
use proxy_model::transform::path_and_query;
use proxy_model::{ClusterId, DestinationId};
use serde::Serialize;

use super::failing::Failing;
use super::latency::Latency;
use super::{ErrorCounts, add_seconds, cause_counts, error_counts};
use crate::cluster::ClusterState;
use crate::health::Health;
use crate::live::{DestinationState, Ineligible};
use crate::observe::HistogramCounts;
use crate::observe::SECONDS;

/// The state of one cluster.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// The id.
    pub id: ClusterId,
    /// Name of the load balancing policy.
    pub policy: String,
    /// True if active checks probe the destinations.
    pub probed: bool,
    /// Number of available destinations.
    pub available: usize,
    /// True if unhealthy destinations are used because no destination is healthy.
    pub panic: bool,
    /// Requests in flight at all destinations.
    pub in_flight: u32,
    /// Number of requests that were sent to destinations since the cluster was added.
    pub requests: u64,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
    /// Response times of the last minute; `None` without responses.
    pub latency: Option<Latency>,
    /// Errors since the cluster was added.
    pub errors: ErrorCounts,
    /// Causes of errors, and of replies by policies, since the cluster was added.
    pub causes: ErrorCounts,
    /// Recent failures, of the last 30 seconds; `None` without any.
    pub failing: Option<Failing>,
    /// The destinations in the order of the configuration.
    pub destinations: Vec<DestinationStatus>,
}

/// The state of one destination.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DestinationStatus {
    /// The id.
    pub id: DestinationId,
    /// The configured URL.
    pub address: String,
    /// The weight: the share of the cluster's requests.
    pub weight: u32,
    /// The tier; smaller numbers are preferred.
    pub priority: u32,
    /// The zone.
    pub zone: Option<String>,
    /// True if the destination may be picked.
    pub eligible: bool,
    /// The reason why the destination may not be picked.
    pub why: Option<String>,
    /// The health by the checks that are enabled, and as the program declared it.
    pub health: Health,
    /// The time of the last change of health.
    pub since: Option<Timestamp>,
    /// The reason of the last change of health.
    pub reason: Option<String>,
    /// The URL of probes without the query; `None` while the check is disabled.
    pub probe: Option<String>,
    /// Number of completed probes.
    pub probes: u64,
    /// The result of the latest probe.
    pub last_probe: Option<String>,
    /// The state by the agent of the destination; `None` while agents are not asked.
    pub agent: Option<AgentStatus>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Open connections, in use and idle.
    pub connections: i64,
    /// Connections opened since the destination was added.
    pub connects: u64,
    /// Failed connection attempts since the destination was added.
    pub connect_failures: u64,
    /// Requests sent since the destination was added.
    pub requests: u64,
    /// Responses since the destination was added.
    pub responses: ResponseCounts,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
    /// Response times of the last minute; `None` without responses.
    pub latency: Option<Latency>,
    /// Errors since the destination was added.
    pub errors: ErrorCounts,
    /// Causes of errors since the destination was added.
    pub causes: ErrorCounts,
    /// Failures of the last 30 seconds that the destination caused; `None` without any.
    pub failing: Option<Failing>,
    /// Bytes of request bodies sent to the destination.
    pub bytes_sent: u64,
    /// Bytes of response bodies received from the destination.
    pub bytes_received: u64,
}

/// The state of a destination by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentStatus {
    /// The word for its health: `up`, `down`, `fail` or `stopped`. `None` if the agent has said none.
    pub health: Option<String>,
    /// `ready`, `drain` or `maint`.
    pub mode: String,
    /// The weight: `75%` of the configured one, or `20` in its place. `None` if the agent has said none.
    pub weight: Option<String>,
    /// The most connections; 0 is no limit. `None` if the agent has said none.
    pub max_connections: Option<u32>,
    /// The time of the last change.
    pub since: Option<Timestamp>,
    /// The text that came with the last word for the health.
    pub reason: Option<String>,
    /// Number of checks that have ended.
    pub checks: u64,
    /// The line of the last check, or the reason why there was none.
    pub last: Option<String>,
}

/// Responses by the first digit of their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResponseCounts {
    /// Number of 1xx responses.
    #[serde(rename = "1xx")]
    pub informational: u64,
    /// Number of 2xx responses.
    #[serde(rename = "2xx")]
    pub success: u64,
    /// Number of 3xx responses.
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// Number of 4xx responses.
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// Number of 5xx responses.
    #[serde(rename = "5xx")]
    pub server_error: u64,
    /// Number of responses with other statuses.
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
            // Read once, for the destination and for the sum.
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
            causes: cause_counts(&state.live().metrics().errors),
            failing: Failing::of_cluster(state, available, &failing),
            destinations,
        }
    }
}

/// The URL of a destination's probes without the query, which may contain a secret.
fn probe_url(check: &ActiveCheck, destination: &Destination) -> String {
    let address = destination.health_address();
    let authority = String::from_utf8_lossy(address.authority().as_bytes());
    let path = path_and_query(address, check.path_at(destination), None);
    format!("{}://{authority}{path}", address.scheme().as_str())
}

impl AgentStatus {
    fn of(live: &DestinationState) -> Self {
        let record = live.agent().record();
        let words = record.words;
        Self {
            health: words.health.map(str::to_owned),
            mode: words.mode.word().to_owned(),
            weight: words.weight.map(|weight| weight.to_string()),
            max_connections: words.max_connections,
            since: record.since,
            reason: record.reason.as_deref().map(str::to_owned),
            checks: record.checks,
            last: record.last.as_deref().map(str::to_owned),
        }
    }
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
        // Without a check, earlier results do not count.
        let record = check.map(|_| live.health().record()).unwrap_or_default();
        let (mut since, mut reason) = (record.since, record.reason);
        let is_judged = cluster.passive_check().is_some();
        if is_judged
            && (check.is_none() || why == Some(&Ineligible::Failing))
            && let Some((changed, why)) = live.health().passive_change()
        {
            (since, reason) = (Some(changed), Some(why));
        }
        Self {
            id: destination.id().clone(),
            address: destination.config().address.clone(),
            weight: destination.weight(),
            priority: destination.priority(),
            zone: destination.zone().map(str::to_owned),
            eligible: why.is_none(),
            why: why.map(ToString::to_string),
            health: live.overall_health(cluster),
            since,
            reason: reason.as_deref().map(str::to_owned),
            probe: check.map(|check| probe_url(check, destination)),
            probes: record.probes,
            last_probe: record.last_result.as_deref().map(str::to_owned),
            agent: cluster.agent_check().map(|_| AgentStatus::of(live)),
            in_flight: live.in_flight(),
            connections: metrics.open_connections.get(),
            connects: metrics.connects.get(),
            connect_failures: metrics.connect_failures.get(),
            requests: metrics.requests(),
            responses: ResponseCounts::of(metrics.responses()),
            per_second: live.traffic().per_second(),
            latency: last_minute.and_then(Latency::of),
            errors: error_counts(&metrics.errors),
            causes: cause_counts(&metrics.errors),
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

/// Response times of about the last minute.
pub(super) fn last_minute(live: &DestinationState) -> Option<HistogramCounts> {
    let now = live.metrics().latency()?;
    Some(live.traffic().last_minute(&now))
}
