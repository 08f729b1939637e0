//! The state of routes.

use proxy_model::RouteId;
use proxy_model::compiled::{PartitionKeys, Route, RouteTarget};
use proxy_model::config::{HeaderMatchMode, QueryMatchMode, RouteConfig, RouteMatch};
use serde::Serialize;

use super::secret::{REDACTED, sounds_secret};
use crate::state::{Generation, RouteState};

/// The state of one route.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RouteStatus {
    /// The id.
    pub id: RouteId,
    /// The order; smaller numbers are matched first.
    pub order: i32,
    /// The configured path template; `None` matches every path.
    pub path: Option<String>,
    /// Host patterns; an empty list matches every host.
    pub hosts: Vec<String>,
    /// Methods; an empty list matches every method.
    pub methods: Vec<String>,
    /// Conditions on headers and query parameters in words: `header x-version is canary`. Values
    /// are hidden if the name sounds like a secret.
    pub conditions: Vec<String>,
    /// The clusters of the route. If it has none and does not answer itself, requests get 503.
    pub clusters: Vec<RouteShare>,
    /// The response of a route that answers its requests itself: `redirect 308` or `fixed response 503`.
    pub answers: Option<String>,
    /// The part of a request that holds the partition key, if the route has partitions:
    /// `the header x-tenant`.
    pub partition_key: Option<String>,
    /// The reason why the route rejects all requests, if it does.
    #[serde(rename = "refused")]
    pub rejected: Option<String>,
    /// Requests since the route was added.
    pub requests: u64,
    /// Requests in each of the last 60 seconds, the oldest first.
    pub per_second: Vec<u32>,
}

/// The share of one cluster in a route's requests. A cluster with several partitions has several
/// shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RouteShare {
    /// The id of the cluster, as spelled in the route.
    pub cluster: String,
    /// True if the cluster exists. The share of a missing cluster gets 503.
    pub exists: bool,
    /// The share, from 0 to 1. `None` if keys decide and their frequency is unknown.
    pub share: Option<f64>,
    /// The partition keys of this share: `0 to 9`, or a name. `None` without partitions.
    pub keys: Option<String>,
}

impl RouteStatus {
    pub(crate) fn of(generation: &Generation, route: &Route, state: &RouteState) -> Self {
        let matches = &route.config().r#match;
        Self {
            id: route.id().clone(),
            order: route.order(),
            path: matches.path.clone(),
            hosts: matches.hosts.clone().unwrap_or_default(),
            methods: matches.methods.clone().unwrap_or_default(),
            conditions: conditions(matches),
            clusters: shares(generation, route),
            answers: answer(route.target()),
            partition_key: match route.target() {
                RouteTarget::Partitioned(partitions) => Some(partitions.key().to_string()),
                _ => None,
            },
            rejected: state.rejection().map(|rejection| rejection.to_string()),
            requests: state.metrics().requests(),
            per_second: state.metrics().traffic().per_second(),
        }
    }
}

/// Describes the response of a route that answers its requests itself.
fn answer(target: &RouteTarget) -> Option<String> {
    match target {
        RouteTarget::Redirect(redirect) => Some(format!("redirect {}", redirect.status().as_u16())),
        RouteTarget::Respond(fixed) => Some(format!("fixed response {}", fixed.status().as_u16())),
        RouteTarget::None
        | RouteTarget::Missing(_)
        | RouteTarget::Cluster(_)
        | RouteTarget::Weighted(_)
        | RouteTarget::Partitioned(_) => None,
    }
}

/// Describes the conditions on headers and query parameters.
fn conditions(matches: &RouteMatch) -> Vec<String> {
    let headers = matches.headers.iter().flatten().map(|header| {
        let is = match header.mode {
            HeaderMatchMode::ExactHeader => "is",
            HeaderMatchMode::HeaderPrefix => "begins with",
            HeaderMatchMode::Exists => "is there",
            HeaderMatchMode::Contains => "contains",
            HeaderMatchMode::NotContains => "does not contain",
            HeaderMatchMode::NotExists => "is not there",
        };
        condition("header", &header.name, is, header.values.as_deref())
    });
    let parameters = matches.query_parameters.iter().flatten().map(|parameter| {
        let is = match parameter.mode {
            QueryMatchMode::Exact => "is",
            QueryMatchMode::Prefix => "begins with",
            QueryMatchMode::Exists => "is there",
            QueryMatchMode::Contains => "contains",
            QueryMatchMode::NotContains => "does not contain",
        };
        condition("query", &parameter.name, is, parameter.values.as_deref())
    });
    headers.chain(parameters).collect()
}

fn condition(of: &str, name: &str, is: &str, values: Option<&[String]>) -> String {
    match values {
        None | Some([]) => format!("{of} {name} {is}"),
        Some(_) if sounds_secret(name) => format!("{of} {name} {is} {REDACTED}"),
        Some(values) => format!("{of} {name} {is} {}", values.join(" or ")),
    }
}

fn shares(generation: &Generation, route: &Route) -> Vec<RouteShare> {
    match route.target() {
        RouteTarget::None | RouteTarget::Redirect(_) | RouteTarget::Respond(_) => Vec::new(),
        RouteTarget::Missing(id) => vec![RouteShare {
            cluster: id.as_str().to_owned(),
            exists: false,
            share: Some(1.0),
            keys: None,
        }],
        RouteTarget::Cluster(index) => vec![RouteShare {
            cluster: generation
                .snapshot()
                .cluster_at(*index)
                .id()
                .as_str()
                .to_owned(),
            exists: true,
            share: Some(1.0),
            keys: None,
        }],
        RouteTarget::Weighted(targets) => {
            // The sum of the weights may exceed 32 bits.
            let total: u64 = targets.iter().map(|t| u64::from(t.weight())).sum();
            targets
                .iter()
                .map(|target| RouteShare {
                    cluster: target.id().as_str().to_owned(),
                    exists: target.cluster().is_some(),
                    share: Some(f64::from(target.weight()) / total as f64),
                    keys: None,
                })
                .collect()
        }
        RouteTarget::Partitioned(partitions) => {
            let is_secret = has_secret_key(route.config());
            let keys = |keys: &PartitionKeys| match keys {
                PartitionKeys::Name(_) if is_secret => REDACTED.to_owned(),
                keys => keys.to_string(),
            };
            partitions
                .targets()
                .iter()
                .map(|target| RouteShare {
                    cluster: target.id().as_str().to_owned(),
                    exists: target.cluster().is_some(),
                    share: partitions.expected_share(target),
                    keys: Some(keys(target.keys())),
                })
                .collect()
        }
    }
}

/// True if the partition key is a header or query parameter whose name sounds like a secret.
fn has_secret_key(route: &RouteConfig) -> bool {
    let key = route.partitioned_clusters.as_ref().map(|all| &all.key);
    let name = key.and_then(|key| key.header.as_ref().or(key.query_parameter.as_ref()));
    name.is_some_and(|name| sounds_secret(name))
}

#[cfg(test)]
mod tests {
    use proxy_model::config::{RouteHeader, RouteQueryParameter};

    use super::*;

    #[test]
    fn conditions_read_well() {
        let version = RouteHeader {
            name: "x-version".to_owned(),
            values: Some(vec!["canary".to_owned(), "next".to_owned()]),
            ..RouteHeader::default()
        };
        let key = RouteHeader {
            name: "x-api-key".to_owned(),
            values: Some(vec!["hush".to_owned()]),
            ..RouteHeader::default()
        };
        let debug = RouteQueryParameter {
            name: "debug".to_owned(),
            mode: QueryMatchMode::Exists,
            ..RouteQueryParameter::default()
        };
        let matches = RouteMatch {
            headers: Some(vec![version, key]),
            query_parameters: Some(vec![debug]),
            ..RouteMatch::default()
        };
        assert_eq!(
            conditions(&matches),
            [
                "header x-version is canary or next",
                "header x-api-key is (redacted)",
                "query debug is there"
            ]
        );
        assert!(conditions(&RouteMatch::default()).is_empty());
    }
}
