//! The table of changes that Envoy 1.40 rejects and accepts.

use std::time::Duration;

use prost::Name;
use xds_types::pb::envoy::config::core::v3::HealthCheck;
use xds_types::pb::envoy::config::core::v3::health_check::{HealthChecker, TcpHealthCheck};
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{HeaderMatcher, WeightedCluster};
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    AutoHttpConfig, UpstreamProtocolOptions,
};

use super::super::oracle;
use super::super::testing::{assignment_at, listener, service};
use super::*;
use crate::proto::{any, duration, number, regex};

fn tcp_check() -> HealthCheck {
    HealthCheck {
        timeout: Some(duration(Duration::from_secs(1))),
        interval: Some(duration(Duration::from_secs(2))),
        unhealthy_threshold: Some(number(1)),
        healthy_threshold: Some(number(3)),
        health_checker: Some(HealthChecker::TcpHealthCheck(TcpHealthCheck::default())),
        ..HealthCheck::default()
    }
}

fn set_weights(service: &mut ServiceResources, weights: &[u32]) {
    let clusters = weights.iter().map(|weight| ClusterWeight {
        name: "a".to_owned(),
        weight: Some(number(*weight)),
        ..ClusterWeight::default()
    });
    let weighted = WeightedCluster {
        clusters: clusters.collect(),
        ..WeightedCluster::default()
    };
    let Some(Action::Route(action)) = &mut service.virtual_hosts[0].routes[0].action else {
        panic!("it is a route");
    };
    action.cluster_specifier = Some(ClusterSpecifier::WeightedClusters(weighted));
}

#[allow(deprecated, reason = "the deprecated form is still accepted")]
fn set_regex(service: &mut ServiceResources, pattern: &str) {
    let header = HeaderMatcher {
        name: "x-branch-name".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::SafeRegexMatch(regex(pattern))),
        ..HeaderMatcher::default()
    };
    let matcher = service.virtual_hosts[0].routes[0].r#match.as_mut().unwrap();
    matcher.headers = vec![header];
}

fn endpoint(
    service: &mut ServiceResources,
) -> &mut xds_types::pb::envoy::config::endpoint::v3::LbEndpoint {
    &mut service.assignments[0].endpoints[0].lb_endpoints[0]
}

type Change = fn(&mut ServiceResources);

/// Changes that Envoy 1.40 rejects, and the problem reported here.
const REJECTED: &[(Change, &str)] = &[
    (
        |s| s.virtual_hosts[0].domains.push("A.EXAMPLE".to_owned()),
        "virtual host a domains[1]",
    ),
    (
        |s| set_regex(s, "(?i)fix["),
        "virtual host a routes[0].match.headers[0].safe_regex_match",
    ),
    (
        |s| set_regex(s, "a{1001}"),
        "virtual host a routes[0].match.headers[0].safe_regex_match",
    ),
    // For one such expression, Envoy rejects the whole route configuration.
    (
        |s| set_regex(s, &format!("(?i){}", "b".repeat(97))),
        "virtual host a routes[0].match.headers[0].safe_regex_match",
    ),
    (
        |s| set_regex(s, "\\x{100}"),
        "virtual host a routes[0].match.headers[0].safe_regex_match",
    ),
    (
        |s| set_regex(s, ""),
        "virtual host a routes[0].match.headers[0].safe_regex_match",
    ),
    (
        |s| set_weights(s, &[0, 0]),
        "virtual host a routes[0].route.weighted_clusters",
    ),
    (
        |s| set_weights(s, &[]),
        "virtual host a routes[0].route.weighted_clusters",
    ),
    (
        |s| {
            s.clusters[0].health_checks = vec![HealthCheck {
                health_checker: None,
                ..tcp_check()
            }]
        },
        "cluster a health_checks[0].health_checker",
    ),
    (
        |s| {
            s.clusters[0].health_checks = vec![HealthCheck {
                timeout: Some(duration(Duration::ZERO)),
                ..tcp_check()
            }]
        },
        "cluster a health_checks[0].timeout",
    ),
    (
        |s| {
            s.clusters[0].health_checks = vec![HealthCheck {
                healthy_threshold: None,
                ..tcp_check()
            }]
        },
        "cluster a health_checks[0].healthy_threshold",
    ),
    (|s| s.clusters.push(s.clusters[0].clone()), "cluster a name"),
    (|s| s.clusters[0].name.clear(), "cluster  name"),
    (
        |s| s.assignments = vec![assignment_at("a", "host.example", 80)],
        "endpoints a endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address",
    ),
    (
        |s| endpoint(s).load_balancing_weight = Some(number(0)),
        "endpoints a endpoints[0].lb_endpoints[0].load_balancing_weight",
    ),
    (
        |s| s.virtual_hosts[0].domains.clear(),
        "virtual host a domains",
    ),
    (
        |s| s.virtual_hosts[0].domains[0].push('\n'),
        "virtual host a domains[0]",
    ),
    (|s| s.virtual_hosts[0].name.clear(), "virtual host  name"),
    (
        |s| s.virtual_hosts[0].routes[0].r#match = None,
        "virtual host a routes[0].match",
    ),
    (
        |s| s.virtual_hosts[0].routes[0].action = None,
        "virtual host a routes[0].action",
    ),
    (
        |s| s.clusters[0].connect_timeout = Some(duration(Duration::ZERO)),
        "cluster a connect_timeout",
    ),
    (set_alpn, "cluster a typed_extension_protocol_options"),
    (
        |s| s.assignments[0].endpoints[0].priority = 129,
        "endpoints a endpoints[0].priority",
    ),
    (
        |s| s.assignments = vec![assignment_at("a", "10.0.0.1", 65_536)],
        "endpoints a endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value",
    ),
    (
        |s| s.listeners[0].filter_chains.clear(),
        "listener in filter_chains",
    ),
    (|s| s.listeners[0].address = None, "listener in address"),
];

/// Changes that Envoy interprets in an unintended way, or that cannot be tested in a bootstrap.
const REJECTED_HERE: &[(Change, &str)] = &[
    (
        |s| s.virtual_hosts[0].domains[0].clear(),
        "virtual host a domains[0]",
    ),
    (|s| s.clusters[0].lb_policy = 99, "cluster a lb_policy"),
    (
        |s| s.clusters[0].load_assignment = Some(s.assignments[0].clone()),
        "cluster a load_assignment",
    ),
    (
        |s| s.assignments.push(s.assignments[0].clone()),
        "endpoints a cluster_name",
    ),
    (
        |s| s.listeners[0].filter_chains[0].filters.clear(),
        "listener in filter_chains[0].filters",
    ),
    (|s| s.listeners[0].name.clear(), "listener  name"),
    (
        |s| s.listeners.push(s.listeners[0].clone()),
        "listener in name",
    ),
];

/// Changes that Envoy 1.40 accepts.
const ACCEPTED: &[Change] = &[
    |_| {},
    |s| {
        let mut twin = s.virtual_hosts[0].clone();
        twin.domains = vec!["b.example".to_owned()];
        s.virtual_hosts.push(twin);
    },
    |s| set_regex(s, "(?i)fix1"),
    |s| set_regex(s, "(?i)fix\\[1\\.\\*"),
    |s| set_regex(s, &format!("(?i){}", "b".repeat(96))),
    |s| set_regex(s, &"\\W".repeat(19)),
    |s| set_regex(s, "\\p{L}\\p{P}\\p{S}\\p{Greek}"),
    |s| set_regex(s, "(?i)[^a-fk-m][[:^punct:]]{3}[а-яё]{0,5}"),
    |s| set_weights(s, &[100, 0]),
    |s| set_weights(s, &[100, 30]),
    |s| set_weights(s, &[100]),
    |s| s.clusters[0].health_checks = vec![tcp_check()],
    |s| s.clusters[0].ignore_health_on_host_removal = true,
    |s| s.assignments = vec![assignment_at("a", "2a02:6b8::1", 0)],
    |s| {
        let twin = endpoint(s).clone();
        s.assignments[0].endpoints[0].lb_endpoints.push(twin);
    },
    |s| s.assignments[0].endpoints[0].priority = 2,
    |s| s.virtual_hosts[0].domains = vec!["a b".to_owned(), "*.x:80".to_owned(), "*".to_owned()],
    |s| set_to_unknown(s),
];

fn changed(change: Change) -> ServiceResources {
    let mut service = service("registry", "a");
    service.listeners.push(listener("in", 8080));
    change(&mut service);
    service
}

fn found(change: Change) -> Vec<String> {
    let reasons = validate(&changed(change)).into_iter();
    reasons
        .map(|reason| format!("{} {}", reason.resource, reason.field))
        .collect()
}

/// Requests the protocol by ALPN, on a connection without it.
fn set_alpn(service: &mut ServiceResources) {
    let options = HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::AutoConfig(
            AutoHttpConfig::default(),
        )),
        ..HttpProtocolOptions::default()
    };
    let known = &mut service.clusters[0].typed_extension_protocol_options;
    known.insert(HttpProtocolOptions::full_name(), any(&options));
}

fn set_to_unknown(service: &mut ServiceResources) {
    let Some(Action::Route(action)) = &mut service.virtual_hosts[0].routes[0].action else {
        panic!("it is a route");
    };
    action.cluster_specifier = Some(ClusterSpecifier::Cluster("nowhere".to_owned()));
}

#[test]
fn what_envoy_rejects_is_rejected_with_its_place() {
    for (change, expected) in REJECTED.iter().chain(REJECTED_HERE) {
        assert_eq!(found(*change), [*expected]);
    }
}

#[test]
fn what_envoy_accepts_is_accepted() {
    for (at, change) in ACCEPTED.iter().enumerate() {
        assert_eq!(found(*change), <[String; 0]>::default(), "row {at}");
    }
}

/// Checks the rows with a real Envoy: it rejects what is rejected here because of it, and accepts what is
/// published.
#[tokio::test]
async fn a_real_envoy_says_the_same() {
    let Some(envoy) = testkit::peers::find("envoy") else {
        return;
    };
    for (change, row) in REJECTED {
        let verdict = oracle::validate(&envoy, &changed(*change)).await;
        assert!(verdict.is_err(), "Envoy accepts what is rejected as {row}");
    }
    for (at, change) in ACCEPTED.iter().enumerate() {
        let verdict = oracle::validate(&envoy, &changed(*change)).await;
        assert_eq!(verdict, Ok(()), "row {at}");
    }
}
