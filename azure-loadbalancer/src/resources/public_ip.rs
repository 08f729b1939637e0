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
    /// The address, once it is assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The DNS settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_settings: Option<DnsSettings>,
    /// The frontend or interface that uses it. The resource manager sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_configuration: Option<SubResource>,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The DNS settings of a public address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsSettings {
    /// The label before `{region}.cloudapp.azure.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_name_label: Option<String>,
    /// The full DNS name. The resource manager sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqdn: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
