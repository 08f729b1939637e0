//! What a reconciliation came to.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Failures of writes that are for no service: of what nobody owns any more.
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
    /// How often somebody else had written meanwhile.
    pub conflicts: u32,
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
    #[error(
        "not done after {rounds} rounds: {what}; something else may be writing the same resources"
    )]
    NotConverged {
        /// How many rounds there were.
        rounds: u32,
        /// What is left.
        what: String,
    },
}

impl Reconciled {
    /// Whether everything is as the services ask for, but for those that ask for what they cannot have.
    pub fn is_converged(&self) -> bool {
        self.failures.is_empty() && self.other_failures.is_empty() && self.left.is_empty()
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
