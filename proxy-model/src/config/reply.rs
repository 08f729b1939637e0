//! Responses that a route gives itself, without a cluster.

use indexmap::IndexMap;
use serde::Serialize;

/// A redirect to another URL. Parts that are not set stay as in the request's URL; the query always stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RedirectConfig {
    /// `http` or `https`. If it is another one than the client's, the port of the client's URL is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// A host, with a port if it is not the usual one: `www.example.com`, `localhost:8443`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A path with parameters of the route's path: `/new/{**rest}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// 301, 302, 303, 307 or 308. Default: 307.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// A fixed response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RespondConfig {
    /// The status, from 200 to 599. Default: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body. Default: empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Headers. Default: `Content-Type: text/plain; charset=utf-8` where there is a body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<IndexMap<String, String>>,
}
