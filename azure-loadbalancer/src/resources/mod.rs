//! The resources of Azure's resource manager that are read and written.
//!
//! Names are exactly those of the JSON documents (network API, 2017-09-01 and later). Unknown fields are kept
//! in `other` at every level, so that a document that is read, changed and written again loses nothing. An
//! absent or `null` array or object reads as empty.

mod arm_id;
mod compute;
mod load_balancer;
mod network_interface;
mod open_enum;
mod pool;
mod probe;
mod public_ip;
mod resource;
mod rule;
mod security_group;
mod virtual_network;

pub use self::arm_id::ArmId;
pub use self::compute::{
    IpConfigurationModel, IpConfigurationModelProperties, NetworkInterfaceModel,
    NetworkInterfaceModelProperties, NetworkProfile, ScaleSet, ScaleSetInstance,
    ScaleSetInstanceProperties, ScaleSetProperties, VirtualMachine, VirtualMachineProperties,
    VmInterfaceReference, VmInterfaceReferenceProperties, VmNetworkProfile, VmProfile,
};
pub use self::load_balancer::{
    AllocationMethod, FrontendIpConfiguration, FrontendProperties, InboundNat,
    InboundNatProperties, LoadBalancer, LoadBalancerProperties, OutboundRule,
    OutboundRuleProperties,
};
pub use self::network_interface::{
    InterfaceIpConfiguration, InterfaceIpConfigurationProperties, NetworkInterface,
    NetworkInterfaceProperties,
};
pub use self::pool::{
    BackendAddress, BackendAddressPool, BackendAddressPoolProperties, BackendAddressProperties,
};
pub use self::probe::{Probe, ProbeProperties, ProbeProtocol};
pub use self::public_ip::{DnsSettings, PublicIpAddress, PublicIpProperties};
pub(crate) use self::resource::null_as_default;
pub use self::resource::{ProvisioningState, Resource, Sku, SkuName, SubResource};
pub use self::rule::{LoadBalancingRule, LoadDistribution, RuleProperties, TransportProtocol};
pub use self::security_group::{
    Access, Direction, NetworkSecurityGroup, SecurityGroupProperties, SecurityProtocol,
    SecurityRule, SecurityRuleProperties,
};
pub use self::virtual_network::{
    Subnet, SubnetProperties, VirtualNetwork, VirtualNetworkProperties,
};

#[cfg(test)]
mod tests;
