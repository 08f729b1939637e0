//! The choice of a load balancer for each service.

use std::collections::BTreeMap;

use super::PlanError;
use super::cluster_state::{ClusterState, SubjectIndex};
use super::machines::{self, Machines};
use super::quota::Quota;
use super::target::{self, Target, Targets};
use crate::annotations::{Intent, Mode};
use crate::config::{Edition, FlipOrder};
use crate::naming;
use crate::plan::request::Balancers;
use crate::resources::{FrontendIpConfiguration, LoadBalancer};

/// The load balancer of a service: present, or planned.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) target: Target,
    /// The name of the load balancer.
    pub(super) balancer: String,
    /// The reason why the frontend is not created or changed in this round. `None` if it is.
    pub(super) later: Option<String>,
}

pub(super) type Placement = BTreeMap<SubjectIndex, Placed>;

type PlacementFailures = Vec<(SubjectIndex, PlanError)>;

pub(super) fn place(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
    targets: Targets,
) -> Result<Placement, PlacementFailures> {
    let mut found: BTreeMap<SubjectIndex, String> = BTreeMap::new();
    let is_lead = |(index, target): &(&SubjectIndex, &Target)| {
        **index == target.lead || target.bound_to.is_some()
    };
    for (index, target) in targets.iter().filter(is_lead) {
        if let Some(balancer) = current(world, machines, *index, target) {
            found.insert(*index, balancer);
        }
    }
    // A service that shares an address follows the owner of the frontend.
    for (index, target) in targets.iter().filter(|entry| !is_lead(entry)) {
        if let Some(balancer) = found.get(&target.lead).cloned() {
            found.insert(*index, balancer);
        }
    }
    // Services that stay are counted first, so that new ones cannot displace them.
    let mut room = Quota::of(world, &found, &targets);
    let mut failures = room.grow(world, &found);
    let mut selected: BTreeMap<SubjectIndex, String> = BTreeMap::new();
    let leads = targets.iter().filter(is_lead);
    let others = targets.iter().filter(|entry| !is_lead(entry));
    for (index, target) in leads.chain(others) {
        if found.contains_key(index) {
            continue;
        }
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        let Some(intent) = subject.intent() else {
            continue;
        };
        let lead = found
            .get(&target.lead)
            .or_else(|| selected.get(&target.lead))
            .cloned();
        // A service that shares an address needs no frontend of its own on that load balancer.
        let chosen = match lead.filter(|_| target.lead != *index) {
            Some(balancer) => room.admit(world, balancer, intent, false),
            None => select(world, machines, &mut room, intent),
        };
        match chosen {
            Ok(balancer) => {
                selected.insert(*index, balancer);
            }
            Err(error) => failures.push((*index, error)),
        }
    }
    found.append(&mut selected);
    for (index, balancer) in &found {
        let Some(existing) = world.balancer(balancer) else {
            continue;
        };
        let what = format!("load balancer {}", existing.name);
        if let Err(error) = target::check_sku(world, what, existing.sku.as_ref()) {
            failures.push((*index, error));
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    let waits: BTreeMap<_, _> = targets
        .iter()
        .map(|(index, target)| {
            let balancer = found.get(index).map_or("", String::as_str);
            (*index, waits_for(world, *index, target, balancer))
        })
        .collect();
    let placed = targets.into_iter().filter_map(|(index, target)| {
        let balancer = found.get(&index)?.clone();
        let own = waits.get(&index).cloned().flatten();
        // A service that shares a frontend waits for the same as its owner.
        let later = own.or_else(|| waits.get(&target.lead).cloned().flatten());
        Some((
            index,
            Placed {
                target,
                balancer,
                later,
            },
        ))
    });
    Ok(placed.collect())
}

/// Returns the load balancer on which the service is, and stays.
fn current(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
    index: SubjectIndex,
    target: &Target,
) -> Option<String> {
    if let Some(balancer) = &target.bound_to {
        return Some(balancer.clone());
    }
    stays_on(world, machines, index, &target.frontend).map(|balancer| balancer.name.clone())
}

/// Returns the load balancer of the requested kind on which a service has a frontend, and stays: preferably
/// one with a frontend of that name, else any with one of its own.
pub(super) fn stays_on<'a>(
    world: &ClusterState<'a>,
    machines: &Machines<'_>,
    index: SubjectIndex,
    name: &str,
) -> Option<&'a LoadBalancer> {
    let intent = world.subjects.get(index)?.intent()?;
    let own = world.frontends_of(index).iter();
    let mut of_kind = own
        .filter(|(balancer, _)| naming::is_internal(&balancer.name) == intent.internal)
        .peekable();
    // Without a frontend of this kind there is no place to stay, and the sets need not be computed.
    of_kind.peek()?;
    // Only basic load balancers of the current edition move when the annotation names other sets.
    let moves = world.config.edition == Edition::Current && !world.config.is_standard();
    let named = match &intent.mode {
        Mode::Sets(sets) if moves => {
            let (known, _) = machines::sets(world, machines);
            let sets = sets.iter().filter(|set| known.contains(*set));
            let names = sets.map(|set| balancer_of(world, set, intent.internal));
            Some(names.collect::<Vec<_>>())
        }
        Mode::Sets(_) | Mode::Primary | Mode::Auto => None,
    };
    let stays = |balancer: &LoadBalancer| {
        let among = |names: &Vec<String>| names.iter().any(|name| balancer.is_named(name));
        named.as_ref().is_none_or(among)
    };
    let (balancer, _) = of_kind
        .filter(|(balancer, _)| stays(balancer))
        .min_by_key(|(_, frontend)| frontend.name != name)?;
    Some(*balancer)
}

/// Returns the reason why the frontend cannot be created yet, such as another one that must be removed first.
/// `None` if it can.
fn waits_for(
    world: &ClusterState<'_>,
    index: SubjectIndex,
    target: &Target,
    balancer: &str,
) -> Option<String> {
    let intent = world.subjects.get(index)?.intent()?;
    let flipped_first = world.request.classes.load_balancers == Balancers::Flipped
        || world.config.flip_order == FlipOrder::BreakFirst;
    let flipped = |(on, frontend): &&(&LoadBalancer, &FrontendIpConfiguration)| {
        naming::is_internal(&on.name) != intent.internal && !target::stays(world, on, frontend)
    };
    if world.request.classes.load_balancers == Balancers::Flipped {
        return Some("only the frontend of the other kind is looked at".to_owned());
    }
    if flipped_first && let Some((on, _)) = world.frontends_of(index).iter().find(flipped) {
        return Some(format!("its frontend on {} goes first", on.name));
    }
    let target::Place::External { public_ip } = &target.place else {
        return None;
    };
    let (on, frontend) = world.referrer(public_ip)?;
    if on.is_named(balancer) {
        return None;
    }
    Some(format!(
        "frontend {} on {} must release public address {} first",
        frontend.name,
        on.name,
        public_ip.name()
    ))
}

/// Returns the name of the load balancer of a set of machines.
pub(super) fn balancer_of(world: &ClusterState<'_>, set: &str, internal: bool) -> String {
    let config = world.config;
    let own = !set.eq_ignore_ascii_case(&config.primary_vm_set) && !config.is_standard();
    naming::load_balancer(&config.cluster_name, own.then_some(set), internal)
}

fn select(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
    room: &mut Quota,
    intent: &Intent,
) -> Result<String, PlanError> {
    let candidates = candidates(world, machines, intent)?;
    let mut best: Option<String> = None;
    for candidate in candidates {
        // A load balancer that does not exist yet is empty, so no other can have fewer rules.
        if !room.exists(world, &candidate) {
            best = Some(candidate);
            break;
        }
        let fewer = best
            .as_ref()
            .is_none_or(|best| room.rules(&candidate) < room.rules(best));
        if fewer {
            best = Some(candidate);
        }
    }
    let best = best.ok_or_else(|| PlanError::Selection("there are no sets of machines".into()))?;
    room.admit(world, best, intent, true)
}

fn candidates(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
    intent: &Intent,
) -> Result<Vec<String>, PlanError> {
    let primary = world.config.primary_vm_set.as_str();
    let internal = intent.internal;
    if world.config.is_standard() || intent.mode == Mode::Primary {
        return Ok(vec![balancer_of(world, primary, internal)]);
    }
    let (known, without) = machines::sets(world, machines);
    if let (Some(node), Edition::Note) = (without, world.config.edition) {
        let why = format!("node {node} is in no availability set or scale set");
        return Err(PlanError::Selection(why));
    }
    if known.is_empty() {
        return Err(PlanError::Selection(
            "no node is in a set of machines".into(),
        ));
    }
    let sets: Vec<_> = match &intent.mode {
        Mode::Sets(named) => {
            if let Some(stranger) = named.iter().find(|set| !known.contains(*set)) {
                let known: Vec<_> = known.iter().map(String::as_str).collect();
                let why = format!(
                    "{stranger:?} is no set of machines; there are {}",
                    known.join(", ")
                );
                return Err(PlanError::Selection(why));
            }
            named.clone()
        }
        Mode::Primary | Mode::Auto => known.into_iter().collect(),
    };
    Ok(sets
        .iter()
        .map(|set| balancer_of(world, set, internal))
        .collect())
}
