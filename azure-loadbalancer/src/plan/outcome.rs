//! The result of planning.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::{Action, PlanError};
use crate::service::ServiceKey;

/// The writes, their order, and the outcome of each service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The writes, in an order that respects [`Self::edges`].
    pub actions: Vec<Action>,
    /// The order of writes: which must succeed before which other begins.
    pub edges: Vec<Edge>,
    /// The outcome of each service, once the plan is executed.
    pub services: BTreeMap<ServiceKey, ServiceOutcome>,
    /// The work that is left for a later round.
    pub deferred: Vec<Deferred>,
    /// Warnings about harmless oddities.
    pub warnings: Vec<Warning>,
    /// The resources that belong to no service. [`Config::orphans`](crate::Config::orphans) decides if they
    /// are removed.
    pub orphans: Vec<Orphan>,
    /// True if pools keep members although no node takes part; see
    /// [`Config::empty_grace`](crate::Config::empty_grace).
    pub pools_kept: bool,
}

impl Plan {
    /// Returns true if no write is left, now or later.
    pub fn is_done(&self) -> bool {
        self.actions.is_empty() && self.deferred.is_empty()
    }
}

/// The order of two writes: one must succeed before the other begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edge {
    /// The index of the first in [`Plan::actions`].
    pub before: usize,
    /// The index of the second.
    pub after: usize,
    /// The reason.
    pub why: &'static str,
}

/// The outcome of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOutcome {
    /// The name of its load balancer.
    pub load_balancer: Option<String>,
    /// The *current* addresses: those of the snapshot, not those that the plan will create.
    pub ingress: Vec<Ingress>,
    /// The addresses in its status, as read; see [`Service::published`](crate::Service::published).
    #[serde(skip)]
    pub published: Option<Vec<String>>,
    /// The UID of the service, as read.
    #[serde(skip)]
    pub uid: String,
    /// True if the service has Kubernetes' finalizer for load balancers, as read.
    #[serde(skip)]
    pub has_finalizer: bool,
    /// True if the service requests a load balancer, as read.
    #[serde(skip)]
    pub is_wanted: bool,
    /// True if the snapshot has resources that the deletion of the service would remove.
    pub exists: bool,
    /// The reason why its request cannot be met.
    pub error: Option<PlanError>,
}

/// An address of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ingress {
    /// The address.
    pub ip: IpAddr,
    /// The DNS name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// Work that is left for a later round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deferred {
    /// The service.
    pub service: Option<ServiceKey>,
    /// The work, and its prerequisite.
    pub what: String,
}

/// A warning about a harmless oddity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// The service.
    pub service: Option<ServiceKey>,
    /// The warning, and how to correct its cause.
    pub what: String,
}

/// A resource, or part of one, that belongs to no service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// The id, such as that of a public address or of a frontend.
    pub id: String,
    /// The former owner, as far as known.
    pub owner: String,
    /// True if this plan, or a later round, removes the resource.
    pub removed: bool,
}
