//! Settings of connections to destinations.

use std::path::PathBuf;

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
    /// Extension: the client certificate for destinations that request one. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificateConfig>,
    /// Extension: PEM file with the certificates of the authorities that certify the destinations, in place
    /// of those that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Extension: the name in the TLS handshake (SNI), which the certificates of the destinations must have.
    /// Default: the host of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
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
    /// A forward proxy between this proxy and the destinations. Requests to `http` destinations use the absolute
    /// form; `https` destinations are reached through a tunnel (`CONNECT`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_proxy: Option<WebProxyConfig>,
    /// Extension: true if each connection begins with a header of the PROXY protocol, version 2, that names the client.
    /// Each request then has a connection of its own, with HTTP/1.1. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_proxy_protocol: Option<bool>,
    /// Extension: the name of a connector of the embedding program, which opens the connections to the destinations.
    /// Default: TCP, with TLS for `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
}

/// A certificate that is presented to destinations. The files are read again when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ClientCertificateConfig {
    /// PEM file with the chain, beginning with the certificate itself, and with the key unless `KeyPath` is
    /// set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// PEM file with the private key, not encrypted. Default: `Path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_path: Option<PathBuf>,
}

/// A forward proxy between us and the destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WebProxyConfig {
    /// The forward proxy's URL, with user and password if it requires them: `http://user:password@proxy:3128/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if loopback addresses and names without a dot are reached directly. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_on_local: Option<bool>,
    /// Extension: hosts that are reached directly: names and addresses, with `*` at the beginning or the
    /// end for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_list: Option<Vec<String>>,
    /// Accepted, and not honoured: there are no credentials of the account of the process. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_default_credentials: Option<bool>,
}
