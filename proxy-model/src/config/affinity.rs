//! Session affinity.

use serde::Serialize;

use crate::time_span::TimeSpan;

/// Keeps the requests of one client at one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct SessionAffinityConfig {
    /// True to enable session affinity. The other settings are checked only then. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The affinity policy: `HashCookie`, `ArrCookie`, `Cookie` or `CustomHeader`. Default: `HashCookie`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The action if the client's destination is no longer available: `Redistribute` or `Return503Error`.
    /// Default: `Redistribute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Name of the cookie or header. Required when enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity_key_name: Option<String>,
    /// The time for which a destination whose weight has become 0 keeps its clients. Default: without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<TimeSpan>,
    /// Attributes of the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<AffinityCookieConfig>,
}

/// Attributes of the cookie that carries the affinity key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct AffinityCookieConfig {
    /// The `Path` of the cookie. Default: `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The `Domain` of the cookie. Default: the host of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// True to set `HttpOnly`. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_only: Option<bool>,
    /// The use of the attribute `Secure`: `None`, `Always` or `SameAsRequest`. Default: `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_policy: Option<String>,
    /// The attribute `SameSite`: `Unspecified`, `None`, `Lax` or `Strict`. Default: `Unspecified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_site: Option<String>,
    /// The lifetime of the cookie, written as its `Expires`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<TimeSpan>,
    /// The lifetime of the cookie, written as its `Max-Age`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<TimeSpan>,
    /// True if the cookie is exempt from consent rules. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_essential: Option<bool>,
}
