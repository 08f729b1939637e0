//! What a merge has to say.

use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::{ClusterId, Problem, Problems, Revision, RouteId, Snapshot};
use serde::Serialize;

use crate::moment::Moment;
use crate::provider::Strictness;
use crate::status::ProviderStatus;

/// What a [`Merge`](super::Merge) has to say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedState {
    /// What serves. Empty until the first provider has a configuration.
    pub snapshot: Arc<Snapshot>,
    /// Since when it serves.
    pub since: Moment,
    /// How many snapshots have been published.
    pub publications: u64,
    /// How many configurations were refused as a whole, or could not be read, of providers that stand as a whole.
    pub refusals: u64,
    /// Everything that is wrong, in the order of the providers. What is nobody's in particular comes last.
    pub problems: Vec<SourcedProblem>,
    /// Whether every required provider has had a configuration that was accepted. Once ready it stays ready.
    pub ready: bool,
    /// The required providers that have not.
    pub waiting_for: Vec<Arc<str>>,
    /// What each provider has contributed, in the order of the providers.
    pub(super) contributions: Vec<Contribution>,
    /// Whose each route and cluster is.
    pub(super) origins: Arc<Origins>,
}

/// Whose each route and cluster of a snapshot is: the position of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    pub(super) providers: Vec<Arc<str>>,
    /// The sections that hold their routes and clusters.
    pub(super) sections: Vec<Arc<str>>,
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

    /// A problem of a route or cluster of the [`snapshot`](Self::snapshot), whose pointer begins with `/Routes` or `/Clusters`, with the
    /// provider that it comes from and the place where it is written.
    pub fn placed(&self, problem: Problem) -> SourcedProblem {
        let origins = &self.origins;
        let owner = match named(&problem.pointer) {
            Some(("Routes", id)) => origins.routes.get(&RouteId::new(id)),
            Some(("Clusters", id)) => origins.clusters.get(&ClusterId::new(id)),
            _ => None,
        };
        let section = owner.and_then(|owner| origins.sections.get(*owner));
        SourcedProblem {
            provider: owner
                .and_then(|owner| origins.providers.get(*owner))
                .cloned(),
            problem: match section {
                Some(section) => below(section, problem),
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

/// A problem of a route or cluster, with its pointer below the section that holds those.
pub(super) fn below(section: &str, mut problem: Problem) -> Problem {
    if named(&problem.pointer).is_some_and(|(within, _)| matches!(within, "Routes" | "Clusters")) {
        problem.pointer.insert_str(0, section);
    }
    problem
}

/// What one provider has contributed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Contribution {
    pub(super) revision: Option<Revision>,
    pub(super) refused_since: Option<Moment>,
    pub(super) routes: usize,
    pub(super) clusters: usize,
}

/// A problem, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct SourcedProblem {
    /// Name of the provider; `None`: nobody's in particular.
    pub provider: Option<Arc<str>>,
    /// What is wrong. Routes and clusters are named as they are in the merged configuration.
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

/// How one of the merged providers is doing.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ProviderReport {
    /// Its name.
    pub name: Arc<str>,
    /// Whether the proxy is not ready without it.
    pub required: bool,
    /// What happens when a part of its configuration is bad.
    pub strictness: Strictness,
    /// What its ids are prefixed with.
    pub prefix: Option<String>,
    /// The provider's newest configuration.
    pub revision: Option<Revision>,
    /// Its configuration that serves: an older one than the newest if that was refused, or is about to be taken in.
    pub serving_revision: Option<Revision>,
    /// Since when its newest configuration is refused as a whole.
    pub refused_since: Option<Moment>,
    /// How many routes it contributes.
    pub routes: usize,
    /// How many clusters it contributes.
    pub clusters: usize,
    /// How it is doing.
    pub status: ProviderStatus,
    /// What it finds wrong itself.
    pub problems: Problems,
}
