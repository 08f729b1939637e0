//! Creation, change and deletion of public addresses.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::balancer::Drafts;
use super::cluster_state::{ClusterState, Standing, Subject, SubjectIndex};
use super::placement::Placement;
use super::request::Balancers;
use super::tags::{self, Owners};
use super::target::Place;
use super::{Deferred, Orphan, PlanError, Warning};
use crate::annotations;
use crate::config::{Edition, FlipOrder, LeftAddresses};
use crate::resources::{
    AllocationMethod, ArmId, DnsSettings, ProvisioningState, PublicIpAddress, PublicIpProperties,
    Sku, SkuName,
};
use crate::service::ServiceKey;

/// A planned write of a public address.
#[derive(Debug)]
pub(super) struct PublicIpDraft<'a> {
    pub(super) current: Option<&'a PublicIpAddress>,
    pub(super) resource: PublicIpAddress,
    pub(super) services: BTreeSet<ServiceKey>,
}

/// A planned deletion of a public address.
#[derive(Debug)]
pub(super) struct PublicIpDeletion {
    pub(super) id: ArmId,
    pub(super) if_match: Option<String>,
    pub(super) services: BTreeSet<ServiceKey>,
    /// The address, and its DNS label.
    pub(super) address: Option<String>,
    pub(super) label: Option<String>,
}

/// The changes of public addresses.
#[derive(Debug, Default)]
pub(super) struct PublicIps<'a> {
    pub(super) puts: Vec<PublicIpDraft<'a>>,
    pub(super) deletes: Vec<PublicIpDeletion>,
    pub(super) deferred: Vec<Deferred>,
    pub(super) warnings: BTreeSet<Warning>,
    pub(super) orphans: Vec<Orphan>,
}

/// The services that use each public address, ordered by key, with the owner of the frontend first.
type Users = BTreeMap<ArmId, Vec<SubjectIndex>>;

fn users(placement: &Placement) -> Users {
    let mut users = Users::new();
    for (index, placed) in placement {
        if let Place::External { public_ip } = &placed.target.place {
            users.entry(public_ip.clone()).or_default().push(*index);
        }
    }
    for list in users.values_mut() {
        let lead = list
            .first()
            .and_then(|index| placement.get(index))
            .map(|p| p.target.lead);
        // The owner of the frontend comes first: its label counts if the services disagree.
        list.sort_by_key(|index| (Some(*index) != lead, *index));
    }
    users
}

/// Returns the services whose DNS label differs from that of the public address's owner.
pub(super) fn label_conflicts(
    world: &ClusterState<'_>,
    placement: &Placement,
) -> Vec<(SubjectIndex, PlanError)> {
    if world.config.edition == Edition::Note {
        return Vec::new();
    }
    let mut failures = Vec::new();
    for (id, users) in users(placement) {
        let current = world.public_ip(&id);
        let holder = current
            .and_then(tags::label_holder)
            .and_then(|key| world.subject(&key))
            // The holder keeps the label only while it uses the address, or is left alone by this plan.
            .filter(|index| {
                users.contains(index) || world.subjects.get(*index).is_some_and(|s| s.is_held())
            });
        let existing = current.and_then(|current| {
            current
                .properties
                .dns_settings
                .as_ref()?
                .domain_name_label
                .clone()
        });
        let mut held: Option<(SubjectIndex, String)> = holder.and_then(|index| {
            let wanted = world
                .subjects
                .get(index)?
                .intent()
                .and_then(|i| i.dns_label.clone());
            Some((index, wanted.or_else(|| existing.clone())?))
        });
        for index in users {
            let label = world
                .subjects
                .get(index)
                .and_then(|s| s.intent()?.dns_label.clone());
            let Some(label) = label else { continue };
            match &held {
                Some((by, other)) if *by != index && *other != label => {
                    let by = world.subjects.get(*by).map(|s| s.key().to_string());
                    failures.push((
                        index,
                        PlanError::DnsLabelTaken {
                            label,
                            public_ip: id.name().to_owned(),
                            by: format!("service {}", by.unwrap_or_default()),
                        },
                    ));
                }
                Some(_) => {}
                None => held = Some((index, label)),
            }
        }
    }
    failures
}

/// Plans the public addresses. `pending` are the services whose security rules still lead to their old
/// address.
pub(super) fn build<'a>(
    world: &ClusterState<'a>,
    placement: &Placement,
    drafts: &Drafts<'a>,
    pending: Option<&BTreeSet<ServiceKey>>,
) -> PublicIps<'a> {
    let mut all = PublicIps::default();
    let users = users(placement);
    let classes = world.request.classes;
    if classes.public_ips || classes.load_balancers == Balancers::All {
        for (id, users) in &users {
            // A service that has to wait does not need its address yet.
            let made_now = |index: &&SubjectIndex| {
                placement
                    .get(index)
                    .is_some_and(|placed| placed.later.is_none())
            };
            let first = users.iter().find(made_now);
            if let (None, Some(_)) = (world.public_ip(id), first) {
                all.puts.push(create(world, id, users));
            }
        }
    }
    if !classes.public_ips {
        return all;
    }
    for (id, users) in &users {
        let labels = users.iter().filter_map(|index| {
            let subject = world.subjects.get(*index)?;
            Some((subject.key(), subject.intent()?.dns_label.as_ref()?))
        });
        // Only the first service with a label can have it, since an address has one.
        for (holder, label) in labels.take(1) {
            let is_note = world.config.edition == Edition::Note;
            let has = world.public_ip(id).filter(|_| is_note);
            let settings = has.and_then(|address| address.properties.dns_settings.as_ref());
            let its_label = settings.and_then(|settings| settings.domain_name_label.as_ref());
            // A new address is made without it while the old one has it.
            let is_late = is_note && is_label_elsewhere(world, id, holder, label);
            if is_late || (has.is_some() && its_label != Some(label)) {
                all.warnings.insert(Warning {
                    service: Some(holder.clone()),
                    what: format!(
                        "public address {} does not get label {label}: edition note writes labels only when an address is made, and one that another address has not even then; use edition current, or write the label by hand",
                        id.name()
                    ),
                });
            } else if is_label_elsewhere(world, id, holder, label) {
                all.deferred.push(Deferred {
                    service: Some(holder.clone()),
                    what: format!(
                        "{} gets label {label} once the old public address is without it",
                        id.name()
                    ),
                });
            }
        }
    }
    let uses = Uses {
        referenced: referenced(world, drafts),
        pending,
    };
    let mut existing: Vec<_> = world
        .snapshot
        .public_ips
        .iter()
        .filter_map(|ip| Some((ip.id.as_ref()?, ip)))
        .collect();
    // The order of Azure's lists must not influence the plan.
    existing.sort_by_key(|(id, _)| *id);
    for (id, current) in existing {
        let users = users.get(id).map_or(&[][..], Vec::as_slice);
        one(world, id, current, users, &uses, &mut all);
    }
    all
}

/// The uses of a public address that no service requests any more. Each keeps it from being deleted.
struct Uses<'d> {
    /// The addresses that frontends will refer to.
    referenced: HashSet<&'d ArmId>,
    /// The services whose security rules still lead to their old address.
    pending: Option<&'d BTreeSet<ServiceKey>>,
}

fn create<'a>(world: &ClusterState<'a>, id: &ArmId, users: &[SubjectIndex]) -> PublicIpDraft<'a> {
    let config = world.config;
    let subjects = || users.iter().filter_map(|index| world.subjects.get(*index));
    let services: BTreeSet<_> = subjects().map(|subject| subject.key().clone()).collect();
    let label = subjects()
        .filter_map(|subject| Some((subject.key(), subject.intent()?.dns_label.as_ref()?)))
        .find(|(_, label)| !label.is_empty());
    let mut resource = PublicIpAddress {
        id: Some(id.clone()),
        location: Some(config.location.clone()),
        sku: config.is_standard().then(|| Sku::named(SkuName::Standard)),
        ..PublicIpAddress::named(
            id.name(),
            PublicIpProperties {
                public_ip_allocation_method: Some(AllocationMethod::Static),
                ..PublicIpProperties::default()
            },
        )
    };
    tags::write_owners(config, &mut resource, &services);
    tags::write_home(config, &mut resource, id.resource_group());
    if let Some((holder, label)) = label
        && !is_label_elsewhere(world, id, holder, label)
    {
        set_label(world, &mut resource, holder, label);
    }
    PublicIpDraft {
        current: None,
        resource,
        services,
    }
}

fn one<'a>(
    world: &ClusterState<'a>,
    id: &ArmId,
    current: &'a PublicIpAddress,
    users: &[SubjectIndex],
    uses: &Uses<'_>,
    all: &mut PublicIps<'a>,
) {
    // An address without the cluster's tag belongs to a user.
    let Some(owners) = Owners::of(current).filter(|owners| world.owns(id, owners)) else {
        return;
    };
    let mut next = BTreeSet::new();
    let mut released = BTreeSet::new();
    for owner in &owners.services {
        let stays = match world
            .subject(owner)
            .and_then(|index| Some((index, world.subjects.get(index)?)))
        {
            Some((index, subject)) => match subject.standing {
                Standing::Requested(_) => users.contains(&index),
                Standing::Unwanted => false,
                Standing::Held => true,
            },
            None => {
                // Without the cluster's name in its tags, it may belong to another cluster.
                let known = owners.cluster.is_some();
                if known {
                    all.orphans.push(Orphan {
                        id: id.to_string(),
                        owner: owner.to_string(),
                        removed: world.sweeps(),
                    });
                }
                !(known && world.sweeps())
            }
        };
        if stays {
            next.insert(owner.clone());
        } else {
            released.insert(owner.clone());
        }
    }
    let users = users.iter().filter_map(|index| world.subjects.get(*index));
    next.extend(users.clone().map(|subject| subject.key().clone()));
    // Parts of the tag that are no services may be in use elsewhere, so they keep the address.
    if next.is_empty() && owners.strangers.is_empty() {
        return delete(world, id, current, released, uses, all);
    }
    let mut resource = current.clone();
    if next != owners.services {
        tags::rewrite_owners(&mut resource, &owners, &next);
    }
    if users.clone().next().is_some() {
        tags::write_home(world.config, &mut resource, id.resource_group());
    }
    if world.config.edition == Edition::Current {
        label(world, &mut resource, &next, users);
    }
    ProvisioningState::clear_failed(&mut resource.properties.provisioning_state);
    if resource != *current {
        let mut services = next;
        services.append(&mut released);
        all.puts.push(PublicIpDraft {
            current: Some(current),
            resource,
            services,
        });
    }
}

/// Sets the requested DNS label: absent leaves it alone, empty removes it.
fn label<'w>(
    world: &ClusterState<'_>,
    resource: &mut PublicIpAddress,
    owners: &BTreeSet<ServiceKey>,
    users: impl Iterator<Item = &'w Subject<'w>>,
) {
    // The label of a service that has left the address is free for another one.
    if tags::label_holder(resource).is_some_and(|holder| !owners.contains(&holder)) {
        clear_label(resource);
    }
    let mut asked = users.filter_map(|user| Some((user.key(), user.intent()?.dns_label.as_ref()?)));
    let Some((holder, label)) = asked.next() else {
        return;
    };
    if label.is_empty() {
        clear_label(resource);
        return;
    }
    let id = resource.id.clone().unwrap_or_default();
    if is_label_elsewhere(world, &id, holder, label) {
        return;
    }
    set_label(world, resource, holder, label);
}

/// Returns true if another public address of the service still has the label, which Azure gives to one at a
/// time.
fn is_label_elsewhere(
    world: &ClusterState<'_>,
    id: &ArmId,
    holder: &ServiceKey,
    label: &str,
) -> bool {
    world.snapshot.public_ips.iter().any(|other| {
        let settings = other.properties.dns_settings.as_ref();
        let its_label = settings.and_then(|settings| settings.domain_name_label.as_deref());
        let known = other.id.as_ref().zip(Owners::of(other));
        its_label.is_some_and(|its| its.eq_ignore_ascii_case(label))
            && known.is_some_and(|(other, owners)| {
                other != id && owners.services.contains(holder) && world.owns(other, &owners)
            })
    })
}

fn set_label(
    world: &ClusterState<'_>,
    resource: &mut PublicIpAddress,
    holder: &ServiceKey,
    label: &str,
) {
    if label.is_empty() {
        return;
    }
    let settings = resource
        .properties
        .dns_settings
        .get_or_insert_with(DnsSettings::default);
    // An equal label is left as it is, since the settings also contain the name that Azure has made.
    if settings.domain_name_label.as_deref() != Some(label) {
        *settings = DnsSettings {
            domain_name_label: Some(label.to_owned()),
            ..DnsSettings::default()
        };
    }
    if world.config.edition == Edition::Current {
        tags::write_label_holder(resource, holder);
    }
}

fn clear_label(resource: &mut PublicIpAddress) {
    let has_label = |settings: &DnsSettings| settings.domain_name_label.is_some();
    if resource
        .properties
        .dns_settings
        .as_ref()
        .is_some_and(has_label)
    {
        resource.properties.dns_settings = None;
    }
    tags::remove_label_holder(resource);
}

fn delete<'a>(
    world: &ClusterState<'a>,
    id: &ArmId,
    current: &'a PublicIpAddress,
    released: BTreeSet<ServiceKey>,
    uses: &Uses<'_>,
    all: &mut PublicIps<'a>,
) {
    if uses.referenced.contains(id) {
        if world.request.classes.load_balancers != Balancers::All {
            all.deferred.push(Deferred {
                service: released.into_iter().next(),
                what: format!(
                    "public address {} is deleted when no frontend uses it",
                    current.name
                ),
            });
        }
        return;
    }
    if let Some(why) = handed_out(world, current, &released) {
        return keep(world, id, current, released, &why, all);
    }
    // The next owner of the address must not inherit open security rules. The provider of 2018 did not check.
    let config = world.config;
    let is_literal = config.edition == Edition::Note && config.flip_order == FlipOrder::BreakFirst;
    let pending = uses.pending.filter(|_| !is_literal).into_iter().flatten();
    if let Some(service) = pending.into_iter().find(|key| released.contains(key)) {
        all.deferred.push(Deferred {
            service: Some(service.clone()),
            what: format!(
                "public address {} is deleted when no security rule refers to it",
                current.name
            ),
        });
        return;
    }
    // The user may be an interface or a gateway that load balancers know nothing of.
    let user = current
        .properties
        .ip_configuration
        .as_ref()
        .and_then(|user| user.id.as_ref());
    if let (Some(user), None) = (user, world.referrer(id)) {
        all.warnings.insert(Warning {
            service: released.into_iter().next(),
            what: format!(
                "public address {} stays because {user} uses it",
                current.name
            ),
        });
        return;
    }
    // A frontend that releases it in the same plan changes its etag.
    let is_free = world.referrer(id).is_none();
    all.deletes.push(PublicIpDeletion {
        id: id.clone(),
        if_match: current.etag.clone().filter(|_| is_free),
        services: released,
        address: current.properties.ip_address.clone(),
        label: label_of(current),
    });
}

fn label_of(address: &PublicIpAddress) -> Option<String> {
    let settings = address.properties.dns_settings.as_ref()?;
    settings.domain_name_label.clone()
}

/// Returns the reason why a public address that services have left is kept: it may be known outside. `None`
/// if it is not, or if that does not matter: deleting a service, or removing orphans, includes the address.
fn handed_out(
    world: &ClusterState<'_>,
    current: &PublicIpAddress,
    released: &BTreeSet<ServiceKey>,
) -> Option<String> {
    let is_explicit = world.request.only.as_ref().is_some_and(|only| !only.want);
    if world.config.left_addresses == LeftAddresses::Delete || is_explicit {
        return None;
    }
    let subjects = released
        .iter()
        .filter_map(|key| world.subjects.get(world.subject(key)?));
    let left: Vec<_> = subjects
        .filter(|subject| !subject.service.deleting)
        .collect();
    if left.is_empty() {
        return None;
    }
    let settings = current.properties.dns_settings.as_ref();
    if let Some(label) = settings.and_then(|settings| settings.domain_name_label.as_deref()) {
        return Some(format!("it has label {label:?} in the DNS"));
    }
    // Without an address there is nothing that could be known outside.
    let address = current.properties.ip_address.as_deref()?;
    let shown = |subject: &&Subject<'_>| {
        let published = subject.service.published.as_ref();
        published.is_some_and(|published| published.iter().any(|shown| shown == address))
    };
    if let Some(by) = world.subjects.iter().find(shown) {
        return Some(format!("the status of {} shows it", by.key()));
    }
    let asks = |subject: &&Subject<'_>| {
        let mut asked = annotations::asked_addresses(subject.service);
        asked.any(|(_, asked)| asked == address)
    };
    if let Some(by) = world.subjects.iter().find(asks) {
        return Some(format!("{} requests it", by.key()));
    }
    let unknown = left
        .iter()
        .find(|subject| subject.service.published.is_none())?;
    Some(format!(
        "{} has no status, so it is unknown whether its address was published",
        unknown.key()
    ))
}

/// Keeps an unused public address, with a warning that explains how to delete it. Its DNS label moves if its
/// service requests it elsewhere.
fn keep<'a>(
    world: &ClusterState<'a>,
    id: &ArmId,
    current: &'a PublicIpAddress,
    released: BTreeSet<ServiceKey>,
    why: &str,
    all: &mut PublicIps<'a>,
) {
    let settings = current.properties.dns_settings.as_ref();
    let label = settings.and_then(|settings| settings.domain_name_label.as_deref());
    let moves = released.iter().any(|key| {
        let intent = world
            .subject(key)
            .and_then(|index| world.subjects.get(index)?.intent());
        let asked = intent.and_then(|intent| intent.dns_label.as_deref());
        label.is_some_and(|label| asked.is_some_and(|asked| asked.eq_ignore_ascii_case(label)))
    });
    if moves && world.config.edition == Edition::Current {
        if world.referrer(id).is_some() {
            return;
        }
        let mut resource = current.clone();
        clear_label(&mut resource);
        all.puts.push(PublicIpDraft {
            current: Some(current),
            resource,
            services: released,
        });
        return;
    }
    let address = current.properties.ip_address.as_deref().unwrap_or_default();
    all.warnings.insert(Warning {
        service: released.into_iter().next(),
        what: format!(
            "public address {} ({address}) is not used any more and stays, since {why}; --delete-left-addresses, or leftAddresses: delete in the configuration, deletes it for ever",
            current.name
        ),
    });
}

/// Returns the public addresses that frontends will refer to.
fn referenced<'d>(world: &'d ClusterState<'_>, drafts: &'d Drafts<'_>) -> HashSet<&'d ArmId> {
    let drafted: HashSet<_> = drafts.drafts.iter().map(|draft| &draft.id).collect();
    let others = world
        .snapshot
        .load_balancers
        .iter()
        .filter(|balancer| balancer.id.as_ref().is_none_or(|id| !drafted.contains(id)));
    drafts
        .drafts
        .iter()
        .map(|draft| &draft.resource)
        .chain(others)
        .flat_map(|balancer| &balancer.properties.frontend_ip_configurations)
        .filter_map(|frontend| frontend.properties.public_ip_address.as_ref()?.id.as_ref())
        .collect()
}
