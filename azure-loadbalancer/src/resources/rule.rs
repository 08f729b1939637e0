//! Load-balancing rules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::{Resource, SubResource};

/// Which port of a frontend leads to which port of a pool.
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
    /// How the health of the pool's members is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<SubResource>,
    /// What is let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TransportProtocol>,
    /// How members are chosen; absent is [`LoadDistribution::Default`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_distribution: Option<LoadDistribution>,
    /// The port of the frontend.
    pub frontend_port: u16,
    /// The port of the members.
    pub backend_port: u16,
    /// Minutes of silence after which a TCP connection is forgotten; absent is 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_in_minutes: Option<u32>,
    /// Whether members see the frontend's address as destination (direct server return).
    #[serde(rename = "enableFloatingIP", skip_serializing_if = "Option::is_none")]
    pub enable_floating_ip: Option<bool>,
    /// Whether both ends are told when a connection is forgotten; standard load balancers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_tcp_reset: Option<bool>,
    /// Whether members may not reach out with the frontend's address; standard load balancers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_outbound_snat: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

open_enum! {
    /// What a rule lets through.
    TransportProtocol {
        /// TCP.
        Tcp = "Tcp",
        /// UDP.
        Udp = "Udp",
        /// Every protocol on every port.
        All = "All",
    }
}

open_enum! {
    /// How members are chosen.
    LoadDistribution {
        /// By addresses, ports and protocol.
        Default = "Default",
        /// By the two addresses.
        SourceIp = "SourceIP",
        /// By the two addresses and the protocol.
        SourceIpProtocol = "SourceIPProtocol",
    }
}
