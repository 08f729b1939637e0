//! The rules of a load balancer: which are kept, removed, added or changed.

use std::collections::{BTreeMap, BTreeSet};

use super::frontends::{Disposition, Dispositions};
use super::{ADDED, CHANGED, Draft, REMOVED, SWEPT, conflicts, probes};
use crate::annotations::{Intent, PortIntent, Protocol};
use crate::naming;
use crate::plan::cluster_state::{ClusterState, Owner, Standing, Subject, SubjectIndex};
use crate::plan::placement::{Placed, Placement};
use crate::resources::{LoadBalancingRule, LoadDistribution, RuleProperties, SubResource};
use crate::service::ServiceKey;

/// The default idle timeout of a rule, in minutes.
const DEFAULT_IDLE_TIMEOUT: u32 = 4;

/// A rule that a service requests.
struct RequestedRule<'w> {
    name: String,
    subject: &'w Subject<'w>,
    intent: &'w Intent,
    port: &'w PortIntent,
    frontend: &'w str,
}

pub(super) fn apply(
    world: &ClusterState<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    ours: bool,
    placement: &Placement,
    dispositions: &Dispositions,
) {
    let mut desired: BTreeMap<String, usize> = BTreeMap::new();
    let mut wanted = Vec::new();
    let mut asked_for_ports = BTreeSet::new();
    for (index, placed) in residents
        .iter()
        .filter(|(_, placed)| placed.later.is_none())
    {
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        let Some(intent) = subject.intent() else {
            continue;
        };
        // Only services that move now claim ports; lingering rules keep those of services that wait.
        asked_for_ports.extend(conflicts::slots_of_service(placed, intent));
        for port in intent.ports.iter().filter(|port| port.has_rule) {
            let name = name(subject, intent, port.protocol, port.port);
            desired.insert(name.to_ascii_lowercase(), wanted.len());
            let frontend = placed.target.frontend.as_str();
            wanted.push(Some(RequestedRule {
                name,
                subject,
                intent,
                port,
                frontend,
            }));
        }
    }
    let mut rules = std::mem::take(&mut draft.resource.properties.load_balancing_rules);
    rules.retain_mut(|rule| {
        let index = match world.owner(&rule.name, ours) {
            Owner::Foreign => return true,
            Owner::Orphan => {
                if world.sweeps() {
                    draft.touch(None, SWEPT);
                }
                return !world.sweeps();
            }
            Owner::Subject(index) => index,
        };
        let Some(subject) = world.subjects.get(index) else {
            return true;
        };
        match subject.standing {
            Standing::Held => return true,
            Standing::Unwanted => {
                draft.touch(Some(subject.key()), REMOVED);
                return false;
            }
            Standing::Requested(_) => {}
        }
        let asked_for = desired
            .get(&rule.name.to_ascii_lowercase())
            .and_then(|at| wanted.get_mut(*at))
            .and_then(Option::take);
        if let Some(asked_for) = asked_for {
            let before = rule.clone();
            update(world, &draft.id, rule, &asked_for);
            if before != *rule {
                draft.touch(Some(subject.key()), CHANGED);
            }
            return true;
        }
        let leads_to = rule.properties.frontend_ip_configuration.as_ref();
        let disposition = leads_to
            .and_then(|reference| reference.id.as_ref())
            .and_then(|id| dispositions.get(&id.name().to_ascii_lowercase()));
        let stays = match disposition {
            Some(Disposition::Lingers) => true,
            // While the new place is not created yet, nothing is removed from a frontend that stays.
            Some(Disposition::Stays | Disposition::Updated) => placement
                .get(&index)
                .is_some_and(|placed| placed.later.is_some()),
            Some(Disposition::Goes) | None => false,
        };
        // A rule whose port another service requests is removed in any case.
        let slots = conflicts::slots_of_rule(&draft.resource.name, rule);
        let stays = stays && !slots.iter().any(|slot| asked_for_ports.contains(slot));
        if !stays {
            draft.touch(Some(subject.key()), CHANGED);
        }
        stays
    });
    for asked_for in wanted.into_iter().flatten() {
        let mut rule = LoadBalancingRule::named(&asked_for.name, RuleProperties::default());
        update(world, &draft.id, &mut rule, &asked_for);
        let key: &ServiceKey = asked_for.subject.key();
        draft.touch(Some(key), ADDED);
        draft.gains = true;
        rules.push(rule);
    }
    draft.resource.properties.load_balancing_rules = rules;
}

/// Returns the name of the rule of a port.
pub(super) fn name(
    subject: &Subject<'_>,
    intent: &Intent,
    protocol: Protocol,
    port: u16,
) -> String {
    naming::rule(
        &subject.prefix,
        intent.subnet.as_deref(),
        protocol.in_names(),
        port,
    )
}

/// Updates a rule to match the request. Equal values, written differently or left to the default, stay as
/// they are written.
fn update(
    world: &ClusterState<'_>,
    balancer: &crate::resources::ArmId,
    rule: &mut LoadBalancingRule,
    desired: &RequestedRule<'_>,
) {
    let RequestedRule {
        subject,
        intent,
        port,
        frontend,
        ..
    } = desired;
    let properties = &mut rule.properties;
    let refer = |slot: &mut Option<SubResource>, kind: &str, name: &str| {
        let id = balancer.child(kind, name);
        if !SubResource::leads_to(slot.as_ref(), &id) {
            *slot = Some(SubResource::to(id));
        }
    };
    let cluster = world.config.cluster_name.as_str();
    refer(
        &mut properties.frontend_ip_configuration,
        "frontendIPConfigurations",
        frontend,
    );
    refer(
        &mut properties.backend_address_pool,
        "backendAddressPools",
        cluster,
    );
    match &port.probe {
        Some(probe) => refer(
            &mut properties.probe,
            "probes",
            &probes::name(subject, intent, probe),
        ),
        None => properties.probe = None,
    }
    set(&mut properties.protocol, port.protocol.of_rule(), None);
    let distribution = match intent.client_affinity {
        true => LoadDistribution::SourceIp,
        false => LoadDistribution::Default,
    };
    set(
        &mut properties.load_distribution,
        distribution,
        Some(&LoadDistribution::Default),
    );
    properties.frontend_port = port.port;
    properties.backend_port = port.backend_port;
    set(
        &mut properties.enable_floating_ip,
        intent.floating_ip,
        Some(&false),
    );
    // Azure has no idle timeout and no reset for UDP.
    if port.protocol == Protocol::Tcp {
        let idle = intent.idle_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT);
        set(
            &mut properties.idle_timeout_in_minutes,
            idle,
            Some(&DEFAULT_IDLE_TIMEOUT),
        );
        if let Some(reset) = intent.tcp_reset {
            set(&mut properties.enable_tcp_reset, reset, Some(&false));
        }
    }
    if world.config.is_standard() {
        let disable = world.config.disable_outbound_snat;
        set(&mut properties.disable_outbound_snat, disable, Some(&false));
    }
}

/// Writes a value unless it is already set, or is the default.
pub(super) fn set<T: PartialEq>(slot: &mut Option<T>, value: T, absent: Option<&T>) {
    if slot.as_ref().or(absent) != Some(&value) {
        *slot = Some(value);
    }
}
