//! The probes of a load balancer: which are kept, removed, added or changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{ADDED, CHANGED, Draft, SWEPT, rules};
use crate::annotations::{Intent, ProbeIntent};
use crate::config::Edition;
use crate::plan::cluster_state::{ClusterState, Owner, Subject, SubjectIndex};
use crate::plan::placement::Placed;
use crate::resources::{Probe, ProbeProperties};

pub(super) fn apply(
    world: &ClusterState<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    ours: bool,
) {
    let mut desired: BTreeMap<String, (String, SubjectIndex, &ProbeIntent)> = BTreeMap::new();
    for (index, _) in residents
        .iter()
        .filter(|(_, placed)| placed.later.is_none())
    {
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        let Some(intent) = subject.intent() else {
            continue;
        };
        for probe in intent.ports.iter().filter_map(|port| port.probe.as_ref()) {
            let name = name(subject, intent, probe);
            desired
                .entry(name.to_ascii_lowercase())
                .or_insert((name, *index, probe));
        }
    }
    let referenced: BTreeSet<String> = draft
        .resource
        .properties
        .load_balancing_rules
        .iter()
        .filter_map(|rule| rule.properties.probe.as_ref()?.id.as_ref())
        .map(|id| id.name().to_ascii_lowercase())
        .collect();
    let mut probes = std::mem::take(&mut draft.resource.properties.probes);
    probes.retain_mut(|probe| {
        let lower = probe.name.to_ascii_lowercase();
        if let Some((_, index, asked_for)) = desired.remove(&lower) {
            let before = probe.properties.clone();
            update(world, &mut probe.properties, asked_for);
            if before != probe.properties {
                let key = world.subjects.get(index).map(|subject| subject.key());
                draft.touch(key, CHANGED);
            }
            return true;
        }
        let stays = match world.owner(&probe.name, ours) {
            Owner::Foreign => true,
            Owner::Orphan => !world.sweeps(),
            Owner::Subject(index) => world.subjects.get(index).is_some_and(|s| s.is_held()),
        };
        let stays = stays || referenced.contains(&lower);
        if !stays {
            let key = match world.owner(&probe.name, ours) {
                Owner::Subject(index) => world.subjects.get(index).map(|subject| subject.key()),
                Owner::Orphan | Owner::Foreign => None,
            };
            draft.touch(key, if key.is_some() { CHANGED } else { SWEPT });
        }
        stays
    });
    for (name, index, asked_for) in desired.into_values() {
        let mut probe = Probe::named(name, ProbeProperties::default());
        update(world, &mut probe.properties, asked_for);
        let key = world.subjects.get(index).map(|subject| subject.key());
        draft.touch(key, ADDED);
        probes.push(probe);
    }
    draft.resource.properties.probes = probes;
}

/// Returns the name of a probe.
pub(super) fn name(subject: &Subject<'_>, intent: &Intent, probe: &ProbeIntent) -> String {
    let (protocol, port) = probe.named_after;
    rules::name(subject, intent, protocol, port)
}

fn update(world: &ClusterState<'_>, properties: &mut ProbeProperties, probe: &ProbeIntent) {
    rules::set(&mut properties.protocol, probe.protocol.clone(), None);
    properties.port = probe.port;
    rules::set(&mut properties.interval_in_seconds, probe.interval, None);
    match world.config.edition {
        Edition::Note => rules::set(&mut properties.number_of_probes, probe.count, None),
        Edition::Current => rules::set(&mut properties.probe_threshold, probe.count, None),
    }
    if properties.request_path != probe.path {
        properties.request_path.clone_from(&probe.path);
    }
}
