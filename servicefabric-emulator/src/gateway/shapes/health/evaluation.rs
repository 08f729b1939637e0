use serde::Serialize;

use super::event::HealthEventInfo;
use super::identity::{Identity, KindOf};
use super::{HealthStyle, judged};
use crate::health::{ChildHealth, EntityKey, EntityKind, Evaluation};

/// A function that returns the evaluations of an unhealthy entity below the queried one.
pub(crate) type Below<'a> = &'a dyn Fn(&EntityKey) -> Vec<Evaluation>;

/// An evaluation with its wrapper object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Wrapper {
    health_evaluation: EvaluationInfo,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EvaluationInfo {
    kind: &'static str,
    aggregated_health_state: &'static str,
    description: String,
    #[serde(flatten)]
    identity: Identity,
    #[serde(skip_serializing_if = "Option::is_none")]
    consider_warning_as_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unhealthy_event: Option<HealthEventInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unhealthy_evaluations: Option<Vec<Wrapper>>,
}

/// The maximum number of evaluations of a response. A cluster in which everything fails is not described in
/// full.
const MAX_EVALUATIONS: usize = 1_000;

/// A writer of evaluations with everything below them, down to the events.
pub(super) struct Evaluations<'a> {
    below: Below<'a>,
    kind_of: KindOf<'a>,
    style: HealthStyle,
    /// The number of evaluations that may still be added.
    left: usize,
}

impl<'a> Evaluations<'a> {
    pub(super) fn new(below: Below<'a>, kind_of: KindOf<'a>, style: HealthStyle) -> Self {
        Self {
            below,
            kind_of,
            style,
            left: MAX_EVALUATIONS,
        }
    }

    pub(super) fn list(&mut self, evaluations: &[Evaluation]) -> Vec<Wrapper> {
        self.each(evaluations, Self::evaluation)
    }

    /// Converts items, and stops at the maximum number.
    fn each<T>(
        &mut self,
        unhealthy: &[T],
        write: fn(&mut Self, &T) -> EvaluationInfo,
    ) -> Vec<Wrapper> {
        let mut list = Vec::new();
        for one in unhealthy {
            let Some(left) = self.left.checked_sub(1) else {
                break;
            };
            self.left = left;
            let health_evaluation = write(self, one);
            list.push(Wrapper { health_evaluation });
        }
        list
    }

    fn evaluation(&mut self, evaluation: &Evaluation) -> EvaluationInfo {
        let strict = self.style.strict;
        let bare = EvaluationInfo {
            kind: "Event",
            aggregated_health_state: judged(evaluation.state(), strict),
            description: evaluation.description(),
            identity: Identity::default(),
            consider_warning_as_error: None,
            unhealthy_event: None,
            total_count: None,
            unhealthy_evaluations: None,
        };
        match evaluation {
            Evaluation::Event(event) => EvaluationInfo {
                consider_warning_as_error: Some(strict),
                unhealthy_event: Some(HealthEventInfo::new(event, self.style.epoch)),
                ..bare
            },
            Evaluation::Children {
                kind,
                total,
                unhealthy,
                ..
            } => EvaluationInfo {
                kind: plural(*kind),
                total_count: Some(*total),
                unhealthy_evaluations: Some(self.each(unhealthy, Self::child)),
                ..bare
            },
        }
    }

    /// Converts a child. The depth is that of the hierarchy of entities.
    fn child(&mut self, child: &ChildHealth) -> EvaluationInfo {
        EvaluationInfo {
            kind: child.entity.kind().as_str(),
            aggregated_health_state: judged(child.state, self.style.strict),
            description: format!("{} is in {}.", child.entity, child.state),
            identity: Identity::of_unhealthy(&child.entity, self.kind_of),
            consider_warning_as_error: None,
            unhealthy_event: None,
            total_count: None,
            unhealthy_evaluations: Some(self.list(&(self.below)(&child.entity))),
        }
    }
}

fn plural(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Cluster => "Cluster",
        EntityKind::Node => "Nodes",
        EntityKind::Application => "Applications",
        EntityKind::Service => "Services",
        EntityKind::Partition => "Partitions",
        EntityKind::Replica => "Replicas",
        EntityKind::DeployedApplication => "DeployedApplications",
        EntityKind::DeployedServicePackage => "DeployedServicePackages",
    }
}
