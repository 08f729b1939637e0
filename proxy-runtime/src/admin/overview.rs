//! `/api/v1/overview`: the state of the proxy in one sentence, with its figures.

use proxy_model::Severity;
use serde::Serialize;

use super::AdminState;
use super::cluster_list::{ClusterCondition, rate};
use super::flow::{self, TrafficFlow};
use super::providers::Start;
use super::text::shown;
use crate::health::Health;
use crate::status::{ClusterStatus, DestinationStatus, Failing, LastMinute, RouteStatus};

/// Characters of an id, and of a cause, that are shown in the sentence.
const MOST_OF_ID: usize = 60;
const MOST_OF_CAUSE: usize = 100;

/// The overall state of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum OverallState {
    Ok,
    Starting,
    Degraded,
    Down,
}

#[derive(Serialize)]
pub(super) struct OverviewPage {
    state: OverallState,
    sentence: String,
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
struct OverviewCounts {
    routes: usize,
    clusters: usize,
    clusters_down: usize,
    clusters_degraded: usize,
    destinations: usize,
    healthy: usize,
    unhealthy: usize,
    sources: usize,
    sources_failing: usize,
    sources_in_part: usize,
    errors: usize,
    warnings: usize,
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
    counts.sources_in_part = admin.sources_in_part();
    for (_, state) in admin.provider_states() {
        counts.sources += 1;
        counts.sources_failing += usize::from(state == "failing");
    }
    for (_, problem) in admin.all_problems() {
        match problem.severity {
            Severity::Error => counts.errors += 1,
            Severity::Warning => counts.warnings += 1,
        }
    }
    let latency = overview.latency;
    let errors_of_clusters = clusters.iter().flat_map(|cluster| cluster.errors.values());
    let trouble = Trouble::of(&routes, &clusters);
    let mut trouble = trouble;
    if let Some(server) = admin.server.as_ref().filter(|server| server.sheds()) {
        trouble.memory = Some(server.counts().held_bytes_limit);
    }
    let (state, sentence) = judge(&counts, &trouble, &start);
    OverviewPage {
        state,
        sentence,
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

/// Names of all parts that need attention.
#[derive(Default)]
struct Trouble {
    down: Vec<String>,
    degraded: Vec<String>,
    /// Routes that reject every request.
    rejected: Vec<String>,
    /// Routes whose clusters do not exist.
    lost: Vec<String>,
    /// The memory limit in bytes, if clients have reached it.
    memory: Option<u64>,
}

impl Trouble {
    fn of(routes: &[RouteStatus], clusters: &[ClusterStatus]) -> Self {
        let mut trouble = Self::default();
        for cluster in clusters {
            let id = shortened(&shown(cluster.id.as_str()), MOST_OF_ID);
            match ClusterCondition::of(cluster) {
                ClusterCondition::Down => trouble.down.push(match cause_of(cluster) {
                    Some(cause) => format!("{id} ({cause})"),
                    None => id,
                }),
                ClusterCondition::Degraded => trouble
                    .degraded
                    .push(format!("{id} ({})", ailments_of(cluster).join(", "))),
                ClusterCondition::Healthy | ClusterCondition::Unknown | ClusterCondition::Empty => {
                }
            }
        }
        for route in routes {
            let id = shortened(&shown(route.id.as_str()), MOST_OF_ID);
            if let Some(why) = &route.rejected {
                trouble.rejected.push(format!("{id} ({why})"));
            } else if !route.clusters.iter().any(|share| share.exists) {
                trouble.lost.push(id);
            }
        }
        trouble
    }
}

/// Returns the cause of a cluster's failure: that of its failed requests, else that of an active
/// check.
fn cause_of(cluster: &ClusterStatus) -> Option<String> {
    let failing = cluster.failing.as_ref().map(|failing| &*failing.cause);
    let found = || {
        let unhealthy = |d: &&DestinationStatus| d.health == Health::Unhealthy;
        let mut destinations = cluster.destinations.iter().filter(unhealthy);
        destinations.find_map(|destination| destination.reason.as_deref())
    };
    let cause = failing.or_else(found)?;
    Some(shortened(cause, MOST_OF_CAUSE))
}

/// Returns the problems of a cluster that still serves.
fn ailments_of(cluster: &ClusterStatus) -> Vec<String> {
    let all = cluster.destinations.len();
    let unhealthy = |d: &&DestinationStatus| d.health == Health::Unhealthy;
    let mut ailments = Vec::new();
    if cluster.destinations.iter().any(|d| unhealthy(&d)) {
        ailments.push(format!("{} of {all} up", cluster.available));
    }
    if let Some(failing) = &cluster.failing {
        let cause = shortened(&failing.cause, MOST_OF_CAUSE);
        ailments.push(match failing.destinations {
            some if some > 0 && all > 1 => format!("{some} of {all} failing: {cause}"),
            _ => {
                let Failing {
                    failures, requests, ..
                } = failing;
                format!("{failures} of {requests} requests failed: {cause}")
            }
        });
    }
    ailments
}

/// Returns at most `most` characters of an untrusted text.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Summarises the state in a sentence that begins with the worst problem.
fn judge(counts: &OverviewCounts, clusters: &Trouble, start: &Start) -> (OverallState, String) {
    // Before the first configuration every other figure is meaningless.
    if *start != Start::Ready {
        return (OverallState::Starting, format!("Not ready: {start}."));
    }
    let mut trouble = Vec::new();
    if !clusters.down.is_empty() {
        trouble.push(format!("Down: {}", named(&clusters.down)));
    }
    if !clusters.degraded.is_empty() {
        trouble.push(format!("Partly down: {}", named(&clusters.degraded)));
    }
    if !clusters.rejected.is_empty() {
        trouble.push(format!(
            "Refusing every request: {}",
            named(&clusters.rejected)
        ));
    }
    if !clusters.lost.is_empty() {
        trouble.push(format!("Leading nowhere: {}", named(&clusters.lost)));
    }
    if let Some(bytes) = clusters.memory {
        let mebibytes = bytes / (1024 * 1024);
        trouble.push(format!(
            "Clients hold all of the {mebibytes} MiB that they may (Server.Limits.MemoryBytes): connections are reset"
        ));
    }
    if counts.sources_failing > 0 {
        trouble.push(some(
            counts.sources_failing,
            "source fails, its last known good configuration serves",
            "sources fail, their last known good configuration serves",
        ));
    }
    if counts.sources_in_part > 0 {
        trouble.push(some(
            counts.sources_in_part,
            "source answers in part, older answers stand in for the rest",
            "sources answer in part, older answers stand in for the rest",
        ));
    }
    if counts.errors > 0 {
        trouble.push(some(
            counts.errors,
            "mistake in the configuration",
            "mistakes in the configuration",
        ));
    }
    if trouble.is_empty() {
        let sentence = match (counts.clusters, counts.routes) {
            (0, 0) => "Nothing is configured yet: there is no route and no cluster.".to_owned(),
            _ => {
                let well = match counts.warnings {
                    0 => "All is well".to_owned(),
                    warnings => some(warnings, "warning", "warnings"),
                };
                format!(
                    "{well}: {} to {} with {}.",
                    some(counts.routes, "route leads", "routes lead"),
                    some(counts.clusters, "cluster", "clusters"),
                    some(counts.destinations, "destination", "destinations"),
                )
            }
        };
        return (OverallState::Ok, sentence);
    }
    // Only a cluster that is down makes the proxy down.
    let verdict = if counts.clusters_down > 0 {
        OverallState::Down
    } else {
        OverallState::Degraded
    };
    (verdict, format!("{}.", trouble.join("; ")))
}

/// The first few names, and the number of the others.
fn named(names: &[String]) -> String {
    /// Number of names that a sentence lists.
    const FEW: usize = 3;
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn some(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_thing_comes_first() {
        let healthy = OverviewCounts {
            routes: 1,
            clusters: 2,
            destinations: 3,
            ..OverviewCounts::default()
        };
        let (verdict, sentence) = judge(&healthy, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "All is well: 1 route leads to 2 clusters with 3 destinations."
        );

        let warned = OverviewCounts {
            warnings: 2,
            ..healthy
        };
        let (verdict, sentence) = judge(&warned, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "2 warnings: 1 route leads to 2 clusters with 3 destinations."
        );

        let partial = OverviewCounts {
            sources_in_part: 1,
            ..warned
        };
        let sealed = Trouble {
            rejected: vec!["sealed".to_owned()],
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&partial, &sealed, &Start::Ready);
        assert_eq!(verdict, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Refusing every request: sealed; 1 source answers in part, older answers stand in for the rest."
        );

        let ill = OverviewCounts {
            clusters_down: 1,
            clusters_degraded: 4,
            errors: 1,
            ..healthy
        };
        let trouble = Trouble {
            down: vec!["orders".to_owned()],
            degraded: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&ill, &trouble, &Start::Ready);
        assert_eq!(verdict, OverallState::Down);
        assert_eq!(
            sentence,
            "Down: orders; Partly down: a, b, c and 1 more; 1 mistake in the configuration."
        );

        let crowded = Trouble {
            memory: Some(3 << 20),
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&healthy, &crowded, &Start::Ready);
        assert_eq!(verdict, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Clients hold all of the 3 MiB that they may (Server.Limits.MemoryBytes): connections are reset."
        );

        let (verdict, sentence) = judge(
            &ill,
            &trouble,
            &Start::WaitingFor(vec!["consul".to_owned()]),
        );
        assert_eq!(verdict, OverallState::Starting);
        assert!(sentence.contains("consul"));
    }
}
