//! `/api/v1/providers` and `/api/v1/problems`: the sources of the configuration and their problems.

use std::fmt;
use std::sync::atomic::Ordering;

use discovery_core::SourceState;
use discovery_core::merge::ProviderReport;
use proxy_model::config::PolicyKind;
use proxy_model::{ClusterId, Problem, RouteId, pointer_to};
use serde::Serialize;

use super::state::AdminState;
use crate::policy::FailingPolicy;

/// Maximum of problems in a response; the rest is only counted.
const PROBLEMS: usize = 500;

#[derive(Serialize)]
pub(super) struct Providers {
    providers: Vec<Provider>,
}

#[derive(Serialize)]
struct Provider {
    name: String,
    /// `live`, `partial`, `starting`, `restored`, `failing` or `stopped`.
    state: &'static str,
    required: bool,
    routes: usize,
    clusters: usize,
    /// Seconds since the last successful poll.
    age: Option<f64>,
    last_error: Option<String>,
    /// Words for a source that fails, whole or in part: `the source rejects the request, …`.
    condition: Option<String>,
    /// Seconds since the last error.
    last_error_age: Option<f64>,
    consecutive_failures: u32,
    #[serde(rename = "rounds")]
    cycles: u64,
    changes: u64,
    /// True if the newest configuration was rejected as a whole.
    #[serde(rename = "refused")]
    rejected: bool,
    revision: Option<String>,
    quarantined: Vec<Quarantined>,
}

#[derive(Serialize)]
struct Quarantined {
    service: String,
    reason: String,
    /// Age in seconds of the last known good rules that serve. `null` if none serve.
    #[serde(rename = "last_good_age")]
    last_known_good_age: Option<f64>,
    /// Age in seconds of the destinations that serve.
    destinations_age: Option<f64>,
    /// Both ages as text: `rules of 12 minutes ago, destinations of 2 s ago`.
    serves: String,
}

pub(super) fn of(admin: &AdminState) -> Providers {
    let providers = admin.reports().into_iter().map(|report| {
        let has_config = report.has_config();
        let status = report.status;
        Provider {
            condition: status.condition(has_config),
            name: report.name.to_string(),
            state: status.state.as_str(),
            required: report.required,
            routes: report.routes,
            clusters: report.clusters,
            age: status.last_ok.map(|moment| moment.age().as_secs_f64()),
            last_error_age: status.last_error.as_ref().map(|e| e.at.age().as_secs_f64()),
            // An error before the last success is no news.
            last_error: (status.consecutive_failures > 0)
                .then(|| status.last_error.map(|failure| failure.message))
                .flatten(),
            consecutive_failures: status.consecutive_failures,
            cycles: status.cycles,
            changes: status.changes,
            rejected: report.rejected_since.is_some(),
            revision: report.serving_revision.map(|revision| revision.to_string()),
            quarantined: status
                .quarantined
                .into_iter()
                .map(|service| Quarantined {
                    serves: service.serves(),
                    service: service.service.to_string(),
                    reason: service
                        .problems
                        .errors()
                        .map(|problem| match &*problem.pointer {
                            "" => problem.message.clone(),
                            place => format!("{place}: {}", problem.message),
                        })
                        .collect::<Vec<_>>()
                        .join("; "),
                    last_known_good_age: service
                        .last_known_good
                        .map(|moment| moment.age().as_secs_f64()),
                    destinations_age: service
                        .destinations
                        .map(|moment| moment.age().as_secs_f64()),
                })
                .collect(),
        }
    });
    Providers {
        providers: providers.collect(),
    }
}

#[derive(Serialize)]
pub(super) struct ProblemList {
    problems: Vec<SourcedProblem>,
    omitted: usize,
}

#[derive(Serialize)]
struct SourcedProblem {
    provider: Option<String>,
    #[serde(flatten)]
    problem: Problem,
}

pub(super) fn problems(admin: &AdminState) -> ProblemList {
    let mut all: Vec<_> = admin
        .all_problems()
        .chain(failing(admin))
        .chain(admin.failing_policies().iter().map(policy_problem))
        .map(|(provider, problem)| SourcedProblem { provider, problem })
        .collect();
    // Errors first; the stable sort keeps the order otherwise.
    all.sort_by_key(|sourced| std::cmp::Reverse(sourced.problem.severity));
    let omitted = all.len().saturating_sub(PROBLEMS);
    all.truncate(PROBLEMS);
    ProblemList {
        problems: all,
        omitted,
    }
}

/// The clusters whose requests fail, each with the name of the cause as its code.
fn failing(admin: &AdminState) -> Vec<(Option<String>, Problem)> {
    let clusters = admin.proxy.clusters().into_iter();
    let problems = clusters.filter_map(|cluster| {
        let failing = cluster.failing?;
        let place = pointer_to("/Clusters", cluster.id.as_str());
        let message = format!(
            "{} of {} requests failed in the last 30 seconds: {}",
            failing.failures, failing.requests, failing.detail
        );
        let make = match failing.is_all() {
            true => Problem::error,
            false => Problem::warning,
        };
        let problem = make(place, failing.cause.as_str(), message);
        Some(admin.placed(problem))
    });
    problems.collect()
}

/// A policy that cannot decide, with the name of the cause as its code.
fn policy_problem(policy: &FailingPolicy) -> (Option<String>, Problem) {
    let section = pointer_to("/Policies", policy.kind.section());
    let place = pointer_to(&section, &policy.name);
    let (code, detail) = (policy.cause().as_str(), &policy.detail);
    let problem = match policy.kind {
        // Requests are served meanwhile.
        PolicyKind::RateLimiter => {
            let message = format!("this proxy grants its share of the limit: {detail}");
            Problem::warning(place, code, message)
        }
        _ => Problem::error(place, code, format!("the policy cannot decide: {detail}")),
    };
    (None, problem)
}

/// The progress of a proxy's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Required sources that have not provided a valid configuration yet.
    WaitingFor(Vec<String>),
    /// All required sources have, but the proxy does not serve the result yet.
    Publishing,
    /// The proxy serves.
    Ready,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitingFor(names) => {
                write!(f, "no valid configuration yet from {}", names.join(", "))
            }
            Self::Publishing => {
                f.write_str("the first configuration of all sources does not serve yet")
            }
            Self::Ready => f.write_str("ready"),
        }
    }
}

impl AdminState {
    /// Every problem with its provider: problems of the sources, settings that this proxy does not
    /// support, problems observed with requests, a full memory budget of clients, and problems that
    /// the program finds.
    pub(super) fn all_problems(&self) -> impl Iterator<Item = (Option<String>, Problem)> {
        let state = self.merged.as_ref().map(|merged| merged.state());
        let of_sources: Vec<_> = state
            .iter()
            .flat_map(|state| &state.problems)
            .map(|sourced| {
                let provider = sourced.provider.as_ref().map(|name| name.to_string());
                (provider, sourced.problem.clone())
            })
            .collect();
        let ours = self
            .proxy
            .unsupported()
            .into_iter()
            .chain(self.proxy.observed_problems());
        let ours: Vec<_> = ours.map(|problem| self.placed(problem)).collect();
        let of_server = self
            .server
            .iter()
            .filter_map(|server| server.memory_problem());
        // It is about the server, and no source has said anything of that.
        let of_server: Vec<_> = of_server.map(|problem| (None, problem)).collect();
        let of_program = self.program_problems.iter().flat_map(|find| find());
        let of_program: Vec<_> = of_program.map(|problem| (None, problem)).collect();
        let of_sources = of_sources.into_iter().chain(ours);
        of_sources.chain(of_server).chain(of_program)
    }

    /// A problem of the merged configuration with the source of the place.
    fn placed(&self, problem: Problem) -> (Option<String>, Problem) {
        let Some(merged) = &self.merged else {
            return (None, problem);
        };
        let placed = merged.state().placed(problem);
        (placed.provider.map(|name| name.to_string()), placed.problem)
    }

    /// The state of each source.
    pub(super) fn reports(&self) -> Vec<ProviderReport> {
        let reports = self.merged.as_ref().map(|merged| merged.providers());
        reports.unwrap_or_default()
    }

    /// The policies that cannot decide, because a service does not answer.
    pub(super) fn failing_policies(&self) -> Vec<FailingPolicy> {
        let source = self.proxy.shared().policies();
        source.map(|source| source.failing()).unwrap_or_default()
    }

    /// Each source with the state that decides its colour on the page.
    pub(super) fn provider_states(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.reports().into_iter().map(|report| {
            let state = match report.status.state {
                _ if report.rejected_since.is_some() => "failing",
                SourceState::Live if report.status.quarantined.is_empty() => "healthy",
                SourceState::Live | SourceState::Partial | SourceState::Restored => "degraded",
                SourceState::Failing => "failing",
                _ => "unknown",
            };
            (report.name.to_string(), state)
        })
    }

    /// Returns the progress of the start. Once ready, the proxy stays ready.
    pub(super) fn start(&self) -> Start {
        let Some(merged) = &self.merged else {
            return Start::Ready;
        };
        if self.has_started.load(Ordering::Relaxed) {
            return Start::Ready;
        }
        let state = merged.state();
        if !state.ready {
            let names = state.waiting_for.iter().map(|name| name.to_string());
            return Start::WaitingFor(names.collect());
        }
        // The proxy takes over a snapshot a moment after the merge has it.
        if self.proxy.snapshot().revision() != state.snapshot.revision() {
            return Start::Publishing;
        }
        // Stays ready: a later failure of a source does not stop the proxy.
        self.has_started.store(true, Ordering::Relaxed);
        Start::Ready
    }

    /// The source of a route.
    pub(super) fn route_provider(&self, id: &RouteId) -> Option<String> {
        let state = self.merged.as_ref()?.state();
        state.route_provider(id).map(|name| name.to_string())
    }

    /// The source of a cluster.
    pub(super) fn cluster_provider(&self, id: &ClusterId) -> Option<String> {
        let state = self.merged.as_ref()?.state();
        state.cluster_provider(id).map(|name| name.to_string())
    }
}
