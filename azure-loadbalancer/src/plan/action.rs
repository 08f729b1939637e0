//! The writes of a plan, and their reasons.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::resources::{
    ArmId, BackendAddressPool, LoadBalancer, NetworkInterface, NetworkSecurityGroup,
    PublicIpAddress, ScaleSet,
};
use crate::service::ServiceKey;

/// A write.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// The write.
    pub operation: Operation,
    /// The reasons, one sentence each.
    pub reasons: Vec<String>,
    /// The changed fields.
    pub changes: Vec<FieldChange>,
    /// The services that the write is for. Empty: for resources of no service.
    pub services: BTreeSet<ServiceKey>,
    /// True if the write also removes parts that belong to no service.
    pub sweeps: bool,
    /// The entries of a load balancer's pool that the write also adds, changes or removes: the names of nodes
    /// in lower case.
    pub members: BTreeSet<String>,
}

/// A write of a resource. Every resource has its id; `if_match` is the etag that the plan saw, absent for new
/// resources.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub enum Operation {
    /// Creates or changes a public address.
    PutPublicIp {
        /// The whole resource.
        resource: Box<PublicIpAddress>,
        /// The etag to overwrite.
        if_match: Option<String>,
    },
    /// Deletes a public address. A missing one counts as deleted.
    DeletePublicIp {
        /// The id.
        id: ArmId,
        /// The required etag. Absent if a frontend releases the address in the same plan, which changes the
        /// etag. The resource manager then protects it by refusing to delete an address in use.
        if_match: Option<String>,
    },
    /// Creates or changes a load balancer.
    PutLoadBalancer {
        /// The whole resource.
        resource: Box<LoadBalancer>,
        /// The etag to overwrite.
        if_match: Option<String>,
    },
    /// Deletes a load balancer that would have no frontend.
    DeleteLoadBalancer {
        /// The id.
        id: ArmId,
        /// The required etag, so that a frontend that was added meanwhile is not lost.
        if_match: Option<String>,
    },
    /// Changes the network security group.
    PutSecurityGroup {
        /// The whole resource.
        resource: Box<NetworkSecurityGroup>,
        /// The etag to overwrite.
        if_match: Option<String>,
    },
    /// Changes the pools of a network interface.
    PutNetworkInterface {
        /// The whole resource.
        resource: Box<NetworkInterface>,
        /// The etag to overwrite.
        if_match: Option<String>,
    },
    /// Changes the addresses of a pool, if nothing else of its load balancer changes.
    PutPool {
        /// The pool. Its id includes the load balancer.
        resource: Box<BackendAddressPool>,
        /// The etag of the pool to overwrite.
        if_match: Option<String>,
    },
    /// Changes the pools in a scale set's model.
    PutScaleSet {
        /// The whole resource.
        resource: Box<ScaleSet>,
        /// The etag to overwrite. Scale sets of old API versions have none.
        if_match: Option<String>,
    },
    /// Applies a scale set's model to its machines (`manualupgrade`).
    UpgradeScaleSetInstances {
        /// The scale set.
        id: ArmId,
        /// The ids of the machines within it.
        instance_ids: BTreeSet<String>,
    },
}

impl Operation {
    /// Returns the id of the written resource. For an upgrade, that of the scale set.
    pub fn target(&self) -> Option<&ArmId> {
        match self {
            Self::PutPublicIp { resource, .. } => resource.id.as_ref(),
            Self::PutLoadBalancer { resource, .. } => resource.id.as_ref(),
            Self::PutSecurityGroup { resource, .. } => resource.id.as_ref(),
            Self::PutNetworkInterface { resource, .. } => resource.id.as_ref(),
            Self::PutPool { resource, .. } => resource.id.as_ref(),
            Self::PutScaleSet { resource, .. } => resource.id.as_ref(),
            Self::DeletePublicIp { id, .. }
            | Self::DeleteLoadBalancer { id, .. }
            | Self::UpgradeScaleSetInstances { id, .. } => Some(id),
        }
    }

    /// Returns the operation in two words, such as `put loadBalancer`.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::PutPublicIp { .. } => "put publicIPAddress",
            Self::DeletePublicIp { .. } => "delete publicIPAddress",
            Self::PutLoadBalancer { .. } => "put loadBalancer",
            Self::DeleteLoadBalancer { .. } => "delete loadBalancer",
            Self::PutSecurityGroup { .. } => "put networkSecurityGroup",
            Self::PutNetworkInterface { .. } => "put networkInterface",
            Self::PutPool { .. } => "put backendAddressPool",
            Self::PutScaleSet { .. } => "put virtualMachineScaleSet",
            Self::UpgradeScaleSetInstances { .. } => "upgrade virtualMachineScaleSet",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.verb(),
            self.target().map_or("", ArmId::name)
        )
    }
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldChange {
    /// The path of the field, such as `loadBalancingRules[a257-TCP-80].idleTimeoutInMinutes`.
    pub path: String,
    /// The old value. Absent: the field did not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// The new value. Absent: the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, Some(to)) => write!(f, "+ {}: {to}", self.path),
            (Some(from), None) => write!(f, "- {}: {from}", self.path),
            (Some(from), Some(to)) => write!(f, "~ {}: {from} -> {to}", self.path),
            (None, None) => write!(f, "  {}", self.path),
        }
    }
}
