//! Load balancers and their frontends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::resource::null_as_default;
use super::{
    BackendAddressPool, LoadBalancingRule, Probe, ProvisioningState, Resource, SubResource,
};

/// `Microsoft.Network/loadBalancers`.
pub type LoadBalancer = Resource<LoadBalancerProperties>;

/// An address of a load balancer.
pub type FrontendIpConfiguration = Resource<FrontendProperties>;

/// An inbound NAT rule or pool. Only its references are read here.
pub type InboundNat = Resource<InboundNatProperties>;

/// A rule for outbound connections. Only its references are read here.
pub type OutboundRule = Resource<OutboundRuleProperties>;

/// The properties of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerProperties {
    /// The frontends.
    #[serde(
        rename = "frontendIPConfigurations",
        deserialize_with = "null_as_default"
    )]
    pub frontend_ip_configurations: Vec<FrontendIpConfiguration>,
    /// The backend pools.
    #[serde(deserialize_with = "null_as_default")]
    pub backend_address_pools: Vec<BackendAddressPool>,
    /// The load balancing rules.
    #[serde(deserialize_with = "null_as_default")]
    pub load_balancing_rules: Vec<LoadBalancingRule>,
    /// The health probes of backends.
    #[serde(deserialize_with = "null_as_default")]
    pub probes: Vec<Probe>,
    /// The ports that lead to one machine.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub inbound_nat_rules: Vec<InboundNat>,
    /// The ranges of ports that lead to the machines of a scale set.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub inbound_nat_pools: Vec<InboundNat>,
    /// The outbound rules of backends.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub outbound_rules: Vec<OutboundRule>,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a frontend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendProperties {
    /// The address within the subnet of an internal frontend.
    #[serde(rename = "privateIPAddress", skip_serializing_if = "Option::is_none")]
    pub private_ip_address: Option<String>,
    /// The allocation of that address. Absent: [`AllocationMethod::Dynamic`].
    #[serde(
        rename = "privateIPAllocationMethod",
        skip_serializing_if = "Option::is_none"
    )]
    pub private_ip_allocation_method: Option<AllocationMethod>,
    /// The subnet of an internal frontend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubResource>,
    /// The public address of an external frontend.
    #[serde(rename = "publicIPAddress", skip_serializing_if = "Option::is_none")]
    pub public_ip_address: Option<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

open_enum! {
    /// The allocation of an address.
    AllocationMethod {
        /// The client that wrote the resource chooses the address.
        Static = "Static",
        /// The resource manager chooses the address.
        Dynamic = "Dynamic",
    }
}

/// The references of an inbound NAT rule or pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InboundNatProperties {
    /// The frontend whose port it uses.
    #[serde(
        rename = "frontendIPConfiguration",
        skip_serializing_if = "Option::is_none"
    )]
    pub frontend_ip_configuration: Option<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The references of an outbound rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutboundRuleProperties {
    /// The frontends whose addresses it uses.
    #[serde(
        rename = "frontendIPConfigurations",
        deserialize_with = "null_as_default"
    )]
    pub frontend_ip_configurations: Vec<SubResource>,
    /// The pool whose members connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_address_pool: Option<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
