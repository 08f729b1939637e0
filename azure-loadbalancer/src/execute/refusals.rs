//! Whom a refused write is held against.
//!
//! Load balancers and the security group are written whole, so that one part which the resource manager does not take keeps all
//! other parts out. The answer does not say reliably which part it was, so the services of a refused write are halved: one half is
//! set aside, the next plan leaves what it has as it is, and so on until a write is taken or is for one service alone. That takes as
//! many refusals as the logarithm of the number of services for each that is wrong. The addresses of nodes are such a part as well:
//! they are left out first, so that a node which is refused keeps no service waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::arm::{ArmError, ArmErrorKind};
use crate::plan::{Action, Operation, Plan, Request};
use crate::resources::ArmId;
use crate::service::{Service, ServiceKey};

/// As many services as this are tried one by one when they were refused the last time.
const MOST_SUSPECTS: usize = 8;

/// What a write is for, as far as the next plan can leave it alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Service(ServiceKey),
    /// What belongs to no service.
    Orphans,
    /// The addresses in pools, which are those of nodes.
    Members,
}

/// Whom refused writes of one reconciliation are held against, and who waits for a turn of its own.
pub(super) struct Refusals {
    /// Their parts stay as they are, and this is why.
    held: BTreeMap<Part, Arc<ArmError>>,
    /// Groups that wait for their turn, the next one last.
    aside: Vec<BTreeSet<Part>>,
    /// Writes on which nothing else depends, and which are not tried again.
    passed_over: BTreeSet<(&'static str, ArmId)>,
    /// How many more times the services of a write are halved.
    splits: u32,
}

impl Refusals {
    /// `suspects` are the services that a write was held against the last time: they get their turn after all others.
    pub(super) fn new(suspects: &BTreeSet<ServiceKey>, services: &[Service], splits: u32) -> Self {
        let present = services.iter().map(|service| &service.key);
        let mut suspects: Vec<Part> = present
            .filter(|key| suspects.contains(key))
            .map(|key| Part::Service(key.clone()))
            .collect();
        let single = suspects.split_off(suspects.len().min(MOST_SUSPECTS));
        let rest = (!single.is_empty()).then(|| single.into_iter().collect());
        let aside = rest.into_iter();
        Self {
            held: BTreeMap::new(),
            aside: aside
                .chain(
                    suspects
                        .into_iter()
                        .map(|suspect| BTreeSet::from([suspect])),
                )
                .collect(),
            passed_over: BTreeSet::new(),
            splits,
        }
    }

    /// What the next plan is about.
    pub(super) fn request(&self) -> Request {
        let left_alone = || self.held.keys().chain(self.aside.iter().flatten());
        let services = left_alone().filter_map(|part| match part {
            Part::Service(key) => Some(key.clone()),
            Part::Orphans | Part::Members => None,
        });
        Request {
            held: services.collect(),
            keeps_orphans: left_alone().any(|part| *part == Part::Orphans),
            keeps_members: left_alone().any(|part| *part == Part::Members),
            ..Request::EVERYTHING
        }
    }

    /// Lets the next group have its turn; false if there is none.
    pub(super) fn release(&mut self) -> bool {
        self.aside.pop().is_some()
    }

    /// The services that writes are held against.
    pub(super) fn held(&self) -> impl Iterator<Item = (&ServiceKey, &Arc<ArmError>)> {
        self.held.iter().filter_map(|(part, error)| match part {
            Part::Service(key) => Some((key, error)),
            Part::Orphans | Part::Members => None,
        })
    }

    /// Why what is no service's was left as it is.
    pub(super) fn held_against_nobody(&self) -> impl Iterator<Item = &Arc<ArmError>> {
        let parts = [Part::Orphans, Part::Members].into_iter();
        parts.filter_map(|part| self.held.get(&part))
    }

    /// The actions of a plan that are not tried again.
    pub(super) fn passed_over(&self, plan: &Plan) -> BTreeSet<usize> {
        let actions = plan.actions.iter().enumerate();
        actions
            .filter(|(_, action)| self.passes_over(&action.operation))
            .map(|(index, _)| index)
            .collect()
    }

    pub(super) fn passes_over(&self, operation: &Operation) -> bool {
        target(operation).is_some_and(|target| self.passed_over.contains(&target))
    }

    /// Notes that a write was refused. True if that is settled for the action itself, so that it has to be told; if not, the error
    /// is told of whom it will be held against.
    pub(super) fn note(&mut self, plan: &Plan, action: &Action, error: &Arc<ArmError>) -> bool {
        let mut parts = self.parts(plan, action);
        if parts.is_empty() || !holds_others_up(&action.operation) {
            self.passed_over.extend(target(&action.operation));
            return true;
        }
        if parts.len() > 1 && self.splits > 0 && may_be_of_one(error) {
            self.splits -= 1;
            // Without the nodes first: then the first half of the services, the others and the nodes last.
            let later = match parts.take(&Part::Members) {
                Some(members) => BTreeSet::from([members]),
                None => {
                    let middle = parts.iter().nth(parts.len() / 2).cloned();
                    middle.map_or_else(BTreeSet::new, |middle| parts.split_off(&middle))
                }
            };
            self.aside.push(later);
        } else {
            let errors = parts.into_iter().map(|part| (part, Arc::clone(error)));
            self.held.extend(errors);
        }
        false
    }

    /// Whose parts a write changes, as far as they have not been left alone in it.
    fn parts(&self, plan: &Plan, action: &Action) -> BTreeSet<Part> {
        let request = self.request();
        let of_services = action
            .services
            .iter()
            .filter(|key| plan.services.contains_key(*key) && !request.held.contains(*key));
        let of_services = of_services.cloned().map(Part::Service);
        let orphans = (action.sweeps && !request.keeps_orphans).then_some(Part::Orphans);
        let members = (action.members && !request.keeps_members).then_some(Part::Members);
        of_services.chain(orphans).chain(members).collect()
    }
}

/// Whether other writes of the plan wait for one of this kind although they have nothing to do with its services.
fn holds_others_up(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::PutPublicIp { .. }
            | Operation::PutLoadBalancer { .. }
            | Operation::PutSecurityGroup { .. }
    )
}

/// Whether the same write for fewer services may be taken: not if nobody answers, or the identity has no right to write at all.
fn may_be_of_one(error: &ArmError) -> bool {
    match error.kind() {
        ArmErrorKind::Rejected
        | ArmErrorKind::NotFound
        | ArmErrorKind::Conflict
        | ArmErrorKind::Operation => true,
        // A policy judges what is written, not who writes it.
        ArmErrorKind::Forbidden => error.has_code("RequestDisallowedByPolicy"),
        ArmErrorKind::Token
        | ArmErrorKind::Unreachable
        | ArmErrorKind::TimedOut
        | ArmErrorKind::Unauthenticated
        | ArmErrorKind::PreconditionFailed
        | ArmErrorKind::Throttled
        | ArmErrorKind::Server
        | ArmErrorKind::Malformed => false,
    }
}

fn target(operation: &Operation) -> Option<(&'static str, ArmId)> {
    Some((operation.verb(), operation.target()?.clone()))
}
