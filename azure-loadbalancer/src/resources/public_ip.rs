//! Public addresses.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AllocationMethod, ProvisioningState, Resource, SubResource};

/// `Microsoft.Network/publicIPAddresses`.
pub type PublicIpAddress = Resource<PublicIpProperties>;

/// The properties of a public address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublicIpProperties {
    /// The allocation: a static address is kept while it is unused.
    #[serde(
        rename = "publicIPAllocationMethod",
        skip_serializing_if = "Option::is_none"
    )]
    pub public_ip_allocation_method: Option<AllocationMethod>,
    /// The address, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The DNS settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_settings: Option<DnsSettings>,
    /// The frontend or interface that uses it; the resource manager sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_configuration: Option<SubResource>,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The name of a public address in the DNS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsSettings {
    /// The label before `{region}.cloudapp.azure.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_name_label: Option<String>,
    /// The whole name; the resource manager sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqdn: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
