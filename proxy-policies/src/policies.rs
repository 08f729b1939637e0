//! The policies of a proxy.

use std::fmt;
use std::sync::{Arc, Weak};

use discovery_http::Transport;
use parking_lot::Mutex;
use proxy_model::compiled::{ChosenPolicy, Route};
use proxy_model::config::PolicyKind;
use proxy_model::{Problems, Snapshot, same_id};
use proxy_runtime::policy::{FailingPolicy, PolicyCount, PolicySource, RoutePolicies};

use crate::guards::Guards;
use crate::named::Named;

/// The policies that configurations define, with their state.
///
/// One value serves one proxy, registered with
/// [`ProxyBuilder::policies`](proxy_runtime::ProxyBuilder::policies). The configuration that defines the policies comes
/// from [`read`](crate::read). A policy whose settings are the same in the next configuration keeps its state.
#[derive(Default)]
pub struct Policies {
    /// The HTTP client of policies that call other services.
    transport: Option<Arc<dyn Transport>>,
    /// The policies of all configurations in use.
    known: Mutex<Vec<Weak<Named>>>,
}

impl Policies {
    /// Creates the policies of a proxy.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the HTTP client for policies that call other services: `ForwardAuth` and `Jwt`. It must not follow
    /// redirects. Default: none, and such policies are rejected.
    #[must_use]
    pub fn with_transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The policies of all configurations that serve.
    fn in_use(&self) -> Vec<Arc<Named>> {
        self.known.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Compiles the policies of a configuration, or finds those that it has in common with one in use.
    fn compile(&self, snapshot: &Snapshot) -> Result<Vec<Arc<Named>>, Problems> {
        let mut known = self.known.lock();
        known.retain(|policy| policy.strong_count() > 0);
        let in_use: Vec<Arc<Named>> = known.iter().filter_map(Weak::upgrade).collect();
        let mut problems = Problems::new();
        let mut compiled = Vec::new();
        let defined = snapshot.config().policies.iter();
        // The model itself honours timeouts.
        for config in defined.filter(|config| config.kind != PolicyKind::Timeout) {
            if let Some(same) = in_use.iter().find(|policy| policy.is(config)) {
                compiled.push(Arc::clone(same));
                continue;
            }
            match Named::new(config, self.transport.as_ref()) {
                Ok(policy) => compiled.push(Arc::new(policy)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.has_errors() {
            return Err(problems);
        }
        compiled.push(Arc::new(Named::no_cors()));
        for policy in &compiled {
            if !in_use.iter().any(|known| Arc::ptr_eq(known, policy)) {
                known.push(Arc::downgrade(policy));
            }
        }
        Ok(compiled)
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies").finish_non_exhaustive()
    }
}

/// The policies of a route, in the order in which a request meets them.
fn guards(route: &Route, compiled: &[Arc<Named>]) -> Option<Guards> {
    let find = |chosen: &ChosenPolicy| {
        let mut compiled = compiled.iter();
        let found = compiled
            .find(|policy| policy.kind == chosen.kind() && same_id(&policy.name, chosen.name()));
        Arc::clone(found.expect("a snapshot defines the policies that its routes have"))
    };
    let defined = route.policies().iter().filter(|chosen| chosen.is_defined());
    let policies: Arc<[Arc<Named>]> = defined.map(find).collect();
    (!policies.is_empty()).then_some(Guards(policies))
}

impl PolicySource for Policies {
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems> {
        let compiled = self.compile(snapshot)?;
        let of_route = |route: &Route| {
            let guards = guards(route, &compiled)?;
            Some(Arc::new(guards) as Arc<dyn RoutePolicies>)
        };
        Ok(snapshot.routes().iter().map(of_route).collect())
    }

    fn failing(&self) -> Vec<FailingPolicy> {
        let known = self.in_use();
        known.iter().filter_map(|policy| policy.failing()).collect()
    }

    fn counts(&self) -> Vec<PolicyCount> {
        let known = self.in_use();
        let mut counts: Vec<PolicyCount> = Vec::new();
        for count in known.iter().flat_map(|policy| policy.counts()) {
            // A policy that has changed is there twice while requests of before last.
            let same = counts.iter_mut().find(|other| {
                other.kind == count.kind
                    && other.name == count.name
                    && other.outcome == count.outcome
            });
            match same {
                Some(same) => same.count += count.count,
                None => counts.push(count),
            }
        }
        counts
    }
}
