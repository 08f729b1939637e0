//! The resources that a plan starts from, and those that have to be read for it.

use std::collections::BTreeSet;

use super::tags;
use crate::annotations;
use crate::config::{Config, PoolMembership};
use crate::naming;
use crate::resources::{
    LoadBalancer, NetworkInterface, NetworkSecurityGroup, PublicIpAddress, ScaleSet,
    ScaleSetInstance, VirtualMachine, VirtualNetwork,
};
use crate::service::Service;

/// The existing resources. A resource without an id is ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// All load balancers of the configured resource group, including those of other owners.
    pub load_balancers: Vec<LoadBalancer>,
    /// The public addresses for which [`Reads::keeps`] returns true.
    pub public_ips: Vec<PublicIpAddress>,
    /// The configured network security group.
    pub security_group: Option<NetworkSecurityGroup>,
    /// The configured virtual network.
    pub virtual_network: Option<VirtualNetwork>,
    /// All machines of the configured resource group.
    pub virtual_machines: Vec<VirtualMachine>,
    /// All network interfaces of the configured resource group.
    pub network_interfaces: Vec<NetworkInterface>,
    /// All scale sets of the configured resource group.
    pub scale_sets: Vec<ScaleSet>,
    /// The machines of all those scale sets.
    pub scale_set_instances: Vec<ScaleSetInstance>,
}

/// The resources to read for a plan, besides the load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The resource groups whose public addresses are read. A missing one counts as empty.
    pub public_ip_groups: BTreeSet<String>,
    /// True if the network security group is read.
    pub security_group: bool,
    /// True if the virtual network is read.
    pub virtual_network: bool,
    /// True if machines, network interfaces and scale sets are read.
    pub machines: bool,
}

impl Reads {
    /// Returns the resources that a plan for these services must still read after the load balancers: a load
    /// balancer may refer to a public address in a group that no service names any more.
    pub fn of(config: &Config, services: &[Service], load_balancers: &[LoadBalancer]) -> Self {
        let mut groups = BTreeSet::from([config.resource_group.to_ascii_lowercase()]);
        let served = || services.iter().filter(|service| config.serves(service));
        // An invalid group name is an error of its service, and not of reading.
        let annotated = served()
            .filter_map(annotations::resource_group)
            .filter(|group| naming::check_resource_group(group).is_ok());
        groups.extend(annotated.map(str::to_ascii_lowercase));
        let referenced = load_balancers
            .iter()
            .flat_map(|balancer| &balancer.properties.frontend_ip_configurations)
            .filter_map(|frontend| frontend.properties.public_ip_address.as_ref()?.id.as_ref())
            .filter_map(|id| id.resource_group());
        groups.extend(referenced.map(str::to_ascii_lowercase));
        Self {
            public_ip_groups: groups,
            security_group: config.security_group_name.is_some(),
            virtual_network: served()
                .any(|service| service.is_wanted() && annotations::is_internal(service)),
            machines: config.backend_pool_type == PoolMembership::NetworkInterface,
        }
    }

    /// Returns true if a public address of the subscription is relevant: it is in one of the groups, or its
    /// tags name this cluster. An interrupted deletion may leave such an address in a group that no service
    /// names and no frontend uses. Other addresses may belong to another cluster of the same name.
    pub fn keeps(&self, config: &Config, address: &PublicIpAddress) -> bool {
        let group = address.id.as_ref().and_then(|id| id.resource_group());
        group.is_some_and(|group| self.public_ip_groups.contains(&group.to_ascii_lowercase()))
            || tags::is_certainly_of(config, address)
    }
}
