//! What is the same for all services.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::naming;
use crate::resources::ArmId;

/// The highest number of rules of a load balancer that Azure's limits allow for a standard one.
pub const DEFAULT_MAXIMUM_RULES: usize = 250;

/// The same in the first versions of Kubernetes' provider, which [`Config::as_in_2018`] follows.
pub const MAXIMUM_RULES_IN_2018: usize = 148;

/// What is the same for all services. Names of fields in JSON are those of Kubernetes' cloud-config file (`azure.json`) where it
/// has them; other keys of that file are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The subscription that everything is in.
    pub subscription_id: String,
    /// The resource group of load balancers, machines and, unless a service says otherwise, public addresses.
    pub resource_group: String,
    /// The region of what is created.
    pub location: String,
    /// Which cluster; load balancers and pools have its name. At most 71 letters, digits, `.`, `_` and `-`.
    #[serde(default = "default_cluster_name")]
    pub cluster_name: String,
    /// The virtual network of internal frontends and of nodes.
    #[serde(default)]
    pub vnet_name: String,
    /// The resource group of the virtual network; absent: [`Self::resource_group`].
    #[serde(default)]
    pub vnet_resource_group: Option<String>,
    /// The subnet of internal frontends whose service names none.
    #[serde(default)]
    pub subnet_name: String,
    /// The network security group, which must exist: it is never created. Absent: none is touched, and who may connect is not
    /// limited by this crate.
    #[serde(default)]
    pub security_group_name: Option<String>,
    /// The resource group of the network security group; absent: [`Self::resource_group`].
    #[serde(default)]
    pub security_group_resource_group: Option<String>,
    /// The availability set or scale set whose load balancer has the cluster's name.
    #[serde(
        default,
        alias = "primaryAvailabilitySetName",
        alias = "primaryScaleSetName"
    )]
    pub primary_vm_set: String,
    /// What load balancers and public addresses are created as; default: standard.
    #[serde(default)]
    pub load_balancer_sku: LoadBalancerSku,
    /// The most rules that a load balancer may have; default: [`DEFAULT_MAXIMUM_RULES`], also for 0.
    #[serde(default)]
    pub maximum_load_balancer_rule_count: usize,
    /// Whether control-plane nodes take no part with standard load balancers; default: yes.
    #[serde(default = "yes", rename = "excludeMasterFromStandardLB")]
    pub exclude_master_from_standard_lb: bool,
    /// Whether members of a standard load balancer may not reach out with its addresses; default: no.
    #[serde(default, rename = "disableOutboundSNAT")]
    pub disable_outbound_snat: bool,
    /// How nodes are members of pools; default: by address.
    #[serde(default)]
    pub backend_pool_type: PoolMembership,
    /// For how long a node that is not ready stays a member of pools that are made of addresses; default: 60 s.
    #[serde(default = "default_grace", with = "seconds")]
    pub not_ready_grace_seconds: Duration,
    /// Which semantics annotations and rules have; default: those of today.
    #[serde(default)]
    pub edition: Edition,
    /// What is done first when a service changes between internal and external; default: make before break.
    #[serde(default)]
    pub flip_order: FlipOrder,
    /// What is done with resources of services that are not there any more; default: they are removed.
    #[serde(default)]
    pub orphans: OrphanPolicy,
    /// Whether no other cluster writes rules into the same network security group; default: it is alone.
    ///
    /// If it is, a shared rule's destination that belongs to no service is removed whoever wrote it. If it is not, only addresses
    /// that are known to have been this cluster's are.
    #[serde(default = "yes")]
    pub exclusive_security_group: bool,
}

/// What load balancers are created as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadBalancerSku {
    /// One pair of load balancers for each availability set; retired by Azure in September 2025.
    Basic,
    /// One pair for all machines.
    #[default]
    Standard,
}

/// How nodes are members of pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolMembership {
    /// By address: the pool lists them. Machines and network interfaces are neither read nor written. Standard sku only.
    #[default]
    #[serde(rename = "nodeIP", alias = "podIP")]
    Address,
    /// By network interface: each interface, or the model of each scale set, lists its pools.
    #[serde(rename = "nodeIPConfiguration")]
    NetworkInterface,
}

/// Which semantics annotations and rules have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edition {
    /// Kubernetes' own provider of 2018: one security rule for each port and source, or shared ones if a service asks for it;
    /// names of public addresses that never change; standard load balancers refuse the mode annotation.
    Note,
    /// The provider of today (cloud-provider-azure): aggregated security rules, annotated probes, TCP reset, public addresses
    /// that several services use.
    #[default]
    Current,
}

/// What is done first when a service changes between internal and external.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlipOrder {
    /// The new frontend, then the security group, then the old frontend, then its public address.
    #[default]
    MakeBeforeBreak,
    /// The old frontend goes first, as Kubernetes' provider of 2018 did it.
    BreakFirst,
}

/// What is done with resources of services that are not there any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OrphanPolicy {
    /// They are removed.
    #[default]
    Remove,
    /// They are reported and stay.
    Report,
}

impl Config {
    /// A configuration with the defaults of every field.
    pub fn new(subscription_id: &str, resource_group: &str, location: &str) -> Self {
        Self {
            subscription_id: subscription_id.to_owned(),
            resource_group: resource_group.to_owned(),
            location: location.to_owned(),
            cluster_name: default_cluster_name(),
            vnet_name: String::new(),
            vnet_resource_group: None,
            subnet_name: String::new(),
            security_group_name: None,
            security_group_resource_group: None,
            primary_vm_set: String::new(),
            load_balancer_sku: LoadBalancerSku::Standard,
            maximum_load_balancer_rule_count: DEFAULT_MAXIMUM_RULES,
            exclude_master_from_standard_lb: true,
            disable_outbound_snat: false,
            backend_pool_type: PoolMembership::Address,
            not_ready_grace_seconds: default_grace(),
            edition: Edition::Current,
            flip_order: FlipOrder::MakeBeforeBreak,
            orphans: OrphanPolicy::Remove,
            exclusive_security_group: true,
        }
    }

    /// The same as Kubernetes' own provider of 2018 did it: basic load balancers, members by network interface, at most 148 rules,
    /// the old frontend first. Its defects are not repeated.
    pub fn as_in_2018(subscription_id: &str, resource_group: &str, location: &str) -> Self {
        Self {
            load_balancer_sku: LoadBalancerSku::Basic,
            maximum_load_balancer_rule_count: MAXIMUM_RULES_IN_2018,
            backend_pool_type: PoolMembership::NetworkInterface,
            edition: Edition::Note,
            flip_order: FlipOrder::BreakFirst,
            ..Self::new(subscription_id, resource_group, location)
        }
    }

    /// Whether the configuration can be used at all.
    ///
    /// # Errors
    ///
    /// The first field that cannot, and what it should be.
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
            if value.contains('/') {
                return wrong(field, format!("{value:?} has a slash"));
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

    /// Whether load balancers are standard ones.
    pub fn is_standard(&self) -> bool {
        self.load_balancer_sku == LoadBalancerSku::Standard
    }

    /// The most rules that a load balancer may have.
    pub fn maximum_rules(&self) -> usize {
        match (self.maximum_load_balancer_rule_count, self.edition) {
            (0, Edition::Note) => MAXIMUM_RULES_IN_2018,
            (0, Edition::Current) => DEFAULT_MAXIMUM_RULES,
            (count, _) => count,
        }
    }

    /// The id of a load balancer.
    pub fn load_balancer_id(&self, name: &str) -> ArmId {
        ArmId::network(
            &self.subscription_id,
            &self.resource_group,
            "loadBalancers",
            name,
        )
    }

    /// The id of a public address in a resource group.
    pub fn public_ip_id(&self, resource_group: &str, name: &str) -> ArmId {
        ArmId::network(
            &self.subscription_id,
            resource_group,
            "publicIPAddresses",
            name,
        )
    }

    /// The id of the network security group, if one is touched.
    pub fn security_group_id(&self) -> Option<ArmId> {
        let name = self.security_group_name.as_deref()?;
        let group = self
            .security_group_resource_group
            .as_deref()
            .unwrap_or(&self.resource_group);
        Some(ArmId::network(
            &self.subscription_id,
            group,
            "networkSecurityGroups",
            name,
        ))
    }

    /// The id of the virtual network.
    pub fn virtual_network_id(&self) -> ArmId {
        let group = self
            .vnet_resource_group
            .as_deref()
            .unwrap_or(&self.resource_group);
        ArmId::network(
            &self.subscription_id,
            group,
            "virtualNetworks",
            &self.vnet_name,
        )
    }

    /// The id of a subnet of the virtual network.
    pub fn subnet_id(&self, name: &str) -> ArmId {
        self.virtual_network_id().child("subnets", name)
    }
}

/// A field of the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {field}: {why}")]
pub struct ConfigError {
    /// The field, as it is written in JSON.
    pub field: &'static str,
    /// Why not, and what it should be.
    pub why: String,
}

fn default_cluster_name() -> String {
    "kubernetes".to_owned()
}

fn default_grace() -> Duration {
    Duration::from_secs(60)
}

fn yes() -> bool {
    true
}

/// Durations as whole seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_config_of_kubernetes_is_read() {
        let config: Config = serde_json::from_str(
            r#"{
                "cloud": "AzurePublicCloud", "tenantId": "t", "subscriptionId": "s", "resourceGroup": "g", "location": "westeurope",
                "vnetName": "v", "vnetResourceGroup": "vg", "subnetName": "n", "securityGroupName": "nsg",
                "primaryAvailabilitySetName": "as", "loadBalancerSku": "basic", "maximumLoadBalancerRuleCount": 100,
                "excludeMasterFromStandardLB": false, "disableOutboundSNAT": true, "useInstanceMetadata": true
            }"#,
        )
        .unwrap();
        assert_eq!(config.primary_vm_set, "as");
        assert_eq!(config.load_balancer_sku, LoadBalancerSku::Basic);
        assert_eq!(config.maximum_load_balancer_rule_count, 100);
        assert!(!config.exclude_master_from_standard_lb && config.disable_outbound_snat);
        let written = serde_json::to_string(&config).unwrap();
        assert!(written.contains("excludeMasterFromStandardLB"), "{written}");
    }
}
