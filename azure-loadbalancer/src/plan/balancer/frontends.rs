//! The frontends of a load balancer: which are kept, removed, added or changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{ADDED, CHANGED, Draft, Drafts, REMOVED, SWEPT};
use crate::config::FlipOrder;
use crate::naming;
use crate::plan::cluster_state::{ClusterState, Owner, Standing, SubjectIndex};
use crate::plan::placement::{Placed, Placement};
use crate::plan::request::Balancers;
use crate::plan::target::Place;
use crate::plan::{Deferred, Orphan, Warning};
use crate::resources::{
    AllocationMethod, FrontendIpConfiguration, FrontendProperties, LoadBalancer, SubResource,
};

/// The plan for a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// The frontend stays: it belongs to a service out of scope, or another service uses it.
    Stays,
    /// The frontend and the rules that lead to it are removed in a later round.
    Lingers,
    /// The frontend is changed to match its service's request.
    Updated,
    /// The frontend is removed.
    Goes,
}

/// The plans for frontends, by lower-case name.
pub(super) type Dispositions = BTreeMap<String, Disposition>;

pub(super) fn dispositions(
    world: &ClusterState<'_>,
    placement: &Placement,
    draft: &Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    ours: bool,
    all: &mut Drafts<'_>,
) -> Dispositions {
    let referenced = referenced(world, &draft.resource, ours);
    let growing = is_growing(world, residents);
    let attached: BTreeSet<String> = residents
        .iter()
        .filter(|(_, placed)| placed.later.is_none())
        .map(|(_, placed)| placed.target.frontend.to_ascii_lowercase())
        .collect();
    let view = View {
        world,
        placement,
        draft,
        attached,
        growing,
    };
    let mut dispositions = Dispositions::new();
    for frontend in &draft.resource.properties.frontend_ip_configurations {
        let lower = frontend.name.to_ascii_lowercase();
        let disposition = match world.owner(&frontend.name, ours) {
            Owner::Foreign => Disposition::Stays,
            Owner::Orphan => {
                all.orphans.push(Orphan {
                    id: draft
                        .id
                        .child("frontendIPConfigurations", &frontend.name)
                        .to_string(),
                    owner: naming::owner_of(&frontend.name),
                    removed: world.sweeps(),
                });
                if world.sweeps() {
                    Disposition::Goes
                } else {
                    Disposition::Stays
                }
            }
            Owner::Subject(index) => match world.subjects.get(index).map(|s| &s.standing) {
                Some(Standing::Held) | None => Disposition::Stays,
                Some(Standing::Unwanted) => Disposition::Goes,
                Some(Standing::Requested(_)) => {
                    let Some(placed) = placement.get(&index) else {
                        continue;
                    };
                    view.of_wanted(placed, index, frontend, &mut all.deferred)
                }
            },
        };
        // Azure rejects the removal of a frontend that other parts still use.
        let disposition = match (disposition, referenced.get(&lower)) {
            (Disposition::Goes, Some(by)) => {
                all.warnings.insert(Warning {
                    service: None,
                    what: format!(
                        "frontend {} of load balancer {} stays because {by} uses it; remove that first",
                        frontend.name, draft.resource.name
                    ),
                });
                Disposition::Stays
            }
            (disposition, _) => disposition,
        };
        dispositions.insert(lower, disposition);
    }
    dispositions
}

/// The inputs of decisions about the frontends of one load balancer.
struct View<'v, 'w> {
    world: &'v ClusterState<'w>,
    placement: &'v Placement,
    draft: &'v Draft<'w>,
    /// The lower-case names of frontends that services will have there.
    attached: BTreeSet<String>,
    growing: bool,
}

impl View<'_, '_> {
    fn of_wanted(
        &self,
        placed: &Placed,
        index: SubjectIndex,
        frontend: &FrontendIpConfiguration,
        deferred: &mut Vec<Deferred>,
    ) -> Disposition {
        let Self { world, draft, .. } = self;
        let Some(subject) = world.subjects.get(index) else {
            return Disposition::Stays;
        };
        let here = draft.resource.is_named(&placed.balancer);
        let its_own = here && frontend.name.eq_ignore_ascii_case(&placed.target.frontend);
        let flipped = subject
            .intent()
            .is_some_and(|intent| naming::is_internal(&draft.resource.name) != intent.internal);
        // An address that another service gets is released at once, so that two services that swap addresses
        // do not wait for each other.
        let keeps = placed.target.place.is_that_of(frontend)
            && (here || placed.target.place.names_that_of(frontend));
        let awaited = !keeps
            && self.placement.values().any(|other| {
                other.target.lead != placed.target.lead
                    && other.target.place.names_that_of(frontend)
            });
        if awaited && !(its_own && placed.later.is_none()) {
            return Disposition::Goes;
        }
        if placed.later.is_some() {
            let flipped_first = world.config.flip_order == FlipOrder::BreakFirst
                || world.request.classes.load_balancers == Balancers::Flipped;
            let in_the_way = !here && placed.target.place.is_that_of(frontend);
            return if (flipped && flipped_first) || (in_the_way && !its_own) {
                Disposition::Goes
            } else {
                Disposition::Lingers
            };
        }
        if its_own || self.attached.contains(&frontend.name.to_ascii_lowercase()) && here {
            return Disposition::Updated;
        }
        // On the same load balancer the new frontend is written together with the removal of the old one.
        if here || world.config.flip_order == FlipOrder::BreakFirst {
            return Disposition::Goes;
        }
        // The new place works, so the old one is no longer needed.
        if is_live(world, placed) && !self.growing {
            return Disposition::Goes;
        }
        deferred.push(Deferred {
            service: Some(subject.key().clone()),
            what: format!(
                "frontend {} on {} is deleted when the service is reachable on {}",
                frontend.name, draft.resource.name, placed.balancer
            ),
        });
        Disposition::Lingers
    }
}

/// Returns true if the load balancer already has the service's new frontend.
fn is_live(world: &ClusterState<'_>, placed: &Placed) -> bool {
    let Some(balancer) = world.balancer(&placed.balancer) else {
        return false;
    };
    balancer
        .properties
        .frontend_ip_configurations
        .iter()
        .find(|frontend| frontend.is_named(&placed.target.frontend))
        .is_some_and(|frontend| {
            // Until the resource manager has assigned an address, clients cannot switch.
            placed.target.place.is_that_of(frontend) && world.address_of(frontend).is_some()
        })
}

/// Returns true if a frontend is created or moved on this load balancer. The same write then removes nothing
/// that security rules must follow: it precedes the write of the security group, and removals come after it.
fn is_growing(world: &ClusterState<'_>, residents: &[(SubjectIndex, &Placed)]) -> bool {
    residents.iter().any(|(_, placed)| {
        placed.later.is_none() && {
            let balancer = world.balancer(&placed.balancer);
            !balancer.is_some_and(|balancer| {
                balancer
                    .properties
                    .frontend_ip_configurations
                    .iter()
                    .any(|frontend| {
                        frontend.is_named(&placed.target.frontend)
                            && placed.target.place.is_that_of(frontend)
                    })
            })
        }
    })
}

/// Returns the frontends, by lower-case name, to which unchanged parts refer.
pub(in crate::plan) fn referenced(
    world: &ClusterState<'_>,
    balancer: &LoadBalancer,
    ours: bool,
) -> BTreeMap<String, String> {
    let mut referenced = BTreeMap::new();
    let mut note = |reference: Option<&SubResource>, what: &str, name: &str| {
        if let Some(id) = reference.and_then(|reference| reference.id.as_ref()) {
            referenced.insert(id.name().to_ascii_lowercase(), format!("{what} {name}"));
        }
    };
    let properties = &balancer.properties;
    for rule in &properties.load_balancing_rules {
        let stays = match world.owner(&rule.name, ours) {
            Owner::Foreign => true,
            Owner::Orphan => !world.sweeps(),
            Owner::Subject(index) => world.subjects.get(index).is_some_and(|s| s.is_held()),
        };
        if stays {
            note(
                rule.properties.frontend_ip_configuration.as_ref(),
                "rule",
                &rule.name,
            );
        }
    }
    for rule in properties
        .inbound_nat_rules
        .iter()
        .chain(&properties.inbound_nat_pools)
    {
        note(
            rule.properties.frontend_ip_configuration.as_ref(),
            "inbound NAT",
            &rule.name,
        );
    }
    for rule in &properties.outbound_rules {
        for reference in &rule.properties.frontend_ip_configurations {
            note(Some(reference), "outbound rule", &rule.name);
        }
    }
    referenced
}

pub(super) fn apply(
    world: &ClusterState<'_>,
    draft: &mut Draft<'_>,
    residents: &[(SubjectIndex, &Placed)],
    dispositions: &Dispositions,
    ours: bool,
) {
    let mut frontends = std::mem::take(&mut draft.resource.properties.frontend_ip_configurations);
    frontends.retain(|frontend| {
        let goes =
            dispositions.get(&frontend.name.to_ascii_lowercase()) == Some(&Disposition::Goes);
        if goes {
            match world.owner(&frontend.name, ours) {
                Owner::Subject(index) => {
                    let key = world.subjects.get(index).map(|subject| subject.key());
                    draft.touch(key, REMOVED);
                }
                Owner::Orphan | Owner::Foreign => draft.touch(None, SWEPT),
            }
        }
        !goes
    });
    for (index, placed) in residents {
        // Services that share the frontend of an unchanged service do not modify it.
        if placed.later.is_some() || placed.target.lead != *index {
            continue;
        }
        let key = world.subjects.get(*index).map(|subject| subject.key());
        let found = frontends
            .iter_mut()
            .find(|f| f.is_named(&placed.target.frontend));
        match found {
            Some(frontend) => {
                let before = frontend.properties.clone();
                update(&mut frontend.properties, &placed.target.place);
                if before != frontend.properties {
                    draft.touch(key, CHANGED);
                    draft.gains = true;
                }
            }
            None => {
                let mut properties = FrontendProperties::default();
                update(&mut properties, &placed.target.place);
                frontends.push(FrontendIpConfiguration::named(
                    &placed.target.frontend,
                    properties,
                ));
                draft.touch(key, ADDED);
                draft.gains = true;
            }
        }
    }
    draft.resource.properties.frontend_ip_configurations = frontends;
}

/// Updates the place of a frontend. An address without a request stays, however it was chosen, while the
/// subnet is the same.
fn update(properties: &mut FrontendProperties, place: &Place) {
    // Equal references are left alone, since Azure varies the case of ids.
    match place {
        Place::External { public_ip } => {
            if !SubResource::leads_to(properties.public_ip_address.as_ref(), public_ip) {
                properties.public_ip_address = Some(SubResource::to(public_ip.clone()));
            }
        }
        Place::Internal { subnet, address } => {
            let moves = !SubResource::leads_to(properties.subnet.as_ref(), subnet);
            if moves {
                properties.subnet = Some(SubResource::to(subnet.clone()));
            }
            match address {
                Some(address) => {
                    let is = properties
                        .private_ip_address
                        .as_deref()
                        .and_then(|a| a.parse().ok());
                    let method = properties.private_ip_allocation_method.as_ref();
                    if is != Some(*address) || method != Some(&AllocationMethod::Static) {
                        properties.private_ip_address = Some(address.to_string());
                        properties.private_ip_allocation_method = Some(AllocationMethod::Static);
                    }
                }
                // An address of the old subnet would be invalid in the new one.
                None if moves => {
                    properties.private_ip_address = None;
                    properties.private_ip_allocation_method = Some(AllocationMethod::Dynamic);
                }
                None => {}
            }
        }
    }
}
