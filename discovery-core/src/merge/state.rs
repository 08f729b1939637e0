//! The published state of a merge.

use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::{ClusterId, Problem, Problems, Revision, RouteId, Snapshot};
use serde::Serialize;

use crate::provider::{ProviderState, Strictness};
use crate::status::ProviderStatus;
use crate::timestamp::Timestamp;

/// The published state of a [`Merge`](super::Merge).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedState {
    /// The snapshot that serves. Empty until the first provider has a configuration.
    pub snapshot: Arc<Snapshot>,
    /// The time since which the snapshot serves.
    pub since: Timestamp,
    /// Number of published snapshots.
    pub publications: u64,
    /// Number of configurations that were rejected as a whole or could not be read, of providers with
    /// all-or-nothing strictness.
    pub rejections: u64,
    /// All problems, in the order of the providers. Problems that belong to no provider come last.
    pub problems: Vec<SourcedProblem>,
    /// True if a configuration of every required provider has been accepted. Once true, it stays true.
    pub ready: bool,
    /// The required providers that have not.
    pub waiting_for: Vec<Arc<str>>,
    /// The contribution of each provider, in the order of the providers.
    pub(super) contributions: Vec<Contribution>,
    /// The owner of each route and cluster.
    pub(super) origins: Arc<Origins>,
}

/// The owner of each route and cluster of a snapshot: the position of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    pub(super) providers: Vec<Arc<str>>,
    /// The places where their routes and clusters are written.
    pub(super) written: Vec<Written>,
    pub(super) routes: IndexMap<RouteId, usize>,
    pub(super) clusters: IndexMap<ClusterId, usize>,
}

impl MergedState {
    /// Name of the provider that the route comes from.
    pub fn route_provider(&self, id: &RouteId) -> Option<&Arc<str>> {
        self.origins.providers.get(*self.origins.routes.get(id)?)
    }

    /// Name of the provider that the cluster comes from.
    pub fn cluster_provider(&self, id: &ClusterId) -> Option<&Arc<str>> {
        self.origins.providers.get(*self.origins.clusters.get(id)?)
    }

    /// A problem of a route or cluster of the [`snapshot`](Self::snapshot), whose pointer begins with
    /// `/Routes` or `/Clusters`, with the provider that it comes from and the place where it is written.
    pub fn placed(&self, problem: Problem) -> SourcedProblem {
        let origins = &self.origins;
        let owner = match named(&problem.pointer) {
            Some(("Routes", id)) => origins.routes.get(&RouteId::new(id)),
            Some(("Clusters", id)) => origins.clusters.get(&ClusterId::new(id)),
            _ => None,
        };
        let written = owner.and_then(|owner| origins.written.get(*owner));
        SourcedProblem {
            provider: owner
                .and_then(|owner| origins.providers.get(*owner))
                .cloned(),
            problem: match written {
                Some(written) => written.place(problem),
                None => problem,
            },
        }
    }
}

/// The section and the id that a pointer begins with.
pub(super) fn named(pointer: &str) -> Option<(&str, String)> {
    let mut tokens = pointer.split('/').skip(1);
    let section = tokens.next()?;
    let id = tokens.next()?.replace("~1", "/").replace("~0", "~");
    Some((section, id))
}

/// The place where a provider's routes and clusters are written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The section that holds them.
    section: Arc<str>,
    /// The origins of the values in it.
    origins: Option<Arc<proxy_model::json::Origins>>,
}

impl Written {
    /// Returns the place of a provider's configuration.
    pub(super) fn of(state: &ProviderState) -> Self {
        Self {
            section: Arc::clone(&state.section),
            origins: state.origins.clone(),
        }
    }

    /// Completes a problem of a route or cluster: its pointer begins with the section, and it gets its origin.
    pub(super) fn place(&self, mut problem: Problem) -> Problem {
        let section = named(&problem.pointer);
        if section.is_some_and(|(within, _)| matches!(within, "Routes" | "Clusters")) {
            problem.pointer.insert_str(0, &self.section);
            let origin = self.origins.as_ref().and_then(|o| o.of(&problem.pointer));
            if let Some(origin) = origin {
                problem = problem.with_origin(origin);
            }
        }
        problem
    }
}

/// The contribution of one provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Contribution {
    pub(super) revision: Option<Revision>,
    pub(super) rejected_since: Option<Timestamp>,
    pub(super) routes: usize,
    pub(super) clusters: usize,
}

/// A problem, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct SourcedProblem {
    /// Name of the provider. `None` if the problem belongs to no provider.
    pub provider: Option<Arc<str>>,
    /// The problem. Routes and clusters are named as they are in the merged configuration.
    #[serde(flatten)]
    pub problem: Problem,
}

impl std::fmt::Display for SourcedProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.provider {
            Some(provider) => write!(f, "{provider}: {}", self.problem),
            None => write!(f, "{}", self.problem),
        }
    }
}

/// The state of one of the merged providers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ProviderReport {
    /// The provider's name.
    pub name: Arc<str>,
    /// True if the proxy is not ready without the provider.
    pub required: bool,
    /// The handling of bad parts of its configuration.
    pub strictness: Strictness,
    /// The prefix of its ids.
    pub prefix: Option<String>,
    /// The provider's newest configuration.
    pub revision: Option<Revision>,
    /// The revision of its configuration that serves. It is older than the newest if that was rejected, or
    /// has not been applied yet.
    pub serving_revision: Option<Revision>,
    /// The time since which its newest configuration is rejected as a whole.
    #[serde(rename = "refused_since")]
    pub rejected_since: Option<Timestamp>,
    /// Number of routes that it contributes.
    pub routes: usize,
    /// Number of clusters that it contributes.
    pub clusters: usize,
    /// The provider's status.
    pub status: ProviderStatus,
    /// Problems that the provider itself reports.
    pub problems: Problems,
}

impl ProviderReport {
    /// Returns true if the provider has had a configuration, of this run or of the one before.
    pub fn has_config(&self) -> bool {
        self.revision.is_some() || self.status.last_ok.is_some()
    }
}
