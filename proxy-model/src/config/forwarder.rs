//! How requests are sent to destinations.

use serde::{Deserialize, Serialize};

use crate::time_span::TimeSpan;

/// How requests are sent to a cluster's destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ForwarderRequestConfig {
    /// How long a request may be idle: no byte read or written in either direction. Unset is 100 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity_timeout: Option<TimeSpan>,
    /// The HTTP version to speak. Unset is 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::schema::HttpVersionName>")
    )]
    pub version: Option<HttpVersion>,
    /// Which other versions will do. Unset is `RequestVersionOrLower`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_policy: Option<VersionPolicy>,
    /// Whether responses may be buffered before they are sent on. Unset is false. Nothing here buffers responses, so
    /// true has no effect.
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

/// Which versions other than the one asked for will do.
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
