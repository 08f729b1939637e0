//! Settings of requests to destinations.

use serde::{Deserialize, Serialize};

use crate::time_span::TimeSpan;

/// Settings of requests to a cluster's destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ForwarderRequestConfig {
    /// The longest time that a request may be idle, with no byte read or written in either direction.
    /// Default: 100 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity_timeout: Option<TimeSpan>,
    /// The HTTP version of requests. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::schema::HttpVersionName>")
    )]
    pub version: Option<HttpVersion>,
    /// The policy for other HTTP versions than `Version`. Default: `RequestVersionOrLower`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_policy: Option<VersionPolicy>,
    /// True if responses may be buffered before they are sent on. Responses are never buffered here, so
    /// true has no effect. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_response_buffering: Option<bool>,
}

/// A version of HTTP, as written in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0
    #[serde(rename = "1.0", alias = "1")]
    Http10,
    /// HTTP/1.1
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2
    #[serde(rename = "2", alias = "2.0")]
    Http2,
    /// HTTP/3
    #[serde(rename = "3", alias = "3.0")]
    Http3,
}

/// The policy for other HTTP versions than the requested one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum VersionPolicy {
    /// The version or a lower one.
    #[default]
    RequestVersionOrLower,
    /// The version or a higher one.
    RequestVersionOrHigher,
    /// The version only.
    RequestVersionExact,
}
