//! `/api/v1/clusters`: the filtered list, and single clusters.

use http::StatusCode;
use percent_encoding::percent_decode_str;
use proxy_model::ClusterId;
use serde::Serialize;

use super::config_view;
use super::order::{Sortable, arrange};
use super::query::Query;
use super::respond::AdminResponse;
use super::state::AdminState;
use super::text::{has_id, shown};
use crate::health::Health;
use crate::status::{ClusterStatus, DestinationStatus, Failing, LastMinute};

/// Number of clusters in a response: the default of the `limit` parameter, and its maximum.
const LIMIT: usize = 50;
const MAX_LIMIT: usize = 10_000;

/// Seconds over which a rate is averaged.
const RATE_SECONDS: usize = 5;

/// The state of a cluster in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClusterCondition {
    /// Every destination was found healthy.
    Healthy,
    /// No failure is known, but not every destination was checked.
    Unknown,
    /// Some destinations are unhealthy, or some recent requests failed.
    Degraded,
    /// No destination is available, or all recent requests failed.
    Down,
    /// The cluster has no destinations.
    Empty,
}

impl ClusterCondition {
    pub(super) fn of(cluster: &ClusterStatus) -> Self {
        let count = |health| {
            cluster
                .destinations
                .iter()
                .filter(|d| d.health == health)
                .count()
        };
        let unhealthy = count(Health::Unhealthy);
        let failing = cluster.failing.as_ref();
        // A failure of every request outweighs health checks: they may test another path.
        if failing.is_some_and(Failing::is_all) {
            Self::Down
        } else if cluster.destinations.is_empty() {
            Self::Empty
        } else if cluster.panic || cluster.available == 0 {
            Self::Down
        } else if unhealthy > 0 || failing.is_some() {
            Self::Degraded
        } else if count(Health::Healthy) == cluster.destinations.len() {
            Self::Healthy
        } else {
            Self::Unknown
        }
    }

    /// Smaller numbers need more attention.
    pub(super) const fn urgency(self) -> u8 {
        match self {
            Self::Down => 0,
            Self::Degraded => 1,
            Self::Empty => 2,
            Self::Healthy | Self::Unknown => 3,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Down => "down",
            Self::Empty => "empty",
        }
    }
}

#[derive(Serialize)]
pub(super) struct ClusterList {
    clusters: Vec<Summary>,
    /// Number of clusters that match the filter, including those beyond the limit.
    matching: usize,
}

/// A row of the cluster list.
#[derive(Serialize)]
struct Summary {
    id: ClusterId,
    state: ClusterCondition,
    policy: String,
    destinations: usize,
    available: usize,
    in_flight: u32,
    requests: u64,
    requests_per_second: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    per_second: Vec<u32>,
    failing: Option<Failing>,
    last_minute: Option<LastMinute>,
}

/// A single cluster with all that is known about it.
#[derive(Serialize)]
struct Detail {
    state: ClusterCondition,
    provider: Option<String>,
    availability: String,
    requests_per_second: f64,
    /// Routes that send requests to the cluster.
    routes: Vec<String>,
    #[serde(flatten)]
    status: ClusterStatus,
    /// The configuration without secrets.
    config: Option<serde_json::Value>,
}

impl Sortable for Summary {
    fn name(&self) -> String {
        shown(self.id.as_str())
    }

    fn rate(&self) -> f64 {
        self.requests_per_second
    }

    fn requests(&self) -> u64 {
        self.requests
    }

    fn last_minute(&self) -> Option<&LastMinute> {
        self.last_minute.as_ref()
    }

    fn urgency(&self) -> u8 {
        self.state.urgency()
    }
}

pub(super) fn of(admin: &AdminState, query: &Query) -> ClusterList {
    let filter = query.get("filter").unwrap_or_default().to_lowercase();
    let wanted = query.get("state");
    let mut matching = admin.proxy.clusters();
    matching.retain(|cluster| {
        has_text(cluster, &filter)
            && wanted.is_none_or(|state| ClusterCondition::of(cluster).name() == state)
    });
    // Once for all rows.
    let minutes = LastMinute::of_clusters(admin.proxy.shared());
    let rows = matching.into_iter().map(|cluster| {
        let last_minute = minutes.get(&cluster.id).copied();
        Summary::of(cluster, last_minute)
    });
    let mut clusters = rows.collect();
    let matching = arrange(&mut clusters, query, query.limit(LIMIT, MAX_LIMIT));
    ClusterList { clusters, matching }
}

/// Returns true if the id of a cluster, or an id or address of its destinations, has this text.
fn has_text(cluster: &ClusterStatus, filter: &str) -> bool {
    has_id(cluster.id.as_str(), filter)
        || cluster.destinations.iter().any(|destination| {
            has_id(destination.id.as_str(), filter)
                || destination.address.to_lowercase().contains(filter)
        })
}

pub(super) fn one(admin: &AdminState, encoded: &str) -> AdminResponse {
    let id = percent_decode_str(encoded).decode_utf8_lossy();
    let id = ClusterId::from(&*id);
    let Some(status) = admin.proxy.cluster(&id) else {
        return AdminResponse::error(
            StatusCode::NOT_FOUND,
            &format!("there is no cluster `{id}`"),
        );
    };
    let snapshot = admin.proxy.snapshot();
    let cluster = snapshot.cluster(&id);
    let availability = cluster.map(|cluster| cluster.availability().name().to_owned());
    let routes = admin.proxy.routes().into_iter();
    let config = snapshot.config().clusters.get(&id);
    let leads_here = |share: &crate::status::RouteShare| id == *share.cluster;
    AdminResponse::json(&Detail {
        state: ClusterCondition::of(&status),
        provider: admin.cluster_provider(&id),
        availability: availability.unwrap_or_default(),
        requests_per_second: rate(&status.per_second),
        routes: routes
            .filter(|route| route.clusters.iter().any(leads_here))
            .map(|route| route.id.as_str().to_owned())
            .collect(),
        config: config.map(config_view::of_part),
        status,
    })
}

impl Summary {
    fn of(cluster: ClusterStatus, last_minute: Option<LastMinute>) -> Self {
        Self {
            last_minute,
            state: ClusterCondition::of(&cluster),
            policy: cluster.policy,
            destinations: cluster.destinations.len(),
            available: cluster.available,
            in_flight: cluster.in_flight,
            requests: cluster.requests,
            requests_per_second: rate(&cluster.per_second),
            p50_ms: cluster
                .latency
                .map(|latency| latency.p50.as_secs_f64() * 1e3),
            p99_ms: cluster
                .latency
                .map(|latency| latency.p99.as_secs_f64() * 1e3),
            per_second: cluster.per_second,
            failing: cluster.failing,
            id: cluster.id,
        }
    }
}

/// The average of requests per second over the last [`RATE_SECONDS`].
pub(super) fn rate(per_second: &[u32]) -> f64 {
    let late = &per_second[per_second.len().saturating_sub(RATE_SECONDS)..];
    if late.is_empty() {
        return 0.0;
    }
    late.iter().copied().map(f64::from).sum::<f64>() / late.len() as f64
}

/// The state of a destination.
pub(super) fn destination_state(destination: &DestinationStatus) -> ClusterCondition {
    match (destination.health, &destination.failing) {
        (Health::Unhealthy, _) => ClusterCondition::Down,
        (_, Some(failing)) if failing.is_all() => ClusterCondition::Down,
        (_, Some(_)) => ClusterCondition::Degraded,
        (Health::Healthy, None) => ClusterCondition::Healthy,
        (Health::Unknown, None) => ClusterCondition::Unknown,
    }
}
