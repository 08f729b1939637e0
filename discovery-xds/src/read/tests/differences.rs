//! Tests that differences from Envoy are always reported.

use proxy_model::Problems;
use xds_types::pb::envoy::config::cluster::v3::circuit_breakers::Thresholds;
use xds_types::pb::envoy::config::cluster::v3::cluster::CommonLbConfig;
use xds_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::{
    LocalityConfigSpecifier, LocalityWeightedLbConfig,
};
use xds_types::pb::envoy::config::cluster::v3::{CircuitBreakers, Cluster};
use xds_types::pb::envoy::config::core::v3::HealthStatus;
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::cluster_load_assignment::Policy;
use xds_types::pb::envoy::config::endpoint::v3::cluster_load_assignment::policy::DropOverload;
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::envoy::config::route::v3::QueryParameterMatcher;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::HostRewriteSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::r#type::v3::Percent;
use xds_types::pb::google::protobuf::{BoolValue, Duration, UInt32Value};

use super::super::{DIFFERS, read_cluster, read_endpoints};
use super::foreign::{host, read, to};

/// The last parts of the pointers of differences.
fn differences(problems: &Problems) -> Vec<String> {
    assert!(!problems.has_errors(), "{problems}");
    let found = problems.iter().filter(|problem| problem.code == DIFFERS);
    found
        .map(|problem| problem.pointer.rsplit('/').next().unwrap().to_owned())
        .collect()
}

#[test]
fn shares_thresholds_and_times_of_clusters_are_reported() {
    let plain = Cluster {
        name: "c".to_owned(),
        ..Cluster::default()
    };
    let (_, problems) = read_cluster(&plain).unwrap();
    assert_eq!(differences(&problems), <[&str; 0]>::default());
    let cluster = Cluster {
        connect_timeout: Some(Duration {
            seconds: 1,
            nanos: 0,
        }),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 30.0 }),
            locality_config_specifier: Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(
                LocalityWeightedLbConfig::default(),
            )),
            ..CommonLbConfig::default()
        }),
        ..plain
    };
    let (_, problems) = read_cluster(&cluster).unwrap();
    assert_eq!(
        differences(&problems),
        [
            "locality_weighted_lb_config",
            "healthy_panic_threshold",
            "connect_timeout"
        ]
    );
}

/// Bounds of a whole cluster have no effect, those of each destination have.
#[test]
fn thresholds_of_clusters_are_reported_and_those_of_hosts_honoured() {
    let most = |connections| Thresholds {
        max_connections: Some(UInt32Value { value: connections }),
        ..Thresholds::default()
    };
    for (of_cluster, of_hosts, reported, connections) in [
        (vec![], vec![], 0, None),
        (vec![most(7)], vec![], 1, None),
        (vec![], vec![most(9)], 0, Some(9)),
        (vec![most(7)], vec![most(9)], 1, Some(9)),
        // None at all would be no service.
        (vec![], vec![most(0)], 0, Some(1)),
    ] {
        let cluster = Cluster {
            name: "c".to_owned(),
            circuit_breakers: Some(CircuitBreakers {
                thresholds: of_cluster,
                per_host_thresholds: of_hosts,
            }),
            ..Cluster::default()
        };
        let (read, problems) = read_cluster(&cluster).unwrap();
        assert_eq!(differences(&problems), vec!["thresholds"; reported]);
        let client = read.config.http_client.as_ref();
        let allowed = client.and_then(|client| client.max_connections_per_server);
        assert_eq!(allowed, connections);
    }
}

/// A control plane that sheds load gets all of it, and hears so.
#[test]
fn requests_that_should_be_dropped_are_reported() {
    let drops = DropOverload {
        category: "load".to_owned(),
        ..DropOverload::default()
    };
    for (drop_overloads, reported) in [(vec![], 0), (vec![drops.clone(), drops], 1)] {
        let assignment = ClusterLoadAssignment {
            cluster_name: "c".to_owned(),
            policy: Some(Policy {
                drop_overloads,
                ..Policy::default()
            }),
            ..ClusterLoadAssignment::default()
        };
        let (_, problems) = read_endpoints(&assignment).unwrap();
        assert_eq!(differences(&problems), vec!["drop_overloads"; reported]);
    }
}

fn endpoint(status: HealthStatus) -> LbEndpoint {
    let socket = SocketAddress {
        address: format!("10.0.0.{}", i32::from(status) + 1),
        port_specifier: Some(PortSpecifier::PortValue(80)),
        ..SocketAddress::default()
    };
    LbEndpoint {
        health_status: status.into(),
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(AddressKind::SocketAddress(socket)),
            }),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    }
}

#[test]
fn health_that_counts_otherwise_is_reported() {
    use HealthStatus::{Degraded, Healthy, Timeout, Unhealthy, Unknown};
    for (statuses, endpoints, reported) in [
        (&[Healthy, Unknown, Unhealthy][..], 2, 0),
        (&[Healthy, Degraded], 2, 1),
        (&[Unhealthy, Timeout], 0, 1),
        // Envoy's default threshold of panic.
        (&[Healthy, Unhealthy], 1, 0),
        (&[Healthy, Unhealthy, Timeout], 1, 1),
        (&[], 0, 0),
    ] {
        let assignment = ClusterLoadAssignment {
            cluster_name: "c".to_owned(),
            endpoints: vec![LocalityLbEndpoints {
                lb_endpoints: statuses.iter().copied().map(endpoint).collect(),
                ..LocalityLbEndpoints::default()
            }],
            ..ClusterLoadAssignment::default()
        };
        let (read, problems) = read_endpoints(&assignment).unwrap();
        assert_eq!(read.len(), endpoints, "{statuses:?}");
        assert_eq!(differences(&problems).len(), reported, "{statuses:?}");
    }
}

fn place(priority: u32, statuses: &[HealthStatus]) -> LocalityLbEndpoints {
    LocalityLbEndpoints {
        priority,
        lb_endpoints: statuses.iter().copied().map(endpoint).collect(),
        ..LocalityLbEndpoints::default()
    }
}

/// Returns true if the health of the endpoints of these priorities is reported.
fn is_reported(priorities: &[&[HealthStatus]]) -> bool {
    let places = (0..).zip(priorities);
    let assignment = ClusterLoadAssignment {
        cluster_name: "c".to_owned(),
        endpoints: places
            .map(|(priority, statuses)| place(priority, statuses))
            .collect(),
        ..ClusterLoadAssignment::default()
    };
    let (_, problems) = read_endpoints(&assignment).unwrap();
    let found = differences(&problems);
    assert!(found.len() <= 1, "{found:?}");
    !found.is_empty()
}

/// The examples of Envoy's documentation: the healthy parts of two priorities in percent, and true if one panics.
#[test]
fn panic_is_reported_for_the_examples_of_envoys_documentation() {
    use HealthStatus::{Healthy, Unhealthy};
    for (first, second, panics) in [
        (72, 100, false),
        (71, 100, false),
        (50, 100, false),
        (25, 100, false),
        (0, 100, false),
        (72, 72, false),
        (71, 71, false),
        (50, 60, false),
        (25, 25, true),
        (5, 65, true),
    ] {
        let of = |healthy| [vec![Healthy; healthy], vec![Unhealthy; 100 - healthy]].concat();
        let reported = is_reported(&[&of(first), &of(second)]);
        assert_eq!(reported, panics, "{first} % and {second} %");
    }
}

#[test]
fn panic_counts_endpoints_as_envoy_does() {
    use HealthStatus::{Draining, Healthy, Timeout, Unhealthy, Unknown};
    for (priorities, reported) in [
        // Exactly the threshold is enough.
        (&[&[Healthy, Unhealthy][..]][..], false),
        (&[&[Unknown, Timeout, Unhealthy]], true),
        // What drains is not counted: one of two.
        (&[&[Healthy, Unhealthy, Draining, Draining]], false),
        (&[&[Healthy, Unhealthy, Unhealthy, Draining]], true),
        (&[&[Draining]], true),
        // 28 % and 70 % do not suffice together, and the first one has 20 % healthy endpoints.
        (
            &[
                &[Healthy, Unhealthy, Unhealthy, Unhealthy, Unhealthy],
                &[Healthy, Unhealthy],
            ],
            true,
        ),
        // The first one panics, and gets no requests.
        (&[&[Unhealthy], &[Healthy, Unhealthy]], false),
        (&[&[Draining], &[Healthy, Unhealthy]], false),
        // All panic: each gets requests by the number of its endpoints.
        (&[&[Unhealthy], &[Healthy, Unhealthy, Unhealthy]], true),
    ] {
        assert_eq!(is_reported(priorities), reported, "{priorities:?}");
    }
}

#[test]
fn hosts_and_parameters_of_routes_are_reported() {
    let mut route = to("c", PathSpecifier::Prefix("/".into()));
    let Some(Action::Route(action)) = &mut route.action else {
        unreachable!()
    };
    let auto = HostRewriteSpecifier::AutoHostRewrite(BoolValue { value: true });
    action.host_rewrite_specifier = Some(auto);
    let wanted = route.r#match.as_mut().unwrap();
    wanted.query_parameters.push(QueryParameterMatcher {
        name: "b".to_owned(),
        ..QueryParameterMatcher::default()
    });
    let (_, problems) = read(vec![host(&["*"], vec![route])]).unwrap();
    let found = differences(&problems);
    for field in ["auto_host_rewrite", "present_match"] {
        assert!(found.contains(&field.to_owned()), "{found:?}");
    }
}
