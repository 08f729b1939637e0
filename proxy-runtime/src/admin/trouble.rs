//! The parts of the proxy that need attention.

use std::collections::BTreeMap;

use discovery_core::merge::ProviderReport;
use discovery_core::{DiscoverErrorKind, SourceState};
use proxy_model::Problem;
use proxy_model::config::PolicyKind;
use serde::Serialize;

use super::cluster_list::ClusterCondition;
use super::text::shown;
use crate::error::Cause;
use crate::health::Health;
use crate::policy::FailingPolicy;
use crate::status::{ClusterStatus, DestinationStatus, Failing, RouteStatus};

/// Characters of an id, and of the text of a check, that are shown in the sentence.
const MOST_OF_ID: usize = 60;
const MOST_OF_CAUSE: usize = 100;
/// Maximum of parts beside the sentence.
const CONCERNS: usize = 50;

/// A part that needs attention, with its state in the words of the lists.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Concern {
    /// `cluster`, `route`, `policy`, `source` or `service`, one that a source has.
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
    pub(super) down: Vec<String>,
    pub(super) degraded: Vec<String>,
    /// Routes that reject every request.
    pub(super) rejected: Vec<String>,
    /// Routes whose clusters do not exist.
    pub(super) lost: Vec<String>,
    /// Policies that cannot decide, with the reason.
    pub(super) undecided: Vec<String>,
    /// Shared limits of which this proxy grants its share, with the reason.
    pub(super) limits: Vec<String>,
    /// The memory limit in bytes, if clients have reached it.
    pub(super) memory: Option<u64>,
    pub(super) sources: SourceTrouble,
    /// Places of mistakes in the configuration.
    pub(super) mistakes: Vec<String>,
    pub(super) concerns: Vec<Concern>,
}

/// Sources that need attention, by their problem.
#[derive(Default)]
pub(super) struct SourceTrouble {
    /// Sources that cannot be read, by the kind of failure. True if something of them serves.
    pub(super) outages: BTreeMap<(DiscoverErrorKind, bool), Vec<String>>,
    /// Sources of which only some calls fail.
    pub(super) partial: BTreeMap<DiscoverErrorKind, Vec<String>>,
    /// Sources whose newest configuration was rejected as a whole.
    pub(super) failing: Vec<String>,
    /// Sources that have not answered since the start, while what was kept on disk serves.
    pub(super) restored: Vec<String>,
    /// The same, while nothing serves.
    pub(super) unanswered: Vec<String>,
    /// Sources whose configuration cannot be kept on disk.
    pub(super) unkept: Vec<String>,
    /// Services that a source has and that do not serve.
    pub(super) left_out: Vec<String>,
    /// Services with rules and without a destination, although there are instances.
    pub(super) unusable: Vec<String>,
    /// Services that do not serve as described, and have no instance.
    pub(super) empty: Vec<String>,
}

impl Trouble {
    pub(super) fn of(routes: &[RouteStatus], clusters: &[ClusterStatus]) -> Self {
        let mut trouble = Self::default();
        for cluster in clusters {
            trouble.add_cluster(cluster);
        }
        // Clusters that are down come first.
        trouble
            .concerns
            .sort_by_key(|concern| concern.state != "down");
        for route in routes {
            trouble.add_route(route);
        }
        trouble
    }

    fn add_cluster(&mut self, cluster: &ClusterStatus) {
        let id = shortened(&shown(cluster.id.as_str()), MOST_OF_ID);
        let condition = ClusterCondition::of(cluster);
        match condition {
            ClusterCondition::Down => self.down.push(match why_down(cluster) {
                Some(why) => format!("{id} ({why})"),
                None => id,
            }),
            ClusterCondition::Degraded => self
                .degraded
                .push(format!("{id} ({})", ailments_of(cluster).join(", "))),
            ClusterCondition::Healthy | ClusterCondition::Unknown | ClusterCondition::Empty => {
                return;
            }
        }
        self.concern(Concern::of_cluster(cluster, condition));
    }

    fn add_route(&mut self, route: &RouteStatus) {
        let id = shortened(&shown(route.id.as_str()), MOST_OF_ID);
        let leads_nowhere = || !route.clusters.iter().any(|share| share.exists);
        let (cause, why) = if let Some(why) = &route.rejected {
            self.rejected.push(format!("{id} ({why})"));
            (Cause::PolicyMissing, Some(why.to_string()))
        } else if route.answers.is_none() && leads_nowhere() {
            self.lost.push(id);
            (Cause::NoCluster, None)
        } else {
            return;
        };
        let concern = Concern::new("route", route.id.to_string(), "down");
        self.concern(concern.because(cause).saying(why));
    }

    fn concern(&mut self, concern: Concern) {
        if self.concerns.len() < CONCERNS {
            self.concerns.push(concern);
        }
    }

    /// Adds a policy that needs a service which does not answer.
    pub(super) fn policy_fails(&mut self, policy: FailingPolicy) {
        let name = shortened(&shown(&policy.name), MOST_OF_ID);
        let why = shortened(&policy.detail, MOST_OF_CAUSE);
        let (names, state) = match policy.kind {
            PolicyKind::RateLimiter => (&mut self.limits, "degraded"),
            _ => (&mut self.undecided, "failing"),
        };
        names.push(format!("{name} ({why})"));
        let concern = Concern::new("policy", policy.name.to_string(), state);
        let concern = concern.because(policy.cause());
        self.concern(concern.saying(Some(policy.detail)));
    }

    /// Adds what is the matter with a source and its services.
    pub(super) fn source(&mut self, report: &ProviderReport) {
        let (name, status) = (report.name.to_string(), &report.status);
        let error = status.last_error.as_ref();
        // An error before the last success is no news.
        let error = error.filter(|_| status.consecutive_failures > 0);
        let kind = error.map_or(DiscoverErrorKind::Transient, |failure| failure.kind);
        let error = error.map(|failure| failure.message.clone());
        // The status of a rejection is what its reader needs first.
        let named = match (&error, kind) {
            (Some(error), DiscoverErrorKind::Rejected) => {
                format!("{name} ({})", shortened(error, MOST_OF_CAUSE))
            }
            _ => name.clone(),
        };
        let sources = &mut self.sources;
        let state = match status.state {
            _ if report.rejected_since.is_some() => Some((&mut sources.failing, "failing")),
            SourceState::Failing => {
                let names = sources.outages.entry((kind, report.has_config()));
                Some((names.or_default(), "failing"))
            }
            SourceState::Partial => {
                let names = sources.partial.entry(kind);
                Some((names.or_default(), "degraded"))
            }
            SourceState::Restored => Some((&mut sources.restored, "restored")),
            SourceState::Starting => Some((&mut sources.unanswered, "starting")),
            _ => None,
        };
        if let Some((names, state)) = state {
            names.push(named);
            self.concern(Concern::new("source", name.clone(), state).saying(error));
        }
        let unkept = status.persistence.as_ref();
        if let Some(error) = unkept.and_then(|persistence| persistence.error.as_ref()) {
            let why = shortened(error, MOST_OF_CAUSE);
            self.sources.unkept.push(format!("{name} ({why})"));
            let concern = Concern::new("source", name.clone(), "degraded");
            let detail = format!("its configuration cannot be kept on disk: {error}");
            self.concern(concern.saying(Some(detail)));
        }
        for service in &status.quarantined {
            let is_left_out = service.last_known_good.is_none();
            let is_down = is_left_out || service.destinations.is_none();
            if is_down {
                let id = shortened(&shown(&service.service), MOST_OF_ID);
                let list = match service.has_unusable_instances() {
                    _ if is_left_out => &mut self.sources.left_out,
                    true => &mut self.sources.unusable,
                    false => &mut self.sources.empty,
                };
                list.push(format!("{id} of {name}"));
            }
            let state = if is_down { "down" } else { "degraded" };
            let concern = Concern::new("service", service.service.to_string(), state);
            let problems = service
                .problems
                .iter()
                .map(|problem| problem.message.as_str());
            let why = problems.collect::<Vec<_>>().join("; ");
            self.concern(concern.saying(Some(format!("{}: {why}", service.serves()))));
        }
    }

    pub(super) fn mistake(&mut self, provider: Option<&str>, problem: &Problem) {
        let place = shortened(&problem.pointer, MOST_OF_ID);
        self.mistakes.push(match provider {
            Some(provider) => format!("{place} of {provider}"),
            None => place,
        });
    }
}

impl Concern {
    fn new(kind: &'static str, id: String, state: &'static str) -> Self {
        Self {
            kind,
            id,
            state,
            cause: None,
            side: None,
            detail: None,
        }
    }

    fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self.side = Some(cause.side().as_str());
        self
    }

    fn saying(mut self, detail: Option<String>) -> Self {
        self.detail = detail;
        self
    }

    fn of_cluster(cluster: &ClusterStatus, condition: ClusterCondition) -> Self {
        let concern = Self::new("cluster", cluster.id.to_string(), condition.name());
        match &cluster.failing {
            Some(failing) => concern
                .because(failing.cause)
                .saying(Some(failing.detail.clone())),
            None => concern.saying(check_of(cluster).map(str::to_owned)),
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
