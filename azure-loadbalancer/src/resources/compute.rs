//! Machines and scale sets: the parts that refer to network interfaces and pools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::resource::null_as_default;
use super::{ProvisioningState, Resource, SubResource};

/// `Microsoft.Compute/virtualMachines`.
pub type VirtualMachine = Resource<VirtualMachineProperties>;

/// The reference of a machine to a network interface.
pub type VmInterfaceReference = Resource<VmInterfaceReferenceProperties>;

/// `Microsoft.Compute/virtualMachineScaleSets`.
pub type ScaleSet = Resource<ScaleSetProperties>;

/// A machine of a scale set.
pub type ScaleSetInstance = Resource<ScaleSetInstanceProperties>;

/// The model of a network interface of a scale set's machines.
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
    /// The network interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_profile: VmNetworkProfile,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The network interfaces of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmNetworkProfile {
    /// References to the machine's network interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_interfaces: Vec<VmInterfaceReference>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a machine's reference to a network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmInterfaceReferenceProperties {
    /// True if the interface is the primary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a scale set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSetProperties {
    /// The profile of its machines.
    #[serde(deserialize_with = "null_as_default")]
    pub virtual_machine_profile: VmProfile,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The profile of a scale set's machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VmProfile {
    /// The network interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_profile: NetworkProfile,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The network interfaces of a scale set, or of one of its machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkProfile {
    /// The interfaces.
    #[serde(deserialize_with = "null_as_default")]
    pub network_interface_configurations: Vec<NetworkInterfaceModel>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a network interface of a scale set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterfaceModelProperties {
    /// True if the interface is the machine's primary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// The addresses.
    #[serde(deserialize_with = "null_as_default")]
    pub ip_configurations: Vec<IpConfigurationModel>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of an address of such an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpConfigurationModelProperties {
    /// True if the address is the interface's primary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// The pools that it is a member of.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancer_backend_address_pools: Vec<SubResource>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a machine of a scale set. The id of a machine within its scale set is the last
/// segment of its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSetInstanceProperties {
    /// True if the machine has the latest model of the scale set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_model_applied: Option<bool>,
    /// The network interfaces of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_profile_configuration: Option<NetworkProfile>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
