//! The assembly of ordered writes from the planned states.
//!
//! - A public address must exist before a frontend refers to it, and must be released before it can be
//!   deleted.
//! - A security rule needs the address of a frontend, so it is added after the load balancer is written. It
//!   is removed before that, so that no rule is open that leads nowhere, and a released address opens nothing
//!   for its next owner.
//! - A machine can join a pool only if the pool exists. A scale set must have left before the load balancer
//!   can be deleted.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::balancer::Drafts;
use super::cluster_state::ClusterState;
use super::diff;
use super::members::MemberChanges;
use super::public_ip::{PublicIpDeletion, PublicIps};
use super::security::SecurityDraft;
use super::{Action, Edge, FieldChange, Operation};
use crate::resources::{ArmId, LoadBalancer};
use crate::service::ServiceKey;

/// The order of writes by kind. Every edge goes from a lower to a higher rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    PublicIp,
    GrowingBalancer,
    SecurityGroup,
    Balancer,
    MemberChanges,
    Upgrade,
    DeleteBalancer,
    DeletePublicIp,
}

/// A write, and the resources that determine its order.
struct OrderedWrite<'d> {
    rank: Rank,
    id: ArmId,
    action: Action,
    /// The public addresses that a load balancer refers to now.
    refers: HashSet<&'d ArmId>,
    /// The public addresses that a load balancer will refer to.
    will_refer: HashSet<&'d ArmId>,
    /// The load balancers that must be written before a member joins, or after a scale set leaves.
    joins: BTreeSet<ArmId>,
    leaves: bool,
}

pub(super) fn assemble(
    world: &ClusterState<'_>,
    drafts: &Drafts<'_>,
    addresses: &PublicIps<'_>,
    security: Option<&SecurityDraft<'_>>,
    members: &MemberChanges<'_>,
) -> (Vec<Action>, Vec<Edge>) {
    let mut steps = Vec::new();
    public_ips(&mut steps, addresses);
    balancers(&mut steps, world, drafts);
    if let Some(draft) = security.filter(|draft| draft.resource != *draft.current) {
        let mut reasons: Vec<_> = draft
            .services
            .iter()
            .map(|key| format!("{key}: who may connect"))
            .collect();
        if draft.swept {
            reasons.push("resources of no service are removed".to_owned());
        }
        if draft.follows_nodes {
            reasons.push("the nodes that take part have changed".to_owned());
        }
        let operation = Operation::PutSecurityGroup {
            resource: Box::new(draft.resource.clone()),
            if_match: draft.current.etag.clone(),
        };
        let changes = diff::fields(Some(draft.current), &draft.resource);
        let services = draft.services.clone();
        push(
            &mut steps,
            Rank::SecurityGroup,
            Action {
                operation,
                reasons,
                changes,
                services,
                sweeps: draft.swept,
                members: BTreeSet::new(),
            },
        );
    }
    machines(&mut steps, members);
    // The order is deterministic, so that the same input gives the same plan.
    steps.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
    let edges = edges(&steps);
    (steps.into_iter().map(|step| step.action).collect(), edges)
}

fn push<'s, 'd>(
    steps: &'s mut Vec<OrderedWrite<'d>>,
    rank: Rank,
    action: Action,
) -> Option<&'s mut OrderedWrite<'d>> {
    let id = action.operation.target().cloned().unwrap_or_default();
    steps.push(OrderedWrite {
        rank,
        id,
        action,
        refers: HashSet::new(),
        will_refer: HashSet::new(),
        joins: BTreeSet::new(),
        leaves: false,
    });
    steps.last_mut()
}

fn public_ips(steps: &mut Vec<OrderedWrite<'_>>, addresses: &PublicIps<'_>) {
    for draft in &addresses.puts {
        let what = if draft.current.is_some() {
            "differs from the request"
        } else {
            "is needed"
        };
        let services = draft.services.clone();
        let reasons = services
            .iter()
            .map(|key| format!("{key}: its public address {what}"));
        let action = Action {
            reasons: reasons.collect(),
            changes: diff::fields(draft.current, &draft.resource),
            operation: Operation::PutPublicIp {
                resource: Box::new(draft.resource.clone()),
                if_match: draft.current.and_then(|current| current.etag.clone()),
            },
            services,
            sweeps: false,
            members: BTreeSet::new(),
        };
        push(steps, Rank::PublicIp, action);
    }
    for PublicIpDeletion {
        id,
        if_match,
        services,
        address,
        label,
    } in &addresses.deletes
    {
        // Lost values are listed as changes, since a deletion cannot be undone.
        let gone = |path: &str, value: &Option<String>| {
            let from = Some(Value::from(value.clone()?));
            let path = path.to_owned();
            let to = None;
            Some(FieldChange { path, from, to })
        };
        let changes = [
            gone("ipAddress", address),
            gone("dnsSettings.domainNameLabel", label),
        ];
        let action = Action {
            operation: Operation::DeletePublicIp {
                id: id.clone(),
                if_match: if_match.clone(),
            },
            reasons: services
                .iter()
                .map(|key| format!("{key} needs it no more"))
                .collect(),
            changes: changes.into_iter().flatten().collect(),
            services: services.clone(),
            sweeps: false,
            members: BTreeSet::new(),
        };
        push(steps, Rank::DeletePublicIp, action);
    }
}

fn balancers<'d>(
    steps: &mut Vec<OrderedWrite<'d>>,
    world: &ClusterState<'_>,
    drafts: &'d Drafts<'_>,
) {
    for draft in drafts.drafts.iter().filter(|draft| draft.is_changed()) {
        let (rank, operation, changes) = if draft.is_deleted() {
            let operation = Operation::DeleteLoadBalancer {
                id: draft.id.clone(),
                if_match: draft.current.and_then(|current| current.etag.clone()),
            };
            (Rank::DeleteBalancer, operation, Vec::new())
        } else if let Some(operation) = draft.pool_only.then(|| put_pool(world, draft)).flatten() {
            // A change of the pool alone leaves the rest of the load balancer untouched.
            let changes = diff::fields(draft.current, &draft.resource);
            (Rank::MemberChanges, operation, changes)
        } else {
            // A write that adds something comes before the security group, and one that only removes comes
            // after it.
            let rank = if draft.gains {
                Rank::GrowingBalancer
            } else {
                Rank::Balancer
            };
            let operation = Operation::PutLoadBalancer {
                resource: Box::new(draft.resource.clone()),
                if_match: draft.current.and_then(|current| current.etag.clone()),
            };
            (
                rank,
                operation,
                diff::fields(draft.current, &draft.resource),
            )
        };
        let services: BTreeSet<ServiceKey> = draft.services();
        let reasons = draft.reasons();
        let step = push(
            steps,
            rank,
            Action {
                operation,
                reasons,
                changes,
                services,
                sweeps: draft.sweeps(),
                members: draft.members.clone(),
            },
        );
        if let Some(step) = step {
            step.refers = referred(draft.current);
            step.will_refer = referred(Some(&draft.resource));
        }
    }
}

fn put_pool(world: &ClusterState<'_>, draft: &super::balancer::Draft<'_>) -> Option<Operation> {
    let named = |balancer: &LoadBalancer| {
        let mut pools = balancer.properties.backend_address_pools.iter();
        pools
            .find(|pool| pool.is_named(&world.config.cluster_name))
            .cloned()
    };
    // A pool that does not exist yet is created with the whole load balancer.
    let if_match = draft.current.and_then(named)?.etag;
    let mut resource = named(&draft.resource)?;
    let id = draft.id.child("backendAddressPools", &resource.name);
    resource.id.get_or_insert(id);
    Some(Operation::PutPool {
        resource: Box::new(resource),
        if_match,
    })
}

fn machines(steps: &mut Vec<OrderedWrite<'_>>, members: &MemberChanges<'_>) {
    let joined = |pools: &BTreeSet<ArmId>| pools.iter().filter_map(ArmId::parent).collect();
    for change in members.interfaces.values() {
        let action = Action {
            reasons: change
                .pools
                .iter()
                .map(|pool| format!("it joins or leaves {pool}, as its node does"))
                .collect(),
            changes: diff::fields(Some(change.current), &change.resource),
            operation: Operation::PutNetworkInterface {
                resource: Box::new(change.resource.clone()),
                if_match: change.current.etag.clone(),
            },
            services: BTreeSet::new(),
            sweeps: false,
            members: BTreeSet::new(),
        };
        if let Some(step) = push(steps, Rank::MemberChanges, action) {
            step.joins = joined(&change.pools);
        }
    }
    for (id, change) in &members.scale_sets {
        let leaves = members.leaving.contains(id);
        let action = Action {
            reasons: change
                .pools
                .iter()
                .map(|pool| format!("it joins or leaves {pool}"))
                .collect(),
            changes: diff::fields(Some(change.current), &change.resource),
            operation: Operation::PutScaleSet {
                resource: Box::new(change.resource.clone()),
                if_match: change.current.etag.clone(),
            },
            services: BTreeSet::new(),
            sweeps: false,
            members: BTreeSet::new(),
        };
        if let Some(step) = push(steps, Rank::MemberChanges, action) {
            step.joins = joined(&change.pools);
            step.leaves = leaves;
        }
    }
    for (id, instance_ids) in &members.upgrades {
        let action = Action {
            operation: Operation::UpgradeScaleSetInstances {
                id: id.clone(),
                instance_ids: instance_ids.clone(),
            },
            reasons: vec!["its machines differ from the pools in its model".to_owned()],
            changes: Vec::new(),
            services: BTreeSet::new(),
            sweeps: false,
            members: BTreeSet::new(),
        };
        if let Some(step) = push(steps, Rank::Upgrade, action) {
            step.leaves = members.leaving.contains(id);
        }
    }
}

fn edges(steps: &[OrderedWrite<'_>]) -> Vec<Edge> {
    let mut edges = BTreeSet::new();
    for (before, first) in steps.iter().enumerate() {
        // Steps are sorted by rank and edges lead only to higher ranks, so later steps suffice.
        for (after, second) in steps.iter().enumerate().skip(before + 1) {
            if let Some(why) = why(first, second) {
                edges.insert(Edge { before, after, why });
            }
        }
    }
    edges.into_iter().collect()
}

/// Returns the reason why the first write must succeed before the second begins. `None` if it need not.
fn why(first: &OrderedWrite<'_>, second: &OrderedWrite<'_>) -> Option<&'static str> {
    use Rank::{
        Balancer, DeleteBalancer, DeletePublicIp, GrowingBalancer, MemberChanges, PublicIp,
        SecurityGroup, Upgrade,
    };
    match (first.rank, second.rank) {
        (PublicIp, GrowingBalancer | Balancer) => second
            .will_refer
            .contains(&first.id)
            .then_some("a frontend needs its public address"),
        (GrowingBalancer, SecurityGroup) => Some("security rules need the address of the frontend"),
        (SecurityGroup, Balancer | DeleteBalancer) => Some(
            "what is closed is closed before its address goes, and what is opened before another way goes",
        ),
        (SecurityGroup, DeletePublicIp) => Some("an address that is given back admits no client"),
        (GrowingBalancer | Balancer | DeleteBalancer, DeletePublicIp) => first
            .refers
            .contains(&second.id)
            .then_some("the frontend releases its public address first"),
        (GrowingBalancer | Balancer, MemberChanges) => second
            .joins
            .contains(&first.id)
            .then_some("the pool must be there to be joined"),
        (MemberChanges, Upgrade) => {
            (first.id == second.id).then_some("machines become what the model says")
        }
        (MemberChanges | Upgrade, DeleteBalancer) => first
            .leaves
            .then_some("a scale set leaves before the load balancer goes"),
        _ => None,
    }
}

fn referred(balancer: Option<&LoadBalancer>) -> HashSet<&ArmId> {
    let frontends = balancer
        .into_iter()
        .flat_map(|balancer| &balancer.properties.frontend_ip_configurations);
    frontends
        .filter_map(|frontend| frontend.properties.public_ip_address.as_ref()?.id.as_ref())
        .collect()
}
