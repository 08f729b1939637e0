//! The JSON form of a configuration. It accepts the output of generators of Kubernetes' cloud-config files,
//! which write `null`, empty strings and any letter case.

use std::time::Duration;

use serde::Deserialize;

use super::{
    Cloud, Config, Edition, FlipOrder, LeftAddresses, LoadBalancerSku, OrphanPolicy,
    PoolMembership, default_cluster_name,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigDocument {
    cloud: Option<Cloud>,
    subscription_id: String,
    resource_group: String,
    location: String,
    cluster_name: Option<String>,
    load_balancer_resource_group: Option<String>,
    vnet_name: Option<String>,
    vnet_resource_group: Option<String>,
    subnet_name: Option<String>,
    security_group_name: Option<String>,
    security_group_resource_group: Option<String>,
    vm_type: Option<String>,
    primary_vm_set: Option<String>,
    primary_availability_set_name: Option<String>,
    primary_scale_set_name: Option<String>,
    load_balancer_sku: Option<String>,
    load_balancer_class: Option<String>,
    maximum_load_balancer_rule_count: Option<usize>,
    maximum_interface_rule_count: Option<usize>,
    #[serde(
        rename = "excludeMasterFromStandardLB",
        alias = "excludeMasterFromStandardLb"
    )]
    exclude_master_from_standard_lb: Option<bool>,
    #[serde(rename = "disableOutboundSNAT", alias = "disableOutboundSnat")]
    disable_outbound_snat: Option<bool>,
    backend_pool_type: Option<String>,
    not_ready_grace_seconds: Option<u64>,
    empty_grace_seconds: Option<u64>,
    edition: Option<Edition>,
    flip_order: Option<FlipOrder>,
    orphans: Option<OrphanPolicy>,
    left_addresses: Option<LeftAddresses>,
    exclusive_security_group: Option<bool>,
}

impl TryFrom<ConfigDocument> for Config {
    type Error = String;

    fn try_from(document: ConfigDocument) -> Result<Self, String> {
        let primary_vm_set = document.primary_vm_set();
        let load_balancer_sku = sku(document.load_balancer_sku)?;
        let usual = Self::new(
            &document.subscription_id,
            &document.resource_group,
            &document.location,
        );
        Ok(Self {
            cloud: document.cloud.unwrap_or_default(),
            cluster_name: filled(document.cluster_name).unwrap_or_else(default_cluster_name),
            load_balancer_resource_group: filled(document.load_balancer_resource_group),
            vnet_name: document.vnet_name.unwrap_or_default(),
            vnet_resource_group: filled(document.vnet_resource_group),
            subnet_name: document.subnet_name.unwrap_or_default(),
            // An empty name differs from none, and is rejected by the validation.
            security_group_name: document.security_group_name,
            security_group_resource_group: filled(document.security_group_resource_group),
            primary_vm_set,
            load_balancer_sku,
            load_balancer_class: filled(document.load_balancer_class),
            // An absent or zero value is the default of the edition.
            maximum_load_balancer_rule_count: document
                .maximum_load_balancer_rule_count
                .unwrap_or_default(),
            maximum_interface_rule_count: document.maximum_interface_rule_count.unwrap_or_default(),
            exclude_master_from_standard_lb: document
                .exclude_master_from_standard_lb
                .unwrap_or(usual.exclude_master_from_standard_lb),
            disable_outbound_snat: document
                .disable_outbound_snat
                .unwrap_or(usual.disable_outbound_snat),
            backend_pool_type: membership(document.backend_pool_type, load_balancer_sku)?,
            not_ready_grace: document
                .not_ready_grace_seconds
                .map_or(usual.not_ready_grace, Duration::from_secs),
            empty_grace: document.empty_grace_seconds.map(Duration::from_secs),
            edition: document.edition.unwrap_or_default(),
            flip_order: document.flip_order.unwrap_or_default(),
            orphans: document.orphans.unwrap_or_default(),
            left_addresses: document.left_addresses.unwrap_or_default(),
            exclusive_security_group: document
                .exclusive_security_group
                .unwrap_or(usual.exclusive_security_group),
            ..usual
        })
    }
}

impl ConfigDocument {
    /// Returns the name of the primary set. Generators write the names of both kinds of sets, one or both of
    /// them empty, and `vmType` selects one.
    fn primary_vm_set(&self) -> String {
        let is_scale_set = self
            .vm_type
            .as_deref()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("vmss"));
        let (first, second) = if is_scale_set {
            (
                &self.primary_scale_set_name,
                &self.primary_availability_set_name,
            )
        } else {
            (
                &self.primary_availability_set_name,
                &self.primary_scale_set_name,
            )
        };
        let mut names = [&self.primary_vm_set, first, second].into_iter().flatten();
        let name = names.find(|name| !name.trim().is_empty());
        name.cloned().unwrap_or_default()
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn sku(text: Option<String>) -> Result<LoadBalancerSku, String> {
    let text = filled(text).unwrap_or_else(|| "standard".to_owned());
    match text.trim().to_ascii_lowercase().as_str() {
        "standard" => Ok(LoadBalancerSku::Standard),
        "basic" => Ok(LoadBalancerSku::Basic),
        _ => Err(format!(
            "loadBalancerSku: {text:?} is neither standard nor basic"
        )),
    }
}

/// Parses the kind of membership. Pools of basic load balancers have network interfaces only.
fn membership(text: Option<String>, sku: LoadBalancerSku) -> Result<PoolMembership, String> {
    let usual = match sku {
        LoadBalancerSku::Basic => "nodeIPConfiguration",
        LoadBalancerSku::Standard => "nodeIP",
    };
    let text = filled(text).unwrap_or_else(|| usual.to_owned());
    match text.trim().to_ascii_lowercase().as_str() {
        "nodeip" | "podip" => Ok(PoolMembership::Address),
        "nodeipconfiguration" => Ok(PoolMembership::NetworkInterface),
        _ => Err(format!(
            "backendPoolType: {text:?} is neither nodeIP nor nodeIPConfiguration"
        )),
    }
}
