//! Clusters, endpoints and headers.

use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, LbPolicy,
};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HostRewriteSpecifier,
};

use super::{bridged, cluster, hosts};

#[test]
fn destinations_become_endpoints_by_tier_and_zone() {
    let (_, bridged) = bridged(
        r#"{"Clusters":{"c":{"LoadBalancingPolicy":"RoundRobin","Destinations":{
            "a":{"Address":"http://10.0.0.1:81/","Weight":3,"Zone":"z1"},
            "b":{"Address":"http://[2001:db8::1]/","Zone":"z2","Host":"b.test"},
            "c":{"Address":"http://10.0.0.3/","Priority":7},
            "idle":{"Address":"http://10.0.0.4/","Weight":0}}}}}"#,
    );
    let written = cluster(&bridged, "c");
    assert_eq!(written.lb_policy, i32::from(LbPolicy::RoundRobin));
    assert_eq!(
        written.cluster_discovery_type,
        Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into()))
    );
    let assignment = &bridged.services[0].assignments[0];
    let factor = assignment
        .policy
        .as_ref()
        .unwrap()
        .overprovisioning_factor
        .as_ref();
    assert_eq!(
        factor.unwrap().value,
        300,
        "one of three is enough to keep a tier"
    );
    let found: Vec<_> = (assignment.endpoints.iter())
        .flat_map(|place| {
            let zone = place
                .locality
                .as_ref()
                .map_or("", |locality| locality.zone.as_str());
            place.lb_endpoints.iter().map(move |endpoint| {
                let Some(HostIdentifier::Endpoint(inner)) = &endpoint.host_identifier else {
                    panic!("{endpoint:?}");
                };
                let weight = endpoint
                    .load_balancing_weight
                    .as_ref()
                    .map(|weight| weight.value);
                (place.priority, zone, inner.hostname.as_str(), weight)
            })
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, "z1", "10.0.0.1:81", Some(3)),
            (0, "z2", "b.test", Some(1)),
            (1, "", "10.0.0.3", Some(1)),
        ]
    );
}

#[test]
fn a_destination_that_is_gone_gets_nothing_though_its_probes_succeed() {
    let (_, bridged) = bridged(
        r#"{"Clusters":{"c":{"HealthCheck":{"Active":{"Enabled":true,"Path":"/health"}},
            "Destinations":{"a":{"Address":"http://10.0.0.1/"}}}}}"#,
    );
    let written = cluster(&bridged, "c");
    assert_eq!(written.health_checks.len(), 1);
    assert!(written.ignore_health_on_host_removal);
}

#[test]
fn weights_that_are_all_nothing_are_equal() {
    let (_, bridged) = bridged(
        r#"{"Clusters":{"c":{"Destinations":{"a":{"Address":"http://10.0.0.1/","Weight":0},"b":{"Address":"http://10.0.0.2/","Weight":0}}}}}"#,
    );
    let endpoints = &bridged.services[0].assignments[0].endpoints[0].lb_endpoints;
    assert_eq!(endpoints.len(), 2);
    assert!(
        endpoints
            .iter()
            .all(|endpoint| endpoint.load_balancing_weight.is_none())
    );
}

#[test]
fn destinations_with_names_are_in_their_cluster_and_resolved() {
    let (_, bridged) = bridged(
        r#"{"Clusters":{"c":{"Destinations":{"a":{"Address":"https://a.test/"},"b":{"Address":"http://10.0.0.2/"}}}}}"#,
    );
    let written = cluster(&bridged, "c");
    assert_eq!(
        written.cluster_discovery_type,
        Some(ClusterDiscoveryType::Type(DiscoveryType::StrictDns.into()))
    );
    assert!(bridged.services[0].assignments.is_empty());
    assert_eq!(
        written.load_assignment.as_ref().unwrap().endpoints[0]
            .lb_endpoints
            .len(),
        2
    );
    let sockets: Vec<_> = written
        .transport_socket_matches
        .iter()
        .map(|socket| &*socket.name)
        .collect();
    assert_eq!(sockets, ["cleartext", "a.test"]);
}

#[test]
fn headers_and_hosts_are_written_as_the_proxy_writes_them() {
    let (_, bridged) = bridged(
        r#"{"Routes":{
            "default":{"ClusterId":"c","Match":{"Path":"/a"}},
            "own":{"ClusterId":"c","Match":{"Path":"/b"},"Transforms":[
                {"X-Forwarded":"Off"},{"RequestHeaderOriginalHost":"true"},
                {"RequestHeader":"X-A","Append":"1"},{"RequestHeaderRemove":"X-A"},{"RequestHeader":"X-A","Append":"100%"},
                {"RequestHeader":"X-B","Append":"1"},{"RequestHeader":"X-B","Set":"2"},
                {"ResponseHeaderRemove":"Server","When":"Always"},{"ResponseHeader":"X-R","Set":"r","When":"Always"}]},
            "host":{"WeightedClusters":[{"ClusterId":"c","Weight":95},{"ClusterId":"gone","Weight":5}],"Match":{"Path":"/c"},
                "Transforms":[{"X-Forwarded":"Remove"},{"RequestHeader":"Host","Set":"h.test:81"}]}},
          "Clusters":{"c":{"HttpRequest":{"ActivityTimeout":"00:00:07"}}}}"#,
    );
    assert!(bridged.problems.is_empty(), "{}", bridged.problems);
    let hosts = hosts(&bridged);
    let route = |name: &str| {
        hosts[0]
            .routes
            .iter()
            .find(|route| route.name == name)
            .unwrap()
    };
    let action = |name: &str| match &route(name).action {
        Some(Action::Route(action)) => action.clone(),
        other => panic!("{other:?}"),
    };
    let added = |name: &str| -> Vec<(String, String, i32)> {
        (route(name).request_headers_to_add.iter())
            .map(|option| {
                let header = option.header.clone().unwrap();
                (header.key, header.value, option.append_action)
            })
            .collect()
    };
    assert_eq!(
        added("default"),
        [
            (
                "x-forwarded-for".into(),
                "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%".into(),
                2
            ),
            ("x-forwarded-host".into(), "%REQ(:AUTHORITY)%".into(), 2),
            ("x-forwarded-proto".into(), "%REQ(:SCHEME)%".into(), 2),
        ]
    );
    assert_eq!(
        route("default").request_headers_to_remove,
        ["x-forwarded-prefix", "forwarded"]
    );
    assert!(matches!(
        action("default").host_rewrite_specifier,
        Some(HostRewriteSpecifier::AutoHostRewrite(_))
    ));
    assert_eq!(action("default").idle_timeout.unwrap().seconds, 7);
    assert_eq!(action("default").timeout.unwrap().seconds, 0);
    assert_eq!(
        added("own"),
        [
            ("x-a".into(), "100%%".into(), 0),
            ("x-b".into(), "2".into(), 2)
        ]
    );
    assert_eq!(route("own").request_headers_to_remove, ["x-a"]);
    assert_eq!(route("own").response_headers_to_remove, ["server"]);
    assert_eq!(action("own").host_rewrite_specifier, None);
    assert_eq!(
        action("host").host_rewrite_specifier,
        Some(HostRewriteSpecifier::HostRewriteLiteral("h.test:81".into()))
    );
    let Some(ClusterSpecifier::WeightedClusters(weighted)) = action("host").cluster_specifier
    else {
        panic!("not weighted");
    };
    let shares: Vec<_> = (weighted.clusters.iter())
        .map(|share| (share.name.as_str(), share.weight.as_ref().unwrap().value))
        .collect();
    assert_eq!(shares, [("c", 95), ("gone", 5)]);
}
