//! Changes to configuration before it is checked.

use std::sync::Arc;

use proxy_model::config::{ClusterConfig, ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, Problem, Problems, RouteId, Severity, pointer_to};

use crate::contain::{Broken, contained_call};

/// Edits clusters and routes before they are checked: adds an organisation's defaults, corrects known
/// faults of a source.
///
/// Filters run in the order in which they were added, over all clusters first and then over all routes, in
/// the order of the configuration. They are synchronous on purpose, so that the same input always gives the
/// same configuration: data that must be fetched belongs into a [`Discoverer`](crate::Discoverer).
///
/// A filter that returns an error, or panics, rejects the item, which keeps its last known good form. In a
/// [`Merge`](crate::Merge) it is called again after a while, in case the failure was accidental. A filter
/// cannot change an item's id.
///
/// # Example
///
/// ```
/// use discovery_core::{ConfigFilter, FilterContext};
/// use proxy_model::config::ClusterConfig;
/// use proxy_model::{ClusterId, Problem};
///
/// /// Least requests, unless a cluster says otherwise.
/// struct LeastRequests;
///
/// impl ConfigFilter for LeastRequests {
///     fn cluster(
///         &self,
///         _: &FilterContext<'_>,
///         _: &ClusterId,
///         cluster: &mut ClusterConfig,
///     ) -> Result<(), Problem> {
///         cluster.load_balancing_policy.get_or_insert_with(|| "LeastRequests".to_owned());
///         Ok(())
///     }
/// }
/// ```
///
/// # Cancel safety
///
/// Calls cannot be cancelled: each runs to its end on a thread that may block, and its result is discarded
/// if it is no longer needed.
pub trait ConfigFilter: Send + Sync {
    /// Edits one cluster.
    ///
    /// # Errors
    ///
    /// Returns a problem to reject the cluster. Its pointer begins at the cluster (`/Destinations/d1`) and
    /// may be empty.
    fn cluster(
        &self,
        context: &FilterContext<'_>,
        id: &ClusterId,
        cluster: &mut ClusterConfig,
    ) -> Result<(), Problem> {
        let _ = (context, id, cluster);
        Ok(())
    }

    /// Edits one route. `cluster` is the cluster that the route names, after the filters, if the source has it.
    ///
    /// # Errors
    ///
    /// Returns a problem to reject the route. Its pointer begins at the route (`/Match/Path`) and may be
    /// empty.
    fn route(
        &self,
        context: &FilterContext<'_>,
        id: &RouteId,
        route: &mut RouteConfig,
        cluster: Option<&ClusterConfig>,
    ) -> Result<(), Problem> {
        let _ = (context, id, route, cluster);
        Ok(())
    }
}

impl<F: ConfigFilter + ?Sized> ConfigFilter for Arc<F> {
    fn cluster(
        &self,
        context: &FilterContext<'_>,
        id: &ClusterId,
        cluster: &mut ClusterConfig,
    ) -> Result<(), Problem> {
        (**self).cluster(context, id, cluster)
    }

    fn route(
        &self,
        context: &FilterContext<'_>,
        id: &RouteId,
        route: &mut RouteConfig,
        cluster: Option<&ClusterConfig>,
    ) -> Result<(), Problem> {
        (**self).route(context, id, route, cluster)
    }
}

/// The origin of an item that is given to a [`ConfigFilter`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilterContext<'a> {
    /// Name of the provider.
    pub provider: &'a str,
}

/// Runs filters over a shared configuration. It stays shared unless they change it: most filters leave most services as
/// they are, and there may be tens of thousands.
pub(crate) fn filter_shared(
    filters: &[Arc<dyn ConfigFilter>],
    context: &FilterContext<'_>,
    config: &mut Arc<ProxyConfig>,
) -> Problems {
    if filters.is_empty() {
        return Problems::new();
    }
    let mut edited = ProxyConfig::clone(config);
    let problems = filter_config(filters, context, &mut edited);
    if edited != **config {
        edited.shrink_to_fit();
        *config = Arc::new(edited);
    }
    problems
}

/// Runs filters over a configuration. An item that a filter rejects is removed and reported.
pub(crate) fn filter_config(
    filters: &[Arc<dyn ConfigFilter>],
    context: &FilterContext<'_>,
    config: &mut ProxyConfig,
) -> Problems {
    let mut problems = Problems::new();
    for filter in filters {
        config.clusters.retain(|id, cluster| {
            let verdict = contained_call(|| filter.cluster(context, id, cluster));
            kept(
                verdict,
                &pointer_to("/Clusters", id.as_str()),
                &mut problems,
            )
        });
    }
    for filter in filters {
        let clusters = &config.clusters;
        config.routes.retain(|id, route| {
            let cluster = route.cluster_id.as_ref().and_then(|id| clusters.get(id));
            let verdict = contained_call(|| filter.route(context, id, route, cluster));
            kept(verdict, &pointer_to("/Routes", id.as_str()), &mut problems)
        });
    }
    problems
}

fn kept(
    verdict: Result<Result<(), Problem>, Broken>,
    pointer: &str,
    problems: &mut Problems,
) -> bool {
    let mut problem = match verdict {
        Ok(Ok(())) => return true,
        Ok(Err(problem)) => problem,
        Err(broken) => Problem::error("", "filter_failed", format!("a filter {broken}")),
    };
    // A rejection is an error, even if the filter uses another severity.
    problem.severity = Severity::Error;
    problem.pointer.insert_str(0, pointer);
    problems.push(problem);
    false
}
