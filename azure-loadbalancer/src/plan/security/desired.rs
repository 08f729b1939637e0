//! The security rules that services request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::known::Known;
use super::{Destination, Failures, rule};
use crate::annotations::{Intent, PortIntent, Protocol};
use crate::config::{Edition, PoolMembership};
use crate::naming::{self, Family};
use crate::node::Readiness;
use crate::plan::cluster_state::{ClusterState, Subject, SubjectIndex};
use crate::plan::{PlanError, Warning, machines};
use crate::resources::{Access, NetworkSecurityGroup, SecurityProtocol};

/// Azure's limits for one security group.
const MAXIMUM_RULES: usize = 1_000;
const MAXIMUM_PREFIXES: usize = 4_000;

/// A security rule that services request.
#[derive(Clone, Debug)]
pub(super) struct DesiredRule {
    pub(super) name: String,
    pub(super) protocol: SecurityProtocol,
    pub(super) sources: Vec<String>,
    pub(super) ports: Vec<String>,
    /// The destinations. Empty while no address is known.
    pub(super) destinations: BTreeSet<String>,
    pub(super) access: Access,
    /// True if ports and destinations are written as lists.
    pub(super) as_lists: bool,
    pub(super) services: Vec<SubjectIndex>,
}

/// All rules that services request, in the order in which they get priorities.
#[derive(Debug, Default)]
pub(super) struct Desired {
    rules: Vec<Option<DesiredRule>>,
    by_name: HashMap<String, usize>,
}

impl Desired {
    pub(super) fn of(
        world: &ClusterState<'_>,
        destinations: &BTreeMap<SubjectIndex, Destination>,
        known: &Known<'_>,
        current: &NetworkSecurityGroup,
        warnings: &mut BTreeSet<Warning>,
    ) -> Result<Self, Failures> {
        let mut present: HashMap<String, BTreeSet<&str>> = HashMap::new();
        for existing in &current.properties.security_rules {
            let destinations = rule::destinations(&existing.properties).collect();
            present.insert(existing.name.to_ascii_lowercase(), destinations);
        }
        let mut settled = Vec::new();
        let mut others = Vec::new();
        for (index, destination) in destinations {
            let Some(subject) = world.subjects.get(*index) else {
                continue;
            };
            let Some(intent) = subject.intent() else {
                continue;
            };
            let rules = of_service(world, *index, subject, intent, destination, warnings);
            // A service whose rules all exist costs nothing more, so the limits cannot exclude it.
            let is_settled = rules.iter().all(|rule| {
                present
                    .get(&rule.name.to_ascii_lowercase())
                    .is_some_and(|there| {
                        rule.destinations
                            .iter()
                            .all(|wanted| there.contains(wanted.as_str()))
                    })
            });
            if is_settled {
                settled.push((*index, rules))
            } else {
                others.push((*index, rules))
            }
        }
        let mut counts = Counts::of_others(world, known, current);
        let mut desired = Self::default();
        let mut failures = Failures::new();
        // Services with rules keep them. Among the others, the first by name get the rest.
        for (_, rules) in settled {
            counts.add(desired.growth(&rules));
            desired.insert(rules);
        }
        for (index, rules) in others {
            let growth = desired.growth(&rules);
            match counts.with(growth).check(current) {
                Ok(()) => {
                    counts.add(growth);
                    desired.insert(rules);
                }
                Err(error) => failures.push((index, error)),
            }
        }
        if failures.is_empty() {
            Ok(desired)
        } else {
            Err(failures)
        }
    }

    fn insert(&mut self, rules: Vec<DesiredRule>) {
        for mut rule in rules {
            let lower = rule.name.to_ascii_lowercase();
            let existing = self
                .by_name
                .get(&lower)
                .and_then(|at| self.rules.get_mut(*at));
            // Services with equal protocol, sources and ports share one rule.
            if let Some(Some(existing)) = existing {
                existing.destinations.append(&mut rule.destinations);
                existing.services.append(&mut rule.services);
            } else {
                self.by_name.insert(lower, self.rules.len());
                self.rules.push(Some(rule));
            }
        }
    }

    /// Returns the additional ports, sources and destinations that these rules would bring.
    fn growth(&self, rules: &[DesiredRule]) -> Counts {
        let mut growth = Counts::default();
        for rule in rules {
            let lower = rule.name.to_ascii_lowercase();
            let existing = self
                .by_name
                .get(&lower)
                .and_then(|at| self.rules.get(*at)?.as_ref());
            let there = |destination: &&String| {
                existing.is_some_and(|existing| existing.destinations.contains(*destination))
            };
            // Only destinations that the shared rule lacks count.
            growth.destinations += rule.destinations.iter().filter(|d| !there(d)).count();
            if existing.is_none() {
                growth.rules += 1;
                growth.sources += rule.sources.len();
            }
        }
        growth
    }

    /// Removes and returns the rule with this name.
    pub(super) fn take(&mut self, name: &str) -> Option<DesiredRule> {
        let at = self.by_name.get(&name.to_ascii_lowercase())?;
        self.rules.get_mut(*at)?.take()
    }

    /// Returns the rules that were not taken.
    pub(super) fn remaining(self) -> impl Iterator<Item = DesiredRule> {
        self.rules.into_iter().flatten()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    rules: usize,
    sources: usize,
    destinations: usize,
}

impl Counts {
    /// Counts the parts that do not depend on the services in scope.
    fn of_others(
        world: &ClusterState<'_>,
        known: &Known<'_>,
        current: &NetworkSecurityGroup,
    ) -> Self {
        let mut counts = Self::default();
        for existing in &current.properties.security_rules {
            let properties = &existing.properties;
            if rule::is_merged(&existing.name) {
                let retained = rule::destinations(properties);
                let retained = retained.filter(|to| known.is_retained(properties, true, to));
                counts.destinations += retained.count();
            } else if rule::stays(world, &existing.name) {
                counts.rules += 1;
                counts.sources += properties.source_address_prefixes.len()
                    + usize::from(properties.source_address_prefix.is_some());
                counts.destinations += rule::destinations(properties).count();
            }
        }
        counts
    }

    fn with(self, more: Self) -> Self {
        Self {
            rules: self.rules + more.rules,
            sources: self.sources + more.sources,
            destinations: self.destinations + more.destinations,
        }
    }

    fn add(&mut self, more: Self) {
        *self = self.with(more);
    }

    fn check(self, group: &NetworkSecurityGroup) -> Result<(), PlanError> {
        let limits = [
            ("rules", self.rules, MAXIMUM_RULES),
            ("source prefixes", self.sources, MAXIMUM_PREFIXES),
            ("destination prefixes", self.destinations, MAXIMUM_PREFIXES),
        ];
        for (what, count, maximum) in limits {
            if count > maximum {
                let security_group = group.name.clone();
                return Err(PlanError::SecurityGroupLimit {
                    security_group,
                    what,
                    count,
                    maximum,
                });
            }
        }
        Ok(())
    }
}

fn of_service(
    world: &ClusterState<'_>,
    index: SubjectIndex,
    subject: &Subject<'_>,
    intent: &Intent,
    destination: &Destination,
    warnings: &mut BTreeSet<Warning>,
) -> Vec<DesiredRule> {
    let addresses: BTreeSet<String> = match destination {
        Destination::Address(address) => BTreeSet::from([address.clone()]),
        Destination::Pending => BTreeSet::new(),
    };
    match world.config.edition {
        Edition::Note => per_source(index, subject, intent, &addresses),
        Edition::Current => aggregated(world, index, subject, intent, addresses, warnings),
    }
}

fn per_source(
    index: SubjectIndex,
    subject: &Subject<'_>,
    intent: &Intent,
    addresses: &BTreeSet<String>,
) -> Vec<DesiredRule> {
    let prefix = if intent.access.shared {
        naming::SHARED
    } else {
        &subject.prefix
    };
    let mut rules = Vec::new();
    for port in &intent.ports {
        for source in intent.access.sources.iter().flatten() {
            let protocol = port.protocol.in_names();
            rules.push(DesiredRule {
                name: naming::security_rule(prefix, protocol, port.port, source),
                protocol: port.protocol.of_security_rule(),
                sources: vec![source.clone()],
                ports: vec![port.port.to_string()],
                destinations: addresses.clone(),
                access: Access::Allow,
                as_lists: intent.access.shared,
                services: vec![index],
            });
        }
    }
    rules
}

fn aggregated(
    world: &ClusterState<'_>,
    index: SubjectIndex,
    subject: &Subject<'_>,
    intent: &Intent,
    addresses: BTreeSet<String>,
    warnings: &mut BTreeSet<Warning>,
) -> Vec<DesiredRule> {
    // Without a floating address the security group sees packets with node addresses.
    let (destinations, port_of): (_, fn(&PortIntent) -> u16) = if intent.floating_ip {
        (addresses.clone(), |port| port.port)
    } else if addresses.is_empty() {
        // The rule has its name while the address is pending, so that its priority can be reserved.
        (BTreeSet::new(), |port| port.backend_port)
    } else {
        (node_addresses(world), |port| port.backend_port)
    };
    let mut rules = Vec::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let ports: BTreeSet<_> = intent
            .ports
            .iter()
            .filter(|port| port.protocol == protocol && port.has_rule)
            .map(|port| port_of(port).to_string())
            .collect();
        if ports.is_empty() {
            continue;
        }
        let ports: Vec<_> = ports.into_iter().collect();
        let security = protocol.of_security_rule();
        for sources in &intent.access.sources {
            rules.push(DesiredRule {
                name: naming::aggregated_rule(Family::V4, security.as_str(), sources, &ports),
                protocol: security.clone(),
                sources: sources.clone(),
                ports: ports.clone(),
                destinations: destinations.clone(),
                access: Access::Allow,
                as_lists: true,
                services: vec![index],
            });
        }
    }
    if intent.access.deny_others && !intent.floating_ip {
        // A rule that denies access to the nodes themselves would cut them off from each other.
        warnings.insert(Warning {
            service: Some(subject.key().clone()),
            what: "nobody else is rejected by a rule of its own, since without a floating address that would close the nodes".to_owned(),
        });
    } else if intent.access.deny_others {
        rules.push(DesiredRule {
            name: naming::deny_rule(Family::V4),
            protocol: SecurityProtocol::Any,
            sources: vec!["*".to_owned()],
            ports: vec!["*".to_owned()],
            destinations: addresses,
            access: Access::Deny,
            as_lists: true,
            services: vec![index],
        });
    }
    rules
}

/// Returns the addresses of the members of pools, to which packets without a floating address are sent. Other
/// addresses are not opened, since they would no longer be known as the cluster's once their node has left.
pub(super) fn node_addresses(world: &ClusterState<'_>) -> BTreeSet<String> {
    // Members that stay because they cannot be read, or because their change was rejected, remain reachable.
    let kept = world.kept_members();
    let held = &world.request.held_members;
    let is_member = |lower: &str| {
        let mut entries = world.member_entries();
        entries.any(|entry| entry.name.eq_ignore_ascii_case(lower))
    };
    let nodes = world.nodes.iter().filter(|node| {
        let lower = naming::backend_address(&node.name).to_ascii_lowercase();
        let is_there = match (node.readiness, world.config.backend_pool_type) {
            // The members are network interfaces.
            (Readiness::Ready, _) | (_, PoolMembership::NetworkInterface) => true,
            (Readiness::NotReady(since), PoolMembership::Address) => {
                since < world.config.not_ready_grace && is_member(&lower)
            }
        };
        is_there && !held.contains(&lower) && machines::takes_part(world.config, node)
    });
    let mut addresses: BTreeSet<_> = nodes
        .filter_map(|node| node.addresses.iter().find(|address| address.is_ipv4()))
        .map(ToString::to_string)
        .collect();
    if !kept.is_empty() {
        let entries = world.member_entries();
        let entries = entries.filter(|entry| kept.contains(&entry.name.to_ascii_lowercase()));
        addresses.extend(entries.filter_map(|entry| entry.properties.ip_address.clone()));
    }
    addresses
}
