//! One provider's configuration on its own: prefixed, filtered, checked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proxy_model::config::{ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, CompileOptions, Problem, Problems, Revision, RouteId, Snapshot};

use super::accepted::{Accepted, Item, Kept, Listed};
use crate::contain::Broken;
use crate::filter::{ConfigFilter, FilterContext, filter_shared};
use crate::provider::Strictness;

/// The preparation of a provider's configuration.
#[derive(Clone)]
pub(super) struct Preparation {
    pub(super) provider: Arc<str>,
    pub(super) prefix: Option<Arc<str>>,
    pub(super) strictness: Strictness,
    pub(super) filters: Arc<[Arc<dyn ConfigFilter>]>,
    pub(super) compile: CompileOptions,
}

/// A provider's configuration, ready to be merged.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The revision of the provider's configuration, as the provider published it.
    pub(super) revision: Revision,
    /// The usable rest of the configuration. Compiles without an error, unless it is rejected.
    pub(super) config: Arc<ProxyConfig>,
    /// Errors: those of left-out parts, or of the whole if it is rejected.
    pub(super) problems: Problems,
    /// True if the configuration is rejected as a whole.
    pub(super) rejected: bool,
    /// The items that serve in an older form because the newest is bad, each with the problem that reports
    /// it.
    pub(super) kept: HashMap<Item, Kept>,
    /// The clusters that the provider lists and that cannot serve in any form.
    pub(super) unusable: HashSet<ClusterId>,
    /// True if a retry may have another result.
    pub(super) retry: bool,
}

impl Prepared {
    /// Creates the form of a configuration whose check panicked or took too long.
    pub(super) fn failed(revision: Revision, broken: &Broken) -> Self {
        let message = format!("checking the configuration {broken}");
        Self {
            revision,
            config: Arc::default(),
            problems: Problem::error("", "check_failed", message).into(),
            rejected: true,
            kept: HashMap::new(),
            unusable: HashSet::new(),
            retry: true,
        }
    }
}

impl Preparation {
    /// Prepares one configuration. Where items are accepted one by one, a bad item keeps its last accepted
    /// form. May take a while.
    pub(super) fn prepare(
        &self,
        config: &Arc<ProxyConfig>,
        revision: Revision,
        accepted: Option<&Accepted>,
    ) -> Prepared {
        let mut config = match &self.prefix {
            Some(prefix) => Arc::new(prefixed(config, prefix)),
            None => Arc::clone(config),
        };
        let context = FilterContext {
            provider: &self.provider,
        };
        let mut listed = Listed::of(&config);
        let mut problems = filter_shared(&self.filters, &context, &mut config);
        // Filters are code, which may have failed by accident.
        let retry = !problems.is_empty();
        let mut kept = HashMap::new();
        match self.strictness {
            Strictness::AllOrNothing => {
                if let Err(errors) = Snapshot::compile(Arc::clone(&config), &self.compile) {
                    problems.append(errors);
                }
            }
            Strictness::Isolated => {
                let (snapshot, found) =
                    Snapshot::compile_isolated(Arc::clone(&config), &self.compile);
                problems.extend(found.errors().cloned());
                let filtered = std::mem::replace(&mut config, Arc::clone(snapshot.shared_config()));
                listed.note_destinations(&filtered, &config);
                if let Some(accepted) = accepted {
                    (config, kept) = accepted.complete(&listed, config, &self.compile);
                }
            }
        }
        let rejected = self.strictness == Strictness::AllOrNothing && problems.has_errors();
        let unusable = listed.clusters_not_in(&config);
        Prepared {
            revision,
            config,
            problems,
            rejected,
            kept,
            unusable,
            retry,
        }
    }
}

/// The configuration with `prefix` before all its ids. Names of clusters that it does not have are another provider's,
/// and stay.
fn prefixed(config: &ProxyConfig, prefix: &str) -> ProxyConfig {
    let of_cluster = |id: &ClusterId| {
        let is_own = config.clusters.contains_key(id);
        is_own.then(|| ClusterId::new(format!("{prefix}{id}")))
    };
    let clusters = config
        .clusters
        .iter()
        .map(|(id, cluster)| (ClusterId::new(format!("{prefix}{id}")), cluster.clone()));
    let routes = config.routes.iter().map(|(id, route)| {
        let mut route = route.clone();
        rename_clusters(&mut route, of_cluster);
        (RouteId::new(format!("{prefix}{id}")), route)
    });
    ProxyConfig {
        routes: routes.collect(),
        clusters: clusters.collect(),
        policies: Arc::clone(&config.policies),
    }
}

/// Renames the clusters that a route leads to. `name` returns `None` for those that keep their id.
pub(super) fn rename_clusters(
    route: &mut RouteConfig,
    name: impl Fn(&ClusterId) -> Option<ClusterId>,
) {
    let shares = route.weighted_clusters.iter_mut().flatten();
    let partitioned = route.partitioned_clusters.iter_mut();
    let partitions = partitioned.flat_map(|of| &mut of.partitions);
    let ids = (route.cluster_id.iter_mut())
        .chain(shares.map(|share| &mut share.cluster_id))
        .chain(partitions.map(|partition| &mut partition.cluster_id));
    for id in ids {
        if let Some(name) = name(id) {
            *id = name;
        }
    }
}
