//! Machines and scale sets: the parts that lead to network interfaces and to pools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::resource::null_as_default;
use super::{ProvisioningState, Resource, SubResource};

/// `Microsoft.Compute/virtualMachines`.
pub type VirtualMachine = Resource<VirtualMachineProperties>;

/// Which network interface a machine has.
pub type VmInterfaceReference = Resource<VmInterfaceReferenceProperties>;

/// `Microsoft.Compute/virtualMachineScaleSets`.
pub type ScaleSet = Resource<ScaleSetProperties>;

/// A machine of a scale set.
pub type ScaleSetInstance = Resource<ScaleSetInstanceProperties>;

/// A network interface as a scale set gives it to each of its machines.
pub type NetworkInterfaceModel = Resource<NetworkInterfaceModelProperties>;

/// An address of such an interface.
pub type IpConfigurationModel = Resource<IpConfigurationModelProperties>;

/// The properties of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineProperties {
    /// The availability set that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_set: Option<SubResource>,
    /// Its network interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_profile: VmNetworkProfile,
    /// What became of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The network interfaces of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmNetworkProfile {
    /// References to them.
    #[serde(deserialize_with = "null_as_default")]
    pub network_interfaces: Vec<VmInterfaceReference>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What a machine says of one of its network interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmInterfaceReferenceProperties {
    /// Whether it is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a scale set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSetProperties {
    /// What each of its machines is like.
    #[serde(deserialize_with = "null_as_default")]
    pub virtual_machine_profile: VmProfile,
    /// What became of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What each machine of a scale set is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmProfile {
    /// Its network interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_profile: NetworkProfile,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Network interfaces as a scale set, or one of its machines, has them written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkProfile {
    /// The interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_interface_configurations: Vec<NetworkInterfaceModel>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a network interface of a scale set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterfaceModelProperties {
    /// Whether it is the machine's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// Its addresses.
    #[serde(deserialize_with = "null_as_default")]
    pub ip_configurations: Vec<IpConfigurationModel>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of an address of such an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpConfigurationModelProperties {
    /// Whether it is the interface's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// The pools that it is a member of.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancer_backend_address_pools: Vec<SubResource>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a machine of a scale set. The id of a machine within its scale set is the last
/// segment of its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSetInstanceProperties {
    /// Whether the machine is as the scale set says now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_model_applied: Option<bool>,
    /// The network interfaces as they are for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_profile_configuration: Option<NetworkProfile>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
