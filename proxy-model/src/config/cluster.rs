//! Clusters and their destinations.

use indexmap::IndexMap;
use serde::Serialize;

use super::{
    ForwarderRequestConfig, HealthCheckConfig, HttpClientConfig, Metadata, SessionAffinityConfig,
};
use crate::id::DestinationId;

/// A group of destinations that serve the same thing, and how they are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ClusterConfig {
    /// The policy that picks a destination: `PowerOfTwoChoices`, `RoundRobin`, `LeastRequests`, `Random`,
    /// `FirstAlphabetical`, or a policy that the program registered. Default: `PowerOfTwoChoices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancing_policy: Option<String>,
    /// Session affinity: requests of one client stay at one destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<Box<SessionAffinityConfig>>,
    /// Health checks, which find unhealthy destinations so that they are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<Box<HealthCheckConfig>>,
    /// Settings of connections to destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_client: Option<Box<HttpClientConfig>>,
    /// Settings of requests to destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_request: Option<ForwarderRequestConfig>,
    /// The destinations by id. Without any, requests get 503.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub destinations: IndexMap<DestinationId, DestinationConfig>,
    /// Free text for policies and extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// One place that a cluster's requests can go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct DestinationConfig {
    /// The URL, `http://` or `https://`. It may have a base path: `https://10.0.0.7:8443/api/`.
    pub address: String,
    /// URL of the probes. Default: `Address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Extension: path of the active probes of this destination, appended to `Health` or `Address`. The
    /// query is the cluster's. Default: the cluster's `HealthCheck.Active.Path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_path: Option<String>,
    /// The `Host` header to send, unless a transform sets one. Default: the authority of `Address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Extension: share of the cluster's requests, relative to the other destinations. With 0 a destination
    /// gets no requests, unless all have 0: then all get the same share. At most 1,000,000. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub weight: Option<u32>,
    /// Extension: tier, from 0 to 127. A tier is used only while every tier with a smaller number has no
    /// available destination. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 127)))]
    pub priority: Option<u32>,
    /// Extension: where the destination is. A proxy that knows its own zone prefers destinations of that zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Free text for policies and extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}
