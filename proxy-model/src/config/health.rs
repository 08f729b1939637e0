//! Health checks.

use serde::Serialize;

use crate::time_span::TimeSpan;

/// Settings of health checks, which find unhealthy destinations so that they are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct HealthCheckConfig {
    /// The policy that selects available destinations: `HealthyOrPanic` or `HealthyAndUnknown`. Default:
    /// `HealthyOrPanic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_destinations_policy: Option<String>,
    /// Probes that the proxy sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveHealthCheckConfig>,
    /// Conclusions from the requests that the proxy forwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveHealthCheckConfig>,
    /// Extension: words of agents on the destinations, beside the other checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentCheckConfig>,
}

/// Probes that the proxy sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ActiveHealthCheckConfig {
    /// True to enable active health checks. The other settings are checked only then. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The time from the end of one round of probes to the start of the next. Default: 15 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeSpan>,
    /// The time limit of one probe. Default: 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// The policy for probes. Default: `ConsecutiveFailures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Extension: number of successful probes in a row that make an unhealthy destination healthy. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rise: Option<u32>,
    /// Extension: the interval while the result of a destination's last probe differs from its health. Default:
    /// `Interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_interval: Option<TimeSpan>,
    /// Extension: the kind of probe: `Http`, a request; `Grpc`, a call of the gRPC health checking protocol; or
    /// `Tcp`, a connection. Default: `Http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Extension: the service whose health a `Grpc` probe requests. Default: the whole server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_service: Option<String>,
    /// Path of the probe, appended to the destination's `Health` or `Address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Query of the probe, with its leading `?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Conclusions from the requests that the proxy forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct PassiveHealthCheckConfig {
    /// True to enable passive health checks. The other settings are checked only then. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The policy for forwarded requests. Default: `TransportFailureRate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The time for which an unhealthy destination is left out before it is retried. Default: 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reactivation_period: Option<TimeSpan>,
}

/// Words of agents on the destinations: programs that announce there what a destination may get, in the protocol of
/// HAProxy's `agent-check`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct AgentCheckConfig {
    /// Extension: true to enable agent checks. The other settings are checked only then. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Extension: the TCP port of the agents, at the host of a destination's `Health` or `Address`. A destination may
    /// have its own in its metadata, as `AgentCheck.Port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Extension: the text to send to an agent as soon as it is connected. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<String>,
    /// Extension: the time from the end of one check to the start of the next. Default: 2 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeSpan>,
    /// Extension: the time limit of one check. Default: `Interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
}
