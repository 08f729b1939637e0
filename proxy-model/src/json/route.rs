//! Reading a route.

use super::node::Node;
use super::reader::{ObjectReader, value_of};
use super::scalar;
use crate::config::{
    HeaderMatchMode, PartitionHash, PartitionKey, PartitionedCluster, PartitionedClusters,
    QueryMatchMode, RedirectConfig, RespondConfig, RouteConfig, RouteHeader, RouteMatch,
    RouteQueryParameter, TransformConfig, WeightedCluster,
};
use crate::id::ClusterId;
use crate::problem::{Problem, Problems, pointer_to};
use crate::suggest::shortened;

pub(super) fn read(route: &mut ObjectReader<'_, '_>) -> RouteConfig {
    let config = RouteConfig {
        cluster_id: route.text("ClusterId").map(ClusterId::from),
        weighted_clusters: route.objects("WeightedClusters", weighted_cluster),
        partitioned_clusters: route.object("PartitionedClusters", partitioned_clusters),
        redirect: route.object("Redirect", redirect).map(Box::new),
        respond: route.object("Respond", respond).map(Box::new),
        r#match: route.object("Match", matching).unwrap_or_default(),
        order: route.integer("Order", i32::MIN..=i32::MAX),
        max_request_body_size: route.integer("MaxRequestBodySize", i64::MIN..=i64::MAX),
        strict_paths: route.boolean("StrictPaths"),
        authorization_policy: route.text("AuthorizationPolicy"),
        cors_policy: route.text("CorsPolicy"),
        rate_limiter_policy: route.text("RateLimiterPolicy"),
        output_cache_policy: route.text("OutputCachePolicy"),
        timeout_policy: route.text("TimeoutPolicy"),
        timeout: route.positive_time_span("Timeout", true),
        timeout_includes_body: route.boolean("TimeoutIncludesBody"),
        metadata: route.text_map("Metadata"),
        transforms: route.list("Transforms", transform),
        filters: route.texts("Filters"),
        layers: route.texts("Layers"),
    };
    route.renamed(
        "RouteId",
        "the id is the key of the route's object: `\"Routes\": { \"id\": { … } }`",
    );
    config
}

fn weighted_cluster(entry: &mut ObjectReader<'_, '_>) -> WeightedCluster {
    let unset = WeightedCluster::default();
    WeightedCluster {
        cluster_id: entry
            .text("ClusterId")
            .map_or(unset.cluster_id, ClusterId::from),
        weight: entry
            .integer("Weight", 0..=u32::MAX)
            .unwrap_or(unset.weight),
    }
}

fn partitioned_clusters(partitioned: &mut ObjectReader<'_, '_>) -> PartitionedClusters {
    const HASHES: [(&str, PartitionHash); 2] = [
        ("None", PartitionHash::None),
        ("Fnv1a64", PartitionHash::Fnv1a64),
    ];
    PartitionedClusters {
        key: partitioned.object("Key", partition_key).unwrap_or_default(),
        hash: partitioned.choice("Hash", &HASHES).unwrap_or_default(),
        partitions: partitioned
            .objects("Partitions", partition)
            .unwrap_or_default(),
    }
}

fn redirect(redirect: &mut ObjectReader<'_, '_>) -> RedirectConfig {
    RedirectConfig {
        scheme: redirect.text("Scheme"),
        host: redirect.text("Host"),
        path: redirect.text("Path"),
        status: redirect.integer("Status", 0..=u16::MAX),
    }
}

fn respond(respond: &mut ObjectReader<'_, '_>) -> RespondConfig {
    RespondConfig {
        status: respond.integer("Status", 0..=u16::MAX),
        body: respond.text("Body"),
        headers: respond.text_map("Headers"),
    }
}

fn partition_key(key: &mut ObjectReader<'_, '_>) -> PartitionKey {
    PartitionKey {
        header: key.text("Header"),
        query_parameter: key.text("QueryParameter"),
        route_value: key.text("RouteValue"),
    }
}

fn partition(entry: &mut ObjectReader<'_, '_>) -> PartitionedCluster {
    let unset = PartitionedCluster::default();
    PartitionedCluster {
        cluster_id: entry
            .text("ClusterId")
            .map_or(unset.cluster_id, ClusterId::from),
        low_key: entry.integer("LowKey", i64::MIN..=i64::MAX),
        high_key: entry.integer("HighKey", i64::MIN..=i64::MAX),
        name: entry.text("Name"),
    }
}

fn matching(criteria: &mut ObjectReader<'_, '_>) -> RouteMatch {
    for key in ["PathPrefix", "Prefix"] {
        criteria.foreign(key, |node| {
            let prefix = scalar::text(node).unwrap_or_default();
            let prefix = shortened(prefix.trim().trim_matches('/'));
            match prefix.is_empty() {
                true => r#"write `"Path": "/{**rest}"`"#.to_owned(),
                false => format!(r#"write `"Path": "/{prefix}/{{**rest}}"`"#),
            }
        });
    }
    criteria.foreign("Host", |node| {
        let host = scalar::text(node).unwrap_or_default();
        format!(r#"write `"Hosts": [ "{}" ]`"#, shortened(&host))
    });
    RouteMatch {
        path: criteria.text("Path"),
        hosts: criteria.texts("Hosts"),
        methods: criteria.texts("Methods"),
        headers: criteria.objects("Headers", header),
        query_parameters: criteria.objects("QueryParameters", query_parameter),
    }
}

fn header(header: &mut ObjectReader<'_, '_>) -> RouteHeader {
    const MODES: [(&str, HeaderMatchMode); 6] = [
        ("ExactHeader", HeaderMatchMode::ExactHeader),
        ("HeaderPrefix", HeaderMatchMode::HeaderPrefix),
        ("Exists", HeaderMatchMode::Exists),
        ("Contains", HeaderMatchMode::Contains),
        ("NotContains", HeaderMatchMode::NotContains),
        ("NotExists", HeaderMatchMode::NotExists),
    ];
    RouteHeader {
        name: header.text("Name").unwrap_or_default(),
        values: header.texts("Values"),
        mode: header.choice("Mode", &MODES).unwrap_or_default(),
        is_case_sensitive: header.boolean("IsCaseSensitive").unwrap_or_default(),
    }
}

fn query_parameter(parameter: &mut ObjectReader<'_, '_>) -> RouteQueryParameter {
    const MODES: [(&str, QueryMatchMode); 5] = [
        ("Exact", QueryMatchMode::Exact),
        ("Contains", QueryMatchMode::Contains),
        ("NotContains", QueryMatchMode::NotContains),
        ("Prefix", QueryMatchMode::Prefix),
        ("Exists", QueryMatchMode::Exists),
    ];
    RouteQueryParameter {
        name: parameter.text("Name").unwrap_or_default(),
        values: parameter.texts("Values"),
        mode: parameter.choice("Mode", &MODES).unwrap_or_default(),
        is_case_sensitive: parameter.boolean("IsCaseSensitive").unwrap_or_default(),
    }
}

/// Reads a transform: a map whose keys the compiler checks, since they have a meaning only together. An
/// unreadable transform becomes an empty one, so that the compiler checks its neighbours.
fn transform(node: &Node, pointer: &str, problems: &mut Problems) -> Option<TransformConfig> {
    let Node::Object(object) = node else {
        let message = format!("expected an object, found {}", node.kind());
        problems.push(Problem::error(pointer, "wrong_type", message));
        return Some(TransformConfig::new());
    };
    for key in object.repeated() {
        let message = format!("the key `{}` is written twice", shortened(key));
        let problem = Problem::error(pointer_to(pointer, key), "duplicate_key", message);
        problems.push(problem.with_suggestion("keep one of them"));
    }
    let mut transform = TransformConfig::new();
    for (key, node) in object.iter() {
        if matches!(node, Node::Null) {
            continue;
        }
        let value = value_of(scalar::text(node), &pointer_to(pointer, key), problems);
        transform.insert(key.to_owned(), value.unwrap_or_default());
    }
    Some(transform)
}
