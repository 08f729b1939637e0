//! What is there: the resources that a plan starts from, and which ones have to be read for it.

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

/// What is there. A resource without an id is passed over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// All load balancers of the configured resource group, also those of others.
    pub load_balancers: Vec<LoadBalancer>,
    /// The public addresses that [`Reads::keeps`].
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

/// What has to be read for a plan, besides the load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The resource groups whose public addresses are looked at. One that does not exist has none.
    pub public_ip_groups: BTreeSet<String>,
    /// Whether the network security group is read.
    pub security_group: bool,
    /// Whether the virtual network is.
    pub virtual_network: bool,
    /// Whether machines, network interfaces and scale sets are.
    pub machines: bool,
}

impl Reads {
    /// What a plan for these services needs, once the load balancers are read: a load balancer may refer to a public address in a
    /// group that no service names any more.
    pub fn of(config: &Config, services: &[Service], load_balancers: &[LoadBalancer]) -> Self {
        let mut groups = BTreeSet::from([config.resource_group.to_ascii_lowercase()]);
        let served = || services.iter().filter(|service| config.serves(service));
        // What is no name of a group is an error of its service, and none of reading.
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

    /// Whether a public address of the subscription is looked at: it is in one of the groups, or its tags say that it is this
    /// cluster's. A group that no service names any more, and where no frontend leads, may still have such an address, when
    /// somebody was stopped before it was deleted. What else is there may be of another cluster with the same name.
    pub fn keeps(&self, config: &Config, address: &PublicIpAddress) -> bool {
        let group = address.id.as_ref().and_then(|id| id.resource_group());
        group.is_some_and(|group| self.public_ip_groups.contains(&group.to_ascii_lowercase()))
            || tags::is_certainly_of(config, address)
    }
}
