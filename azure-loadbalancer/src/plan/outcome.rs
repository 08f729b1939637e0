//! What a plan says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::{Action, PlanError};
use crate::service::ServiceKey;

/// What is to be written, in which order, and how each service fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The writes, in an order that respects [`Self::edges`].
    pub actions: Vec<Action>,
    /// Which write must have succeeded before which other is begun.
    pub edges: Vec<Edge>,
    /// How each service fares, once the plan is executed.
    pub services: BTreeMap<ServiceKey, ServiceOutcome>,
    /// What is left for a later round.
    pub deferred: Vec<Deferred>,
    /// What is odd and does no harm.
    pub warnings: Vec<Warning>,
    /// What belongs to no service, and is removed or not as [`Config::orphans`](crate::Config::orphans) says.
    pub orphans: Vec<Orphan>,
    /// Whether pools keep members although no node takes part; see [`Config::empty_grace`](crate::Config::empty_grace).
    pub pools_kept: bool,
}

impl Plan {
    /// Whether nothing is to be written now or later.
    pub fn is_done(&self) -> bool {
        self.actions.is_empty() && self.deferred.is_empty()
    }
}

/// One write must have succeeded before another is begun.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edge {
    /// The index of the first in [`Plan::actions`].
    pub before: usize,
    /// The index of the second.
    pub after: usize,
    /// Why.
    pub why: &'static str,
}

/// How a service fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOutcome {
    /// The load balancer that it is on.
    pub load_balancer: Option<String>,
    /// Where it is reached *now*: what the snapshot has, not what the plan will make.
    pub ingress: Vec<Ingress>,
    /// Where its status says that it is reached, as it was read; see [`Service::published`](crate::Service::published).
    #[serde(skip)]
    pub published: Option<Vec<String>>,
    /// The UID of the service, as it was read.
    #[serde(skip)]
    pub uid: String,
    /// Whether the service has Kubernetes' finalizer for load balancers, as it was read.
    #[serde(skip)]
    pub has_finalizer: bool,
    /// Whether the service asks for a load balancer, as it was read.
    #[serde(skip)]
    pub is_wanted: bool,
    /// Whether the snapshot has anything of the service that its deletion would remove.
    pub exists: bool,
    /// Why it cannot have what it asks for.
    pub error: Option<PlanError>,
}

/// Where a service is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ingress {
    /// The address.
    pub ip: IpAddr,
    /// The name in the DNS, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// What is left for a later round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deferred {
    /// For which service.
    pub service: Option<ServiceKey>,
    /// What is left, and what it waits for.
    pub what: String,
}

/// What is odd and does no harm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// Of which service.
    pub service: Option<ServiceKey>,
    /// What it is, and how to mend it.
    pub what: String,
}

/// What belongs to no service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// Where it is, such as the id of a public address or of a frontend.
    pub id: String,
    /// Whose it was, as far as that is known.
    pub owner: String,
    /// Whether this plan removes it, or a later round.
    pub removed: bool,
}
