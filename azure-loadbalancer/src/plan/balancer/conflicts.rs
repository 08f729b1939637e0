//! Ports that two cannot have at once, found before the resource manager refuses the whole load balancer.

use std::collections::BTreeMap;

use crate::annotations::{Intent, Protocol};
use crate::plan::PlanError;
use crate::plan::placement::{Placed, Placement};
use crate::plan::world::{Owner, SubjectIndex, World};
use crate::resources::{ArmId, LoadBalancingRule, TransportProtocol};

/// A port of a frontend, or without one a port that nodes are reached at.
type Slot = (String, Option<String>, Protocol, u16);

pub(in crate::plan) fn find(
    world: &World<'_>,
    placement: &Placement,
) -> Vec<(SubjectIndex, PlanError)> {
    let mut taken: BTreeMap<Slot, String> = BTreeMap::new();
    let mut has_rules: BTreeMap<SubjectIndex, usize> = BTreeMap::new();
    for balancer in &world.snapshot.load_balancers {
        let ours = world.is_ours(balancer);
        for rule in &balancer.properties.load_balancing_rules {
            let stays = match world.owner(&rule.name, ours) {
                Owner::Foreign => true,
                Owner::Orphan => !world.sweeps(),
                Owner::Subject(index) => {
                    *has_rules.entry(index).or_default() += 1;
                    world
                        .subjects
                        .get(index)
                        .is_some_and(|subject| subject.is_held())
                }
            };
            if stays {
                for slot in slots_of_rule(world, &balancer.name, rule) {
                    taken.insert(slot, format!("rule {}", rule.name));
                }
            }
        }
    }
    // Who has rules already keeps its ports; of the others, the first by name gets them.
    let mut order: Vec<_> = placement.iter().collect();
    order.sort_by_key(|(index, _)| (!has_rules.contains_key(index), **index));
    let mut failures = Vec::new();
    for (index, placed) in order {
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        let Some(intent) = subject.intent() else {
            continue;
        };
        let slots = slots_of_service(placed, intent);
        let conflict = slots.iter().find_map(|slot| Some((slot, taken.get(slot)?)));
        if let Some(((_, _, protocol, port), by)) = conflict {
            let error = PlanError::PortConflict {
                protocol: protocol.in_names().to_owned(),
                port: *port,
                by: by.clone(),
            };
            failures.push((*index, error));
            continue;
        }
        let by = format!("service {}", subject.key());
        taken.extend(slots.into_iter().map(|slot| (slot, by.clone())));
    }
    failures
}

fn slots_of_rule(world: &World<'_>, balancer: &str, rule: &LoadBalancingRule) -> Vec<Slot> {
    let balancer = balancer.to_ascii_lowercase();
    let properties = &rule.properties;
    let protocols: &[Protocol] = match properties.protocol {
        Some(TransportProtocol::Tcp) => &[Protocol::Tcp],
        Some(TransportProtocol::Udp) => &[Protocol::Udp],
        Some(TransportProtocol::All | TransportProtocol::Other(_)) | None => &[],
    };
    let id = |reference: Option<&crate::resources::SubResource>| {
        reference
            .and_then(|reference| reference.id.as_ref())
            .map(ArmId::name)
            .map(str::to_ascii_lowercase)
    };
    let mut slots = Vec::new();
    for protocol in protocols {
        if let Some(frontend) = id(properties.frontend_ip_configuration.as_ref()) {
            slots.push((
                balancer.clone(),
                Some(frontend),
                *protocol,
                properties.frontend_port,
            ));
        }
        let ours = id(properties.backend_address_pool.as_ref())
            .is_some_and(|pool| pool.eq_ignore_ascii_case(&world.config.cluster_name));
        if properties.enable_floating_ip != Some(true) && ours {
            slots.push((balancer.clone(), None, *protocol, properties.backend_port));
        }
    }
    slots
}

fn slots_of_service(placed: &Placed, intent: &Intent) -> Vec<Slot> {
    let balancer = placed.balancer.to_ascii_lowercase();
    let frontend = placed.target.frontend.to_ascii_lowercase();
    let mut slots = Vec::new();
    for port in intent.ports.iter().filter(|port| port.has_rule) {
        slots.push((
            balancer.clone(),
            Some(frontend.clone()),
            port.protocol,
            port.port,
        ));
        if !intent.floating_ip {
            slots.push((balancer.clone(), None, port.protocol, port.backend_port));
        }
    }
    slots
}
