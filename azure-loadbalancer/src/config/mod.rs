//! The configuration that all services share.

mod cloud;
mod document;
mod validate;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::cloud::Cloud;
use crate::resources::ArmId;
use crate::service::Service;

/// The maximum number of rules of a standard load balancer, from Azure's limits.
pub const DEFAULT_MAXIMUM_RULES: usize = 250;

/// The maximum number of rules in the first versions of Kubernetes' provider, which [`Config::as_in_2018`]
/// follows.
pub const MAXIMUM_RULES_IN_2018: usize = 148;

/// The maximum number of rules that the network interface of a node may be behind, over all load balancers.
/// Azure's page of limits says 300
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer>),
/// but more than 299 are rejected (<https://github.com/MicrosoftDocs/azure-docs/issues/47423>).
pub const DEFAULT_MAXIMUM_RULES_OF_INTERFACE: usize = 299;

/// The configuration that all services share. JSON field names are those of Kubernetes' cloud-config file
/// (`azure.json`) where it has them. Other keys of that file are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "document::ConfigDocument")]
pub struct Config {
    /// The Azure cloud. The creator of the [`ArmClient`](crate::ArmClient) passes its addresses on. Default:
    /// the public one.
    pub cloud: Cloud,
    /// The subscription of all resources.
    pub subscription_id: String,
    /// The resource group of load balancers and machines, and of public addresses without their own
    /// annotation.
    pub resource_group: String,
    /// The resource group of load balancers. Absent: [`Self::resource_group`].
    pub load_balancer_resource_group: Option<String>,
    /// The region of new resources.
    pub location: String,
    /// The name of the cluster, which load balancers and pools carry. At most 71 letters, digits, `.`, `_`
    /// and `-`.
    pub cluster_name: String,
    /// The virtual network of internal frontends and of nodes.
    pub vnet_name: String,
    /// The resource group of the virtual network. Absent: [`Self::resource_group`].
    pub vnet_resource_group: Option<String>,
    /// The subnet of internal frontends without their own annotation.
    pub subnet_name: String,
    /// The network security group, which must exist: it is never created. Absent: none is changed, and this
    /// crate restricts no access.
    pub security_group_name: Option<String>,
    /// The resource group of the network security group. Absent: [`Self::resource_group`].
    pub security_group_resource_group: Option<String>,
    /// The availability set or scale set whose load balancer has the cluster's name. It is also read from
    /// `primaryAvailabilitySetName` or `primaryScaleSetName`, depending on `vmType`.
    pub primary_vm_set: String,
    /// The SKU of created load balancers and public addresses. Default: standard.
    pub load_balancer_sku: LoadBalancerSku,
    /// The class (`spec.loadBalancerClass`) of the services that are served. Services of other classes belong
    /// to another controller, and are left alone. Absent: those without a class.
    pub load_balancer_class: Option<String>,
    /// The maximum number of rules of a load balancer. Default: [`DEFAULT_MAXIMUM_RULES`], also for 0.
    pub maximum_load_balancer_rule_count: usize,
    /// The maximum number of rules that a node may be behind, over the external and the internal load
    /// balancer. Default: [`DEFAULT_MAXIMUM_RULES_OF_INTERFACE`], also for 0.
    pub maximum_interface_rule_count: usize,
    /// True if control-plane nodes are excluded from standard load balancers. Default: true.
    #[serde(rename = "excludeMasterFromStandardLB")]
    pub exclude_master_from_standard_lb: bool,
    /// True if members of a standard load balancer may not use its addresses for outbound connections.
    /// Default: false.
    #[serde(rename = "disableOutboundSNAT")]
    pub disable_outbound_snat: bool,
    /// The kind of pool membership of nodes. Default: by address.
    pub backend_pool_type: PoolMembership,
    /// The time for which a node that is not ready stays a member of a pool of addresses. Default: 60 s.
    #[serde(rename = "notReadyGraceSeconds", serialize_with = "seconds::serialize")]
    pub not_ready_grace: Duration,
    /// The time for which a pool keeps its members while no node takes part, because none is known or ready.
    /// Absent: until a node takes part again, since a controller that sees no node has more often lost its own view
    /// than all its machines. Zero: the pool is emptied at once. [`crate::plan()`] has no clock and treats other
    /// times like absent. Nodes that are explicitly excluded leave at once.
    #[serde(
        rename = "emptyGraceSeconds",
        serialize_with = "seconds::serialize_option"
    )]
    pub empty_grace: Option<Duration>,
    /// The semantics of annotations and rules. Default: the current ones.
    pub edition: Edition,
    /// The order of steps when a service changes between internal and external. Default: make before break.
    pub flip_order: FlipOrder,
    /// The policy for resources of services that no longer exist. Default: remove. The program removes them
    /// only if the configuration, or its caller, says so explicitly.
    pub orphans: OrphanPolicy,
    /// The policy for a public address that a service has left for another one, or for none, if it may be
    /// known outside: it has a DNS label, or was published. Default: delete. The program keeps it unless the
    /// configuration, or its caller, says otherwise explicitly.
    pub left_addresses: LeftAddresses,
    /// True if no other cluster writes rules into the same network security group. Default: false.
    ///
    /// If true, a rule that has one of this crate's names but belongs to no service is removed, and so is
    /// such a destination, whatever its author. If false, only rules that lead to addresses known to be this
    /// cluster's are removed.
    pub exclusive_security_group: bool,
}

/// The SKU of created load balancers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadBalancerSku {
    /// One pair of load balancers for each availability set; retired by Azure in September 2025.
    Basic,
    /// One pair for all machines.
    #[default]
    Standard,
}

/// The kind of pool membership of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum PoolMembership {
    /// By address: the pool lists them. Machines and network interfaces are neither read nor written. SKU
    /// Standard only.
    #[default]
    #[serde(rename = "nodeIP")]
    Address,
    /// By network interface: each interface, or the model of each scale set, lists its pools. With the
    /// current edition an interface leaves when its node is excluded, is not ready for longer than
    /// [`Config::not_ready_grace`], or is no longer in the list although every listed node has a machine.
    /// Machines of scale sets, and all machines with edition note, stay members until they are deleted.
    /// Machines of a scale set join by `manualupgrade`, which applies the whole model of their scale set,
    /// including its image.
    #[serde(rename = "nodeIPConfiguration")]
    NetworkInterface,
}

/// The semantics of annotations and rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edition {
    /// Kubernetes' own provider of 2018: one security rule for each port and source, or shared ones if a
    /// service requests it; names of public addresses that never change; standard load balancers reject the
    /// mode annotation.
    Note,
    /// The current provider (cloud-provider-azure): aggregated security rules, annotated probes, TCP reset,
    /// public addresses that several services use.
    #[default]
    Current,
}

/// The order of steps when a service changes between internal and external.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlipOrder {
    /// The new frontend is created first; then follow the security group, the old frontend, and its public
    /// address.
    #[default]
    MakeBeforeBreak,
    /// The old frontend is removed first, as by Kubernetes' provider of 2018. With [`Edition::Note`] its
    /// public address is deleted as early as there: before the write of the security group, whose rules lead
    /// to it until then.
    BreakFirst,
}

/// The policy for resources of services that no longer exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OrphanPolicy {
    /// Orphans are removed.
    #[default]
    Remove,
    /// Orphans are reported and kept.
    Report,
}

/// The policy for a public address that a service has left and that may be known outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeftAddresses {
    /// The address is deleted.
    #[default]
    Delete,
    /// The address is kept, with a warning.
    Keep,
}

impl Config {
    /// Creates a configuration with the defaults of all other fields.
    pub fn new(subscription_id: &str, resource_group: &str, location: &str) -> Self {
        Self {
            subscription_id: subscription_id.to_owned(),
            resource_group: resource_group.to_owned(),
            location: location.to_owned(),
            cloud: Cloud::Public,
            cluster_name: default_cluster_name(),
            load_balancer_resource_group: None,
            vnet_name: String::new(),
            vnet_resource_group: None,
            subnet_name: String::new(),
            security_group_name: None,
            security_group_resource_group: None,
            primary_vm_set: String::new(),
            load_balancer_sku: LoadBalancerSku::Standard,
            load_balancer_class: None,
            maximum_load_balancer_rule_count: DEFAULT_MAXIMUM_RULES,
            maximum_interface_rule_count: DEFAULT_MAXIMUM_RULES_OF_INTERFACE,
            exclude_master_from_standard_lb: true,
            disable_outbound_snat: false,
            backend_pool_type: PoolMembership::Address,
            not_ready_grace: Duration::from_secs(60),
            empty_grace: None,
            edition: Edition::Current,
            flip_order: FlipOrder::MakeBeforeBreak,
            orphans: OrphanPolicy::Remove,
            left_addresses: LeftAddresses::Delete,
            exclusive_security_group: false,
        }
    }

    /// Creates a configuration like Kubernetes' own provider of 2018: basic load balancers, members by
    /// network interface, at most 148 rules, the old frontend first. Its defects are not repeated.
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

    /// Returns true if load balancers are of SKU Standard.
    pub fn is_standard(&self) -> bool {
        self.load_balancer_sku == LoadBalancerSku::Standard
    }

    /// Returns the maximum number of rules of a load balancer.
    pub fn maximum_rules(&self) -> usize {
        match (self.maximum_load_balancer_rule_count, self.edition) {
            (0, Edition::Note) => MAXIMUM_RULES_IN_2018,
            (0, Edition::Current) => DEFAULT_MAXIMUM_RULES,
            (count, _) => count,
        }
    }

    /// Returns the maximum number of rules that a node may be behind.
    pub fn maximum_rules_of_interface(&self) -> usize {
        match self.maximum_interface_rule_count {
            0 => DEFAULT_MAXIMUM_RULES_OF_INTERFACE,
            count => count,
        }
    }

    /// The id of a load balancer.
    pub fn load_balancer_id(&self, name: &str) -> ArmId {
        ArmId::network(
            &self.subscription_id,
            self.load_balancer_group(),
            "loadBalancers",
            name,
        )
    }

    /// The resource group of load balancers.
    pub fn load_balancer_group(&self) -> &str {
        let own = self.load_balancer_resource_group.as_deref();
        own.unwrap_or(&self.resource_group)
    }

    /// Returns true if the service is of the class that is served. Any other belongs to another controller.
    pub fn serves(&self, service: &Service) -> bool {
        service.load_balancer_class == self.load_balancer_class
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

    /// Returns the id of the network security group, if one is configured.
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

/// The error of an invalid field of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {field}: {why}")]
pub struct ConfigError {
    /// The field, as written in JSON.
    pub field: &'static str,
    /// The reason why the value is invalid, and the valid values.
    pub why: String,
}

fn default_cluster_name() -> String {
    "kubernetes".to_owned()
}

/// Durations as whole seconds.
mod seconds {
    use std::time::Duration;

    use serde::Serializer;

    pub(super) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_secs())
    }

    pub(super) fn serialize_option<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }
}
