//! What to conclude from probes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::compiled::{ActiveCheck, Cluster, Destination};
use proxy_model::{Problem, Problems, Snapshot, pointer_to, same_id};

use super::{ConsecutiveFailures, Health, ProbeError};

/// The name of the policy that is built in.
const BUILT_IN: &str = "ConsecutiveFailures";

/// Concludes from probes whether a destination is well.
///
/// A program registers its own with [`ProxyBuilder::health_policy`](crate::build::ProxyBuilder::health_policy), and clusters
/// name it in `HealthCheck.Active.Policy`.
///
/// # Examples
///
/// A policy to which any answer will do, whatever its status:
///
/// ```
/// use proxy_runtime::health::{ActiveHealthPolicy, Health, Probed};
///
/// struct AnyAnswer;
///
/// impl ActiveHealthPolicy for AnyAnswer {
///     fn judge(&self, probed: &Probed<'_>) -> Health {
///         match probed.result {
///             Ok(_) => Health::Healthy,
///             Err(_) => Health::Unhealthy,
///         }
///     }
/// }
/// ```
pub trait ActiveHealthPolicy: Send + Sync {
    /// The destination's health from now on. [`Probed::health`] leaves it as it is.
    ///
    /// It is called once per probe, when the whole round has ended, in the task of the [`Driver`](crate::build::Driver): it
    /// should not block.
    fn judge(&self, probed: &Probed<'_>) -> Health;
}

/// What a probe found, and what was known before.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Probed<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its check.
    pub check: &'a ActiveCheck,
    /// The destination.
    pub destination: &'a Destination,
    /// The status of its answer, or why there was none.
    pub result: Result<StatusCode, &'a ProbeError>,
    /// How long the probe took.
    pub elapsed: Duration,
    /// The destination's health before.
    pub health: Health,
    /// Probes in a row that were not answered with 2xx, this one included.
    pub failures: u32,
    /// Probes in a row that were answered with 2xx, this one included.
    pub successes: u32,
}

/// Policies by name, which is compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct HealthPolicies(BTreeMap<Arc<str>, Arc<dyn ActiveHealthPolicy>>);

impl HealthPolicies {
    /// Adds a policy of the program's own; the last one of a name counts.
    pub(crate) fn register(&mut self, name: Arc<str>, policy: Arc<dyn ActiveHealthPolicy>) {
        self.0.retain(|registered, _| !same_id(registered, &name));
        self.0.insert(name, policy);
    }

    /// The names that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// Those of them that belong to built-in policies.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names().filter(|name| same_id(name, BUILT_IN))
    }

    /// Makes sure that every cluster's policy is there.
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

    /// The policy called `name`.
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
