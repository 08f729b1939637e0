//! Network security groups.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::resource::null_as_default;
use super::{ProvisioningState, Resource};

/// `Microsoft.Network/networkSecurityGroups`.
pub type NetworkSecurityGroup = Resource<SecurityGroupProperties>;

/// A rule of a network security group.
pub type SecurityRule = Resource<SecurityRuleProperties>;

/// The properties of a network security group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityGroupProperties {
    /// The security rules, without the default ones.
    #[serde(deserialize_with = "null_as_default")]
    pub security_rules: Vec<SecurityRule>,
    /// The state of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// All other fields, including the default rules.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a rule. Ports and prefixes are each either one text or a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityRuleProperties {
    /// The purpose of the rule, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<SecurityProtocol>,
    /// The port of the client, `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port_range: Option<String>,
    /// The ports of the client, as a list.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub source_port_ranges: Vec<String>,
    /// The destination port, `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port_range: Option<String>,
    /// The destination ports, as a list.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub destination_port_ranges: Vec<String>,
    /// The source: an address, a network, a service tag or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_address_prefix: Option<String>,
    /// The sources, as a list.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub source_address_prefixes: Vec<String>,
    /// The destination: an address, a network, a service tag or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_address_prefix: Option<String>,
    /// The destinations, as a list.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub destination_address_prefixes: Vec<String>,
    /// The action on matching packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The priority, 100 to 4096. Among matching rules of one direction, the lowest decides.
    pub priority: u16,
    /// The direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// All other fields, including application security groups.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

open_enum! {
    /// The protocol of a rule.
    SecurityProtocol {
        /// TCP.
        Tcp = "Tcp",
        /// UDP.
        Udp = "Udp",
        /// All protocols.
        Any = "*",
    }
}

open_enum! {
    /// The action on packets that match a rule.
    Access {
        /// Matching packets pass.
        Allow = "Allow",
        /// Matching packets are dropped.
        Deny = "Deny",
    }
}

open_enum! {
    /// The direction of connections.
    Direction {
        /// Connections to the machines.
        Inbound = "Inbound",
        /// Connections from the machines.
        Outbound = "Outbound",
    }
}

impl SecurityRuleProperties {
    /// Returns the destinations of the rule, whether written as one value or as a list.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &str> {
        self.destination_address_prefix
            .iter()
            .filter(|destination| !destination.is_empty())
            .chain(&self.destination_address_prefixes)
            .map(String::as_str)
    }
}
