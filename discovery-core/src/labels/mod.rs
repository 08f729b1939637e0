//! Labels, which people attach to services in registries, and their conversion to configuration.
//!
//! [`LabelsParser`] is the trait; [`KeyValueLabels`] is the dialect for registries without their own. A
//! dialect with other names is best built from the same parts: a [`LabelTree`] over dotted keys, the typed
//! getters of [`LabelNode`], and [`read_cluster`] and [`read_route`].

mod cluster;
mod key_value;
mod node;
mod route;
mod rules;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use proxy_model::Problems;
use proxy_model::config::ProxyConfig;

pub use self::cluster::read_cluster;
pub use self::key_value::KeyValueLabels;
pub use self::node::LabelNode;
pub use self::route::{RouteLabels, is_route_name, read_route};
pub use self::rules::LabelRules;
pub use self::tree::LabelTree;
use crate::discovery::LabelledService;

/// Turns the description of one service into configuration.
///
/// `S` is the description: a [`LabelledService`], labels and destinations, for sources that return those and leave
/// the rest to their [`Runner`](crate::Runner). A source with more to describe, such as partitions with replicas,
/// has a description of its own and asks a parser of it. `P` is the result: a source may want more than
/// configuration and problems.
///
/// A parser is a pure function: the same service always gives the same configuration, independent of other
/// services. Its input is untrusted; problems are reported instead of failing.
///
/// # Example
///
/// A dialect with one label, `host`, which routes that host to the service:
///
/// ```
/// use discovery_core::{LabelledService, LabelsParser, Parsed};
/// use proxy_model::config::{ClusterConfig, ProxyConfig, RouteConfig, RouteMatch};
/// use proxy_model::{ClusterId, RouteId};
///
/// struct HostLabel;
///
/// impl LabelsParser for HostLabel {
///     fn parse(&self, service: &str, described: &LabelledService) -> Parsed {
///         let Some(host) = described.labels.get("host") else {
///             return Parsed::not_enabled();
///         };
///         let cluster_id = ClusterId::from(service);
///         let mut fragment = ProxyConfig::default();
///         fragment.clusters.insert(
///             cluster_id.clone(),
///             ClusterConfig { destinations: described.destinations.clone(), ..Default::default() },
///         );
///         fragment.routes.insert(
///             RouteId::from(service),
///             RouteConfig {
///                 cluster_id: Some(cluster_id),
///                 r#match: RouteMatch { hosts: Some(vec![host.clone()]), ..Default::default() },
///                 ..Default::default()
///             },
///         );
///         Parsed::new(fragment)
///     }
/// }
/// ```
///
/// # Cancel safety
///
/// Calls cannot be cancelled: each runs to its end on a thread that may block, and its result is discarded
/// if it is no longer needed. A panic is contained and quarantines the service.
pub trait LabelsParser<S = LabelledService, P = Parsed>: Send + Sync {
    /// The configuration of the service called `service`.
    fn parse(&self, service: &str, described: &S) -> P;
}

impl<S, P, T: LabelsParser<S, P> + ?Sized> LabelsParser<S, P> for Arc<T> {
    fn parse(&self, service: &str, described: &S) -> P {
        (**self).parse(service, described)
    }
}

/// The result of a [`LabelsParser`] for one service.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The service's clusters and routes. `None` if the service did not opt in to be served.
    pub fragment: Option<ProxyConfig>,
    /// Problems of the labels. The pointers are label keys: `/proxy.routes.api.order`. An error quarantines
    /// the service: its last known good form serves in place of this fragment.
    pub problems: Problems,
    /// True if there are instances that cannot be destinations of some cluster; see
    /// [`with_unusable`](Self::with_unusable).
    pub has_unusable: bool,
}

impl Parsed {
    /// Creates the result of a service that is served with this configuration.
    pub fn new(fragment: ProxyConfig) -> Self {
        Self {
            fragment: Some(fragment),
            problems: Problems::new(),
            has_unusable: false,
        }
    }

    /// Creates the result for a service that did not opt in to be served.
    pub fn not_enabled() -> Self {
        Self::default()
    }

    /// Replaces the problems.
    #[must_use]
    pub fn with_problems(mut self, problems: Problems) -> Self {
        self.problems = problems;
        self
    }

    /// Marks a cluster without a destination although there are instances. The problems name them. For
    /// [`with_rebuild`](crate::DiscoveredService::with_rebuild).
    #[must_use]
    pub fn with_unusable(mut self, has_unusable: bool) -> Self {
        self.has_unusable = has_unusable;
        self
    }
}
