//! Replicas that may become destinations.

use super::endpoints::{EndpointError, Endpoints};
use super::options::ReplicaSelection;
use super::read::{Roles, Settings};
use crate::model::{Replica, ReplicaRole, ReplicaStatus, ServiceKind};
use crate::service::ServiceDescription;

/// The purpose of a group of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    /// Replicas for all requests.
    Selected(ReplicaSelection),
    /// Writes: the primary.
    Writes,
    /// Reads: the active secondaries, and the primary while there are none.
    Reads,
}

/// The role of a replica in its partition, as far as it is relevant here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An instance of a stateless service, which has no role.
    Stateless,
    Primary,
    ActiveSecondary,
    /// A replica in build, an auxiliary, or one with an unknown role.
    Other,
}

/// A replica that is ready and has a selected role.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// Position of its partition.
    pub(super) partition: usize,
    pub(super) replica: &'a Replica,
    pub(super) role: Role,
    pub(super) kind: ServiceKind,
    /// The endpoints of the replica.
    pub(super) endpoints: Result<Endpoints, EndpointError>,
    /// The endpoint that is probed, if it differs from the one that is used. An error keeps the replica
    /// from being a destination.
    pub(super) health: Result<Option<String>, EndpointError>,
    /// True if it is normal that the replica lacks a listener: reliable services listen on the primary alone unless
    /// they say otherwise, and no label asks for secondaries.
    pub(super) need_not_listen: bool,
}

impl Pool {
    /// The tier that a replica of this role has here, or `None` if it does not belong here.
    pub(super) fn tier(self, role: Role) -> Option<u32> {
        use ReplicaSelection::{All, PrimaryOnly, SecondaryOnly};
        match (self, role) {
            (_, Role::Stateless)
            | (Self::Selected(All), _)
            | (Self::Selected(PrimaryOnly) | Self::Writes, Role::Primary)
            | (Self::Selected(SecondaryOnly) | Self::Reads, Role::ActiveSecondary) => Some(0),
            (Self::Reads, Role::Primary) => Some(1),
            _ => None,
        }
    }
}

impl Roles {
    /// The pools that clusters are made of. The first is for everything that has no pool of its own.
    pub(super) fn pools(&self) -> &'static [Pool] {
        use ReplicaSelection::{All, PrimaryOnly, SecondaryOnly};
        match self {
            Self::Alike(All) => &[Pool::Selected(All)],
            Self::Alike(PrimaryOnly) => &[Pool::Selected(PrimaryOnly)],
            Self::Alike(SecondaryOnly) => &[Pool::Selected(SecondaryOnly)],
            Self::ByMethod | Self::ByHeader(_) => &[Pool::Writes, Pool::Reads],
        }
    }
}

/// Returns the replicas that are considered, sorted by partition and id.
pub(super) fn candidates<'a>(
    service: &'a ServiceDescription,
    order: &[usize],
    settings: &Settings,
) -> Vec<Candidate<'a>> {
    let pools = settings.roles.pools();
    let mut candidates = Vec::new();
    for &partition in order {
        let mut replicas: Vec<&Replica> = service.partitions[partition]
            .replicas
            .iter()
            .filter(|replica| replica.replica_status == ReplicaStatus::Ready)
            .collect();
        // Ids are unique, but a gateway that responds from two nodes at once could repeat one.
        replicas.sort_by(|a, b| {
            let key = |replica: &&'a Replica| {
                (
                    replica.replica_id,
                    replica.address.as_str(),
                    replica.replica_role.as_str(),
                )
            };
            key(a).cmp(&key(b))
        });
        replicas.dedup_by_key(|replica| replica.replica_id);
        for replica in replicas {
            let (role, kind) = role(service, replica);
            if pools.iter().all(|pool| pool.tier(role).is_none()) {
                continue;
            }
            let is_secondary = matches!(
                replica.replica_role,
                ReplicaRole::ActiveSecondary | ReplicaRole::IdleSecondary
            );
            let need_not_listen = kind == ServiceKind::Stateful
                && is_secondary
                && matches!(settings.roles, Roles::Alike(ReplicaSelection::All));
            let endpoints = Endpoints::parse(&replica.address);
            let is_silent = matches!(
                &endpoints,
                Err(EndpointError::NotOpen | EndpointError::Empty)
            );
            if is_silent && need_not_listen {
                continue;
            }
            let health = health(&endpoints, settings);
            candidates.push(Candidate {
                partition,
                replica,
                role,
                kind,
                endpoints,
                health,
                need_not_listen,
            });
        }
    }
    candidates
}

fn role(service: &ServiceDescription, replica: &Replica) -> (Role, ServiceKind) {
    let kind = match service.kind {
        ServiceKind::Stateless | ServiceKind::Stateful => &service.kind,
        _ => &replica.service_kind,
    };
    let role = match (kind, &replica.replica_role) {
        (ServiceKind::Stateless, _) => Role::Stateless,
        (_, ReplicaRole::Primary) => Role::Primary,
        (_, ReplicaRole::ActiveSecondary) => Role::ActiveSecondary,
        _ => Role::Other,
    };
    (role, kind.clone())
}

fn health(
    endpoints: &Result<Endpoints, EndpointError>,
    settings: &Settings,
) -> Result<Option<String>, EndpointError> {
    let (Some(listener), Ok(endpoints)) = (&settings.health_listener, endpoints) else {
        return Ok(None);
    };
    let endpoint = endpoints.choose(Some(listener), settings.schemes)?;
    Ok(Some(endpoint.url))
}
