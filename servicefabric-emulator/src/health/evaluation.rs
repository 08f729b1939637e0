//! The health of one entity.

use super::{EntityKey, EntityKind, HealthEvent, HealthState, StateFilter, Statistics};

/// The parts that a response about an entity's health includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthQuery {
    /// The events.
    pub events: StateFilter,
    /// The nodes below the entity.
    pub nodes: StateFilter,
    /// The applications below the entity.
    pub applications: StateFilter,
    /// The services below the entity.
    pub services: StateFilter,
    /// The partitions below the entity.
    pub partitions: StateFilter,
    /// The replicas below the entity.
    pub replicas: StateFilter,
    /// The deployed applications below the entity.
    pub deployed_applications: StateFilter,
    /// The deployed service packages below the entity.
    pub deployed_service_packages: StateFilter,
}

impl HealthQuery {
    /// Returns the filter for children of one kind.
    pub fn children(&self, kind: EntityKind) -> StateFilter {
        match kind {
            EntityKind::Cluster => StateFilter::NONE,
            EntityKind::Node => self.nodes,
            EntityKind::Application => self.applications,
            EntityKind::Service => self.services,
            EntityKind::Partition => self.partitions,
            EntityKind::Replica => self.replicas,
            EntityKind::DeployedApplication => self.deployed_applications,
            EntityKind::DeployedServicePackage => self.deployed_service_packages,
        }
    }
}

/// The health of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityHealth {
    /// The entity.
    pub entity: EntityKey,
    /// The worst state of its events and of everything below it.
    pub state: HealthState,
    /// The events, by source and property.
    pub events: Vec<HealthEvent>,
    /// The reasons why the entity is not Ok. Empty if it is.
    pub evaluations: Vec<Evaluation>,
    /// The counts of everything below it.
    pub statistics: Statistics,
    /// The entities directly below it, ordered by key.
    pub children: Vec<ChildHealth>,
}

/// The state of an entity below the queried one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildHealth {
    /// The entity.
    pub entity: EntityKey,
    /// The aggregated state.
    pub state: HealthState,
}

/// A reason why an entity is not Ok.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// An event of the entity itself.
    Event(HealthEvent),
    /// Entities directly below it.
    Children {
        /// The kind of the children.
        kind: EntityKind,
        /// The worst state among them.
        state: HealthState,
        /// The number of children.
        total: u64,
        /// The children that are as unhealthy as the worst, at most ten.
        unhealthy: Vec<ChildHealth>,
    },
}

impl Evaluation {
    /// Returns the state that the evaluation explains.
    pub fn state(&self) -> HealthState {
        match self {
            Self::Event(event) => event.state(),
            Self::Children { state, .. } => *state,
        }
    }

    /// Returns the sentence for people.
    pub fn description(&self) -> String {
        match self {
            Self::Event(event) => {
                let report = &event.report;
                let (source, property) = (&report.source, &report.property);
                let mut sentence = format!(
                    "'{source}' reported {} for property '{property}'.",
                    report.state
                );
                if event.is_expired {
                    sentence.push_str(" The event has expired.");
                }
                if !report.description.is_empty() {
                    sentence.push('\n');
                    sentence.push_str(&report.description);
                }
                sentence
            }
            Self::Children {
                kind,
                state,
                total,
                unhealthy,
            } => {
                let named: Vec<String> = unhealthy
                    .iter()
                    .map(|child| child.entity.to_string())
                    .collect();
                format!(
                    "of {total} entities of kind {}, the worst are in {state}: {}",
                    kind.as_str(),
                    named.join(", ")
                )
            }
        }
    }
}
