//! Events and aggregated states of all entities.

use std::collections::{BTreeMap, BTreeSet};

use super::evaluation::{ChildHealth, EntityHealth, Evaluation, HealthQuery};
use super::{EntityKey, EntityKind, HealthEvent, HealthReport, HealthState, Statistics};
use crate::cluster::{ErrorCode, FabricError};
use crate::hosting::Timestamp;

/// The maximum number of events of an entity.
const MAX_EVENTS: usize = 500;
/// The maximum number of entities named in an evaluation.
const MAX_NAMED: usize = 10;

/// The health of all entities of a cluster.
#[derive(Clone, Debug)]
pub struct HealthStore {
    entities: BTreeMap<EntityKey, Entity>,
    /// The expiry of events: time, entity, source, property.
    expiries: BTreeSet<(Timestamp, EntityKey, String, String)>,
    /// The last number assigned to a report without one.
    last_number: i64,
}

#[derive(Clone, Debug)]
struct Entity {
    parent: Option<EntityKey>,
    children: BTreeSet<EntityKey>,
    /// The events, sorted by source and property. Most entities have one event.
    events: Vec<HealthEvent>,
    /// The worst state of the events.
    own: HealthState,
    /// The counts of everything below.
    below: Statistics,
}

impl Entity {
    fn state(&self) -> HealthState {
        self.own.max(self.below.worst())
    }

    fn position(&self, source: &str, property: &str) -> Result<usize, usize> {
        self.events
            .binary_search_by(|event| key_of(event).cmp(&(source, property)))
    }
}

fn key_of(event: &HealthEvent) -> (&str, &str) {
    (&event.report.source, &event.report.property)
}

impl HealthStore {
    /// Creates a store with only the cluster. Numbers assigned to reports begin after `first_number`.
    pub(crate) fn new(first_number: i64) -> Self {
        let mut store = Self {
            entities: BTreeMap::new(),
            expiries: BTreeSet::new(),
            last_number: first_number,
        };
        store.insert(EntityKey::Cluster, None);
        store
    }

    /// Returns the aggregated state of an entity. `None` if it is unknown.
    pub fn state(&self, key: &EntityKey) -> Option<HealthState> {
        self.entities.get(key).map(Entity::state)
    }

    /// Returns the counts of everything below an entity. `None` if it is unknown.
    pub fn statistics(&self, key: &EntityKey) -> Option<&Statistics> {
        self.entities.get(key).map(|entity| &entity.below)
    }

    /// The events of an entity, by source and property.
    pub fn events(&self, key: &EntityKey) -> &[HealthEvent] {
        self.entities.get(key).map_or(&[], |entity| &entity.events)
    }

    /// Returns the entities directly below one, ordered by key.
    pub fn children(&self, key: &EntityKey) -> impl Iterator<Item = (&EntityKey, HealthState)> {
        let children = self
            .entities
            .get(key)
            .into_iter()
            .flat_map(|found| &found.children);
        children.map(|child| (child, self.state(child).unwrap_or(HealthState::Ok)))
    }

    /// Returns the health of an entity. `None` if it is unknown.
    pub fn health(&self, key: &EntityKey, query: &HealthQuery) -> Option<EntityHealth> {
        let entity = self.entities.get(key)?;
        let events = entity
            .events
            .iter()
            .filter(|event| query.events.admits(event.state()));
        let children = self
            .children(key)
            .filter(|(child, state)| query.children(child.kind()).admits(*state));
        Some(EntityHealth {
            entity: key.clone(),
            state: entity.state(),
            events: events.cloned().collect(),
            evaluations: self.evaluations(key, entity),
            statistics: entity.below,
            children: children
                .map(|(child, state)| ChildHealth {
                    entity: child.clone(),
                    state,
                })
                .collect(),
        })
    }

    /// Returns the reasons why an entity is not Ok. Empty if it is Ok or unknown.
    pub fn reasons(&self, key: &EntityKey) -> Vec<Evaluation> {
        let entity = self.entities.get(key);
        entity.map_or_else(Vec::new, |entity| self.evaluations(key, entity))
    }

    /// Returns the events and children that are as unhealthy as the entity itself.
    fn evaluations(&self, key: &EntityKey, entity: &Entity) -> Vec<Evaluation> {
        let state = entity.state();
        if state == HealthState::Ok {
            return Vec::new();
        }
        let own = entity.events.iter().filter(|event| event.state() == state);
        let mut evaluations: Vec<Evaluation> = own.cloned().map(Evaluation::Event).collect();
        for kind in EntityKind::ALL {
            let of_kind = || {
                self.children(key)
                    .filter(move |(child, _)| child.kind() == kind)
            };
            let unhealthy: Vec<ChildHealth> = of_kind()
                .filter(|(_, of_child)| *of_child == state)
                .take(MAX_NAMED)
                .map(|(child, state)| ChildHealth {
                    entity: child.clone(),
                    state,
                })
                .collect();
            if !unhealthy.is_empty() {
                let total = of_kind().count() as u64;
                evaluations.push(Evaluation::Children {
                    kind,
                    state,
                    total,
                    unhealthy,
                });
            }
        }
        evaluations
    }

    /// Returns the time of the next expiry.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    /// Expires the events that are due at `now`.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some((at, ..)) = self.expiries.first() {
            if *at > now {
                return;
            }
            let Some((at, key, source, property)) = self.expiries.pop_first() else {
                return;
            };
            let Some(entity) = self.entities.get_mut(&key) else {
                continue;
            };
            let Ok(position) = entity.position(&source, &property) else {
                continue;
            };
            if entity.events[position].report.remove_when_expired {
                entity.events.remove(position);
            } else {
                let event = &mut entity.events[position];
                // An expired event counts as an error.
                event.is_expired = true;
                event.modified_at = at;
                event.last_error_at = Some(at);
            }
            self.refresh(&key);
        }
    }

    /// Adds an entity. Does nothing if it exists already, or its parent does not.
    pub(crate) fn insert(&mut self, key: EntityKey, parent: Option<EntityKey>) {
        if self.entities.contains_key(&key) {
            return;
        }
        if let Some(parent) = &parent {
            let Some(above) = self.entities.get_mut(parent) else {
                return;
            };
            above.children.insert(key.clone());
        }
        // Every ancestor counts all entities below it.
        let mut next = parent.clone();
        while let Some(ancestor) = next {
            let Some(entity) = self.entities.get_mut(&ancestor) else {
                break;
            };
            entity.below.add(key.kind(), HealthState::Ok);
            next = entity.parent.clone();
        }
        let entity = Entity {
            parent,
            children: BTreeSet::new(),
            events: Vec::new(),
            own: HealthState::Ok,
            below: Statistics::default(),
        };
        self.entities.insert(key, entity);
    }

    /// Removes an entity and everything below it.
    pub(crate) fn remove(&mut self, key: &EntityKey) {
        let Some(entity) = self.entities.get(key) else {
            return;
        };
        let children: Vec<EntityKey> = entity.children.iter().cloned().collect();
        for child in &children {
            self.remove(child);
        }
        let Some(entity) = self.entities.remove(key) else {
            return;
        };
        for event in &entity.events {
            self.forget_expiry(key, event);
        }
        let state = entity.own;
        let mut next = entity.parent;
        if let Some(above) = next.as_ref().and_then(|above| self.entities.get_mut(above)) {
            above.children.remove(key);
        }
        let mut changes = vec![(key.kind(), state, None)];
        while let Some(ancestor) = next {
            next = self.apply(&ancestor, &mut changes);
        }
    }

    /// Checks a report against the stored ones, without storing it.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_HEALTH_STALE_REPORT` if a newer report was stored before.
    pub(crate) fn check(&self, key: &EntityKey, report: &HealthReport) -> Result<(), FabricError> {
        let Some(entity) = self.entities.get(key) else {
            return Ok(());
        };
        match entity.position(&report.source, &report.property) {
            Ok(position) => {
                let known = entity.events[position].report.sequence_number;
                check_order(known, report)
            }
            Err(_) if entity.events.len() >= MAX_EVENTS => Err(FabricError::new(
                ErrorCode::HealthMaxReportsReached,
                format!("{key} has {MAX_EVENTS} health events already"),
            )),
            Err(_) => Ok(()),
        }
    }

    /// Stores a report that was made at `reported_at`. A report is dropped if its entity does not exist, if
    /// it is stale, or if it has expired.
    pub(crate) fn apply_report(
        &mut self,
        key: &EntityKey,
        mut report: HealthReport,
        reported_at: Timestamp,
        now: Timestamp,
    ) {
        if self.check(key, &report).is_err() {
            return;
        }
        if reported_at
            .after(report.ttl)
            .is_some_and(|over| over <= now)
        {
            // The report outlived its time in the queue.
            return;
        }
        if report.sequence_number <= 0 {
            // A number of 100 ns steps, like real ones; always more than any assigned before.
            let steps = i64::try_from(now.as_millis()).unwrap_or(i64::MAX / 20_000) * 10_000;
            self.last_number = self.last_number.max(steps).saturating_add(1);
            report.sequence_number = self.last_number;
        }
        let Some(entity) = self.entities.get_mut(key) else {
            return;
        };
        let event = HealthEvent {
            is_expired: false,
            reported_at,
            modified_at: now,
            last_ok_at: None,
            last_warning_at: None,
            last_error_at: None,
            report,
        };
        let position = entity.position(&event.report.source, &event.report.property);
        let (event, previous) = match position {
            Ok(position) => {
                let previous = entity.events[position].clone();
                if previous.report.sequence_number == event.report.sequence_number {
                    // A repeated report changes nothing.
                    return;
                }
                let event = following(&previous, event, now);
                entity.events[position] = event.clone();
                (event, Some(previous))
            }
            Err(position) => {
                let event = beginning(event, now);
                entity.events.insert(position, event.clone());
                (event, None)
            }
        };
        if let Some(previous) = previous {
            self.forget_expiry(key, &previous);
        }
        if let Some(at) = event.expires_at() {
            let (source, property) = (event.report.source, event.report.property);
            self.expiries.insert((at, key.clone(), source, property));
        }
        self.refresh(key);
    }

    /// Removes the event of one property.
    pub(crate) fn withdraw(&mut self, key: &EntityKey, source: &str, property: &str) {
        let Some(entity) = self.entities.get_mut(key) else {
            return;
        };
        if let Ok(position) = entity.position(source, property) {
            let event = entity.events.remove(position);
            self.forget_expiry(key, &event);
            self.refresh(key);
        }
    }

    fn forget_expiry(&mut self, key: &EntityKey, event: &HealthEvent) {
        if let Some(at) = event.expires_at() {
            let report = &event.report;
            let entry = (
                at,
                key.clone(),
                report.source.clone(),
                report.property.clone(),
            );
            self.expiries.remove(&entry);
        }
    }

    /// Returns the number of pending expiries of an entity.
    #[cfg(test)]
    pub(crate) fn expiries_of(&self, key: &EntityKey) -> usize {
        self.expiries
            .iter()
            .filter(|(_, found, ..)| found == key)
            .count()
    }

    /// Updates the state of an entity whose events have changed, and of its ancestors.
    fn refresh(&mut self, key: &EntityKey) {
        let Some(entity) = self.entities.get_mut(key) else {
            return;
        };
        let before = entity.state();
        let worst = entity.events.iter().map(HealthEvent::state).max();
        entity.own = worst.unwrap_or(HealthState::Ok);
        let after = entity.state();
        if before == after {
            return;
        }
        let mut next = entity.parent.clone();
        let mut changes = vec![(key.kind(), before, Some(after))];
        while let Some(ancestor) = next {
            next = self.apply(&ancestor, &mut changes);
        }
    }

    /// Adds the changes below `ancestor` to its counts, and its own change to the list. Returns its parent.
    fn apply(&mut self, ancestor: &EntityKey, changes: &mut Vec<Change>) -> Option<EntityKey> {
        let entity = self.entities.get_mut(ancestor)?;
        let before = entity.state();
        for (kind, old, new) in changes.iter() {
            entity.below.remove(*kind, *old);
            if let Some(new) = new {
                entity.below.add(*kind, *new);
            }
        }
        let after = entity.state();
        if before != after {
            changes.push((ancestor.kind(), before, Some(after)));
        }
        entity.parent.clone()
    }
}

/// The kind of an entity, its old state, and its new state: `None` if it was removed.
type Change = (EntityKind, HealthState, Option<HealthState>);

/// Rejects a report that is older than the one with the number `known`.
pub(super) fn check_order(known: i64, report: &HealthReport) -> Result<(), FabricError> {
    if report.sequence_number > 0 && report.sequence_number < known {
        return Err(FabricError::new(
            ErrorCode::HealthStaleReport,
            format!(
                "the report of '{}' about '{}' has sequence number {}, one with {known} was taken before",
                report.source, report.property, report.sequence_number
            ),
        ));
    }
    Ok(())
}

fn beginning(mut event: HealthEvent, now: Timestamp) -> HealthEvent {
    *transition(&mut event) = Some(now);
    event
}

fn following(previous: &HealthEvent, mut event: HealthEvent, now: Timestamp) -> HealthEvent {
    event.last_ok_at = previous.last_ok_at;
    event.last_warning_at = previous.last_warning_at;
    event.last_error_at = previous.last_error_at;
    if previous.state() != event.state() {
        *transition(&mut event) = Some(now);
    }
    event
}

fn transition(event: &mut HealthEvent) -> &mut Option<Timestamp> {
    match event.state() {
        HealthState::Ok => &mut event.last_ok_at,
        HealthState::Warning => &mut event.last_warning_at,
        HealthState::Error => &mut event.last_error_at,
    }
}
