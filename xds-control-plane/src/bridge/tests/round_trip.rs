//! Round trips from the model to Envoy and back.

use std::collections::BTreeMap;

use discovery_xds::read::{Composed, compose, read_cluster, read_endpoints, read_routes};
use proptest::prelude::*;
use proxy_model::config::ProxyConfig;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Snapshot};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use super::super::{BridgeOptions, Bridged, to_envoy};
use super::envoy::Request;
use super::{compiled, hosts};

fn carrying() -> BridgeOptions {
    BridgeOptions::default().with_carried_source(true)
}

pub(super) fn back(bridged: &Bridged) -> Composed {
    let routes = RouteConfiguration {
        name: "main".into(),
        virtual_hosts: hosts(bridged),
        ..RouteConfiguration::default()
    };
    let (routes, _) = read_routes(&routes).unwrap();
    let mut clusters = BTreeMap::new();
    let mut endpoints = BTreeMap::new();
    for service in &bridged.services {
        for cluster in &service.clusters {
            clusters.insert(cluster.name.clone(), read_cluster(cluster).unwrap().0);
        }
        for assignment in &service.assignments {
            let name = assignment.cluster_name.clone();
            endpoints.insert(name, read_endpoints(assignment).unwrap().0);
        }
    }
    compose([&routes], &clusters, &endpoints)
}

/// A configuration with examples of all that has a form in Envoy, and of what has none.
const EVERYTHING: &str = r#"{"Routes":{
    "b":{"ClusterId":"c","Match":{"Path":"/x/{**rest}","Hosts":["b.test"]}},
    "a":{"ClusterId":"C","Match":{"Path":"/x/{**more}"},"Order":3,"Timeout":"00:00:05","MaxRequestBodySize":7,
        "Metadata":{"k":"v"},"Transforms":[{"PathRemovePrefix":"/x"},{"ResponseHeader":"a","Set":"100%"}]},
    "lists":{"WeightedClusters":[{"ClusterId":"c","Weight":3},{"ClusterId":"gone"}],"Match":{"Hosts":["*.b.test","a.test:81"],
        "Methods":["GET"],"Headers":[{"Name":"x","Values":["1"],"IsCaseSensitive":true}],
        "QueryParameters":[{"Name":"q","Mode":"Exists"}]}},
    "refused":{"ClusterId":"c","Match":{"Path":"/y"},"Filters":["audit"]},
    "nowhere":{"Match":{"Path":"/z"}}},
  "Clusters":{
    "c":{"LoadBalancingPolicy":"LeastRequests","HttpClient":{"MaxConnectionsPerServer":9},"Metadata":{"k":"v"},
        "HealthCheck":{"Active":{"Enabled":true,"Path":"/health","Interval":"00:00:03"},"Passive":{"Enabled":true}},
        "SessionAffinity":{"Enabled":true,"AffinityKeyName":"k"},
        "Destinations":{"D1":{"Address":"http://10.0.0.1:81/base","Weight":4,"Zone":"z","Priority":5,"Metadata":{"m":"n"}},
            "d2":{"Address":"https://10.0.0.2/base","Host":"d2.test","Health":"https://10.0.0.2:82/"}}},
    "named":{"HttpRequest":{"Version":"2","VersionPolicy":"RequestVersionExact"},"Destinations":{"d":{"Address":"https://d.test"}}},
    "empty":{}}}"#;

#[test]
fn nothing_is_lost_on_the_way_to_a_proxy_of_this_family() {
    let snapshot = compiled(EVERYTHING);
    let composed = back(&to_envoy("test", &snapshot, &carrying()));
    assert!(composed.problems.is_empty(), "{}", composed.problems);
    assert_eq!(&composed.config, snapshot.config());
    let ids = |config: &ProxyConfig| config.routes.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        ids(&composed.config),
        ids(snapshot.config()),
        "the order, too"
    );
}

#[test]
fn what_was_changed_on_the_way_is_what_counts() {
    let snapshot = compiled(
        r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/{**rest}"}}},
            "Clusters":{"c":{"Destinations":{"d":{"Address":"http://10.0.0.1/"}}}}}"#,
    );
    let mut bridged = to_envoy("test", &snapshot, &carrying());
    for service in &mut bridged.services {
        for host in &mut service.virtual_hosts {
            host.routes[0]
                .request_headers_to_remove
                .push("x-secret".into());
        }
        for assignment in &mut service.assignments {
            assignment.endpoints[0].lb_endpoints[0].load_balancing_weight = None;
        }
    }
    // The default headers hold values that are no fixed texts.
    for service in &mut bridged.services {
        for host in &mut service.virtual_hosts {
            host.routes[0].request_headers_to_add.clear();
        }
    }
    let composed = back(&bridged);
    let (_, route) = composed.config.routes.first().unwrap();
    let removed = |name: &str| {
        (route.transforms.iter().flatten())
            .any(|transform| transform.values().any(|value| value == name))
    };
    assert!(removed("x-secret"), "{route:?}");
    let (id, _) = composed.config.clusters[0].destinations.first().unwrap();
    assert_eq!(id.as_str(), "10.0.0.1:80");
}

#[test]
fn that_something_was_changed_on_the_way_is_said() {
    let snapshot = compiled(
        r#"{"Clusters":{"c":{"Destinations":{
            "d":{"Address":"http://10.0.0.1/","Priority":3,"Zone":"near"},
            "e":{"Address":"http://10.0.0.2/","Priority":7}}}}}"#,
    );
    let said = |change: fn(&mut ClusterLoadAssignment, &mut Cluster)| {
        let bridged = to_envoy("test", &snapshot, &carrying());
        let mut service = bridged.services.into_iter().next().unwrap();
        change(&mut service.assignments[0], &mut service.clusters[0]);
        let (endpoints, mut problems) = read_endpoints(&service.assignments[0]).unwrap();
        let (cluster, more) = read_cluster(&service.clusters[0]).unwrap();
        problems.append(more);
        let clusters = BTreeMap::from([("c".to_owned(), cluster)]);
        let composed = compose(
            [],
            &clusters,
            &BTreeMap::from([("c".to_owned(), endpoints)]),
        );
        let told = problems
            .iter()
            .filter(|problem| problem.pointer.ends_with("/metadata"));
        let ids = composed.config.clusters[0]
            .destinations
            .keys()
            .map(ToString::to_string);
        (told.count(), ids.collect::<Vec<_>>())
    };
    assert_eq!(said(|_, _| {}), (0, vec!["d".to_owned(), "e".to_owned()]));
    let own = "10.0.0.1:80";
    let changes: [fn(&mut ClusterLoadAssignment, &mut Cluster); 3] = [
        // In the endpoint itself, and where it is.
        |found, _| found.endpoints[0].lb_endpoints[0].load_balancing_weight = None,
        |found, _| found.endpoints[0].priority = 2,
        |found, _| found.endpoints[0].locality = None,
    ];
    for change in changes {
        let (count, ids) = said(change);
        assert_eq!((count, ids.contains(&own.to_owned())), (1, true), "{ids:?}");
    }
    assert_eq!(said(|_, cluster| cluster.lb_policy = 3).0, 1);
}

fn route() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["/{**rest}", "/a/{**rest}", "/a/b/{**rest}", "/"]);
    let host = prop::sample::select(vec![
        "",
        r#""Hosts":["a.test"],"#,
        r#""Hosts":["*.a.test"],"#,
        r#""Hosts":["*.test"],"#,
    ]);
    let methods = prop::sample::select(vec!["", r#""Methods":["GET"],"#]);
    let headers = prop::sample::select(vec![
        "",
        r#""Headers":[{"Name":"x","Values":["1"],"Mode":"Contains"}],"#,
    ]);
    (path, host, methods, headers, any::<bool>()).prop_map(|(path, host, methods, headers, own)| {
        let cluster = if own { r#""ClusterId":"c","# } else { "" };
        // The content of Envoy's own headers cannot be written without them.
        format!(
            r#"{{{cluster}"Match":{{{host}{methods}{headers}"Path":"{path}"}},
            "Transforms":[{{"X-Forwarded":"Off"}},{{"RequestHeaderOriginalHost":"true"}}]}}"#
        )
    })
}

proptest! {
    /// Routes are read from Envoy's fields alone, without the model's own form.
    #[test]
    fn what_both_can_say_means_the_same_again(
        routes in prop::collection::vec(route(), 1..6),
        requests in prop::collection::vec((
            prop::sample::select(vec!["a.test", "b.a.test", "c.test", "other"]),
            prop::sample::select(vec!["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab"]),
            any::<bool>(),
        ), 8),
    ) {
        let routes: Vec<String> = (routes.iter().enumerate())
            .map(|(at, route)| format!(r#""r{at}":{route}"#))
            .collect();
        let json = format!(
            r#"{{"Routes":{{{}}},"Clusters":{{"c":{{"HttpRequest":{{"Version":"1.1","VersionPolicy":"RequestVersionExact"}},
                "Destinations":{{"d":{{"Address":"http://10.0.0.1:8080/","Host":"d.test"}}}}}}}}}}"#,
            routes.join(",")
        );
        let snapshot = compiled(&json);
        let options = BridgeOptions::default();
        let bridged = to_envoy("test", &snapshot, &options);
        // GET alone is an expression that ignores case.
        let composed = back(&bridged);
        let (again, _) = Snapshot::compile(composed.config, &CompileOptions::default()).unwrap();
        let destination = |snapshot: &Snapshot| snapshot.clusters()[0].destinations()[0].clone();
        let (one, other) = (destination(&again), destination(&snapshot));
        prop_assert_eq!((one.address(), one.host()), (other.address(), other.host()));
        for (host, path, has_header) in requests {
            let mut request = Request::get(host, path);
            if has_header {
                request = request.with("x", "01");
            }
            let target = |snapshot: &Snapshot| match snapshot.find(&request) {
                Lookup::Matched(index) => {
                    Some(snapshot.route_at(index).config().cluster_id.clone())
                }
                _ => None,
            };
            // For an unmatched request, one responds with 404 and the other 503.
            prop_assert_eq!(target(&again).flatten(), target(&snapshot).flatten(), "{:?}", request);
        }
    }
}
