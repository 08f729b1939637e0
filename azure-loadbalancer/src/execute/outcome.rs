//! The result of a reconciliation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph::Written;
use crate::arm::{ArmError, CallCounts};
use crate::plan::{Deferred, Operation, Orphan, PlanError, ServiceOutcome, Warning};
use crate::resources::ArmId;
use crate::service::ServiceKey;

/// The result of a reconciliation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reconciled {
    /// The outcome of each service.
    pub services: BTreeMap<ServiceKey, ServiceOutcome>,
    /// The services whose writes failed, each with its first error.
    pub failures: BTreeMap<ServiceKey, Arc<ArmError>>,
    /// The nodes that could not join, leave or change their address in a pool, by the lower-case names of
    /// their entries. Their entries stay as they are.
    pub rejected_nodes: BTreeMap<String, Arc<ArmError>>,
    /// Failures of writes for no service and no node: of orphans, and of network interfaces.
    pub other_failures: Vec<Arc<ArmError>>,
    /// The writes, in order.
    pub written: Vec<WrittenAction>,
    /// The remaining work: writes that were not made, and changes that wait for something else.
    pub left: Vec<Deferred>,
    /// Warnings about harmless oddities.
    pub warnings: Vec<Warning>,
    /// The resources that belong to no service.
    pub orphans: Vec<Orphan>,
    /// The number of rounds of reading, planning and writing.
    pub rounds: u32,
    /// The number of new plans after a rejection.
    pub rejections: u32,
    /// The number of conflicts with writes of other clients.
    pub conflicts: u32,
    /// The resource manager's error at the last conflict.
    pub last_conflict: Option<Arc<ArmError>>,
    /// The numbers of calls.
    pub calls: CallCounts,
}

/// A write that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenAction {
    /// The operation in two words: `put loadBalancer`.
    pub verb: &'static str,
    /// The resource that was written.
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

/// The reason why the resources of a service do not match its request.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The request of the service cannot be met.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A write for the service failed.
    #[error("a write failed")]
    Arm(#[source] Arc<ArmError>),
    /// The service was not complete after all rounds.
    #[error("not done: {what}{}", if source.is_some() {
        "; something else may be writing the same resources"
    } else {
        ""
    })]
    NotConverged {
        /// The number of rounds.
        rounds: u32,
        /// The remaining work.
        what: String,
        /// The resource manager's error at the last conflict, if there was one.
        source: Option<Arc<ArmError>>,
    },
}

/// The results of one plan's writes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Executed {
    /// The result of each of [`Plan::actions`](crate::Plan::actions), in order.
    pub actions: Vec<ActionResult>,
    /// The numbers of calls.
    pub calls: CallCounts,
}

/// The result of a write.
#[derive(Clone, Debug)]
pub enum ActionResult {
    /// The write succeeded.
    Written,
    /// The write failed.
    Failed(Arc<ArmError>),
    /// The write was not started: a prerequisite failed, or another client has written, so that the plan is
    /// out of date.
    NotBegun,
}

impl Executed {
    /// Returns true if all writes succeeded.
    pub fn is_done(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.all(|action| matches!(action, ActionResult::Written))
    }

    /// Returns the first error, if there is one.
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
    /// Returns true if all services are as requested, except for those whose request cannot be met.
    pub fn is_converged(&self) -> bool {
        self.failures.is_empty()
            && self.rejected_nodes.is_empty()
            && self.other_failures.is_empty()
            && self.left.is_empty()
    }

    /// Returns the reason why the resources of a service do not match its request. `None` if they match.
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

    /// Returns the reasons of all services whose resources do not match their requests.
    pub fn errors(&self) -> BTreeMap<&ServiceKey, ServiceError> {
        let left = self.left.iter().filter_map(|left| left.service.as_ref());
        let keys = self.services.keys().chain(self.failures.keys()).chain(left);
        keys.filter_map(|key| Some((key, self.error_of(key)?)))
            .collect()
    }
}
