//! Policies of active health checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::compiled::{ActiveCheck, Cluster, Destination};
use proxy_model::{Problem, Problems, Snapshot, pointer_to, same_id};

use super::consecutive_failures::ConsecutiveFailures;
use super::{Health, ProbeError};

/// The name of the built-in policy.
const BUILT_IN: &str = "ConsecutiveFailures";

/// Decides about the health of a destination from the results of its probes.
///
/// A program registers a policy with
/// [`ProxyBuilder::health_policy`](crate::build::ProxyBuilder::health_policy), and clusters name it
/// in `HealthCheck.Active.Policy`.
///
/// # Examples
///
/// A policy that accepts any response, whatever its status:
///
/// ```
/// use proxy_runtime::health::{ActiveHealthPolicy, Health, Probed};
///
/// struct AnyAnswer;
///
/// impl ActiveHealthPolicy for AnyAnswer {
///     fn evaluate(&self, probed: &Probed<'_>) -> Health {
///         match probed.result {
///             Ok(_) => Health::Healthy,
///             Err(_) => Health::Unhealthy,
///         }
///     }
/// }
/// ```
pub trait ActiveHealthPolicy: Send + Sync {
    /// Returns the new health of the destination. [`Probed::health`] keeps the current one.
    ///
    /// Called once per probe after the whole cycle has ended, in the task of the
    /// [`Driver`](crate::build::Driver): it should not block.
    fn evaluate(&self, probed: &Probed<'_>) -> Health;
}

/// The result of a probe, with the earlier state of the destination.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Probed<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The active check of the cluster.
    pub check: &'a ActiveCheck,
    /// The destination.
    pub destination: &'a Destination,
    /// The status of the response, or the reason why there is none.
    pub result: Result<StatusCode, &'a ProbeError>,
    /// Duration of the probe.
    pub elapsed: Duration,
    /// The health before this probe.
    pub health: Health,
    /// Number of consecutive probes without a 2xx response, including this one.
    pub failures: u32,
    /// Number of consecutive probes with a 2xx response, including this one.
    pub successes: u32,
}

/// Policies by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct HealthPolicies(BTreeMap<Arc<str>, Arc<dyn ActiveHealthPolicy>>);

impl HealthPolicies {
    /// Adds a policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register(&mut self, name: Arc<str>, policy: Arc<dyn ActiveHealthPolicy>) {
        // Names are compared ignoring case, so another spelling is replaced.
        self.0.retain(|registered, _| !same_id(registered, &name));
        self.0.insert(name, policy);
    }

    /// The names that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The registered names that belong to built-in policies.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names().filter(|name| same_id(name, BUILT_IN))
    }

    /// Fails if a cluster names a policy that is not registered.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Problems> {
        let problems: Problems = snapshot
            .clusters()
            .iter()
            .filter_map(|cluster| Some((cluster, cluster.active_check()?.policy())))
            .filter(|(_, name)| self.find(name).is_none())
            .map(|(cluster, name)| not_registered(cluster, name))
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Returns the policy called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&dyn ActiveHealthPolicy> {
        if same_id(name, BUILT_IN) {
            return Some(&ConsecutiveFailures);
        }
        let mut registered = self.0.iter();
        let (_, policy) = registered.find(|(known, _)| same_id(known, name))?;
        Some(&**policy)
    }
}

fn not_registered(cluster: &Cluster, name: &str) -> Problem {
    let cluster = pointer_to("/Clusters", cluster.id().as_str());
    Problem::error(
        format!("{cluster}/HealthCheck/Active/Policy"),
        "unknown_active_health_policy",
        format!("this proxy has no policy of active health checks called `{name}`"),
    )
    .with_suggestion("register it with `ProxyBuilder::health_policy`")
}

impl fmt::Debug for HealthPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
