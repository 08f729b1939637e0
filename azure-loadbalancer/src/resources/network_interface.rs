//! Network interfaces of machines.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::resource::null_as_default;
use super::{ProvisioningState, Resource, SubResource};

/// `Microsoft.Network/networkInterfaces`.
pub type NetworkInterface = Resource<NetworkInterfaceProperties>;

/// An address of a network interface.
pub type InterfaceIpConfiguration = Resource<InterfaceIpConfigurationProperties>;

/// The properties of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterfaceProperties {
    /// The addresses.
    #[serde(deserialize_with = "null_as_default")]
    pub ip_configurations: Vec<InterfaceIpConfiguration>,
    /// The machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<SubResource>,
    /// True if the interface is the machine's primary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of an address of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterfaceIpConfigurationProperties {
    /// The pools.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancer_backend_address_pools: Vec<SubResource>,
    /// The address.
    #[serde(rename = "privateIPAddress", skip_serializing_if = "Option::is_none")]
    pub private_ip_address: Option<String>,
    /// True if the address is the interface's primary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// The subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
