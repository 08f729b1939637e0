//! Policies of the program that decide which destinations are available.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use proxy_model::compiled::{AvailabilityPolicy, Cluster};
use proxy_model::{Problem, pointer_to, same_id};

use super::Health;

/// The names of the built-in policies.
const BUILT_IN: [&str; 2] = ["HealthyOrPanic", "HealthyAndUnknown"];

/// Decides which destinations of a cluster are available, from the health of all of them.
///
/// A program registers a policy with
/// [`ProxyBuilder::available_destinations_policy`](crate::ProxyBuilder::available_destinations_policy),
/// and clusters name it in `HealthCheck.AvailableDestinationsPolicy`. Weights, tiers and zones narrow
/// the result as they do for built-in policies.
///
/// # Examples
///
/// A policy that gives up on health when more than half of the destinations are unhealthy:
///
/// ```
/// use proxy_model::compiled::Cluster;
/// use proxy_runtime::health::{AvailableDestinationsPolicy, Health};
///
/// struct AtLeastHalf;
///
/// impl AvailableDestinationsPolicy for AtLeastHalf {
///     fn select(&self, _: &Cluster, _: &[Health], available: &mut [bool]) {
///         let count = available.iter().filter(|available| **available).count();
///         if count * 2 < available.len() {
///             available.fill(true);
///         }
///     }
/// }
/// ```
pub trait AvailableDestinationsPolicy: Send + Sync {
    /// Changes which destinations are `available`: at first all that are not unhealthy. The slices are in the order of
    /// [`Cluster::destinations`].
    ///
    /// Called when the health of a destination or the configuration has changed, and for a retry; not for each request.
    fn select(&self, cluster: &Cluster, health: &[Health], available: &mut [bool]);
}

/// Policies by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct AvailabilityPolicies(BTreeMap<Arc<str>, Arc<dyn AvailableDestinationsPolicy>>);

impl AvailabilityPolicies {
    /// Adds a policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register(
        &mut self,
        name: Arc<str>,
        policy: Arc<dyn AvailableDestinationsPolicy>,
    ) {
        self.0.retain(|registered, _| !same_id(registered, &name));
        self.0.insert(name, policy);
    }

    /// The names that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The registered names that belong to built-in policies.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names()
            .filter(|name| BUILT_IN.iter().any(|taken| same_id(taken, name)))
    }

    /// The policy of a cluster, if it is one of the program.
    ///
    /// # Errors
    ///
    /// The cluster names a policy that is not registered.
    pub(crate) fn resolve(
        &self,
        cluster: &Cluster,
    ) -> Result<Option<Arc<dyn AvailableDestinationsPolicy>>, Problem> {
        let AvailabilityPolicy::Custom(name) = cluster.availability() else {
            return Ok(None);
        };
        let found = self.0.iter().find(|(known, _)| same_id(known, name));
        let policy = found.map(|(_, policy)| Arc::clone(policy));
        policy.map(Some).ok_or_else(|| {
            let cluster = pointer_to("/Clusters", cluster.id().as_str());
            Problem::error(
                format!("{cluster}/HealthCheck/AvailableDestinationsPolicy"),
                "unknown_available_destinations_policy",
                format!("this proxy has no policy of available destinations called `{name}`"),
            )
            .with_suggestion("register it with `ProxyBuilder::available_destinations_policy`")
        })
    }
}

impl fmt::Debug for AvailabilityPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
