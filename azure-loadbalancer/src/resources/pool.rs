//! Pools of backends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Resource, SubResource};

/// A pool of backends of a load balancer.
pub type BackendAddressPool = Resource<BackendAddressPoolProperties>;

/// A backend of a pool of addresses.
pub type BackendAddress = Resource<BackendAddressProperties>;

/// The properties of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendAddressPoolProperties {
    /// The backends by address. `None` is absent, which differs from empty: in a pool of network interfaces
    /// the resource manager shows the members here as well, but no client writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_backend_addresses: Option<Vec<BackendAddress>>,
    /// The virtual network of the addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_network: Option<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of one backend of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendAddressProperties {
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
