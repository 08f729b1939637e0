//! Whom a refused write is held against.
//!
//! Load balancers and the security group are written whole, so that one part which the resource manager does not take keeps all
//! other parts out. The answer does not say reliably which part it was, so the services of a refused write are halved: one half is
//! set aside, the next plan leaves what it has as it is, and so on until a write is taken or is for one service alone. That takes as
//! many refusals as the logarithm of the number of services for each that is wrong. The nodes in pools are such parts as well: they
//! are left out first, so that a node which is refused keeps no service waiting, and are halved then, so that it keeps no other node
//! out.

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
    /// The entry of a node in pools, by its lower-case name.
    Member(String),
}

/// Whom refused writes of one reconciliation are held against, and who waits for a turn of its own.
pub(super) struct Refusals {
    /// Their parts stay as they are, and this is why.
    held: BTreeMap<Part, Arc<ArmError>>,
    /// Groups that wait for their turn, the next one last.
    aside: Vec<BTreeSet<Part>>,
    /// The group whose turn it is: what is refused then was not refused without it. Empty at first.
    trying: BTreeSet<Part>,
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
            trying: BTreeSet::new(),
            passed_over: BTreeSet::new(),
            splits,
        }
    }

    /// What the next plan is about.
    pub(super) fn request(&self) -> Request {
        let mut request = Request::EVERYTHING;
        for part in self.held.keys().chain(self.aside.iter().flatten()) {
            match part {
                Part::Service(key) => {
                    request.held.insert(key.clone());
                }
                Part::Orphans => request.keeps_orphans = true,
                Part::Member(name) => {
                    request.held_members.insert(name.clone());
                }
            }
        }
        request
    }

    /// Lets the next group have its turn; false if there is none.
    pub(super) fn release(&mut self) -> bool {
        let next = self.aside.pop();
        let is_there = next.is_some();
        self.trying = next.unwrap_or_default();
        is_there
    }

    /// The services that writes are held against.
    pub(super) fn held(&self) -> impl Iterator<Item = (&ServiceKey, &Arc<ArmError>)> {
        self.held.iter().filter_map(|(part, error)| match part {
            Part::Service(key) => Some((key, error)),
            Part::Orphans | Part::Member(_) => None,
        })
    }

    /// The nodes that writes are held against.
    pub(super) fn held_members(&self) -> impl Iterator<Item = (&String, &Arc<ArmError>)> {
        self.held.iter().filter_map(|(part, error)| match part {
            Part::Member(name) => Some((name, error)),
            Part::Service(_) | Part::Orphans => None,
        })
    }

    /// Why what belongs to no service was left as it is.
    pub(super) fn held_against_nobody(&self) -> Option<&Arc<ArmError>> {
        self.held.get(&Part::Orphans)
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

    /// Notes that a write was refused which was planned for a request. True if that is settled for the action itself, so that it has
    /// to be told; if not, the error is told of whom it will be held against.
    pub(super) fn note(
        &mut self,
        request: &Request,
        plan: &Plan,
        action: &Action,
        error: &Arc<ArmError>,
    ) -> bool {
        let parts = parts(request, plan, action);
        // Another write of the same plan was refused, and some of them are set aside for that: nobody knows yet whether this one is
        // refused without them as well.
        if parts.iter().any(|part| self.leaves_alone(part)) {
            return false;
        }
        if parts.is_empty() || !holds_others_up(&action.operation) {
            self.passed_over.extend(target(&action.operation));
            return true;
        }
        // The others had their turn before; that they have a part in this write again, or only now, is due to the group.
        let mut suspects: BTreeSet<Part> = parts.intersection(&self.trying).cloned().collect();
        if suspects.is_empty() || self.splits == 0 || !may_be_of_one(error) {
            suspects = parts;
        }
        if suspects.len() > 1 && self.splits > 0 && may_be_of_one(error) {
            self.splits -= 1;
            // Without the nodes first: then the first half of the services, the others and the nodes last.
            let is_member = |part: &Part| matches!(part, Part::Member(_));
            let first_member = suspects.iter().find(|part| is_member(part)).cloned();
            let at = match first_member {
                Some(member) if !suspects.iter().all(is_member) => Some(member),
                _ => suspects.iter().nth(suspects.len() / 2).cloned(),
            };
            let later = at.map_or_else(BTreeSet::new, |at| suspects.split_off(&at));
            self.aside.push(later);
        } else {
            let errors = suspects.into_iter().map(|part| (part, Arc::clone(error)));
            self.held.extend(errors);
        }
        false
    }

    fn leaves_alone(&self, part: &Part) -> bool {
        self.held.contains_key(part) || self.aside.iter().any(|group| group.contains(part))
    }
}

/// Whose parts a write changes, as far as they have not been left alone in it.
fn parts(request: &Request, plan: &Plan, action: &Action) -> BTreeSet<Part> {
    let of_services = action
        .services
        .iter()
        .filter(|key| plan.services.contains_key(*key) && !request.held.contains(*key));
    let of_services = of_services.cloned().map(Part::Service);
    let orphans = (action.sweeps && !request.keeps_orphans).then_some(Part::Orphans);
    let members = action.members.iter();
    let members = members.filter(|name| !request.held_members.contains(*name));
    let members = members.cloned().map(Part::Member);
    of_services.chain(orphans).chain(members).collect()
}

/// Whether others are kept waiting by one write of this kind: because it is for several, or because theirs wait for it.
fn holds_others_up(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::PutPublicIp { .. }
            | Operation::PutLoadBalancer { .. }
            | Operation::PutSecurityGroup { .. }
            | Operation::PutPool { .. }
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
