//! Tests that differences from Envoy are always reported.

use proxy_model::Problems;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::CommonLbConfig;
use xds_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::{
    LocalityConfigSpecifier, LocalityWeightedLbConfig,
};
use xds_types::pb::envoy::config::core::v3::HealthStatus;
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::envoy::config::route::v3::QueryParameterMatcher;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::HostRewriteSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::r#type::v3::Percent;
use xds_types::pb::google::protobuf::{BoolValue, Duration};

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
