//! The action of a route.

use std::time::Duration;

use proxy_model::compiled::{BodyLimit, ChosenPolicy, Cluster, ClusterIndex, Route, RouteTarget};
use proxy_model::config::{PolicyKind, SessionAffinityConfig};
use proxy_model::{Snapshot, same_id};
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
    lost(route, report);
    let (specifier, clusters) = match route.target() {
        RouteTarget::None | RouteTarget::Missing(_) => return Ok(unavailable()),
        RouteTarget::Redirect(redirect) => return super::reply::redirect(route, redirect, report),
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

/// Reports the settings of a route that its action cannot express, and without which it may serve.
fn lost(route: &Route, report: &mut Report<'_>) {
    for policy in route.policies() {
        let key = policy.kind().route_key();
        let effect = match policy.kind() {
            // They close the route.
            PolicyKind::Authorization => continue,
            PolicyKind::Cors if policy.name() == ChosenPolicy::DISABLE => continue,
            PolicyKind::Cors => "its headers are not added, and preflights reach the destination",
            PolicyKind::RateLimiter => "requests are not limited",
            PolicyKind::Timeout => "it has no effect",
        };
        report.differs(
            key,
            format!(
                "the policy `{}` of `Policies.{}` is not expressed for Envoy: {effect}",
                policy.name(),
                policy.kind().section()
            ),
        );
    }
    let config = route.config();
    let is_asked = |name: &Option<String>, neutral: &str| {
        let name = name.as_deref().unwrap_or_default();
        !name.is_empty() && !same_id(name, neutral)
    };
    // A defined timeout policy is the timeout of the route.
    let has_timeout = route.timeout().is_some();
    if !has_timeout && is_asked(&config.timeout_policy, ChosenPolicy::DISABLE) {
        report.differs("TimeoutPolicy", UNKNOWN_POLICY);
    }
    if is_asked(&config.output_cache_policy, "") {
        report.differs("OutputCachePolicy", UNKNOWN_POLICY);
    }
    // One that nothing defines.
    let has_cors = (route.policies().iter()).any(|policy| policy.kind() == PolicyKind::Cors);
    if !has_cors && is_asked(&config.cors_policy, ChosenPolicy::DISABLE) {
        report.differs("CorsPolicy", UNKNOWN_POLICY);
    }
    if matches!(route.body_limit(), BodyLimit::Bytes(_)) {
        report.differs(
            "MaxRequestBodySize",
            "Envoy limits bodies only where it buffers them, so this one is not limited",
        );
    }
}

const UNKNOWN_POLICY: &str =
    "Envoy does not know the program's policies, so this one is not applied";

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

/// Returns the session affinity, if it is enabled.
pub(super) fn affinity(cluster: &Cluster) -> Option<&SessionAffinityConfig> {
    (cluster.config().session_affinity.as_deref()).filter(|affinity| affinity.enabled == Some(true))
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
