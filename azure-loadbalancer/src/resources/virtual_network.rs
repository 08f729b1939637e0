//! Virtual networks and their subnets, which are never written.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Resource;
use super::resource::null_as_default;

/// `Microsoft.Network/virtualNetworks`.
pub type VirtualNetwork = Resource<VirtualNetworkProperties>;

/// A subnet of a virtual network.
pub type Subnet = Resource<SubnetProperties>;

/// The properties of a virtual network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualNetworkProperties {
    /// The subnets.
    #[serde(deserialize_with = "null_as_default")]
    pub subnets: Vec<Subnet>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubnetProperties {
    /// The address range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_prefix: Option<String>,
    /// The address ranges, as a list.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub address_prefixes: Vec<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SubnetProperties {
    /// Returns all ranges of the subnet, whether written as one value or as a list.
    pub fn ranges(&self) -> impl Iterator<Item = &str> {
        self.address_prefix
            .iter()
            .chain(&self.address_prefixes)
            .map(String::as_str)
    }
}
