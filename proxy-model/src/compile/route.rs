//! Routes.

use std::collections::HashSet;
use std::sync::Arc;

use crate::compiled::{BodyLimit, ClusterIndex, Route, RouteSource, RouteTarget, WeightedTarget};
use crate::config::{ProxyConfig, RouteConfig, WeightedCluster};
use crate::id::ClusterId;
use crate::matching::{PathTemplate, RouteMatcher};
use crate::problem::Problem;
use crate::suggest::{did_you_mean, shortened};
use crate::transform::Transforms;

use super::chosen;
use super::criteria;
use super::destination::{MAX_WEIGHT, within};
use super::health::positive;
use super::policy::{self, PolicyWords};
use super::reply;
use super::shared::SharedTransforms;
use super::{Scope, filled, metadata, partitions};

pub(super) fn compile(
    source: RouteSource,
    targets: &mut Targets<'_>,
    scope: &mut Scope<'_>,
) -> Option<Route> {
    let config = source.config();
    if source.id().as_str().is_empty() {
        scope.problems.push(Problem::error(
            scope.pointer().to_owned(),
            "missing_route_id",
            "the route's id is empty",
        ));
    }
    let matcher = criteria::compile(config, &mut scope.below("Match"));
    let template = matcher.as_ref().map(RouteMatcher::path);
    let target = targets.of(config, template, scope);
    let transforms = Transforms::compile_for(
        template,
        config.transforms.as_deref().unwrap_or_default(),
        &scope.place("Transforms"),
        (scope.expressions, &scope.options.transforms),
        scope.problems,
    );
    let transforms = transforms.map(|transforms| targets.transforms.share(&source, transforms));
    let body_limit = body_limit(config, scope);
    let chosen = chosen::compile(config, &targets.config.policies, scope);
    metadata::check(config.metadata.as_ref(), scope);
    let filters = extensions(
        config.filters.as_deref(),
        FILTER,
        &scope.options.filters,
        "Filters",
        scope,
    );
    let layers = extensions(
        config.layers.as_deref(),
        LAYER,
        &scope.options.layers,
        "Layers",
        scope,
    );
    let timeout = match config.timeout {
        None => Some(chosen.timeout),
        Some(_) => positive(config.timeout, Default::default(), "Timeout", scope).map(Some),
    };
    if config.timeout_includes_body == Some(true) && timeout == Some(None) {
        scope.problems.push(
            Problem::warning(
                scope.place("TimeoutIncludesBody"),
                "without_effect",
                "the route has no timeout, so there is nothing that could include the body",
            )
            .with_suggestion("add a `Timeout`"),
        );
    }
    Some(Route {
        order: config.order.unwrap_or_default(),
        matcher: matcher?,
        target: target?,
        transforms: transforms?,
        body_limit: body_limit?,
        strict_paths: config.strict_paths.unwrap_or_default(),
        timeout: timeout?,
        timeout_includes_body: config.timeout_includes_body.unwrap_or_default(),
        filters: filters?,
        layers: layers?,
        policies: chosen.policies,
        source,
    })
}

const FILTER: PolicyWords = PolicyWords {
    name: "filter",
    unknown: "unknown_filter",
};

const LAYER: PolicyWords = PolicyWords {
    name: "layer",
    unknown: "unknown_layer",
};

/// Returns the program's extensions that a route lists, in their registered spelling. Empty names count as
/// unset.
fn extensions(
    written: Option<&[String]>,
    kind: PolicyWords,
    registered: &[Arc<str>],
    below: &str,
    scope: &mut Scope<'_>,
) -> Option<Box<[Arc<str>]>> {
    let mut found = Vec::new();
    let mut is_whole = true;
    for (position, name) in written.unwrap_or_default().iter().enumerate() {
        if filled(Some(name)).is_none() {
            continue;
        }
        let place = format!("{below}/{position}");
        match policy::resolve(Some(name), kind, &[], registered, &place, scope) {
            Some(name) => found.push(name),
            None => is_whole = false,
        }
    }
    is_whole.then(|| found.into())
}

fn body_limit(config: &RouteConfig, scope: &mut Scope<'_>) -> Option<BodyLimit> {
    match config.max_request_body_size {
        None => Some(BodyLimit::Server),
        Some(-1) => Some(BodyLimit::Unlimited),
        Some(bytes) => match u64::try_from(bytes) {
            Ok(bytes) => Some(BodyLimit::Bytes(bytes)),
            Err(_) => {
                scope.error_with(
                    "MaxRequestBodySize",
                    "out_of_range",
                    format!("{bytes} is not a number of bytes"),
                    "-1 is unlimited",
                );
                None
            }
        },
    }
}

/// The clusters that routes may use, and the data that the routes share.
pub(super) struct Targets<'a> {
    config: &'a ProxyConfig,
    rejected: &'a HashSet<ClusterId>,
    /// Number of unknown ids that still get a suggestion. It is limited because each one is compared with
    /// all clusters.
    suggestions: usize,
    transforms: SharedTransforms,
}

impl<'a> Targets<'a> {
    pub(super) fn new(config: &'a ProxyConfig, rejected: &'a HashSet<ClusterId>) -> Self {
        Self {
            config,
            rejected,
            suggestions: 100,
            transforms: SharedTransforms::default(),
        }
    }

    /// Compiles the target of a route. `template` is the template of its path, or `None` if that has
    /// errors.
    fn of(
        &mut self,
        config: &RouteConfig,
        template: Option<&PathTemplate>,
        scope: &mut Scope<'_>,
    ) -> Option<RouteTarget> {
        let single = config
            .cluster_id
            .as_ref()
            .filter(|id| !id.as_str().is_empty());
        let (shares, partitioned) = (&config.weighted_clusters, &config.partitioned_clusters);
        let written = [
            ("ClusterId", single.is_some()),
            ("WeightedClusters", shares.is_some()),
            ("PartitionedClusters", partitioned.is_some()),
            ("Redirect", config.redirect.is_some()),
            ("Respond", config.respond.is_some()),
        ];
        let mut written = written.iter().filter(|(_, is_written)| *is_written);
        let first = written.next().map_or("", |(key, _)| *key);
        let mut is_one = true;
        for (key, _) in written {
            let message = format!("the route has both `{first}` and `{key}`");
            scope.error_with(key, "conflicting_clusters", message, "keep one of them");
            is_one = false;
        }
        // The problems of each are reported even if one is too many.
        let single = single.map(|id| match self.find(id, "ClusterId", scope) {
            Some(index) => RouteTarget::Cluster(index),
            None => RouteTarget::Missing(id.clone()),
        });
        let weighted = shares.as_ref().map(|shares| self.weighted(shares, scope));
        let partitioned = partitioned.as_ref().map(|partitioned| {
            let mut scope = scope.below("PartitionedClusters");
            partitions::compile(partitioned, template, self, &mut scope)
        });
        let redirect = config.redirect.as_ref();
        let redirect = redirect.map(|redirect| reply::redirect(redirect, template, scope));
        let respond = config.respond.as_ref();
        let respond = respond.map(|respond| reply::respond(respond, scope));
        reply::check(config, scope)?;
        if let Some(reply) = redirect.or(respond) {
            return reply.filter(|_| is_one);
        }
        let target = match (single, weighted, partitioned) {
            (Some(single), _, _) => Some(single),
            (None, Some(weighted), _) => weighted,
            (None, None, Some(partitions)) => {
                partitions.map(|partitions| RouteTarget::Partitioned(Box::new(partitions)))
            }
            (None, None, None) => Some(RouteTarget::None),
        };
        target.filter(|_| is_one)
    }

    fn weighted(
        &mut self,
        shares: &[WeightedCluster],
        scope: &mut Scope<'_>,
    ) -> Option<RouteTarget> {
        let mut targets = Vec::with_capacity(shares.len());
        let mut named = HashSet::with_capacity(shares.len());
        for (i, share) in shares.iter().enumerate() {
            let place = format!("WeightedClusters/{i}/Weight");
            let weight = within(share.weight, MAX_WEIGHT, &place, scope);
            let id = &share.cluster_id;
            let place = format!("WeightedClusters/{i}/ClusterId");
            if id.as_str().is_empty() {
                scope.error(&place, "missing_cluster_id", "the share names no cluster");
                continue;
            }
            if !named.insert(id) {
                let message = format!(
                    "the cluster `{}` has a share already",
                    shortened(id.as_str())
                );
                scope.error(&place, "duplicate_cluster", message);
                continue;
            }
            let cluster = self.find(id, &place, scope);
            targets.extend(weight.map(|weight| WeightedTarget {
                id: id.clone(),
                cluster,
                weight,
            }));
        }
        if shares.iter().all(|share| share.weight == 0) {
            scope.error(
                "WeightedClusters",
                "no_weight",
                "the sum of the weights is 0, so no cluster gets requests",
            );
            return None;
        }
        Some(RouteTarget::Weighted(targets.into()))
    }

    /// Finds the cluster called `id`. A missing one is a warning, as YARP accepts it.
    pub(super) fn find(
        &mut self,
        id: &ClusterId,
        below: &str,
        scope: &mut Scope<'_>,
    ) -> Option<ClusterIndex> {
        if let Some(position) = self.config.clusters.get_index_of(id) {
            return u32::try_from(position).ok().map(ClusterIndex);
        }
        let shown = shortened(id.as_str());
        if self.rejected.contains(id) {
            let message =
                format!("the cluster `{shown}` has errors and is left out; requests get 503");
            scope.warning(below, "refused_cluster", message);
            return None;
        }
        let mut problem = Problem::warning(
            scope.place(below),
            "unknown_cluster",
            format!("there is no cluster `{shown}`; requests get 503"),
        );
        if self.suggestions > 0 {
            self.suggestions -= 1;
            let ids = self.config.clusters.keys().map(ClusterId::as_str);
            problem.suggestion = did_you_mean(id.as_str(), ids.take(10_000));
        }
        scope.problems.push(problem);
        None
    }
}
