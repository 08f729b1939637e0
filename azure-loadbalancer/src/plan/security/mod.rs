//! The planned state of the security group.

mod desired;
mod known;
mod rule;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use self::desired::{Desired, DesiredRule};
use self::known::Known;
use super::cluster_state::{ClusterState, Owner, Standing, SubjectIndex};
use super::placement::{Placed, Placement};
use super::target::Place;
use super::{Deferred, Orphan, PlanError, Warning};
use crate::naming;
use crate::resources::{Access, ArmId, NetworkSecurityGroup, SecurityRule};
use crate::service::ServiceKey;

/// The priorities of rules. Allowing rules get the lowest free one, denying rules the highest.
const PRIORITIES: std::ops::Range<u16> = 500..4096;

/// The planned state of the security group.
#[derive(Debug)]
pub(super) struct SecurityDraft<'a> {
    pub(super) current: &'a NetworkSecurityGroup,
    pub(super) resource: NetworkSecurityGroup,
    pub(super) services: BTreeSet<ServiceKey>,
    /// The services whose new address is unknown, so that rules still lead to the old one.
    pub(super) pending: BTreeSet<ServiceKey>,
    /// True if rules that belong to no service are removed.
    pub(super) swept: bool,
    /// True if the destinations of unchanged services' rules follow a change of nodes.
    pub(super) follows_nodes: bool,
    pub(super) deferred: Vec<Deferred>,
    pub(super) warnings: BTreeSet<Warning>,
    pub(super) orphans: Vec<Orphan>,
}

/// The address that security rules lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// The address is known.
    Address(String),
    /// The address is known only after the frontend is created.
    Pending,
}

type Failures = Vec<(SubjectIndex, PlanError)>;

pub(super) fn build<'a>(
    world: &ClusterState<'a>,
    placement: &Placement,
) -> Result<Option<SecurityDraft<'a>>, Failures> {
    let Some(id) = world.config.security_group_id() else {
        return Ok(None);
    };
    if !world.request.classes.security_group {
        return Ok(None);
    }
    let Some(current) = &world.snapshot.security_group else {
        let failures: Failures = world
            .wanted()
            .map(|(index, _, _)| (index, PlanError::SecurityGroupNotFound(id.clone())))
            .collect();
        // Without services nothing needs the group, so its absence is no error.
        return if failures.is_empty() {
            Ok(None)
        } else {
            Err(failures)
        };
    };
    let mut draft = SecurityDraft {
        current,
        resource: current.clone(),
        services: BTreeSet::new(),
        pending: BTreeSet::new(),
        swept: false,
        follows_nodes: false,
        deferred: Vec::new(),
        warnings: BTreeSet::new(),
        orphans: Vec::new(),
    };
    let mut destinations = BTreeMap::new();
    for (index, placed) in placement {
        let destination = destination(world, *index, placed);
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        if destination == Destination::Pending {
            // No other part of this plan will make the address known, so waiting would never end.
            if world.request.is_security_group_alone() {
                return Err(vec![(*index, PlanError::AddressUnknown)]);
            }
            draft.deferred.push(Deferred {
                service: Some(subject.key().clone()),
                what: "its security rules follow once its address is known".to_owned(),
            });
            draft.pending.insert(subject.key().clone());
        }
        destinations.insert(*index, destination);
    }
    let known = Known::of(world, &destinations);
    let desired = Desired::of(world, &destinations, &known, current, &mut draft.warnings)?;
    let failures = reconcile(world, &mut draft, &destinations, &known, desired, &id);
    if failures.is_empty() {
        Ok(Some(draft))
    } else {
        Err(failures)
    }
}

fn destination(world: &ClusterState<'_>, index: SubjectIndex, placed: &Placed) -> Destination {
    if let Some(only) = &world.request.only
        && world
            .subjects
            .get(index)
            .is_some_and(|subject| *subject.key() == only.key)
        && let Some(address) = &only.address
    {
        // An empty address stands for any destination.
        let any = address.is_empty();
        return Destination::Address(if any { "*".to_owned() } else { address.clone() });
    }
    // The frontend is not moved in this round, so its new address does not lead anywhere yet.
    if placed.later.is_some() {
        return Destination::Pending;
    }
    let address = match &placed.target.place {
        Place::External { public_ip } => world
            .public_ip(public_ip)
            .and_then(|found| found.properties.ip_address.clone()),
        Place::Internal {
            address: Some(address),
            ..
        } => Some(address.to_string()),
        Place::Internal { address: None, .. } => {
            let balancer = world.balancer(&placed.balancer);
            let mut frontends = balancer
                .iter()
                .flat_map(|b| &b.properties.frontend_ip_configurations);
            frontends
                .find(|frontend| frontend.is_named(&placed.target.frontend))
                .filter(|frontend| placed.target.place.is_that_of(frontend))
                .and_then(|frontend| world.address_of(frontend))
                .map(str::to_owned)
        }
    };
    match address {
        Some(address) if !address.is_empty() => Destination::Address(address),
        _ => Destination::Pending,
    }
}

fn reconcile(
    world: &ClusterState<'_>,
    draft: &mut SecurityDraft<'_>,
    destinations: &BTreeMap<SubjectIndex, Destination>,
    known: &Known<'_>,
    mut desired: Desired,
    id: &ArmId,
) -> Failures {
    let mut rules = std::mem::take(&mut draft.resource.properties.security_rules);
    rules.retain_mut(|rule| {
        let asked_for = desired.take(&rule.name);
        if rule::is_merged(&rule.name) {
            return merge(world, draft, known, rule, asked_for.as_ref());
        }
        let index = match world.owner(&rule.name, rule::is_private(&rule.name)) {
            Owner::Foreign => return true,
            Owner::Orphan => {
                // Without exclusive rights, a rule is removed only if all its destinations were provably this
                // cluster's.
                let proven = known.are_released(&rule.properties);
                let removed = world.sweeps() && (world.config.exclusive_security_group || proven);
                draft.orphans.push(Orphan {
                    id: id.child("securityRules", &rule.name).to_string(),
                    owner: naming::owner_of(&rule.name),
                    removed,
                });
                draft.swept |= removed;
                return !removed;
            }
            Owner::Subject(index) => index,
        };
        let Some(subject) = world.subjects.get(index) else {
            return true;
        };
        let stays = match subject.standing {
            Standing::Held => true,
            Standing::Unwanted => false,
            Standing::Requested(_) => match (destinations.get(&index), asked_for) {
                // While the new address is unknown, the old rules keep the service reachable.
                (Some(Destination::Pending) | None, _) => return true,
                (Some(Destination::Address(_)), Some(asked_for)) => {
                    if rule::update(rule, &asked_for, &asked_for.destinations) {
                        draft.services.insert(subject.key().clone());
                    }
                    true
                }
                (Some(Destination::Address(_)), None) => false,
            },
        };
        if !stays {
            draft.services.insert(subject.key().clone());
        }
        stays
    });
    // Present rules keep their priorities, so they are reserved before new rules get theirs.
    let mut free = FreePriorities::of(&rules);
    let mut failures = Failures::new();
    for asked_for in desired.remaining() {
        let Some(priority) = free.take(&asked_for.access) else {
            let security_group = id.name().to_owned();
            let error = PlanError::PriorityExhausted { security_group };
            failures.extend(
                asked_for
                    .services
                    .iter()
                    .map(|index| (*index, error.clone())),
            );
            continue;
        };
        // The priority of a rule whose address is not known yet is reserved.
        if asked_for.destinations.is_empty() {
            continue;
        }
        let keys = asked_for
            .services
            .iter()
            .filter_map(|index| world.subjects.get(*index));
        draft
            .services
            .extend(keys.map(|subject| subject.key().clone()));
        rules.push(rule::new(&asked_for, priority));
    }
    draft.resource.properties.security_rules = rules;
    failures
}

/// Updates a shared rule to match the combined requests of its services. Returns true if anything of it is
/// left.
fn merge(
    world: &ClusterState<'_>,
    draft: &mut SecurityDraft<'_>,
    known: &Known<'_>,
    rule: &mut SecurityRule,
    asked_for: Option<&DesiredRule>,
) -> bool {
    let mut destinations = asked_for
        .map(|a| a.destinations.clone())
        .unwrap_or_default();
    for destination in rule::destinations(&rule.properties) {
        if known.is_retained(&rule.properties, asked_for.is_some(), destination) {
            destinations.insert(destination.to_owned());
        }
    }
    let wanted = destinations.len();
    destinations.extend(known.nodes_of_who_stays(&rule.properties).cloned());
    let of_who_stays = destinations.len() > wanted;
    let before: HashSet<_> = rule::destinations(&rule.properties)
        .map(str::to_owned)
        .collect();
    let strangers = before
        .iter()
        .any(|destination| !destinations.contains(destination) && known.is_nobodys(destination));
    let mut note = || {
        let keys = asked_for.iter().flat_map(|asked_for| &asked_for.services);
        let keys = keys.filter_map(|index| world.subjects.get(*index));
        draft
            .services
            .extend(keys.map(|subject| subject.key().clone()));
        draft
            .services
            .extend(known.owners_of(&before, &destinations).cloned());
        draft.swept |= strangers;
        draft.follows_nodes |= of_who_stays;
    };
    // A shared rule without destinations would have to allow all, so it is removed instead.
    if destinations.is_empty() {
        note();
        return false;
    }
    let changed = match asked_for {
        Some(asked_for) => rule::update(rule, asked_for, &destinations),
        None => rule::set_destinations(&mut rule.properties, &destinations, true),
    };
    if changed {
        note();
    }
    true
}

/// The priorities that no rule of either direction has.
struct FreePriorities {
    used: HashSet<u16>,
    lowest: u16,
    highest: u16,
}

impl FreePriorities {
    fn of(rules: &[SecurityRule]) -> Self {
        Self {
            used: rules.iter().map(|rule| rule.properties.priority).collect(),
            lowest: PRIORITIES.start,
            highest: PRIORITIES.end - 1,
        }
    }

    fn take(&mut self, access: &Access) -> Option<u16> {
        loop {
            if self.lowest > self.highest {
                return None;
            }
            // Denying rules come after all allowing ones, so they are numbered from the end.
            let candidate = if *access == Access::Deny {
                let candidate = self.highest;
                self.highest -= 1;
                candidate
            } else {
                let candidate = self.lowest;
                self.lowest += 1;
                candidate
            };
            if !self.used.contains(&candidate) {
                return Some(candidate);
            }
        }
    }
}
