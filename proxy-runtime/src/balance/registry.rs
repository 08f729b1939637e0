//! Load balancing policies by name.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use proxy_model::compiled::{BalancingPolicy, Cluster};
use proxy_model::{Problem, pointer_to, same_id};

use super::{
    FirstAlphabetical, LeastRequests, LoadBalancer, PowerOfTwoChoices, RandomChoice, RoundRobin,
};

/// The policy of one cluster.
#[derive(Clone)]
pub(crate) struct Balancer(Arc<dyn LoadBalancer>);

impl Deref for Balancer {
    type Target = dyn LoadBalancer;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Balancer")
    }
}

/// Policies by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct Balancers(BTreeMap<Arc<str>, Arc<dyn LoadBalancer>>);

impl Balancers {
    /// Adds a policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register(&mut self, name: Arc<str>, policy: Arc<dyn LoadBalancer>) {
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
        let built_in = [
            BalancingPolicy::PowerOfTwoChoices,
            BalancingPolicy::RoundRobin,
            BalancingPolicy::LeastRequests,
            BalancingPolicy::Random,
            BalancingPolicy::FirstAlphabetical,
        ];
        self.names()
            .filter(move |name| built_in.iter().any(|taken| same_id(taken.name(), name)))
    }

    /// The policy of a cluster.
    ///
    /// # Errors
    ///
    /// The cluster names a policy that is not registered.
    pub(crate) fn resolve(&self, cluster: &Cluster) -> Result<Balancer, Problem> {
        let policy: Arc<dyn LoadBalancer> = match cluster.balancing() {
            BalancingPolicy::PowerOfTwoChoices => Arc::new(PowerOfTwoChoices),
            BalancingPolicy::RoundRobin => Arc::new(RoundRobin),
            BalancingPolicy::LeastRequests => Arc::new(LeastRequests),
            BalancingPolicy::Random => Arc::new(RandomChoice),
            BalancingPolicy::FirstAlphabetical => Arc::new(FirstAlphabetical),
            BalancingPolicy::Custom(name) => {
                let found = self.0.iter().find(|(known, _)| same_id(known, name));
                let Some((_, policy)) = found else {
                    return Err(not_registered(cluster, name));
                };
                Arc::clone(policy)
            }
        };
        Ok(Balancer(policy))
    }
}

fn not_registered(cluster: &Cluster, name: &str) -> Problem {
    let cluster = pointer_to("/Clusters", cluster.id().as_str());
    Problem::error(
        pointer_to(&cluster, "LoadBalancingPolicy"),
        "unknown_load_balancing_policy",
        format!("this proxy has no load balancing policy called `{name}`"),
    )
    .with_suggestion("register it with `ProxyBuilder::balancer`")
}

impl fmt::Debug for Balancers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
