//! The reasons for which destinations are not available, by the checks or by a policy of the program.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use proxy_model::compiled::Cluster;

use super::{DestinationState, Ineligible};
use crate::contain::contained_call;
use crate::health::{AvailableDestinationsPolicy, Health};

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
        Self {
            cluster,
            destinations,
            chosen,
        }
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
