//! The reasons for which destinations are not available, by the checks or by a policy of the program.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use proxy_model::compiled::Cluster;

use super::{DestinationState, Ineligible};
use crate::contain::contained_call;
use crate::health::{AgentMode, AgentWeight, AgentWords, AvailableDestinationsPolicy, Health};

/// The policy of available destinations of one cluster.
#[derive(Clone)]
pub(crate) struct AvailabilityRule(pub(crate) Arc<dyn AvailableDestinationsPolicy>);

impl Deref for AvailabilityRule {
    type Target = dyn AvailableDestinationsPolicy;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for AvailabilityRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AvailabilityRule")
    }
}

/// The current reasons of one cluster.
pub(crate) struct Faults<'a> {
    cluster: &'a Cluster,
    destinations: &'a [Arc<DestinationState>],
    /// The choice of a policy of the program.
    chosen: Option<Vec<bool>>,
    /// The words of the agents, if they are asked.
    words: Option<Vec<AgentWords>>,
}

impl<'a> Faults<'a> {
    /// Asks the policy, if there is one.
    pub(crate) fn of_all(
        cluster: &'a Cluster,
        destinations: &'a [Arc<DestinationState>],
        rule: Option<&AvailabilityRule>,
    ) -> Self {
        let chosen = rule.map(|rule| {
            let all = destinations.iter();
            let health: Vec<Health> = all.map(|state| state.overall_health(cluster)).collect();
            let mut chosen: Vec<bool> = health.iter().map(|it| *it != Health::Unhealthy).collect();
            // A panic leaves what checks say.
            let before = chosen.clone();
            match contained_call(|| rule.select(cluster, &health, &mut chosen)) {
                Ok(()) => chosen,
                Err(_) => before,
            }
        });
        let words = || destinations.iter().map(|state| state.agent_words(cluster));
        Self {
            cluster,
            destinations,
            chosen,
            words: cluster.agent_check().map(|_| words().collect()),
        }
    }

    /// Applies the words of the agents to the verdicts by weight, and returns the weights in hundredths. `None` if no
    /// agents are asked. `weighted`: configured weights count.
    pub(crate) fn agents(
        &self,
        weighted: bool,
        verdicts: &mut [Option<Ineligible>],
    ) -> Option<Vec<u32>> {
        let words = self.words.as_ref()?;
        let each = words.iter().zip(self.cluster.destinations());
        let judged = each.zip(verdicts).map(|((words, destination), verdict)| {
            let configured = if weighted { destination.weight() } else { 1 };
            let weight = words.weight.unwrap_or(AgentWeight::Percent(100));
            let weight = weight.hundredths(configured);
            // A weight of the agent's own counts in place of the configured one.
            if weight > 0 {
                *verdict = None;
            }
            if let Some(refusal) = refusal(words) {
                *verdict = Some(refusal);
            }
            weight
        });
        Some(judged.collect())
    }

    /// The reason of its agent for which the destination at a position gets no new clients, if it has one.
    pub(crate) fn refusal(&self, position: usize) -> Option<Ineligible> {
        refusal(self.words.as_ref()?.get(position)?)
    }

    /// The reason why the destination at a position is not available, if it is not.
    pub(crate) fn of(&self, position: usize) -> Option<Ineligible> {
        let fault = || self.destinations[position].fault(self.cluster);
        match &self.chosen {
            None => fault(),
            Some(chosen) if chosen[position] => None,
            Some(_) => Some(fault().unwrap_or(Ineligible::LeftOut)),
        }
    }
}

fn refusal(words: &AgentWords) -> Option<Ineligible> {
    match words.mode {
        AgentMode::Maintenance => Some(Ineligible::Maintenance),
        AgentMode::Ready | AgentMode::Drain => words.drains().then_some(Ineligible::Draining),
    }
}
