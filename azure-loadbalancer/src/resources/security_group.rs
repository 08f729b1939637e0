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
    /// The rules that somebody wrote.
    #[serde(deserialize_with = "null_as_default")]
    pub security_rules: Vec<SecurityRule>,
    /// What became of the last write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<ProvisioningState>,
    /// Everything else, the default rules among it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The properties of a rule: each of ports and prefixes is either one text or a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityRuleProperties {
    /// What the rule is for, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<SecurityProtocol>,
    /// The port of the client, `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port_range: Option<String>,
    /// Several of those.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub source_port_ranges: Vec<String>,
    /// The port, `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port_range: Option<String>,
    /// Several of those.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub destination_port_ranges: Vec<String>,
    /// Who connects: an address, a network, a service tag or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_address_prefix: Option<String>,
    /// Several of those.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub source_address_prefixes: Vec<String>,
    /// Where to: an address, a network, a service tag or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_address_prefix: Option<String>,
    /// Several of those.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub destination_address_prefixes: Vec<String>,
    /// Whether what matches may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// 100 to 4096; of rules of one direction the lowest that matches decides.
    pub priority: u16,
    /// Which way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Everything else, application security groups among it.
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
        /// All.
        Any = "*",
    }
}

open_enum! {
    /// Whether what matches a rule may pass.
    Access {
        /// It may.
        Allow = "Allow",
        /// It may not.
        Deny = "Deny",
    }
}

open_enum! {
    /// Which way connections go.
    Direction {
        /// To the machines.
        Inbound = "Inbound",
        /// From the machines.
        Outbound = "Outbound",
    }
}

impl SecurityRuleProperties {
    /// Where the rule leads, whichever way that is written.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &str> {
        self.destination_address_prefix
            .iter()
            .filter(|destination| !destination.is_empty())
            .chain(&self.destination_address_prefixes)
            .map(String::as_str)
    }
}
