//! `/api/v1/overview`: the state of the proxy in one sentence, with its figures.

use proxy_model::Severity;
use serde::Serialize;

use super::cluster_list::{ClusterCondition, rate};
use super::flow::{self, TrafficFlow};
use super::providers::Start;
use super::state::AdminState;
use super::trouble::{Concern, Trouble};
use super::verdict::{OverallState, judge};
use crate::health::Health;
use crate::status::{ClusterStatus, LastMinute};

#[derive(Serialize)]
pub(super) struct OverviewPage {
    state: OverallState,
    sentence: String,
    /// The parts that the sentence is about, the worst first.
    concerns: Vec<Concern>,
    ready: bool,
    version: &'static str,
    uptime: f64,
    generation: u64,
    revision: String,
    /// The listeners to choose from in `explain`; empty if all have the same rules.
    listeners: Vec<String>,
    counts: OverviewCounts,
    traffic: TrafficSummary,
    flow: TrafficFlow,
}

#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct OverviewCounts {
    pub(super) routes: usize,
    /// Routes that answer their requests themselves, with a redirect or a fixed response.
    pub(super) answering: usize,
    pub(super) clusters: usize,
    pub(super) clusters_down: usize,
    pub(super) clusters_degraded: usize,
    pub(super) destinations: usize,
    pub(super) healthy: usize,
    pub(super) unhealthy: usize,
    pub(super) sources: usize,
    pub(super) sources_failing: usize,
    pub(super) sources_in_part: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
}

#[derive(Serialize)]
struct TrafficSummary {
    requests_per_second: f64,
    active_requests: i64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// Number of failed requests since the start.
    errors: u64,
    /// `None` without a request in the last hour.
    last_minute: Option<LastMinute>,
}

pub(super) fn of(admin: &AdminState) -> OverviewPage {
    let overview = admin.proxy.overview();
    let routes = admin.proxy.routes();
    let clusters = admin.proxy.clusters();
    let start = admin.start();
    let mut counts = count(&clusters);
    counts.routes = routes.len();
    counts.answering = routes.iter().filter(|r| r.answers.is_some()).count();
    let mut trouble = Trouble::of(&routes, &clusters);
    for policy in admin.failing_policies() {
        trouble.policy_fails(policy);
    }
    for report in admin.reports() {
        counts.sources += 1;
        trouble.source(&report);
    }
    for (provider, problem) in admin.all_problems() {
        match problem.severity {
            Severity::Error => trouble.mistake(provider.as_deref(), &problem),
            Severity::Warning => counts.warnings += 1,
        }
    }
    counts.sources_failing = trouble.sources.failing.len();
    counts.sources_in_part = trouble.sources.partial.len();
    counts.errors = trouble.mistakes.len();
    let latency = overview.latency;
    let errors_of_clusters = clusters.iter().flat_map(|cluster| cluster.errors.values());
    if let Some(server) = admin.server.as_ref().filter(|server| server.sheds()) {
        trouble.memory = Some(server.counts().held_bytes_limit);
    }
    let (state, sentence) = judge(&counts, &trouble, &start);
    OverviewPage {
        state,
        sentence,
        concerns: trouble.concerns,
        ready: start == Start::Ready,
        version: env!("CARGO_PKG_VERSION"),
        uptime: admin.started.elapsed().as_secs_f64(),
        generation: overview.generation,
        revision: overview.revision,
        listeners: match admin.listeners.differ() {
            true => admin.listeners.names().map(str::to_owned).collect(),
            false => Vec::new(),
        },
        traffic: TrafficSummary {
            requests_per_second: routes.iter().map(|route| rate(&route.per_second)).sum(),
            active_requests: overview.active_requests,
            p50_ms: latency.map(|latency| latency.p50.as_secs_f64() * 1e3),
            p99_ms: latency.map(|latency| latency.p99.as_secs_f64() * 1e3),
            errors: overview.errors.values().chain(errors_of_clusters).sum(),
            last_minute: LastMinute::of(&admin.proxy.shared().metrics().chart),
        },
        flow: flow::of(admin, &routes, &clusters),
        counts,
    }
}

fn count(clusters: &[ClusterStatus]) -> OverviewCounts {
    let mut counts = OverviewCounts {
        clusters: clusters.len(),
        ..OverviewCounts::default()
    };
    for cluster in clusters {
        match ClusterCondition::of(cluster) {
            ClusterCondition::Down => counts.clusters_down += 1,
            ClusterCondition::Degraded => counts.clusters_degraded += 1,
            ClusterCondition::Healthy | ClusterCondition::Unknown | ClusterCondition::Empty => {}
        }
        counts.destinations += cluster.destinations.len();
        for destination in &cluster.destinations {
            match destination.health {
                Health::Healthy => counts.healthy += 1,
                Health::Unhealthy => counts.unhealthy += 1,
                Health::Unknown => {}
            }
        }
    }
    counts
}
