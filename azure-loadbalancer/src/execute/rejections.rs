//! The attribution of rejected writes to services.
//!
//! Load balancers and the security group are written whole, so one invalid part blocks all others. The
//! response does not name that part reliably. Therefore the services of a rejected write are halved: one half
//! is set aside, and the next plan leaves its resources as they are. This repeats until a write succeeds, or
//! is for a single service. For each invalid service it takes as many rejections as the logarithm of the
//! number of services.
//!
//! The nodes in pools are such parts as well. They are left out first, so that a rejected node delays no
//! service, and are then halved, so that it excludes no other node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::arm::{ArmError, ArmErrorKind};
use crate::plan::{Action, Operation, Plan, Request};
use crate::resources::ArmId;
use crate::service::{Service, ServiceKey};

/// The maximum number of services that are tried one by one after their last rejection.
const MOST_SUSPECTS: usize = 8;

/// The subject of a write, as precisely as the next plan can leave it out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Service(ServiceKey),
    /// The resources that belong to no service.
    Orphans,
    /// The entry of a node in pools, by its lower-case name.
    Member(String),
}

/// The parts that rejected writes are attributed to, and the groups that wait for their turn.
pub(super) struct Rejections {
    /// The parts that stay as they are, each with the reason.
    held: BTreeMap<Part, Arc<ArmError>>,
    /// The groups that wait for their turn, the next one last.
    aside: Vec<BTreeSet<Part>>,
    /// The group being tried: without it, the writes were not rejected. Empty at first.
    trying: BTreeSet<Part>,
    /// The rejected writes on which nothing else depends, and which are not retried.
    passed_over: BTreeSet<(&'static str, ArmId)>,
    /// The number of further times that the services of a write may be halved.
    splits: u32,
}

impl Rejections {
    /// Creates the state of a reconciliation. `suspects` are the services that a write was rejected for last
    /// time: they are tried after all others.
    pub(super) fn new(suspects: &BTreeSet<ServiceKey>, services: &[Service], splits: u32) -> Self {
        let present = services.iter().map(|service| &service.key);
        let mut suspects: Vec<Part> = present
            .filter(|key| suspects.contains(key))
            .map(|key| Part::Service(key.clone()))
            .collect();
        // Suspects beyond the first few share one group, so that they do not cost one round each.
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

    /// Returns the request of the next plan.
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

    /// Gives the next group its turn. Returns false if there is none.
    pub(super) fn release(&mut self) -> bool {
        // A stack: the halves of the last split come before older groups.
        let next = self.aside.pop();
        let is_there = next.is_some();
        self.trying = next.unwrap_or_default();
        is_there
    }

    /// Returns the services that rejections are attributed to.
    pub(super) fn held(&self) -> impl Iterator<Item = (&ServiceKey, &Arc<ArmError>)> {
        self.held.iter().filter_map(|(part, error)| match part {
            Part::Service(key) => Some((key, error)),
            Part::Orphans | Part::Member(_) => None,
        })
    }

    /// Returns the nodes that rejections are attributed to.
    pub(super) fn held_members(&self) -> impl Iterator<Item = (&String, &Arc<ArmError>)> {
        self.held.iter().filter_map(|(part, error)| match part {
            Part::Member(name) => Some((name, error)),
            Part::Service(_) | Part::Orphans => None,
        })
    }

    /// Returns the reason why resources of no service were left as they are.
    pub(super) fn held_against_nobody(&self) -> Option<&Arc<ArmError>> {
        self.held.get(&Part::Orphans)
    }

    /// Returns the actions of a plan that are not retried.
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

    /// Records the rejection of a write that was planned for a request. Returns true if the failure is final
    /// for the action itself, so that it has to be reported; otherwise it is reported for the parts that it
    /// is attributed to.
    pub(super) fn note(
        &mut self,
        request: &Request,
        plan: &Plan,
        action: &Action,
        error: &Arc<ArmError>,
    ) -> bool {
        let parts = parts(request, plan, action);
        // Another write of the same plan was rejected, and some of these parts are set aside for that. It is
        // not known yet if this write fails without them as well.
        if parts.iter().any(|part| self.leaves_alone(part)) {
            return false;
        }
        if parts.is_empty() || !holds_others_up(&action.operation) {
            self.passed_over.extend(target(&action.operation));
            return true;
        }
        // The other parts were tried before. If they take part in this write again, that is due to the group.
        let mut suspects: BTreeSet<Part> = parts.intersection(&self.trying).cloned().collect();
        if suspects.is_empty() || self.splits == 0 || !may_be_of_one(error) {
            suspects = parts;
        }
        if suspects.len() > 1 && self.splits > 0 && may_be_of_one(error) {
            self.splits -= 1;
            // First without the nodes, then the first half of the services; the others and the nodes last.
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

/// Returns the parts that a write changes and that were not left out of it.
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

/// Returns true if a write of this kind can block others: because it is for several services, or because
/// theirs wait for it.
fn holds_others_up(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::PutPublicIp { .. }
            | Operation::PutLoadBalancer { .. }
            | Operation::PutSecurityGroup { .. }
            | Operation::PutPool { .. }
    )
}

/// Returns true if the same write for fewer services may succeed. It cannot if the resource manager is
/// unreachable, or if the identity has no right to write.
fn may_be_of_one(error: &ArmError) -> bool {
    match error.kind() {
        ArmErrorKind::Rejected
        | ArmErrorKind::NotFound
        | ArmErrorKind::Conflict
        | ArmErrorKind::Operation => true,
        // A policy rejects the content of a write, not its author.
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
