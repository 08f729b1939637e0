//! Pools of backends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Resource, SubResource};

/// A pool of backends of a load balancer.
pub type BackendAddressPool = Resource<BackendAddressPoolProperties>;

/// One backend of a pool that has addresses.
pub type BackendAddress = Resource<BackendAddressProperties>;

/// The properties of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendAddressPoolProperties {
    /// The backends by address. `None` is absent, which is not the same as empty: of a pool whose members are network interfaces
    /// the resource manager shows them here as well, and nobody writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_backend_addresses: Option<Vec<BackendAddress>>,
    /// The virtual network that the addresses are in.
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
