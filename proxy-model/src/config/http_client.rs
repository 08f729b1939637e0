//! Settings of connections to destinations.

use serde::Serialize;

/// Settings of connections to a cluster's destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct HttpClientConfig {
    /// The enabled TLS versions, by their names in .NET: a list of `Tls12` and `Tls13`, or one text with a
    /// comma between them. Default: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::schema::SslProtocols>")
    )]
    pub ssl_protocols: Option<Vec<String>>,
    /// Trusts any certificate. For development only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dangerous_accept_any_server_certificate: Option<bool>,
    /// Maximum number of connections to one destination at a time. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections_per_server: Option<u32>,
    /// True if a further HTTP/2 connection is opened when all streams of the first are in use. Default:
    /// true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_multiple_http2_connections: Option<bool>,
    /// Encoding of request header values. Bytes are passed unchanged, so this is accepted and has no
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_header_encoding: Option<String>,
    /// Encoding of response header values. Bytes are passed unchanged, so this is accepted and has no
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_header_encoding: Option<String>,
    /// A forward proxy between us and the destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_proxy: Option<WebProxyConfig>,
}

/// A forward proxy between us and the destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WebProxyConfig {
    /// The forward proxy's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if local addresses are reached directly. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_on_local: Option<bool>,
    /// True if the account of the process is used. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_default_credentials: Option<bool>,
}
