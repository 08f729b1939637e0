//! Sums over all routes and clusters, computed at each call.

use discovery_core::Timestamp;
use serde::Serialize;

use super::cluster::last_minute;
use super::{ErrorCounts, Failing, Latency, cause_counts, error_counts};
use crate::health::Health;
use crate::observe::HistogramCounts;
use crate::proxy::Shared;

/// The proxy in a few numbers.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// Number of the active generation.
    pub generation: u64,
    /// Content hash of the active configuration.
    pub revision: String,
    /// The time when the active generation was published.
    pub published: Timestamp,
    /// Number of routes.
    pub routes: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// Number of clusters without an available destination.
    pub clusters_without_destinations: usize,
    /// Number of clusters that use unhealthy destinations because no others are left.
    pub clusters_in_panic: usize,
    /// Number of clusters with failed requests in the last 30 seconds.
    pub clusters_failing: usize,
    /// Number of destinations.
    pub destinations: usize,
    /// Number of destinations that the active check found healthy.
    pub healthy: usize,
    /// Number of destinations that the active check found unhealthy.
    pub unhealthy: usize,
    /// Requests whose response has not ended.
    pub active_requests: i64,
    /// Requests in the last second, over all routes.
    pub requests_per_second: u64,
    /// Response times of the last minute over all clusters; `None` without responses.
    pub latency: Option<Latency>,
    /// Errors of requests that reached no cluster.
    pub errors: ErrorCounts,
    /// Causes of these errors.
    pub causes: ErrorCounts,
}

impl Overview {
    pub(crate) fn of(shared: &Shared) -> Self {
        let generation = shared.load();
        let mut overview = Self {
            generation: generation.number(),
            revision: generation.snapshot().revision().to_string(),
            published: generation.published_at(),
            routes: generation.snapshot().routes().len(),
            clusters: generation.snapshot().clusters().len(),
            clusters_without_destinations: 0,
            clusters_in_panic: 0,
            clusters_failing: 0,
            destinations: 0,
            healthy: 0,
            unhealthy: 0,
            active_requests: shared.metrics().active_requests.get(),
            requests_per_second: generation
                .routes()
                .iter()
                .map(|route| u64::from(route.metrics().traffic().last_second()))
                .sum(),
            latency: None,
            errors: error_counts(&shared.metrics().errors),
            causes: cause_counts(&shared.metrics().errors),
        };
        let mut latency = HistogramCounts::default();
        for (cluster, state) in generation.clusters() {
            overview.destinations += state.destinations().len();
            let last_minute = state.destinations().iter().filter_map(|d| last_minute(d));
            last_minute.for_each(|counts| latency.merge(&counts));
            let available = state.available(cluster);
            overview.clusters_without_destinations += usize::from(available.members().is_empty());
            overview.clusters_in_panic += usize::from(available.is_panic());
            overview.clusters_failing += usize::from(Failing::of(cluster, state).is_some());
            for destination in state.destinations() {
                match destination.overall_health(cluster) {
                    Health::Healthy => overview.healthy += 1,
                    Health::Unhealthy => overview.unhealthy += 1,
                    Health::Unknown => {}
                }
            }
        }
        overview.latency = Latency::of(&latency);
        overview
    }
}
