mod evaluation;
mod event;
mod identity;
mod statistics;

use serde::Serialize;

use self::evaluation::{Below, Evaluations, Wrapper};
use self::event::HealthEventInfo;
use self::identity::{Identity, KindOf};
use self::statistics::StatisticsInfo;
use crate::gateway::wire::ClockStart;
use crate::health::{EntityHealth, EntityKind, HealthState};

/// `ClusterHealth`, `NodeHealth`, … : the health of one entity of any kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct EntityHealthInfo {
    #[serde(flatten)]
    identity: Identity,
    aggregated_health_state: &'static str,
    health_events: Vec<HealthEventInfo>,
    unhealthy_evaluations: Vec<Wrapper>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_statistics: Option<StatisticsInfo>,
    #[serde(flatten)]
    children: Children,
}

/// The lists of children for an entity of this kind, even empty ones.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Children {
    #[serde(skip_serializing_if = "Option::is_none")]
    node_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed_application_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_health_states: Option<Vec<ChildInfo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed_service_package_health_states: Option<Vec<ChildInfo>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChildInfo {
    #[serde(flatten)]
    identity: Identity,
    aggregated_health_state: &'static str,
}

impl Children {
    fn of(health: &EntityHealth, kind_of: KindOf<'_>) -> Self {
        let list = |kind: EntityKind| {
            let of_kind = health
                .children
                .iter()
                .filter(|child| child.entity.kind() == kind);
            Some(
                of_kind
                    .map(|child| ChildInfo {
                        identity: Identity::of_child(&child.entity, kind_of),
                        aggregated_health_state: word(child.state),
                    })
                    .collect(),
            )
        };
        let none = Self::default();
        match health.entity.kind() {
            EntityKind::Cluster => Self {
                node_health_states: list(EntityKind::Node),
                application_health_states: list(EntityKind::Application),
                ..none
            },
            EntityKind::Application => Self {
                service_health_states: list(EntityKind::Service),
                deployed_application_health_states: list(EntityKind::DeployedApplication),
                ..none
            },
            EntityKind::Service => Self {
                partition_health_states: list(EntityKind::Partition),
                ..none
            },
            EntityKind::Partition => Self {
                replica_health_states: list(EntityKind::Replica),
                ..none
            },
            EntityKind::DeployedApplication => Self {
                deployed_service_package_health_states: list(EntityKind::DeployedServicePackage),
                ..none
            },
            EntityKind::Node | EntityKind::Replica | EntityKind::DeployedServicePackage => none,
        }
    }
}

/// The options of a health response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HealthStyle {
    /// True if the policy counts warnings as errors.
    pub(crate) strict: bool,
    /// True if counts are requested.
    pub(crate) statistics: bool,
    /// The date of moment 0.
    pub(crate) epoch: ClockStart,
}

impl EntityHealthInfo {
    pub(crate) fn new(
        health: &EntityHealth,
        style: HealthStyle,
        kind_of: KindOf<'_>,
        below: Below<'_>,
    ) -> Self {
        let mut evaluations = Evaluations::new(below, kind_of, style);
        Self {
            identity: Identity::of(&health.entity, kind_of),
            aggregated_health_state: judged(health.state, style.strict),
            health_events: health
                .events
                .iter()
                .map(|event| HealthEventInfo::new(event, style.epoch))
                .collect(),
            unhealthy_evaluations: evaluations.list(&health.evaluations),
            health_statistics: style
                .statistics
                .then(|| StatisticsInfo::new(health))
                .flatten(),
            children: Children::of(health, kind_of),
        }
    }
}

/// Returns the word of a state.
pub(crate) fn word(state: HealthState) -> &'static str {
    match state {
        HealthState::Ok => "Ok",
        HealthState::Warning => "Warning",
        HealthState::Error => "Error",
    }
}

fn judged(state: HealthState, strict: bool) -> &'static str {
    match state {
        HealthState::Warning if strict => word(HealthState::Error),
        state => word(state),
    }
}
