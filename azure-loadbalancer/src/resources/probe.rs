//! Probes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Resource;
use super::open_enum::open_enum;

/// A health probe of backends.
pub type Probe = Resource<ProbeProperties>;

/// The properties of a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProbeProperties {
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProbeProtocol>,
    /// The port of the backend.
    pub port: u16,
    /// The interval of probes, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_in_seconds: Option<u32>,
    /// The number of failures after which a backend is down. In API versions of 2017.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_probes: Option<u32>,
    /// The number of failures after which a backend is down, or of successes after which it is up. In later
    /// API versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_threshold: Option<u32>,
    /// The path of requests, with HTTP and HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_path: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

open_enum! {
    /// The protocol of a probe.
    ProbeProtocol {
        /// The port must accept a connection.
        Tcp = "Tcp",
        /// The response to an HTTP request must be 200.
        Http = "Http",
        /// The response to an HTTPS request must be 200. Standard load balancers only.
        Https = "Https",
    }
}
