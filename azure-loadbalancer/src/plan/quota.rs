//! The capacity of each load balancer for rules and frontends.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::PlanError;
use super::cluster_state::{ClusterState, Owner, Standing, Subject, SubjectIndex};
use super::target::Targets;
use crate::annotations::Intent;
use crate::config::LoadBalancerSku;
use crate::naming;

/// The maximum number of frontends of a standard load balancer
/// (<https://learn.microsoft.com/azure/load-balancer/skus>).
const FRONTENDS_OF_STANDARD: usize = 600;
const FRONTENDS_OF_BASIC: usize = 200;

/// The planned content of each load balancer, by its name in lower case.
pub(super) struct Quota {
    rules: HashMap<String, usize>,
    frontends: HashMap<String, usize>,
    planned: BTreeSet<String>,
    /// The number of rules of a service on the load balancer where it stays.
    own: HashMap<SubjectIndex, usize>,
}

impl Quota {
    /// Counts the present content. `found` are the services that stay where they are.
    pub(super) fn of(
        world: &ClusterState<'_>,
        found: &BTreeMap<SubjectIndex, String>,
        targets: &Targets,
    ) -> Self {
        let mut room = Self {
            rules: HashMap::new(),
            frontends: HashMap::new(),
            planned: BTreeSet::new(),
            own: HashMap::new(),
        };
        // The existing parts that stay, whatever the wanted services request.
        let stays = |owner: Owner| match owner {
            Owner::Foreign => true,
            Owner::Orphan => !world.sweeps(),
            Owner::Subject(index) => world.subjects.get(index).is_some_and(Subject::is_held),
        };
        for balancer in &world.snapshot.load_balancers {
            let ours = world.is_ours(balancer);
            let name = balancer.name.to_ascii_lowercase();
            let properties = &balancer.properties;
            let frontends = properties.frontend_ip_configurations.iter();
            let kept = frontends.filter(|frontend| stays(world.owner(&frontend.name, ours)));
            *room.frontends.entry(name.clone()).or_default() += kept.count();
            let rules = room.rules.entry(name).or_default();
            for rule in &properties.load_balancing_rules {
                let owner = world.owner(&rule.name, ours);
                *rules += usize::from(stays(owner));
                if let Owner::Subject(index) = owner
                    && let Some(Standing::Requested(_)) =
                        world.subjects.get(index).map(|s| &s.standing)
                    && found.get(&index).is_some_and(|on| balancer.is_named(on))
                {
                    *room.own.entry(index).or_default() += 1;
                }
            }
        }
        for (index, balancer) in found {
            if targets
                .get(index)
                .is_some_and(|target| target.lead == *index)
            {
                *room
                    .frontends
                    .entry(balancer.to_ascii_lowercase())
                    .or_default() += 1;
            }
        }
        room
    }

    /// Counts the services that stay where they are. Shrinking ones come first, so that the order of services
    /// does not matter.
    pub(super) fn grow(
        &mut self,
        world: &ClusterState<'_>,
        found: &BTreeMap<SubjectIndex, String>,
    ) -> Vec<(SubjectIndex, PlanError)> {
        let mut growing = Vec::new();
        for (index, balancer) in found {
            let Some(subject) = world.subjects.get(*index) else {
                continue;
            };
            let (has, needs) = (self.own.get(index).copied().unwrap_or(0), needed(subject));
            // First the rules that exist are counted for all services, then the additional ones.
            *self.rules.entry(balancer.to_ascii_lowercase()).or_default() += has.min(needs);
            if needs > has {
                growing.push((*index, balancer, needs - has));
            }
        }
        let mut failures = Vec::new();
        for (index, balancer, more) in growing {
            match self.rule_limit(world, balancer, more) {
                Ok(()) => *self.rules.entry(balancer.to_ascii_lowercase()).or_default() += more,
                Err(error) => failures.push((index, error)),
            }
        }
        failures
    }

    /// Returns the planned number of rules of a load balancer.
    pub(super) fn rules(&self, balancer: &str) -> usize {
        let lower = balancer.to_ascii_lowercase();
        self.rules.get(&lower).copied().unwrap_or(0)
    }

    pub(super) fn exists(&self, world: &ClusterState<'_>, balancer: &str) -> bool {
        self.planned.contains(&balancer.to_ascii_lowercase()) || world.balancer(balancer).is_some()
    }

    /// Counts a service that moves to a load balancer, with or without its own frontend.
    pub(super) fn admit(
        &mut self,
        world: &ClusterState<'_>,
        balancer: String,
        intent: &Intent,
        has_frontend: bool,
    ) -> Result<String, PlanError> {
        let needs = intent.ports.iter().filter(|port| port.has_rule).count();
        self.rule_limit(world, &balancer, needs)?;
        let lower = balancer.to_ascii_lowercase();
        let frontends = self.frontends.entry(lower.clone()).or_default();
        if has_frontend {
            frontend_limit(world, &balancer, *frontends)?;
            *frontends += 1;
        }
        *self.rules.entry(lower.clone()).or_default() += needs;
        self.planned.insert(lower);
        Ok(balancer)
    }

    /// Checks that a load balancer, and the nodes behind it, can have `needed` further rules.
    fn rule_limit(
        &self,
        world: &ClusterState<'_>,
        balancer: &str,
        needed: usize,
    ) -> Result<(), PlanError> {
        // A service without rules fits anywhere.
        if needed == 0 {
            return Ok(());
        }
        let count = self.rules(balancer);
        let maximum = world.config.maximum_rules();
        if count + needed > maximum {
            return Err(PlanError::RuleLimit {
                load_balancer: balancer.to_owned(),
                count,
                needed,
                maximum,
            });
        }
        // The same nodes are behind the internal and the external load balancer.
        let count = count + self.rules(&beside(balancer));
        let maximum = world.config.maximum_rules_of_interface();
        if count + needed > maximum {
            return Err(PlanError::InterfaceRuleLimit {
                load_balancer: balancer.to_owned(),
                count,
                needed,
                maximum,
            });
        }
        Ok(())
    }
}

/// Returns the load balancer behind which the same nodes are: the internal one of an external one, and vice
/// versa.
fn beside(balancer: &str) -> String {
    let lower = balancer.to_ascii_lowercase();
    match lower.strip_suffix(naming::INTERNAL_SUFFIX) {
        Some(external) => external.to_owned(),
        None => lower + naming::INTERNAL_SUFFIX,
    }
}

fn needed(subject: &Subject<'_>) -> usize {
    let ports = subject.intent().map_or(&[][..], |intent| &intent.ports);
    ports.iter().filter(|port| port.has_rule).count()
}

fn frontend_limit(world: &ClusterState<'_>, balancer: &str, count: usize) -> Result<(), PlanError> {
    let maximum = match world.config.load_balancer_sku {
        LoadBalancerSku::Standard => FRONTENDS_OF_STANDARD,
        LoadBalancerSku::Basic => FRONTENDS_OF_BASIC,
    };
    if count < maximum {
        return Ok(());
    }
    Err(PlanError::FrontendLimit {
        load_balancer: balancer.to_owned(),
        maximum,
    })
}
