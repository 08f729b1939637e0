//! The frontend of each service: its address, and the services that share it.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::cluster_state::{ClusterState, Owner, Subject, SubjectIndex};
use super::machines::Machines;
use super::{PlanError, placement};
use crate::annotations::Intent;
use crate::config::Edition;
use crate::naming;
use crate::resources::{
    ArmId, FrontendIpConfiguration, LoadBalancer, PublicIpAddress, SkuName, SubResource,
};

/// The place of a frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A subnet.
    Internal {
        subnet: ArmId,
        address: Option<Ipv4Addr>,
    },
    /// A public address, whether it exists or not.
    External { public_ip: ArmId },
}

/// The planned frontend of a service.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) place: Place,
    /// The name of the frontend.
    pub(super) frontend: String,
    /// The owner of the frontend: the service itself, or one that it shares the address with.
    pub(super) lead: SubjectIndex,
    /// The load balancer that must keep the frontend because another, unchanged service uses it.
    pub(super) bound_to: Option<String>,
}

/// The frontends by service.
pub(super) type Targets = BTreeMap<SubjectIndex, Target>;

/// An address that two services cannot both claim with a frontend each.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Claim {
    Public(ArmId),
    Private(ArmId, Ipv4Addr),
}

pub(super) fn resolve(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
) -> Result<Targets, Vec<(SubjectIndex, PlanError)>> {
    let mut failures = Vec::new();
    let mut claims: BTreeMap<Claim, Vec<SubjectIndex>> = BTreeMap::new();
    let mut targets = Targets::new();
    for (index, subject, intent) in world.wanted() {
        let place = match place(world, intent, subject) {
            Ok(place) => place,
            Err(error) => {
                // The other services are resolved as well, so that all failures are reported together.
                failures.push((index, error));
                continue;
            }
        };
        let frontend = naming::frontend(&subject.prefix, intent.subnet.as_deref());
        if let Some(error) = shared_with_held(world, index, &place, &frontend) {
            failures.push((index, error));
            continue;
        }
        if let Some(claim) = claim(world, machines, index, &place, &frontend) {
            claims.entry(claim).or_default().push(index);
        }
        targets.insert(
            index,
            Target {
                place,
                frontend,
                lead: index,
                bound_to: None,
            },
        );
    }
    let holders = private_holders(world);
    for (claim, claimants) in claims {
        let holder = match &claim {
            Claim::Public(id) => world.referrer(id),
            Claim::Private(subnet, address) => holders.get(&(subnet, *address)).copied(),
        };
        if let Err(errors) = share(world, &claim, &claimants, holder, &mut targets) {
            failures.extend(errors);
        }
    }
    if failures.is_empty() {
        Ok(targets)
    } else {
        Err(failures)
    }
}

fn place(
    world: &ClusterState<'_>,
    intent: &Intent,
    subject: &Subject<'_>,
) -> Result<Place, PlanError> {
    if intent.internal {
        return internal(world, intent);
    }
    let config = world.config;
    let group = intent.resource_group.as_str();
    let by_name = match (&intent.public_ip_name, intent.address) {
        (Some(name), _) => name.clone(),
        (None, None) => naming::public_ip(&config.cluster_name, &subject.prefix),
        (None, Some(address)) => {
            let found = public_ip_with(world, group, address).ok_or_else(|| {
                let resource_group = group.to_owned();
                PlanError::AddressNotFound {
                    address: address.into(),
                    resource_group,
                }
            })?;
            return external(world, found.id.clone().unwrap_or_default(), Some(found));
        }
    };
    let id = config.public_ip_id(group, &by_name);
    let found = world.public_ip(&id);
    if found.is_none() && intent.public_ip_name.is_some() && !is_made_for_another(world, &id) {
        // A typo must not create a new address and release the old one.
        return Err(PlanError::PublicIpNotFound {
            name: by_name,
            resource_group: group.to_owned(),
        });
    }
    external(
        world,
        found.and_then(|found| found.id.clone()).unwrap_or(id),
        found,
    )
}

/// Returns true if a missing public address is the generated one of another service, so that this service may
/// already name it.
fn is_made_for_another(world: &ClusterState<'_>, id: &ArmId) -> bool {
    world.wanted().any(|(_, subject, intent)| {
        let generated = naming::public_ip(&world.config.cluster_name, &subject.prefix);
        let is_made =
            !intent.internal && intent.public_ip_name.is_none() && intent.address.is_none();
        is_made
            && *id
                == world
                    .config
                    .public_ip_id(&intent.resource_group, &generated)
    })
}

/// Returns the error if a service's frontend cannot move because another service shares its address and
/// cannot follow.
fn shared_with_held(
    world: &ClusterState<'_>,
    index: SubjectIndex,
    place: &Place,
    name: &str,
) -> Option<PlanError> {
    let internal = matches!(place, Place::Internal { .. });
    let mut own = world.frontends_of(index).iter();
    let (balancer, frontend) = own.find(|(balancer, frontend)| {
        frontend.is_named(name)
            && naming::is_internal(&balancer.name) == internal
            && !place.is_that_of(frontend)
    })?;
    let by = world.rules_at(balancer, frontend).find_map(|(owner, _)| {
        let Owner::Subject(other) = owner else {
            return None;
        };
        let subject = world.subjects.get(other)?;
        (other != index && subject.is_held()).then(|| subject.key().clone())
    })?;
    let frontend = frontend.name.clone();
    Some(PlanError::FrontendShared { frontend, by })
}

fn external(
    world: &ClusterState<'_>,
    id: ArmId,
    found: Option<&PublicIpAddress>,
) -> Result<Place, PlanError> {
    if let Some(found) = found {
        check_sku(
            world,
            format!("public address {}", found.name),
            found.sku.as_ref(),
        )?;
        // The portal writes regions with spaces and capitals.
        let plain = |region: &str| region.replace(' ', "").to_ascii_lowercase();
        let region = found.location.as_deref().unwrap_or_default();
        if !region.is_empty() && plain(region) != plain(&world.config.location) {
            return Err(PlanError::OtherRegion {
                address: found.name.clone(),
                region: region.to_owned(),
                wanted: world.config.location.clone(),
            });
        }
        let user = found.properties.ip_configuration.as_ref();
        if let Some(user) = user.and_then(|user| user.id.as_ref())
            && world.referrer(&id).is_none()
        {
            let (address, by) = (found.name.clone(), user.to_string());
            // Load balancers are read before addresses: a frontend of this cluster may have been created
            // between.
            let is_ours = user.segment("loadBalancers").is_some_and(|balancer| {
                world
                    .balancer(balancer)
                    .is_none_or(|one| world.may_be_ours(one))
            });
            if is_ours && matches!(world.owner(user.name(), true), Owner::Subject(_)) {
                return Err(PlanError::AddressJustTaken { address, by });
            }
            return Err(PlanError::AddressTaken { address, by });
        }
    }
    Ok(Place::External { public_ip: id })
}

/// Checks the SKU: Azure rejects a load balancer and a public address of different SKUs.
pub(super) fn check_sku(
    world: &ClusterState<'_>,
    resource: String,
    sku: Option<&crate::resources::Sku>,
) -> Result<(), PlanError> {
    // A resource without a sku has sku Basic.
    let found = sku
        .and_then(|sku| sku.name.clone())
        .unwrap_or(SkuName::Basic);
    let wanted = if world.config.is_standard() {
        SkuName::Standard
    } else {
        SkuName::Basic
    };
    if found == wanted {
        return Ok(());
    }
    let wanted = if world.config.is_standard() {
        "Standard"
    } else {
        "Basic"
    };
    Err(PlanError::SkuMismatch {
        resource,
        found: found.to_string(),
        wanted,
    })
}

fn public_ip_with<'a>(
    world: &ClusterState<'a>,
    group: &str,
    address: Ipv4Addr,
) -> Option<&'a PublicIpAddress> {
    world.snapshot.public_ips.iter().find(|candidate| {
        let in_group = candidate
            .id
            .as_ref()
            .and_then(ArmId::resource_group)
            .is_some_and(|own| own.eq_ignore_ascii_case(group));
        let has = candidate.properties.ip_address.as_deref();
        in_group && has.and_then(|text| text.parse().ok()) == Some(address)
    })
}

fn internal(world: &ClusterState<'_>, intent: &Intent) -> Result<Place, PlanError> {
    let config = world.config;
    let name = intent.subnet.as_deref().unwrap_or(&config.subnet_name);
    if name.is_empty() {
        return Err(PlanError::SubnetMissing);
    }
    let network = world.snapshot.virtual_network.as_ref();
    let subnet = network
        .iter()
        .flat_map(|network| &network.properties.subnets)
        .find(|subnet| subnet.is_named(name))
        .ok_or_else(|| PlanError::SubnetNotFound {
            subnet: name.to_owned(),
            virtual_network: config.vnet_name.clone(),
        })?;
    if let Some(address) = intent.address {
        let ranges: Vec<_> = subnet.properties.ranges().collect();
        let parsed: Vec<Ipv4Net> = ranges
            .iter()
            .filter_map(|range| range.parse().ok())
            .collect();
        // Without a range that can be parsed, Azure decides.
        if !parsed.is_empty() && !parsed.iter().any(|range| range.contains(&address)) {
            return Err(PlanError::AddressOutsideSubnet {
                address: address.into(),
                subnet: name.to_owned(),
                ranges: ranges.join(", "),
            });
        }
    }
    let id = subnet.id.clone().unwrap_or_else(|| config.subnet_id(name));
    Ok(Place::Internal {
        subnet: id,
        address: intent.address,
    })
}

/// Returns the address that a service claims for itself. Without a requested address, it is the one that its
/// frontend keeps, but not that of a frontend that it leaves for another load balancer or name.
fn claim(
    world: &ClusterState<'_>,
    machines: &Machines<'_>,
    index: SubjectIndex,
    place: &Place,
    name: &str,
) -> Option<Claim> {
    match place {
        Place::External { public_ip } => Some(Claim::Public(public_ip.clone())),
        Place::Internal {
            subnet,
            address: Some(address),
        } => Some(Claim::Private(subnet.clone(), *address)),
        Place::Internal {
            subnet,
            address: None,
        } => {
            // Without a requested address, the frontend keeps its current one.
            let balancer = placement::stays_on(world, machines, index, name)?;
            let mut frontends = balancer.properties.frontend_ip_configurations.iter();
            let kept = frontends.find(|frontend| frontend.is_named(name))?;
            let (in_subnet, address) = private_address(kept)?;
            (in_subnet == subnet).then(|| Claim::Private(subnet.clone(), address))
        }
    }
}

fn private_address(frontend: &FrontendIpConfiguration) -> Option<(&ArmId, Ipv4Addr)> {
    let properties = &frontend.properties;
    let subnet = properties.subnet.as_ref()?.id.as_ref()?;
    let address = properties.private_ip_address.as_deref()?.parse().ok()?;
    Some((subnet, address))
}

type Holder<'a> = (&'a LoadBalancer, &'a FrontendIpConfiguration);

fn private_holders<'a>(world: &ClusterState<'a>) -> HashMap<(&'a ArmId, Ipv4Addr), Holder<'a>> {
    let balancers = world.snapshot.load_balancers.iter();
    balancers
        .flat_map(|balancer| {
            let frontends = balancer.properties.frontend_ip_configurations.iter();
            frontends.filter_map(move |frontend| {
                Some((private_address(frontend)?, (balancer, frontend)))
            })
        })
        .collect()
}

/// Decides on the owner of the frontend among the claimants of one address: the present owner, else the
/// first.
fn share(
    world: &ClusterState<'_>,
    claim: &Claim,
    claimants: &[SubjectIndex],
    holder: Option<Holder<'_>>,
    targets: &mut Targets,
) -> Result<(), Vec<(SubjectIndex, PlanError)>> {
    let address = match claim {
        Claim::Public(id) => id.name().to_owned(),
        Claim::Private(_, address) => address.to_string(),
    };
    let taken = |by: String, who: &[SubjectIndex]| {
        let error = PlanError::AddressTaken {
            address: address.clone(),
            by,
        };
        who.iter()
            .map(|index| (*index, error.clone()))
            .collect::<Vec<_>>()
    };
    // Only the current edition shares an address between services.
    let may_share = world.config.edition == Edition::Current;
    let mut lead = *claimants.first().unwrap_or(&0);
    if let Some((balancer, frontend)) = holder {
        let owner = if world.may_be_ours(balancer) {
            world.owner(&frontend.name, world.is_ours(balancer))
        } else {
            Owner::Foreign
        };
        match owner {
            Owner::Foreign => {
                let by = format!(
                    "frontend {} of load balancer {}",
                    frontend.name, balancer.name
                );
                return Err(taken(by, claimants));
            }
            Owner::Orphan if !world.sweeps() => {
                let by = format!("{}, which belongs to no service", frontend.name);
                return Err(taken(by, claimants));
            }
            // The owner of the frontend leads, so that the frontend stays as it is.
            Owner::Subject(index) if claimants.contains(&index) => lead = index,
            // Other parts still use the frontend, so its address does not become free.
            Owner::Subject(_) | Owner::Orphan
                if !is_held(world, owner) && stays(world, balancer, frontend) =>
            {
                let by = format!("{}, which another service uses", frontend.name);
                return Err(taken(by, claimants));
            }
            // The plan removes the frontend, which frees the address.
            Owner::Orphan => {}
            Owner::Subject(index) => {
                let Some(subject) = world.subjects.get(index) else {
                    return Ok(());
                };
                if subject.is_held() {
                    if !may_share {
                        return Err(taken(format!("service {}", subject.key()), claimants));
                    }
                    // A held service keeps its frontend, and the claimants join it there.
                    for claimant in claimants {
                        if let Some(target) = targets.get_mut(claimant) {
                            target.lead = index;
                            target.frontend.clone_from(&frontend.name);
                            target.bound_to = Some(balancer.name.clone());
                        }
                    }
                    return Ok(());
                }
            }
        }
    }
    let others: Vec<_> = claimants
        .iter()
        .copied()
        .filter(|index| *index != lead)
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    let by = world
        .subjects
        .get(lead)
        .map(|lead| format!("service {}", lead.key()));
    if !may_share {
        return Err(taken(by.unwrap_or_default(), &others));
    }
    let Some(name) = targets.get(&lead).map(|target| target.frontend.clone()) else {
        return Ok(());
    };
    for other in others {
        if let Some(target) = targets.get_mut(&other) {
            target.lead = lead;
            target.frontend.clone_from(&name);
        }
    }
    Ok(())
}

fn is_held(world: &ClusterState<'_>, owner: Owner) -> bool {
    match owner {
        Owner::Subject(index) => world.subjects.get(index).is_some_and(Subject::is_held),
        Owner::Orphan | Owner::Foreign => false,
    }
}

/// Returns true if a frontend must stay because other, unchanged parts refer to it.
pub(super) fn stays(
    world: &ClusterState<'_>,
    balancer: &LoadBalancer,
    frontend: &FrontendIpConfiguration,
) -> bool {
    let used = super::balancer::frontends_of_others(world, balancer, world.is_ours(balancer));
    used.contains_key(&frontend.name.to_ascii_lowercase())
}

impl Place {
    /// Returns true if the place is a certain address, and the frontend has it.
    pub(super) fn names_that_of(&self, frontend: &FrontendIpConfiguration) -> bool {
        let is_any = matches!(self, Self::Internal { address: None, .. });
        !is_any && self.is_that_of(frontend)
    }

    /// Returns true if a frontend is already at this place, as far as known before the write.
    pub(super) fn is_that_of(&self, frontend: &FrontendIpConfiguration) -> bool {
        let properties = &frontend.properties;
        match self {
            Self::External { public_ip } => {
                SubResource::leads_to(properties.public_ip_address.as_ref(), public_ip)
            }
            Self::Internal { subnet, address } => {
                SubResource::leads_to(properties.subnet.as_ref(), subnet)
                    && address.is_none_or(|address| {
                        properties
                            .private_ip_address
                            .as_deref()
                            .and_then(|text| text.parse().ok())
                            == Some(address)
                    })
            }
        }
    }
}
