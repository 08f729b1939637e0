//! The action of a route.

use std::time::Duration;

use proxy_model::Snapshot;
use proxy_model::compiled::{BodyLimit, Cluster, ClusterIndex, Route, RouteTarget};
use proxy_model::config::SessionAffinityConfig;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::hash_policy;
use xds_types::pb::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HashPolicy, HostRewriteSpecifier, UpgradeConfig,
};
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{RouteAction, WeightedCluster};
use xds_types::pb::google::protobuf;

use super::report::{Inexpressible, Report};
use super::rewrite;
use crate::proto::unavailable;

/// Returns the action of `route`, except for headers. `host` is the `Host` that a transform sets.
pub(super) fn action(
    route: &Route,
    host: Option<String>,
    snapshot: &Snapshot,
    report: &mut Report<'_>,
) -> Result<Action, Inexpressible> {
    check(route, report)?;
    let (specifier, clusters) = match route.target() {
        RouteTarget::None | RouteTarget::Missing(_) => return Ok(unavailable()),
        RouteTarget::Redirect(redirect) => return super::reply::redirect(route, redirect),
        RouteTarget::Respond(fixed) => return super::reply::respond(fixed),
        RouteTarget::Cluster(index) => {
            let cluster = snapshot.cluster_at(*index);
            (
                ClusterSpecifier::Cluster(cluster.id().as_str().to_owned()),
                vec![cluster],
            )
        }
        RouteTarget::Weighted(targets) => {
            let name = |index: Option<ClusterIndex>, id: &str| {
                index.map_or_else(
                    || id.to_owned(),
                    |index| snapshot.cluster_at(index).id().as_str().to_owned(),
                )
            };
            let clusters = targets.iter().map(|target| ClusterWeight {
                name: name(target.cluster(), target.id().as_str()),
                weight: Some(protobuf::UInt32Value {
                    value: target.weight(),
                }),
                ..ClusterWeight::default()
            });
            let weighted = WeightedCluster {
                clusters: clusters.collect(),
                ..WeightedCluster::default()
            };
            let clusters = targets.iter().filter_map(|target| target.cluster());
            (
                ClusterSpecifier::WeightedClusters(weighted),
                clusters.map(|index| snapshot.cluster_at(index)).collect(),
            )
        }
        RouteTarget::Partitioned(_) => {
            return Err(Inexpressible::new(
                "PartitionedClusters",
                "Envoy's routes cannot look up a key in ranges",
            ));
        }
    };
    let base = base_path(&clusters)?;
    let regex_rewrite = rewrite::rewrite(
        route.transforms().target(),
        route.matcher().path(),
        &base,
        report,
    )?;
    let host_rewrite_specifier = match host {
        Some(host) => Some(HostRewriteSpecifier::HostRewriteLiteral(host)),
        None if route.transforms().original_host() => None,
        None => Some(HostRewriteSpecifier::AutoHostRewrite(protobuf::BoolValue {
            value: true,
        })),
    };
    if route.timeout().is_some() && !route.timeout_includes_body() {
        report.differs(
            "Timeout",
            "Envoy's timeout ends with the last byte of the response, not with its head",
        );
    }
    let idle = clusters
        .iter()
        .map(|cluster| cluster.upstream().activity_timeout());
    Ok(Action::Route(RouteAction {
        cluster_specifier: Some(specifier),
        host_rewrite_specifier,
        regex_rewrite,
        // Without one it would be 15 s.
        timeout: Some(duration(route.timeout().unwrap_or_default())),
        idle_timeout: idle.max().map(duration),
        hash_policy: clusters
            .iter()
            .filter_map(|cluster| hash_policy(cluster))
            .take(1)
            .collect(),
        upgrade_configs: vec![UpgradeConfig {
            upgrade_type: "websocket".to_owned(),
            ..UpgradeConfig::default()
        }],
        ..RouteAction::default()
    }))
}

pub(super) fn duration(duration: Duration) -> protobuf::Duration {
    protobuf::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}

/// Checks the settings of a route that its action cannot express.
fn check(route: &Route, report: &mut Report<'_>) -> Result<(), Inexpressible> {
    let config = route.config();
    let is_asked = |name: &Option<String>, neutral: &[&str]| {
        name.as_deref().is_some_and(|name| {
            !name.is_empty() && !neutral.iter().any(|known| known.eq_ignore_ascii_case(name))
        })
    };
    // A policy that is not applied would open the route to clients that it keeps out.
    if is_asked(&config.authorization_policy, &["Anonymous"]) {
        return Err(Inexpressible::new(
            "AuthorizationPolicy",
            "Envoy does not know the program's authorization policies",
        ));
    }
    if route.has_strict_paths() {
        return Err(Inexpressible::new(
            "StrictPaths",
            "Envoy reads paths strictly for a whole listener or not at all",
        ));
    }
    for (key, names) in [("Filters", route.filters()), ("Layers", route.layers())] {
        if !names.is_empty() {
            return Err(Inexpressible::new(
                key,
                format!("Envoy does not have the program's `{}`", names.join("`, `")),
            ));
        }
    }
    for (key, name, neutral) in [
        ("CorsPolicy", &config.cors_policy, &["Disable"][..]),
        (
            "RateLimiterPolicy",
            &config.rate_limiter_policy,
            &["Disable"],
        ),
        ("OutputCachePolicy", &config.output_cache_policy, &[]),
        ("TimeoutPolicy", &config.timeout_policy, &["Disable"]),
    ] {
        if is_asked(name, neutral) {
            report.differs(
                key,
                "Envoy does not know the program's policies, so this one is not applied",
            );
        }
    }
    if matches!(route.body_limit(), BodyLimit::Bytes(_)) {
        report.differs(
            "MaxRequestBodySize",
            "Envoy limits bodies only where it buffers them, so this one is not limited",
        );
    }
    Ok(())
}

/// The path that comes before that of requests, which is one for the whole route in Envoy.
fn base_path(clusters: &[&Cluster]) -> Result<String, Inexpressible> {
    let mut paths = (clusters.iter())
        .flat_map(|cluster| cluster.destinations())
        .map(|destination| destination.address().path());
    let Some(first) = paths.next() else {
        return Ok(String::new());
    };
    match paths.all(|path| path == first) {
        true if first == "/" => Ok(String::new()),
        true => Ok(first.to_owned()),
        false => Err(Inexpressible::new(
            "ClusterId",
            "the addresses of the route's destinations have several paths; Envoy puts one before that of every request",
        )),
    }
}

/// Session affinity, if it is on.
pub(super) fn affinity(cluster: &Cluster) -> Option<&SessionAffinityConfig> {
    (cluster.config().session_affinity.as_ref()).filter(|affinity| affinity.enabled == Some(true))
}

/// Requests with equal values go to the same destination, as long as those stay the same.
fn hash_policy(cluster: &Cluster) -> Option<HashPolicy> {
    let affinity = affinity(cluster)?;
    let name = affinity.affinity_key_name.clone()?;
    let is_header = (affinity.policy.as_deref())
        .is_some_and(|policy| policy.eq_ignore_ascii_case("CustomHeader"));
    let specifier = if is_header {
        hash_policy::PolicySpecifier::Header(hash_policy::Header {
            header_name: name,
            ..hash_policy::Header::default()
        })
    } else {
        let cookie = affinity.cookie.clone().unwrap_or_default();
        let lifetime = cookie.max_age.or(cookie.expiration).map(Duration::from);
        hash_policy::PolicySpecifier::Cookie(hash_policy::Cookie {
            name,
            // A cookie without a length of life ends with the session; Envoy makes none without this field.
            ttl: Some(duration(lifetime.unwrap_or_default())),
            path: cookie.path.unwrap_or_else(|| "/".to_owned()),
            ..hash_policy::Cookie::default()
        })
    };
    Some(HashPolicy {
        policy_specifier: Some(specifier),
        ..HashPolicy::default()
    })
}
