//! The present state of services.

use super::cluster_state::{ClusterState, SubjectIndex};
use super::placement::{Placed, Placement};
use super::{Ingress, PlanError, ServiceOutcome};
use crate::annotations;
use crate::config::Edition;
use crate::naming;
use crate::resources::{FrontendIpConfiguration, LoadBalancer};
use crate::service::Service;

pub(super) fn outcome(
    world: &ClusterState<'_>,
    index: SubjectIndex,
    placement: &Placement,
    error: Option<PlanError>,
) -> ServiceOutcome {
    let placed = placement.get(&index);
    let found = found(world, index, placed)
        .or_else(|| {
            // A service that shares an address is reached at another service's frontend.
            let placed = placed.filter(|placed| placed.target.lead != index)?;
            let balancer = world.balancer(&placed.balancer)?;
            let frontends = &balancer.properties.frontend_ip_configurations;
            let frontend = frontends
                .iter()
                .find(|f| f.is_named(&placed.target.frontend))?;
            placed
                .target
                .place
                .is_that_of(frontend)
                .then_some((balancer, frontend))
        })
        // A service whose request cannot be met, or is not met yet, is still reached at its old place.
        .or_else(|| {
            let is_wanted = world.subjects.get(index)?.service.is_wanted();
            let frontends = world.frontends_of(index).iter();
            frontends
                .chain(world.borrowed_by(index))
                .copied()
                .find(|(_, frontend)| is_wanted && world.address_of(frontend).is_some())
        });
    let ingress = found
        .and_then(|(_, frontend)| ingress(world, frontend))
        .into_iter()
        .collect();
    let service = world.subjects.get(index).map(|subject| subject.service);
    ServiceOutcome {
        load_balancer: placed
            .map(|placed| placed.balancer.clone())
            .or_else(|| found.map(|(balancer, _)| balancer.name.clone())),
        ingress,
        published: world
            .subjects
            .get(index)
            .and_then(|subject| subject.service.published.clone()),
        uid: service
            .map(|service| service.uid.clone())
            .unwrap_or_default(),
        has_finalizer: service.is_some_and(|service| service.has_finalizer),
        is_wanted: service.is_some_and(Service::is_wanted),
        exists: found.is_some() || leaves_anything(world, index),
        error,
    }
}

/// Returns the frontend where a service is reached, of the requested kind.
pub(super) fn found<'a>(
    world: &ClusterState<'a>,
    index: SubjectIndex,
    placed: Option<&Placed>,
) -> Option<(&'a LoadBalancer, &'a FrontendIpConfiguration)> {
    let subject = world.subjects.get(index)?;
    let internal = annotations::is_internal(subject.service);
    let of_kind = || {
        let frontends = world.frontends_of(index).iter();
        frontends.filter(move |(on, _)| naming::is_internal(&on.name) == internal)
    };
    // First the future place, if it exists already; then the one to leave.
    of_kind()
        .min_by_key(|(on, frontend)| {
            let named = placed.is_some_and(|placed| frontend.is_named(&placed.target.frontend));
            let here = placed.is_some_and(|placed| on.is_named(&placed.balancer));
            let reached = world.address_of(frontend).is_some();
            (!(named && here && reached), !named, !reached)
        })
        .copied()
}

pub(super) fn ingress(
    world: &ClusterState<'_>,
    frontend: &FrontendIpConfiguration,
) -> Option<Ingress> {
    let ip = world.address_of(frontend)?.parse().ok()?;
    let hostname = frontend
        .properties
        .public_ip_address
        .as_ref()
        .and_then(|reference| world.public_ip(reference.id.as_ref()?))
        .and_then(|public| public.properties.dns_settings.as_ref()?.fqdn.clone());
    Some(Ingress { ip, hostname })
}

/// Returns true if a frontend of the other kind, or a public address, is left. The edition of 2018 did not
/// check.
fn leaves_anything(world: &ClusterState<'_>, index: SubjectIndex) -> bool {
    if world.config.edition == Edition::Note {
        return false;
    }
    let Some(subject) = world.subjects.get(index) else {
        return false;
    };
    !world.frontends_of(index).is_empty() || world.is_tagged(subject.key())
}
