//! Names that the program adds to those a configuration may use.

use std::sync::Arc;

use crate::config::{PolicyConfigs, TransformConfig};
use crate::transform::OwnTransforms;

/// Names that a program has registered for use in a configuration. Default: none.
///
/// Names are compared ignoring case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileOptions {
    pub(super) balancing: Vec<Arc<str>>,
    pub(super) affinity: Vec<Arc<str>>,
    pub(super) affinity_failure: Vec<Arc<str>>,
    pub(super) active_health: Vec<Arc<str>>,
    pub(super) passive_health: Vec<Arc<str>>,
    pub(super) available_destinations: Vec<Arc<str>>,
    pub(super) authorization: Vec<Arc<str>>,
    pub(super) cors: Vec<Arc<str>>,
    pub(super) rate_limiter: Vec<Arc<str>>,
    pub(super) timeout: Vec<Arc<str>>,
    pub(super) output_cache: Vec<Arc<str>>,
    pub(super) filters: Vec<Arc<str>>,
    pub(super) layers: Vec<Arc<str>>,
    pub(super) connectors: Vec<Arc<str>>,
    pub(super) transforms: OwnTransforms,
    pub(crate) policies: Arc<PolicyConfigs>,
}

impl CompileOptions {
    /// Sets the policies of the document. [`Snapshot::read`](crate::Snapshot::read) makes them a part of the
    /// configuration.
    #[must_use]
    pub fn with_policies(mut self, policies: impl Into<Arc<PolicyConfigs>>) -> Self {
        self.policies = policies.into();
        self
    }

    /// Adds a transform: entries of `Transforms` with this key. `check` returns the reason why an entry is
    /// wrong.
    #[must_use]
    pub fn with_transform<C>(mut self, key: impl Into<Arc<str>>, check: C) -> Self
    where
        C: Fn(&TransformConfig) -> Result<(), String> + Send + Sync + 'static,
    {
        self.transforms.add(key.into(), Arc::new(check));
        self
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident => $field:ident,)*) => {
        impl CompileOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter<I>(mut self, names: I) -> Self
                where
                    I: IntoIterator,
                    I::Item: Into<Arc<str>>,
                {
                    self.$field.extend(names.into_iter().map(Into::into));
                    self
                }
            )*
        }
    };
}

setters! {
    /// Adds policies for `LoadBalancingPolicy`.
    with_balancing_policies => balancing,
    /// Adds policies for `SessionAffinity.Policy`.
    with_affinity_policies => affinity,
    /// Adds policies for `SessionAffinity.FailurePolicy`.
    with_affinity_failure_policies => affinity_failure,
    /// Adds policies for `HealthCheck.Active.Policy`.
    with_active_health_policies => active_health,
    /// Adds policies for `HealthCheck.Passive.Policy`.
    with_passive_health_policies => passive_health,
    /// Adds policies for `HealthCheck.AvailableDestinationsPolicy`.
    with_available_destinations_policies => available_destinations,
    /// Adds policies for `AuthorizationPolicy`. `Default` and `Anonymous` are always there.
    with_authorization_policies => authorization,
    /// Adds policies for `CorsPolicy`. `Default` and `Disable` are always there.
    with_cors_policies => cors,
    /// Adds policies for `RateLimiterPolicy`. `Default` and `Disable` are always there.
    with_rate_limiter_policies => rate_limiter,
    /// Adds policies for `TimeoutPolicy`. `Disable` is always there.
    with_timeout_policies => timeout,
    /// Adds policies for `OutputCachePolicy`.
    with_output_cache_policies => output_cache,
    /// Adds filters for `Filters` of routes.
    with_filters => filters,
    /// Adds tower layers for `Layers` of routes.
    with_layers => layers,
    /// Adds connectors for `HttpClient.Connector`.
    with_connectors => connectors,
}
