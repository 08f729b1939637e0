//! The planned state of each load balancer.

mod conflicts;
mod frontends;
mod pool;
mod probes;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::conflicts::find as find_conflicts;
pub(super) use self::frontends::referenced as frontends_of_others;
pub(super) use self::pool::other_kind as members_of_other_kind;
use super::cluster_state::{ClusterState, Owner, SubjectIndex};
use super::placement::{Placed, Placement};
use super::request::Balancers;
use super::{Deferred, Orphan, Warning};
use crate::config::LoadBalancerSku;
use crate::resources::{ArmId, LoadBalancer, ProvisioningState, Sku, SkuName};
use crate::service::ServiceKey;

/// The planned state of a load balancer.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) id: ArmId,
    pub(super) current: Option<&'a LoadBalancer>,
    pub(super) resource: LoadBalancer,
    /// The change of each service's parts.
    pub(super) touched: BTreeMap<Option<ServiceKey>, &'static str>,
    /// True if an address or a port becomes reachable that was not before.
    pub(super) gains: bool,
    /// The lower-case names of the pool entries that are added, removed or changed.
    pub(super) members: BTreeSet<String>,
    /// True if only entries of the pool change.
    pub(super) pool_only: bool,
}

impl Draft<'_> {
    /// Returns true if the load balancer becomes empty, so that it is deleted.
    pub(super) fn is_deleted(&self) -> bool {
        self.current.is_some()
            && self
                .resource
                .properties
                .frontend_ip_configurations
                .is_empty()
    }

    pub(super) fn is_changed(&self) -> bool {
        self.current.is_none_or(|current| *current != self.resource)
    }

    pub(super) fn services(&self) -> BTreeSet<ServiceKey> {
        self.touched.keys().flatten().cloned().collect()
    }

    /// Returns true if parts that belong to no service are removed.
    pub(super) fn sweeps(&self) -> bool {
        self.touched.get(&None).is_some_and(|what| *what == SWEPT)
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<_> = self
            .touched
            .iter()
            .map(|(service, what)| match service {
                Some(service) => format!("{service} {what}"),
                None => (*what).to_owned(),
            })
            .collect();
        if self.pool_only {
            reasons.push("the nodes that take part have changed".to_owned());
        }
        reasons
    }
}

/// The load balancers with parts of services, now or later.
#[derive(Debug, Default)]
pub(super) struct Drafts<'a> {
    pub(super) drafts: Vec<Draft<'a>>,
    pub(super) deferred: Vec<Deferred>,
    pub(super) warnings: BTreeSet<Warning>,
    pub(super) orphans: Vec<Orphan>,
}

pub(super) fn build<'a>(world: &ClusterState<'a>, placement: &Placement) -> Drafts<'a> {
    let mut names: BTreeMap<String, Option<&'a LoadBalancer>> = BTreeMap::new();
    let ours = world.snapshot.load_balancers.iter();
    for balancer in ours.filter(|balancer| world.may_be_ours(balancer)) {
        names.insert(balancer.name.to_ascii_lowercase(), Some(balancer));
    }
    let mut spelled: BTreeMap<String, &str> = BTreeMap::new();
    for placed in placement.values().filter(|placed| placed.later.is_none()) {
        let lower = placed.balancer.to_ascii_lowercase();
        names.entry(lower.clone()).or_default();
        spelled.entry(lower).or_insert(&placed.balancer);
    }
    let mut all = Drafts::default();
    let mut residents: BTreeMap<String, Vec<(SubjectIndex, &Placed)>> = BTreeMap::new();
    for (index, placed) in placement {
        let on = placed.balancer.to_ascii_lowercase();
        residents.entry(on).or_default().push((*index, placed));
    }
    for (lower, current) in names {
        let residents = residents.get(&lower).map_or(&[][..], Vec::as_slice);
        let name = current.map_or_else(|| spelled.get(&lower).copied(), |c| Some(c.name.as_str()));
        let Some(name) = name else { continue };
        if let Some(draft) = one(world, placement, name, current, residents, &mut all) {
            all.drafts.push(draft);
        }
    }
    all
}

fn one<'a>(
    world: &ClusterState<'a>,
    placement: &Placement,
    name: &str,
    current: Option<&'a LoadBalancer>,
    residents: &[(SubjectIndex, &Placed)],
    all: &mut Drafts<'a>,
) -> Option<Draft<'a>> {
    let ours = current.is_none_or(|current| world.is_ours(current));
    let has_parts = current.is_some_and(|current| {
        let properties = &current.properties;
        let frontends = properties
            .frontend_ip_configurations
            .iter()
            .map(|part| &part.name);
        let rules = properties
            .load_balancing_rules
            .iter()
            .map(|part| &part.name);
        let probes = properties.probes.iter().map(|part| &part.name);
        let mut names = frontends.chain(rules).chain(probes);
        names.any(|name| world.owner(name, ours) != Owner::Foreign)
    });
    // A load balancer without any part of this cluster is not touched.
    if residents.is_empty() && !has_parts {
        return None;
    }
    let id = current
        .and_then(|current| current.id.clone())
        .unwrap_or_else(|| world.config.load_balancer_id(name));
    let mut draft = Draft {
        resource: current.cloned().unwrap_or_else(|| new(world, name, &id)),
        id,
        current,
        touched: BTreeMap::new(),
        gains: current.is_none(),
        members: BTreeSet::new(),
        pool_only: false,
    };
    if world.request.classes.load_balancers == Balancers::None {
        return current.is_some().then_some(draft);
    }
    // A failed state must change, or the resource would be considered up to date and never be repaired.
    if !residents.is_empty() {
        ProvisioningState::clear_failed(&mut draft.resource.properties.provisioning_state);
    }
    let is_mended = current.is_some() && draft.is_changed();
    let dispositions = frontends::dispositions(world, placement, &draft, residents, ours, all);
    frontends::apply(world, &mut draft, residents, &dispositions, ours);
    if world.request.classes.load_balancers == Balancers::All {
        pool::ensure(world, &mut draft, residents);
    }
    rules::apply(world, &mut draft, residents, ours, placement, &dispositions);
    probes::apply(world, &mut draft, residents, ours);
    // A new load balancer cannot be created without a frontend.
    if draft
        .resource
        .properties
        .frontend_ip_configurations
        .is_empty()
        && current.is_none()
    {
        return None;
    }
    if world.request.classes.load_balancers == Balancers::All {
        pool::members(world, &mut draft, residents, ours, &mut all.warnings);
    }
    if is_mended {
        for (index, _) in residents {
            let key = world.subjects.get(*index).map(|subject| subject.key());
            draft.touch(key, "has a load balancer whose last write failed");
        }
    }
    Some(draft)
}

fn new(world: &ClusterState<'_>, name: &str, id: &ArmId) -> LoadBalancer {
    let config = world.config;
    let standard = config.load_balancer_sku == LoadBalancerSku::Standard;
    LoadBalancer {
        id: Some(id.clone()),
        name: name.to_owned(),
        location: Some(config.location.clone()),
        sku: standard.then(|| Sku::named(SkuName::Standard)),
        ..LoadBalancer::default()
    }
}

impl Draft<'_> {
    /// Records the change of a service's part, or of an orphan.
    fn touch(&mut self, service: Option<&ServiceKey>, what: &'static str) {
        let entry = self.touched.entry(service.cloned());
        // The first recorded change is that of the frontend, which is the most informative.
        entry.or_insert(what);
    }
}

const ADDED: &str = "is added";
const CHANGED: &str = "is changed";
const REMOVED: &str = "is removed";
const SWEPT: &str = "resources of no service are removed";
