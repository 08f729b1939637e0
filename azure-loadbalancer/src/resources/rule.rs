//! Load-balancing rules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::{Resource, SubResource};

/// A rule that forwards a port of a frontend to a port of a pool.
pub type LoadBalancingRule = Resource<RuleProperties>;

/// The properties of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleProperties {
    /// The frontend.
    #[serde(
        rename = "frontendIPConfiguration",
        skip_serializing_if = "Option::is_none"
    )]
    pub frontend_ip_configuration: Option<SubResource>,
    /// The pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_address_pool: Option<SubResource>,
    /// The health probe of the pool's members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<SubResource>,
    /// The transport protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TransportProtocol>,
    /// The distribution over members. Absent: [`LoadDistribution::Default`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_distribution: Option<LoadDistribution>,
    /// The port of the frontend.
    pub frontend_port: u16,
    /// The port of the members.
    pub backend_port: u16,
    /// The idle timeout of TCP connections, in minutes. Absent: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_in_minutes: Option<u32>,
    /// True if members see the frontend's address as destination (direct server return).
    #[serde(rename = "enableFloatingIP", skip_serializing_if = "Option::is_none")]
    pub enable_floating_ip: Option<bool>,
    /// True if an idle timeout sends a TCP reset to both ends. Standard load balancers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_tcp_reset: Option<bool>,
    /// True if members may not use the frontend's address for outbound connections. Standard load balancers
    /// only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_outbound_snat: Option<bool>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

open_enum! {
    /// The transport protocol of a rule.
    TransportProtocol {
        /// TCP.
        Tcp = "Tcp",
        /// UDP.
        Udp = "Udp",
        /// All protocols on all ports.
        All = "All",
    }
}

open_enum! {
    /// The distribution over members.
    LoadDistribution {
        /// The hash of addresses, ports and protocol.
        Default = "Default",
        /// The hash of the two addresses.
        SourceIp = "SourceIP",
        /// The hash of the two addresses and the protocol.
        SourceIpProtocol = "SourceIPProtocol",
    }
}
