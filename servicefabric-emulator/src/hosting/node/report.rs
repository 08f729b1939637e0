//! The log of a node, and its health reports.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Node;
use crate::hosting::event::{Event, Logged};
use crate::hosting::health::{HealthEntity, HealthReport, HealthState, StandingHealth};
use crate::hosting::key::PackageKey;

/// The maximum number of events that wait to be taken.
const LOG_CAPACITY: usize = 1 << 16;

/// The events that were not taken yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    events: VecDeque<Logged>,
    lost: u64,
}

impl Log {
    pub(super) fn push(&mut self, logged: Logged) {
        if self.events.len() == LOG_CAPACITY {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(logged);
    }

    pub(super) fn take(&mut self) -> Vec<Logged> {
        std::mem::take(&mut self.events).into()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

/// The current reports of this node in the health store.
pub(super) type Standing = BTreeMap<(HealthEntity, Arc<str>), (HealthState, String)>;

impl Node {
    /// Returns the current reports, by entity and property.
    pub fn health(&self) -> Vec<StandingHealth> {
        self.health
            .iter()
            .map(
                |((entity, property), (state, description))| StandingHealth {
                    entity: entity.clone(),
                    property: Arc::clone(property),
                    state: *state,
                    description: description.clone(),
                },
            )
            .collect()
    }

    pub(super) fn report(
        &mut self,
        entity: HealthEntity,
        property: String,
        state: HealthState,
        description: String,
    ) {
        let property: Arc<str> = property.into();
        self.health.insert(
            (entity.clone(), Arc::clone(&property)),
            (state, description.clone()),
        );
        self.emit(Event::Health {
            entity,
            property,
            report: HealthReport::State { state, description },
        });
    }

    /// Reports on a package instance.
    pub(super) fn report_on(
        &mut self,
        package: &PackageKey,
        property: String,
        state: HealthState,
        description: impl Into<String>,
    ) {
        let entity = HealthEntity::DeployedServicePackage(package.clone());
        self.report(entity, property, state, description.into());
    }

    /// Withdraws the report about a property of a package instance, if there is one.
    pub(super) fn retract(&mut self, package: &PackageKey, property: &str) {
        let entity = HealthEntity::DeployedServicePackage(package.clone());
        if let Some(((entity, property), _)) = self.health.remove_entry(&(entity, property.into()))
        {
            self.emit(Event::Health {
                entity,
                property,
                report: HealthReport::Removed,
            });
        }
    }

    /// Withdraws all reports about an entity.
    pub(super) fn retract_all(&mut self, entity: &HealthEntity) {
        let properties: Vec<Arc<str>> = self
            .health
            .range((entity.clone(), Arc::from(""))..)
            .take_while(|((of, _), _)| of == entity)
            .map(|((_, property), _)| Arc::clone(property))
            .collect();
        for property in properties {
            self.health.remove(&(entity.clone(), Arc::clone(&property)));
            self.emit(Event::Health {
                entity: entity.clone(),
                property,
                report: HealthReport::Removed,
            });
        }
    }
}
