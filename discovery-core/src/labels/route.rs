//! A route from labels.

use proxy_model::Problem;
use proxy_model::config::{
    HeaderMatchMode, PartitionHash, PartitionKey, PartitionedCluster, PartitionedClusters,
    QueryMatchMode, RedirectConfig, RespondConfig, RouteConfig, RouteHeader, RouteMatch,
    RouteQueryParameter, WeightedCluster,
};

use super::node::LabelNode;

/// Names that dialects give to the lists of a route's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLabels {
    /// Conditions on headers.
    pub headers: &'static str,
    /// Conditions on query parameters.
    pub query_parameters: &'static str,
    /// True to read empty text between two commas as an empty value of a condition, which a route may not
    /// have. False to ignore it.
    pub keep_empty_values: bool,
}

impl Default for RouteLabels {
    /// The names that the configuration uses.
    fn default() -> Self {
        Self {
            headers: "Headers",
            query_parameters: "QueryParameters",
            keep_empty_values: false,
        }
    }
}

/// Returns true if a label's key may contain this name of a route: ASCII letters, digits, `_` and `-`.
pub fn is_route_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Reads a route. The labels have the names of the settings, without `Match` for those in it: `Path`,
/// `Order`.
///
/// `ClusterId` is left unset if no label sets it. An unknown label that may be meant to restrict requests,
/// such as `authorisation`, closes the route, with a warning: it responds with 503. So does one below
/// `Redirect` or `Respond` if nothing else is there.
pub fn read_route(node: &LabelNode<'_>, names: &RouteLabels) -> RouteConfig {
    let route = RouteConfig {
        cluster_id: node.text("ClusterId").map(Into::into),
        weighted_clusters: list(node, "WeightedClusters", weighted_cluster),
        redirect: redirect(&node.child("Redirect")).map(Box::new),
        respond: respond(&node.child("Respond")).map(Box::new),
        partitioned_clusters: partitioned_clusters(&node.child("PartitionedClusters")),
        r#match: RouteMatch {
            path: node.text("Path"),
            hosts: node.list("Hosts"),
            methods: node.list("Methods"),
            headers: list(node, names.headers, |n| header(n, names)),
            query_parameters: list(node, names.query_parameters, |n| query_parameter(n, names)),
        },
        order: node.integer("Order"),
        max_request_body_size: node.integer("MaxRequestBodySize"),
        strict_paths: node.boolean("StrictPaths"),
        authorization_policy: node.text("AuthorizationPolicy"),
        cors_policy: node.text("CorsPolicy"),
        rate_limiter_policy: node.text("RateLimiterPolicy"),
        output_cache_policy: node.text("OutputCachePolicy"),
        timeout_policy: node.text("TimeoutPolicy"),
        timeout: node.time_span("Timeout"),
        timeout_includes_body: node.boolean("TimeoutIncludesBody"),
        metadata: node.map("Metadata"),
        transforms: list(node, "Transforms", |transform| Some(transform.entries())),
        filters: node.list("Filters"),
        layers: node.list("Layers"),
    };
    match closes(node, &route) {
        true => RouteConfig {
            r#match: route.r#match,
            order: route.order,
            respond: Some(Box::new(RespondConfig {
                status: Some(503),
                ..RespondConfig::default()
            })),
            ..RouteConfig::default()
        },
        false => route,
    }
}

/// The settings that keep requests away from destinations.
const RESTRICTIONS: [&str; 6] = [
    "AuthorizationPolicy",
    "RateLimiterPolicy",
    "Filters",
    "Layers",
    "Redirect",
    "Respond",
];

/// Returns true, with a warning, if an unknown label may be meant to restrict requests.
fn closes(node: &LabelNode<'_>, route: &RouteConfig) -> bool {
    let of_replies = [
        ("Redirect", route.redirect.is_none()),
        ("Respond", route.respond.is_none()),
    ];
    let of_replies = of_replies
        .into_iter()
        .filter(|(name, is_unset)| *is_unset && node.child(name).has_text());
    let misspelt = node.unread().into_iter().filter(|(name, meant)| {
        let is_meant = meant
            .as_deref()
            .is_some_and(|meant| RESTRICTIONS.contains(&meant));
        is_meant || name.to_ascii_lowercase().starts_with("auth")
    });
    let all: Vec<&str> = (of_replies.map(|(name, _)| name))
        .chain(misspelt.map(|(name, _)| name))
        .collect();
    for name in &all {
        let message = "the route responds with 503 to all requests, since it is unknown what this label restricts";
        let pointer = node.locate([*name]);
        node.report(Problem::warning(pointer, "route_closed", message));
    }
    !all.is_empty()
}

fn redirect(node: &LabelNode<'_>) -> Option<RedirectConfig> {
    let redirect = RedirectConfig {
        scheme: node.text("Scheme"),
        host: node.text("Host"),
        path: node.text("Path"),
        status: node.integer("Status"),
    };
    // Empty labels are unset ones, all together as well.
    (redirect != RedirectConfig::default()).then_some(redirect)
}

fn respond(node: &LabelNode<'_>) -> Option<RespondConfig> {
    let respond = RespondConfig {
        status: node.integer("Status"),
        body: node.text("Body"),
        headers: node.map("Headers"),
    };
    (respond != RespondConfig::default()).then_some(respond)
}

/// The elements of a list that has labels.
fn list<T>(
    node: &LabelNode<'_>,
    name: &str,
    read: impl Fn(&LabelNode<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let elements = node.elements(name);
    let list: Vec<T> = elements
        .iter()
        .filter_map(|(_, element)| read(element))
        .collect();
    (!list.is_empty()).then_some(list)
}

fn weighted_cluster(node: &LabelNode<'_>) -> Option<WeightedCluster> {
    let weight = node.integer("Weight");
    let Some(cluster_id) = node.text("ClusterId") else {
        node.report_here(
            "missing_cluster_id",
            "a weighted cluster needs a `ClusterId`",
        );
        return None;
    };
    Some(WeightedCluster {
        cluster_id: cluster_id.into(),
        weight: weight.unwrap_or(1),
    })
}

fn partitioned_clusters(node: &LabelNode<'_>) -> Option<PartitionedClusters> {
    let hashes = [
        ("None", PartitionHash::None),
        ("Fnv1a64", PartitionHash::Fnv1a64),
    ];
    let key = node.child("Key");
    let partitioned = PartitionedClusters {
        key: PartitionKey {
            header: key.text("Header"),
            query_parameter: key.text("QueryParameter"),
            route_value: key.text("RouteValue"),
        },
        hash: node.choice("Hash", &hashes).unwrap_or_default(),
        partitions: list(node, "Partitions", partition).unwrap_or_default(),
    };
    // Empty labels are unset ones, all together as well.
    (partitioned != PartitionedClusters::default()).then_some(partitioned)
}

fn partition(node: &LabelNode<'_>) -> Option<PartitionedCluster> {
    let (low_key, high_key) = (node.integer("LowKey"), node.integer("HighKey"));
    let name = node.text("Name");
    let Some(cluster_id) = node.text("ClusterId") else {
        node.report_here("missing_cluster_id", "a partition needs a `ClusterId`");
        return None;
    };
    Some(PartitionedCluster {
        cluster_id: cluster_id.into(),
        low_key,
        high_key,
        name,
    })
}

fn header(node: &LabelNode<'_>, names: &RouteLabels) -> Option<RouteHeader> {
    let modes = [
        ("ExactHeader", HeaderMatchMode::ExactHeader),
        ("HeaderPrefix", HeaderMatchMode::HeaderPrefix),
        ("Exists", HeaderMatchMode::Exists),
        ("Contains", HeaderMatchMode::Contains),
        ("NotContains", HeaderMatchMode::NotContains),
        ("NotExists", HeaderMatchMode::NotExists),
    ];
    Some(RouteHeader {
        name: condition_name(node)?,
        values: values(node, names),
        mode: node.choice("Mode", &modes).unwrap_or_default(),
        is_case_sensitive: node.boolean("IsCaseSensitive").unwrap_or_default(),
    })
}

fn query_parameter(node: &LabelNode<'_>, names: &RouteLabels) -> Option<RouteQueryParameter> {
    let modes = [
        ("Exact", QueryMatchMode::Exact),
        ("Contains", QueryMatchMode::Contains),
        ("NotContains", QueryMatchMode::NotContains),
        ("Prefix", QueryMatchMode::Prefix),
        ("Exists", QueryMatchMode::Exists),
    ];
    Some(RouteQueryParameter {
        name: condition_name(node)?,
        values: values(node, names),
        mode: node.choice("Mode", &modes).unwrap_or_default(),
        is_case_sensitive: node.boolean("IsCaseSensitive").unwrap_or_default(),
    })
}

fn values(node: &LabelNode<'_>, names: &RouteLabels) -> Option<Vec<String>> {
    if !names.keep_empty_values {
        return node.list("Values");
    }
    let text = node.text("Values")?;
    Some(
        text.split(',')
            .map(|value| value.trim().to_owned())
            .collect(),
    )
}

fn condition_name(node: &LabelNode<'_>) -> Option<String> {
    let name = node.text("Name");
    if name.is_none() {
        // The rest is read nevertheless, so that it is not reported as unknown in addition.
        for label in ["Values", "Mode", "IsCaseSensitive"] {
            node.raw(label);
        }
        node.report_here("missing_name", "a condition needs a `Name`");
    }
    name
}
