//! What a reconciliation came to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph::Written;
use crate::arm::{ArmError, CallCounts};
use crate::plan::{Deferred, Operation, Orphan, PlanError, ServiceOutcome, Warning};
use crate::resources::ArmId;
use crate::service::ServiceKey;

/// What a reconciliation came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reconciled {
    /// How each service fares.
    pub services: BTreeMap<ServiceKey, ServiceOutcome>,
    /// The services whose writes came to nothing, each with the first error.
    pub failures: BTreeMap<ServiceKey, Arc<ArmError>>,
    /// The nodes that could not become members of pools, change their address there or leave, by the names of their entries in
    /// lower case; what they have there stays.
    pub refused_nodes: BTreeMap<String, Arc<ArmError>>,
    /// Failures of writes that are for no service and no node: of what nobody owns any more, and of network interfaces.
    pub other_failures: Vec<Arc<ArmError>>,
    /// What was written, in this order.
    pub written: Vec<WrittenAction>,
    /// What is left: writes that were not made, and what waits for something else.
    pub left: Vec<Deferred>,
    /// What is odd and does no harm.
    pub warnings: Vec<Warning>,
    /// What belongs to no service.
    pub orphans: Vec<Orphan>,
    /// How often it was read, planned and written.
    pub rounds: u32,
    /// How often it was planned anew because something was refused.
    pub refusals: u32,
    /// How often somebody else had written meanwhile.
    pub conflicts: u32,
    /// What the resource manager said the last time that somebody else had written.
    pub last_conflict: Option<Arc<ArmError>>,
    /// The calls that it took.
    pub calls: CallCounts,
}

/// A write that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenAction {
    /// In two words: `put loadBalancer`.
    pub verb: &'static str,
    /// What was written to.
    pub target: Option<ArmId>,
}

impl WrittenAction {
    pub(super) fn of(operation: &Operation) -> Self {
        Self {
            verb: operation.verb(),
            target: operation.target().cloned(),
        }
    }
}

/// Why a service does not have what it asks for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// It asks for something that it cannot have.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A write for it came to nothing.
    #[error("a write came to nothing")]
    Arm(#[source] Arc<ArmError>),
    /// There was still something to do after all rounds.
    #[error("not done: {what}{}", if source.is_some() {
        "; something else may be writing the same resources"
    } else {
        ""
    })]
    NotConverged {
        /// How many rounds there were.
        rounds: u32,
        /// What is left.
        what: String,
        /// What the resource manager said when somebody else had written meanwhile, if that has happened.
        source: Option<Arc<ArmError>>,
    },
}

/// What became of the writes of one plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Executed {
    /// What became of each of [`Plan::actions`](crate::Plan::actions), in their order.
    pub actions: Vec<ActionResult>,
    /// The calls that it took.
    pub calls: CallCounts,
}

/// What became of a write.
#[derive(Clone, Debug)]
pub enum ActionResult {
    /// It is done.
    Written,
    /// It came to nothing.
    Failed(Arc<ArmError>),
    /// It was not begun: what it waits for came to nothing, or somebody else has written, so that the plan is out of date.
    NotBegun,
}

impl Executed {
    /// Whether all was written.
    pub fn is_done(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.all(|action| matches!(action, ActionResult::Written))
    }

    /// The first error, if there is one.
    pub fn error(&self) -> Option<&Arc<ArmError>> {
        self.actions.iter().find_map(|action| match action {
            ActionResult::Failed(error) => Some(error),
            ActionResult::Written | ActionResult::NotBegun => None,
        })
    }
}

impl From<Written> for ActionResult {
    fn from(written: Written) -> Self {
        match written {
            Written::Done => Self::Written,
            Written::Failed(error) => Self::Failed(error),
            Written::Skipped => Self::NotBegun,
        }
    }
}

impl Reconciled {
    /// Whether everything is as the services ask for, but for those that ask for what they cannot have.
    pub fn is_converged(&self) -> bool {
        self.failures.is_empty()
            && self.refused_nodes.is_empty()
            && self.other_failures.is_empty()
            && self.left.is_empty()
    }

    /// Why a service does not have what it asks for; nothing if it has.
    pub fn error_of(&self, service: &ServiceKey) -> Option<ServiceError> {
        let planned = self
            .services
            .get(service)
            .and_then(|outcome| outcome.error.clone());
        if let Some(error) = planned {
            return Some(error.into());
        }
        if let Some(error) = self.failures.get(service) {
            return Some(ServiceError::Arm(Arc::clone(error)));
        }
        let left = self
            .left
            .iter()
            .find(|left| left.service.as_ref() == Some(service))?;
        Some(ServiceError::NotConverged {
            rounds: self.rounds,
            what: left.what.clone(),
            source: self.last_conflict.clone(),
        })
    }

    /// All services that do not have what they ask for, and why.
    pub fn errors(&self) -> BTreeMap<&ServiceKey, ServiceError> {
        let left = self.left.iter().filter_map(|left| left.service.as_ref());
        let keys = self.services.keys().chain(self.failures.keys()).chain(left);
        keys.filter_map(|key| Some((key, self.error_of(key)?)))
            .collect()
    }
}
