//! Affinity policies by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use proxy_model::compiled::{AffinityFailure, AffinityKey, Cluster};
use proxy_model::{Problem, pointer_to, same_id};

use super::{AffinityFailurePolicy, AffinityPolicy};

/// Affinity policies, and affinity failure policies, by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct Affinities {
    policies: BTreeMap<Arc<str>, Arc<dyn AffinityPolicy>>,
    failures: BTreeMap<Arc<str>, Arc<dyn AffinityFailurePolicy>>,
}

impl Affinities {
    /// Adds a policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register(&mut self, name: Arc<str>, policy: Arc<dyn AffinityPolicy>) {
        // Names are compared ignoring case, so another spelling is replaced.
        self.policies.retain(|known, _| !same_id(known, &name));
        self.policies.insert(name, policy);
    }

    /// Adds a failure policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register_failure(
        &mut self,
        name: Arc<str>,
        policy: Arc<dyn AffinityFailurePolicy>,
    ) {
        self.failures.retain(|known, _| !same_id(known, &name));
        self.failures.insert(name, policy);
    }

    /// The names of policies that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.policies.keys()
    }

    /// The names of failure policies that were registered.
    pub(crate) fn failure_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.failures.keys()
    }

    /// The registered names that belong to built-in policies.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let built_in = [
            AffinityKey::HashCookie,
            AffinityKey::ArrCookie,
            AffinityKey::Cookie,
            AffinityKey::CustomHeader,
        ];
        let failures = [
            AffinityFailure::Redistribute,
            AffinityFailure::Return503Error,
        ];
        let policies = self
            .names()
            .filter(move |name| built_in.iter().any(|taken| same_id(taken.name(), name)));
        let failures = self
            .failure_names()
            .filter(move |name| failures.iter().any(|taken| same_id(taken.name(), name)));
        policies.chain(failures)
    }

    /// The policy of the program called `name`, which `cluster` names.
    pub(super) fn policy(
        &self,
        cluster: &Cluster,
        name: &str,
    ) -> Result<Arc<dyn AffinityPolicy>, Problem> {
        let mut policies = self.policies.iter();
        let found = policies.find(|(known, _)| same_id(known, name));
        let missing = || not_registered(cluster, "Policy", name);
        found
            .map(|(_, policy)| Arc::clone(policy))
            .ok_or_else(missing)
    }

    /// The failure policy of the program called `name`, which `cluster` names.
    pub(super) fn failure(
        &self,
        cluster: &Cluster,
        name: &str,
    ) -> Result<Arc<dyn AffinityFailurePolicy>, Problem> {
        let mut failures = self.failures.iter();
        let found = failures.find(|(known, _)| same_id(known, name));
        let missing = || not_registered(cluster, "FailurePolicy", name);
        found
            .map(|(_, policy)| Arc::clone(policy))
            .ok_or_else(missing)
    }
}

fn not_registered(cluster: &Cluster, key: &str, name: &str) -> Problem {
    let pointer = pointer_to("/Clusters", cluster.id().as_str());
    let (code, kind, setter) = match key {
        "Policy" => (
            "unknown_affinity_policy",
            "session affinity policy",
            "affinity_policy",
        ),
        _ => (
            "unknown_affinity_failure_policy",
            "affinity failure policy",
            "affinity_failure_policy",
        ),
    };
    Problem::error(
        format!("{pointer}/SessionAffinity/{key}"),
        code,
        format!("this proxy has no {kind} called `{name}`"),
    )
    .with_suggestion(format!("register it with `ProxyBuilder::{setter}`"))
}

impl fmt::Debug for Affinities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.names())
            .entries(self.failure_names())
            .finish()
    }
}
