//! The validation of a configuration.

use super::{Config, ConfigError, LoadBalancerSku, PoolMembership};
use crate::naming;

impl Config {
    /// Checks that the configuration can be used.
    ///
    /// # Errors
    ///
    /// The first invalid field, and its valid values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |field, why: String| Err(ConfigError { field, why });
        let required = [
            ("subscriptionId", &self.subscription_id),
            ("resourceGroup", &self.resource_group),
            ("location", &self.location),
            ("clusterName", &self.cluster_name),
        ];
        for (field, value) in required {
            if value.is_empty() {
                return wrong(field, "it is empty".to_owned());
            }
        }
        if !self
            .subscription_id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        {
            let why = format!(
                "{:?} has other characters than letters, digits and hyphens",
                self.subscription_id
            );
            return wrong("subscriptionId", why);
        }
        if self.location.contains(['/', '\\']) {
            return wrong("location", format!("{:?} has a slash", self.location));
        }
        let groups = [
            ("resourceGroup", Some(&self.resource_group)),
            (
                "loadBalancerResourceGroup",
                self.load_balancer_resource_group.as_ref(),
            ),
            ("vnetResourceGroup", self.vnet_resource_group.as_ref()),
            (
                "securityGroupResourceGroup",
                self.security_group_resource_group.as_ref(),
            ),
        ];
        for (field, group) in groups {
            if let Some(Err(why)) = group.map(|group| naming::check_resource_group(group)) {
                return wrong(field, why);
            }
        }
        if let Err(why) = naming::check_cluster_name(&self.cluster_name) {
            return wrong("clusterName", why);
        }
        if self.security_group_name.as_deref() == Some("") {
            return wrong(
                "securityGroupName",
                "it is empty; leave it out to touch none".to_owned(),
            );
        }
        let names = [
            ("vnetName", Some(&self.vnet_name)),
            ("subnetName", Some(&self.subnet_name)),
            ("securityGroupName", self.security_group_name.as_ref()),
            ("primaryVmSet", Some(&self.primary_vm_set)),
        ];
        for (field, name) in names {
            let name = name.filter(|name| !name.is_empty());
            if let Some(Err(why)) = name.map(|name| naming::check_resource_name(name)) {
                return wrong(field, why);
            }
        }
        if self.backend_pool_type == PoolMembership::Address
            && self.load_balancer_sku == LoadBalancerSku::Basic
        {
            let why = "pools of addresses need loadBalancerSku standard; with basic write nodeIPConfiguration";
            return wrong("backendPoolType", why.to_owned());
        }
        if self.backend_pool_type == PoolMembership::Address && self.vnet_name.is_empty() {
            let why = "pools of addresses are within a virtual network: name it";
            return wrong("vnetName", why.to_owned());
        }
        Ok(())
    }
}
