//! One plan: all stages, repeated without the services whose request cannot be met, until no further ones are
//! found.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_state::{ClusterState, SubjectIndex};
use super::machines::{self, Machines};
use super::placement::{self, Placement};
use super::request::Balancers;
use super::{
    Deferred, Plan, PlanError, Request, ServiceOutcome, Snapshot, Warning, assembly, balancer,
    members, public_ip, security, status, target,
};
use crate::annotations;
use crate::config::Config;
use crate::node::Node;
use crate::service::{Service, ServiceKey};

pub(crate) fn plan_request(
    config: &Config,
    request: &Request,
    services: &[Service],
    nodes: &[Node],
    snapshot: &Snapshot,
) -> Plan {
    let mut failures: BTreeMap<ServiceKey, PlanError> = BTreeMap::new();
    if let Err(error) = config.validate() {
        return unusable(&error.to_string(), services);
    }
    loop {
        let world = ClusterState::new(config, request, services, nodes, snapshot, &mut failures);
        match round(&world, &failures) {
            Ok(plan) => return plan,
            // Each turn adds at least one service, so the loop ends.
            Err(more) => {
                for (index, error) in more {
                    if let Some(subject) = world.subjects.get(index) {
                        failures.entry(subject.key().clone()).or_insert(error);
                    }
                }
            }
        }
    }
}

fn unusable(why: &str, services: &[Service]) -> Plan {
    let outcome = |service: &Service| {
        let error = Some(PlanError::Config(why.to_owned()));
        (
            service.key.clone(),
            ServiceOutcome {
                error,
                ..ServiceOutcome::default()
            },
        )
    };
    let what = why.to_owned();
    Plan {
        services: services.iter().map(outcome).collect(),
        warnings: vec![Warning {
            service: None,
            what,
        }],
        ..Plan::default()
    }
}

fn round(
    world: &ClusterState<'_>,
    failures: &BTreeMap<ServiceKey, PlanError>,
) -> Result<Plan, Vec<(SubjectIndex, PlanError)>> {
    let placement = place(world)?;
    let security = security::build(world, &placement)?;
    let mut drafts = balancer::build(world, &placement);
    let pending = security.as_ref().map(|security| &security.pending);
    let mut addresses = public_ip::build(world, &placement, &drafts, pending);
    let members = members::build(world, &placement, &drafts);
    let (actions, edges) =
        assembly::assemble(world, &drafts, &addresses, security.as_ref(), &members);
    let mut plan = Plan {
        actions,
        edges,
        pools_kept: world.keeps_last_members() && world.member_entries().next().is_some(),
        ..Plan::default()
    };
    let mut warnings = std::mem::take(&mut drafts.warnings);
    plan.deferred.append(&mut drafts.deferred);
    plan.orphans.append(&mut drafts.orphans);
    warnings.append(&mut addresses.warnings);
    plan.deferred.append(&mut addresses.deferred);
    plan.orphans.append(&mut addresses.orphans);
    if let Some(mut security) = security {
        warnings.append(&mut security.warnings);
        plan.deferred.append(&mut security.deferred);
        plan.orphans.append(&mut security.orphans);
    }
    for (index, subject) in world.subjects.iter().enumerate() {
        let key = subject.key();
        let is_asked_about = world
            .request
            .only
            .as_ref()
            .is_none_or(|only| only.key == *key);
        if !is_asked_about || !world.config.serves(subject.service) {
            continue;
        }
        let texts = subject.intent().map_or(&[][..], |intent| &intent.warnings);
        warnings.extend(texts.iter().map(|what| Warning {
            service: Some(key.clone()),
            what: what.clone(),
        }));
        let later = placement
            .get(&index)
            .and_then(|placed| placed.later.clone());
        if let (Some(what), Balancers::All) = (later, world.request.classes.load_balancers) {
            plan.deferred.push(Deferred {
                service: Some(key.clone()),
                what,
            });
        }
        let outcome = status::outcome(world, index, &placement, failures.get(key).cloned());
        plan.services.insert(key.clone(), outcome);
    }
    warnings.extend(world.nodes.iter().filter_map(|node| {
        let why = node.unreadable.as_ref()?;
        let what = format!(
            "node {} cannot be read: {why}; where it is a member it stays one",
            node.name
        );
        let service = None;
        Some(Warning { service, what })
    }));
    let nodes = world.nodes.iter();
    let without_address = nodes.filter(|node| machines::has_no_address(world.config, node));
    warnings.extend(without_address.map(|node| Warning {
        service: None,
        what: format!(
            "node {} has no IPv4 address (an InternalIP in status.addresses); where it is a member it stays one",
            node.name
        ),
    }));
    warnings.extend(unheard(world));
    warnings.extend(world.repeated.iter().map(|(key, services)| Warning {
        service: Some((*key).clone()),
        what: repeated(services),
    }));
    warnings.extend(unguarded(world));
    // Services whose names clash with those of another are not subjects.
    for (key, error) in failures {
        plan.services
            .entry(key.clone())
            .or_insert_with(|| ServiceOutcome {
                error: Some(error.clone()),
                ..ServiceOutcome::default()
            });
    }
    plan.warnings = warnings.into_iter().collect();
    plan.orphans.sort();
    Ok(plan)
}

/// Returns a warning about external services without a security group: standard load balancers deny
/// everything that no security rule allows.
fn unguarded(world: &ClusterState<'_>) -> Option<Warning> {
    let is_open =
        |(_, subject, intent): (_, &super::cluster_state::Subject<'_>, &annotations::Intent)| {
            (!intent.internal).then(|| subject.key().clone())
        };
    let service = world.wanted().find_map(is_open)?;
    let is_unguarded = world.config.is_standard() && world.config.security_group_name.is_none();
    is_unguarded.then(|| Warning {
        service: None,
        what: format!(
            "the configuration has no securityGroupName, so that no security rule is written: a standard load balancer admits no client to {service} and others until another tool writes one"
        ),
    })
}

/// Returns warnings about services whose packets keep the load balancer's address, although some nodes
/// respond at their own address only.
fn unheard(world: &ClusterState<'_>) -> impl Iterator<Item = Warning> {
    let deaf = world.nodes.iter().find(|node| node.own_address_only);
    let floating = deaf.into_iter().flat_map(|node| {
        let wanted = world.wanted();
        wanted
            .filter(|(_, _, intent)| intent.floating_ip && !intent.ports.is_empty())
            .map(move |(_, subject, _)| (node, subject.key()))
    });
    floating.map(|(node, service)| Warning {
        service: Some(service.clone()),
        what: format!(
            "node {} responds at its own address only, but receives packets for that of the load \
             balancer; write {}: \"true\"",
            node.name,
            annotations::keys::DISABLE_FLOATING_IP
        ),
    })
}

/// Returns the load balancer of each service, or all errors of placement.
pub(super) fn place(world: &ClusterState<'_>) -> Result<Placement, Vec<(SubjectIndex, PlanError)>> {
    let machines = Machines::of(world);
    let targets = target::resolve(world, &machines)?;
    let placement = placement::place(world, &machines, targets)?;
    let conflicts = balancer::find_conflicts(world, &placement);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let labels = public_ip::label_conflicts(world, &placement);
    if !labels.is_empty() {
        return Err(labels);
    }
    Ok(placement)
}

/// Returns a text that names the service that counts of those with one key, which are sorted by UID.
fn repeated(services: &[&Service]) -> String {
    let count = services.len();
    let first = services.first().map_or("", |service| &*service.uid);
    let others: BTreeSet<_> = services.iter().map(|service| &*service.uid).collect();
    match others.len() {
        0 | 1 => format!(
            "it is there {count} times with the same UID {first:?}; only the first of them counts"
        ),
        _ => format!(
            "it is there {count} times; only the one with UID {first:?} counts, since that comes first of all their UIDs"
        ),
    }
}
