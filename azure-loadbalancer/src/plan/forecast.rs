//! The forecast of a reconciliation: all its writes, assuming no concurrent ones.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::memory::Memory;
use super::{
    Action, Deferred, Edge, Orphan, Plan, Request, ServiceOutcome, Snapshot, Warning, plan_request,
    simulate,
};
use crate::config::Config;
use crate::node::Node;
use crate::service::{Service, ServiceKey};

/// The forecast of a reconciliation, assuming no concurrent writes: a series of plans, each based on the
/// state after the one before. Addresses that the resource manager will choose are texts that name their
/// future owner.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// The plans with writes.
    pub stages: Vec<Plan>,
    /// The last plan: the remaining work, and the requests that cannot be met.
    pub end: Plan,
}

/// Plans all writes that make `services` reachable on `nodes`, starting from `current`, in at most `rounds`
/// rounds.
pub fn forecast(
    config: &Config,
    services: &[Service],
    nodes: &[Node],
    current: &Snapshot,
    rounds: u32,
) -> Forecast {
    let (request, memory) = (Request::EVERYTHING, Memory::default());
    from(
        config,
        &request,
        services,
        nodes,
        current.clone(),
        memory,
        rounds,
    )
}

/// Plans like [`forecast`], with the memory of the cluster's former addresses.
pub(crate) fn from(
    config: &Config,
    request: &Request,
    services: &[Service],
    nodes: &[Node],
    mut snapshot: Snapshot,
    mut memory: Memory,
    rounds: u32,
) -> Forecast {
    let mut stages = Vec::new();
    loop {
        let request = Request {
            once_ours: memory.addresses().clone(),
            ..request.clone()
        };
        let plan = plan_request(config, &request, services, nodes, &snapshot);
        memory.remember(config, services, nodes, &plan, &snapshot);
        if plan.actions.is_empty() || stages.len() >= rounds as usize {
            return Forecast { stages, end: plan };
        }
        for action in &plan.actions {
            simulate::apply(&mut snapshot, &action.operation);
        }
        stages.push(plan);
    }
}

impl Forecast {
    fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.stages.iter().chain([&self.end])
    }

    /// Returns all writes in order, each with the number of its stage, from 1. A stage is complete before the
    /// next begins.
    pub fn actions(&self) -> impl Iterator<Item = (usize, &Action)> {
        let stages = (1..).zip(&self.stages);
        stages.flat_map(|(number, stage)| stage.actions.iter().map(move |action| (number, action)))
    }

    /// Returns the order of writes: of two [`Self::actions`] in the same stage, which must succeed before the
    /// other begins.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut first = 0;
        for stage in &self.stages {
            edges.extend(stage.edges.iter().map(|edge| Edge {
                before: first + edge.before,
                after: first + edge.after,
                why: edge.why,
            }));
            first += stage.actions.len();
        }
        edges
    }

    /// Returns the outcome of each service: its current addresses, and the error that prevents its final
    /// state.
    pub fn services(&self) -> impl Iterator<Item = (&ServiceKey, ServiceOutcome)> {
        let now = &self.stages.first().unwrap_or(&self.end).services;
        self.end.services.iter().map(move |(key, end)| {
            let mut outcome = now.get(key).unwrap_or(end).clone();
            outcome.error.clone_from(&end.error);
            outcome.load_balancer.clone_from(&end.load_balancer);
            (key, outcome)
        })
    }

    /// Returns the warnings of all stages, without duplicates.
    pub fn warnings(&self) -> BTreeSet<&Warning> {
        self.plans().flat_map(|plan| &plan.warnings).collect()
    }

    /// Returns the resources that belong to no service now.
    pub fn orphans(&self) -> &[Orphan] {
        &self.stages.first().unwrap_or(&self.end).orphans
    }

    /// Returns the work that is left after all stages.
    pub fn left(&self) -> Vec<Deferred> {
        let unwritten = self.end.actions.iter().map(|action| Deferred {
            service: action.services.first().cloned(),
            what: format!("{} is not written", action.operation),
        });
        unwritten.chain(self.end.deferred.iter().cloned()).collect()
    }
}

/// Serialises the forecast as one plan whose actions carry the number of their stage.
impl Serialize for Forecast {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Staged<'a> {
            stage: usize,
            #[serde(flatten)]
            action: &'a Action,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ForecastDocument<'a> {
            actions: Vec<Staged<'a>>,
            edges: Vec<Edge>,
            services: std::collections::BTreeMap<&'a ServiceKey, ServiceOutcome>,
            deferred: Vec<Deferred>,
            warnings: BTreeSet<&'a Warning>,
            orphans: &'a [Orphan],
            pools_kept: bool,
        }
        let actions = self.actions();
        ForecastDocument {
            actions: actions
                .map(|(stage, action)| Staged { stage, action })
                .collect(),
            edges: self.edges(),
            services: self.services().collect(),
            deferred: self.left(),
            warnings: self.warnings(),
            orphans: self.orphans(),
            pools_kept: self.end.pools_kept,
        }
        .serialize(serializer)
    }
}
