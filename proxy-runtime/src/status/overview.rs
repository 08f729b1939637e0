//! Sums over all routes and clusters, made when they are asked for.

use discovery_core::Moment;
use serde::Serialize;

use super::cluster::last_minute;
use super::{ErrorCounts, Failing, Latency, error_counts};
use crate::health::Health;
use crate::observe::HistogramCounts;
use crate::proxy::Shared;

/// The proxy in a few numbers.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// Number of the generation that serves.
    pub generation: u64,
    /// Content hash of its configuration.
    pub revision: String,
    /// Since when it serves.
    pub published: Moment,
    /// How many routes it has.
    pub routes: usize,
    /// How many clusters.
    pub clusters: usize,
    /// How many clusters have no destination that may be picked.
    pub clusters_without_destinations: usize,
    /// How many clusters use unhealthy destinations, since they have no others.
    pub clusters_in_panic: usize,
    /// How many clusters had requests in the last 30 seconds that failed.
    pub clusters_failing: usize,
    /// How many destinations.
    pub destinations: usize,
    /// How many of them the active check found healthy.
    pub healthy: usize,
    /// How many of them the active check found unhealthy.
    pub unhealthy: usize,
    /// Requests whose response has not ended.
    pub active_requests: i64,
    /// Requests in the last second, over all routes.
    pub requests_per_second: u64,
    /// Answers of the last minute over all clusters; `None` without any.
    pub latency: Option<Latency>,
    /// Errors of requests that never got as far as a cluster.
    pub errors: ErrorCounts,
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
            if cluster.active_check().is_some() {
                for destination in state.destinations() {
                    match destination.health().active() {
                        Health::Healthy => overview.healthy += 1,
                        Health::Unhealthy => overview.unhealthy += 1,
                        Health::Unknown => {}
                    }
                }
            }
        }
        overview.latency = Latency::of(&latency);
        overview
    }
}
