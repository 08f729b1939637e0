//! Routes: which requests they take, and where those go.

use serde::{Deserialize, Serialize};

use super::{Metadata, PartitionedClusters, RedirectConfig, RespondConfig, TransformConfig};
use crate::id::ClusterId;
use crate::time_span::TimeSpan;

/// A route: its criteria, and the handling of matching requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RouteConfig {
    /// The cluster that serves the route. If it is unset, or names a cluster that does not exist, requests
    /// get 503.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Extension: several clusters that share the route's requests by weight, for canaries. Excludes `ClusterId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted_clusters: Option<Vec<WeightedCluster>>,
    /// Extension: clusters that each serve some values of a key. Excludes `ClusterId` and `WeightedClusters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitioned_clusters: Option<PartitionedClusters>,
    /// Extension: a redirect in place of a cluster. Excludes the keys of clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Box<RedirectConfig>>,
    /// Extension: a fixed response in place of a cluster. Excludes the keys of clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub respond: Option<Box<RespondConfig>>,
    /// The match criteria of the route. A host or a path is required.
    pub r#match: RouteMatch,
    /// The order of the route. Smaller is tried first, before every other rule of precedence. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// Maximum size of a request body, in bytes; -1 is unlimited. Default: the server's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_body_size: Option<i64>,
    /// Extension: true to respond with 400 to requests whose path programs interpret differently: those with
    /// doubled slashes, `;`, `\\`, `%2F`, `%5C` or `%3B`. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_paths: Option<bool>,
    /// Name of an authorization policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_policy: Option<String>,
    /// Name of a CORS policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<String>,
    /// Name of a rate limiter policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limiter_policy: Option<String>,
    /// Name of an output cache policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cache_policy: Option<String>,
    /// Name of a timeout policy. Excludes `Timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_policy: Option<String>,
    /// The longest that a request may take, from its head to the head of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// Extension: true if `Timeout` covers the bodies, too, as it does in YARP. Default: false: it ends with
    /// the head of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_includes_body: Option<bool>,
    /// Free text for extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Changes to requests and responses, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::schema::Transform>>")
    )]
    pub transforms: Option<Vec<TransformConfig>>,
    /// Extension: names of the program's filters, which see and change heads, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<String>>,
    /// Extension: names of the program's tower layers around the route, the outermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<String>>,
}

/// One cluster's share of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WeightedCluster {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// The cluster's share, relative to the sum of all weights of the route. With 0 it gets no requests. At
    /// most 1,000,000. Default: 1.
    #[cfg_attr(
        feature = "schema",
        schemars(range(max = 1_000_000), default = "default_weight")
    )]
    pub weight: u32,
}

impl Default for WeightedCluster {
    /// Returns an entry without a cluster, with the default weight.
    fn default() -> Self {
        Self {
            cluster_id: ClusterId::from(String::new()),
            weight: DEFAULT_WEIGHT,
        }
    }
}

const DEFAULT_WEIGHT: u32 = 1;

#[cfg(feature = "schema")]
fn default_weight() -> u32 {
    DEFAULT_WEIGHT
}

/// The match criteria of a route. A request must meet all that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RouteMatch {
    /// An ASP.NET route template: `/api/{version:int}/{**rest}`. Default: every path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Host patterns, one of which must match: `example.com`, `*.example.com:8443`, `*:80`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Methods, one of which must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Conditions on headers, all of which must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<RouteHeader>>,
    /// Conditions on query parameters, all of which must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_parameters: Option<Vec<RouteQueryParameter>>,
}

/// A condition on one header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RouteHeader {
    /// The header's name, compared ignoring case.
    pub name: String,
    /// The values to compare with. One of them must match. Not allowed for `Exists` and `NotExists`,
    /// required otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// The comparison of values.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub mode: HeaderMatchMode,
    /// True if the comparison of values is case-sensitive.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub is_case_sensitive: bool,
}

/// The comparison of a header's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HeaderMatchMode {
    /// One element of the list is equal.
    #[default]
    ExactHeader,
    /// One element of the list begins with it.
    HeaderPrefix,
    /// The header is there and not empty.
    Exists,
    /// A line of the header contains it, quotes and all.
    Contains,
    /// No line of the header contains it. A missing header matches.
    NotContains,
    /// The header is missing or empty.
    NotExists,
}

/// A condition on one query parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct RouteQueryParameter {
    /// The parameter's name, compared ignoring case.
    pub name: String,
    /// The values to compare with, after decoding. One of them must match. Not allowed for `Exists`,
    /// required otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// The comparison of values.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub mode: QueryMatchMode,
    /// True if the comparison of values is case-sensitive.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub is_case_sensitive: bool,
}

/// The comparison of a query parameter's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum QueryMatchMode {
    /// A value is equal.
    #[default]
    Exact,
    /// A value contains it.
    Contains,
    /// No value contains it. A missing parameter matches.
    NotContains,
    /// A value begins with it.
    Prefix,
    /// The parameter is there and not empty.
    Exists,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
