//! The verdict on the proxy: its state in one word and one sentence, and the parts that the sentence is about.

use proxy_model::Problem;
use serde::Serialize;

use super::cluster_list::ClusterCondition;
use super::overview::OverviewCounts;
use super::providers::Start;
use crate::error::Cause;
use crate::health::Health;
use crate::status::{ClusterStatus, DestinationStatus, Failing, RouteStatus};

/// Characters of an id, and of the text of a check, that are shown in the sentence.
const MOST_OF_ID: usize = 60;
const MOST_OF_CAUSE: usize = 100;
/// Maximum of parts beside the sentence.
const CONCERNS: usize = 50;

/// The overall state of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OverallState {
    Ok,
    Starting,
    Degraded,
    Down,
}

/// A part that needs attention, with its state in the words of the lists.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Concern {
    /// `cluster`, `route` or `source`.
    kind: &'static str,
    id: String,
    state: &'static str,
    /// The cause of failed requests.
    cause: Option<Cause>,
    /// The side that is responsible.
    side: Option<&'static str>,
    /// A sentence.
    detail: Option<String>,
}

/// All parts that need attention.
#[derive(Default)]
pub(super) struct Trouble {
    down: Vec<String>,
    degraded: Vec<String>,
    /// Routes that reject every request.
    rejected: Vec<String>,
    /// Routes whose clusters do not exist.
    lost: Vec<String>,
    /// The memory limit in bytes, if clients have reached it.
    memory: Option<u64>,
    failing_sources: Vec<String>,
    partial_sources: Vec<String>,
    /// Places of mistakes in the configuration.
    mistakes: Vec<String>,
    pub(super) concerns: Vec<Concern>,
}

impl Trouble {
    pub(super) fn of(routes: &[RouteStatus], clusters: &[ClusterStatus]) -> Self {
        let mut trouble = Self::default();
        for cluster in clusters {
            let id = shortened(cluster.id.as_str(), MOST_OF_ID);
            let condition = ClusterCondition::of(cluster);
            match condition {
                ClusterCondition::Down => trouble.down.push(match why_down(cluster) {
                    Some(why) => format!("{id} ({why})"),
                    None => id,
                }),
                ClusterCondition::Degraded => trouble
                    .degraded
                    .push(format!("{id} ({})", ailments_of(cluster).join(", "))),
                ClusterCondition::Healthy | ClusterCondition::Unknown | ClusterCondition::Empty => {
                    continue;
                }
            }
            trouble.concern(Concern::of_cluster(cluster, condition));
        }
        // Clusters that are down come first.
        trouble
            .concerns
            .sort_by_key(|concern| concern.state != "down");
        for route in routes {
            let id = shortened(route.id.as_str(), MOST_OF_ID);
            let (cause, why) = if let Some(why) = &route.rejected {
                trouble.rejected.push(format!("{id} ({why})"));
                (Cause::PolicyMissing, Some(why.to_string()))
            } else if !route.clusters.iter().any(|share| share.exists) {
                trouble.lost.push(id);
                (Cause::NoCluster, None)
            } else {
                continue;
            };
            trouble.concern(Concern {
                kind: "route",
                id: route.id.to_string(),
                state: "down",
                cause: Some(cause),
                side: Some(cause.side().as_str()),
                detail: why,
            });
        }
        trouble
    }

    fn concern(&mut self, concern: Concern) {
        if self.concerns.len() < CONCERNS {
            self.concerns.push(concern);
        }
    }

    fn source(&mut self, name: &str, state: &'static str) {
        self.concern(Concern {
            kind: "source",
            id: name.to_owned(),
            state,
            cause: None,
            side: None,
            detail: None,
        });
    }

    pub(super) fn source_fails(&mut self, name: String) {
        self.source(&name, "failing");
        self.failing_sources.push(name);
    }

    pub(super) fn source_is_partial(&mut self, name: String) {
        self.source(&name, "degraded");
        self.partial_sources.push(name);
    }

    pub(super) fn mistake(&mut self, provider: Option<&str>, problem: &Problem) {
        let place = shortened(&problem.pointer, MOST_OF_ID);
        self.mistakes.push(match provider {
            Some(provider) => format!("{place} of {provider}"),
            None => place,
        });
    }

    pub(super) fn memory_is_full(&mut self, limit: u64) {
        self.memory = Some(limit);
    }

    pub(super) fn sources_failing(&self) -> usize {
        self.failing_sources.len()
    }

    pub(super) fn sources_in_part(&self) -> usize {
        self.partial_sources.len()
    }

    pub(super) fn mistakes(&self) -> usize {
        self.mistakes.len()
    }
}

impl Concern {
    fn of_cluster(cluster: &ClusterStatus, condition: ClusterCondition) -> Self {
        let failing = cluster.failing.as_ref();
        let cause = failing.map(|failing| failing.cause);
        let detail = failing.map(|failing| failing.detail.clone());
        Self {
            kind: "cluster",
            id: cluster.id.to_string(),
            state: condition.name(),
            cause,
            side: cause.map(|cause| cause.side().as_str()),
            detail: detail.or_else(|| check_of(cluster).map(str::to_owned)),
        }
    }
}

/// Returns the text of a failed active check of a cluster.
fn check_of(cluster: &ClusterStatus) -> Option<&str> {
    let unhealthy = |d: &&DestinationStatus| d.health == Health::Unhealthy;
    let mut destinations = cluster.destinations.iter().filter(unhealthy);
    destinations.find_map(|destination| destination.reason.as_deref())
}

/// Returns why a cluster serves nothing: its failed requests, else an active check.
fn why_down(cluster: &ClusterStatus) -> Option<String> {
    match &cluster.failing {
        Some(failing) => Some(failed(failing)),
        None => check_of(cluster).map(|text| shortened(text, MOST_OF_CAUSE)),
    }
}

/// Returns the failed requests of the last seconds in words.
fn failed(failing: &Failing) -> String {
    let Failing {
        failures, requests, ..
    } = failing;
    let cause = failing.cause.text();
    format!("{failures} of {requests} requests failed: {cause}")
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
        ailments.push(match failing.destinations {
            some if some > 0 && all > 1 => {
                format!("{some} of {all} failing: {}", failing.cause.text())
            }
            _ => failed(failing),
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
pub(super) fn judge(
    counts: &OverviewCounts,
    trouble: &Trouble,
    start: &Start,
) -> (OverallState, String) {
    // Before the first configuration every other figure is meaningless.
    if *start != Start::Ready {
        return (OverallState::Starting, format!("Not ready: {start}."));
    }
    let said = said(trouble);
    if said.is_empty() {
        return (OverallState::Ok, all_is_well(counts));
    }
    // Only a cluster that is down makes the proxy down.
    let verdict = match counts.clusters_down {
        0 => OverallState::Degraded,
        _ => OverallState::Down,
    };
    (verdict, format!("{}.", said.join("; ")))
}

/// Returns each kind of trouble in words.
fn said(trouble: &Trouble) -> Vec<String> {
    let lists = [
        ("Down", &trouble.down),
        ("Partly down", &trouble.degraded),
        ("Refusing every request", &trouble.rejected),
        ("Leading nowhere", &trouble.lost),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let mut said: Vec<_> = lists
        .map(|(what, names)| format!("{what}: {}", named(names)))
        .collect();
    if let Some(bytes) = trouble.memory {
        let mebibytes = bytes / (1024 * 1024);
        said.push(format!(
            "Clients hold all of the {mebibytes} MiB that they may (Server.Limits.MemoryBytes): connections are reset"
        ));
    }
    for (names, one, many) in [
        (
            &trouble.failing_sources,
            "source fails, its last known good configuration serves",
            "sources fail, their last known good configuration serves",
        ),
        (
            &trouble.partial_sources,
            "source answers in part, older answers stand in for the rest",
            "sources answer in part, older answers stand in for the rest",
        ),
        (
            &trouble.mistakes,
            "mistake in the configuration",
            "mistakes in the configuration",
        ),
    ] {
        if !names.is_empty() {
            said.push(format!(
                "{}: {}",
                some(names.len(), one, many),
                named(names)
            ));
        }
    }
    said
}

fn all_is_well(counts: &OverviewCounts) -> String {
    if (counts.clusters, counts.routes) == (0, 0) {
        return "Nothing is configured yet: there is no route and no cluster.".to_owned();
    }
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
        let mut healthy = OverviewCounts::default();
        (healthy.routes, healthy.clusters, healthy.destinations) = (1, 2, 3);

        let (verdict, sentence) = judge(&healthy, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "All is well: 1 route leads to 2 clusters with 3 destinations."
        );

        let mut warned = healthy;
        warned.warnings = 2;
        let (verdict, sentence) = judge(&warned, &Trouble::default(), &Start::Ready);
        assert_eq!(verdict, OverallState::Ok);
        assert_eq!(
            sentence,
            "2 warnings: 1 route leads to 2 clusters with 3 destinations."
        );

        let partial = warned;
        let sealed = Trouble {
            rejected: vec!["sealed".to_owned()],
            partial_sources: vec!["serf".to_owned()],
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&partial, &sealed, &Start::Ready);
        assert_eq!(verdict, OverallState::Degraded);
        assert_eq!(
            sentence,
            "Refusing every request: sealed; 1 source answers in part, older answers stand in for the rest: serf."
        );

        let mut ill = healthy;
        ill.clusters_down = 1;
        let trouble = Trouble {
            down: vec!["orders".to_owned()],
            degraded: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            mistakes: vec!["/Routes/r of consul".to_owned()],
            ..Trouble::default()
        };
        let (verdict, sentence) = judge(&ill, &trouble, &Start::Ready);
        assert_eq!(verdict, OverallState::Down);
        assert_eq!(
            sentence,
            "Down: orders; Partly down: a, b, c and 1 more; 1 mistake in the configuration: /Routes/r of consul."
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
