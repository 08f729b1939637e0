mod affinity;

use http::Request;
use serde_json::{Value, json};

use super::*;
use crate::Proxy;
use crate::fixtures::snapshot;
use crate::health::Health;

const CONFIG: &str = r#"{
    "Routes":{
        "orders":{"ClusterId":"c1","Match":{"Path":"/orders/{id:int}","Methods":["GET","POST"]}},
        "slow":{"ClusterId":"c1","Match":{"Path":"/orders/{id}","Methods":["GET"],"Headers":[{"Name":"X-Slow","Mode":"Exists"}]}},
        "shop":{"ClusterId":"gone","Match":{"Hosts":["shop.example"],"Path":"/shop"}},
        "none":{"Match":{"Path":"/none"}},
        "empty":{"ClusterId":"c2","Match":{"Path":"/empty"}},
        "split":{"Match":{"Path":"/split"},"WeightedClusters":[
            {"ClusterId":"c2","Weight":1},{"ClusterId":"C1","Weight":3}]},
        "tenants":{"Match":{"Path":"/tenants"},"PartitionedClusters":{"Key":{"Header":"X-Tenant"},"Hash":"Fnv1a64",
            "Partitions":[{"ClusterId":"c1","LowKey":-9223372036854775808,"HighKey":-1},
                {"ClusterId":"c2","LowKey":0,"HighKey":9223372036854775807}]}},
        "shelves":{"Match":{"Path":"/shelves/{shelf}"},"PartitionedClusters":{"Key":{"RouteValue":"shelf"},
            "Partitions":[{"ClusterId":"gone","LowKey":0,"HighKey":9},{"ClusterId":"c1","LowKey":10,"HighKey":10}]}},
        "secret":{"ClusterId":"c1","Match":{"Path":"/secret"},"AuthorizationPolicy":"Default"}},
    "Clusters":{
        "c1":{"LoadBalancingPolicy":"RoundRobin","HealthCheck":{"Active":{"Enabled":true}},"Destinations":{
            "b":{"Address":"http://h2:8000/base"},
            "a":{"Address":"http://h1:8000/"},
            "off":{"Address":"http://h3:8000/","Weight":0}}},
        "c2":{}}}"#;

fn parts(method: &str, uri: &str) -> Parts {
    let request = Request::builder().method(method).uri(uri).body(()).unwrap();
    request.into_parts().0
}

fn explained(method: &str, uri: &str) -> Explanation {
    let connection = ConnectionInfo::new("192.0.2.7:4711".parse().unwrap());
    explain(
        &snapshot(CONFIG),
        &ProxySettings::default(),
        &parts(method, uri),
        connection,
    )
}

#[test]
fn a_match_tells_route_values_cluster_and_destinations() {
    let explanation = explained("GET", "http://any.example/orders/7?x=1");
    assert_eq!(explanation.outcome, Verdict::Matched);
    assert_eq!(explanation.route.unwrap(), "orders");
    assert_eq!(explanation.route_values["id"], "7");
    assert_eq!(explanation.cluster.unwrap(), "c1");
    assert_eq!(explanation.policy.unwrap(), "RoundRobin");
    let destinations: Vec<_> = explanation
        .destinations
        .iter()
        .map(|d| (d.id.as_str(), d.eligible, d.why.as_deref()))
        .collect();
    assert_eq!(
        destinations,
        [
            ("b", true, None),
            ("a", true, None),
            ("off", false, Some("its weight is 0"))
        ]
    );
    let forwarded = explanation.forwarded.unwrap();
    assert_eq!(forwarded.method, "GET");
    assert_eq!(
        forwarded.uri, "http://h1:8000/orders/7?x=1",
        "the first by id"
    );
    let header = |name: &str| {
        let mut headers = forwarded.headers.iter();
        headers
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(header("Host"), Some("h1:8000"));
    assert_eq!(header("X-Forwarded-For"), Some("192.0.2.7"));
    assert_eq!(header("X-Forwarded-Host"), Some("any.example"));
}

#[test]
fn what_was_considered_says_why_not() {
    let explanation = explained("GET", "/orders/7");
    let considered: Vec<_> = explanation
        .considered
        .iter()
        .map(|c| (c.route.as_str(), c.rejected.as_str()))
        .collect();
    assert_eq!(
        considered[0],
        ("slow", "header x-slow"),
        "the nearest miss comes first"
    );
    assert!(considered.contains(&("none", "path")));
    assert!(considered.contains(&("shop", "host")));
    assert_eq!(considered.len(), 8);
}

#[test]
fn a_route_that_comes_later_is_considered_too() {
    let mut request = parts("GET", "/orders/7");
    request.headers.insert("x-slow", "1".parse().unwrap());
    let explanation = explain(
        &snapshot(CONFIG),
        &ProxySettings::default(),
        &request,
        ConnectionInfo::default(),
    );
    assert_eq!(explanation.route.unwrap(), "orders");
    assert_eq!(explanation.considered[0].rejected, "precedence");
}

#[test]
fn every_way_to_fail_has_its_word() {
    for (method, uri, outcome, status) in [
        ("GET", "/nowhere", Verdict::NotFound, 404),
        ("DELETE", "/orders/7", Verdict::MethodNotAllowed, 405),
        ("GET", "http://shop.example/shop", Verdict::NoCluster, 503),
        ("GET", "/none", Verdict::NoCluster, 503),
        ("GET", "/empty", Verdict::NoDestination, 503),
        ("GET", "/shelves/5", Verdict::NoCluster, 503),
        ("GET", "/shelves/11", Verdict::NoPartition, 400),
        ("GET", "/shelves/x", Verdict::NoPartition, 400),
        ("GET", "/tenants", Verdict::NoPartition, 400),
        ("GET", "/secret", Verdict::RouteRejected, 500),
    ] {
        let explanation = explained(method, uri);
        assert_eq!(explanation.outcome, outcome, "{method} {uri}");
        assert_eq!(
            explanation.status.unwrap().as_u16(),
            status,
            "{method} {uri}"
        );
        assert!(explanation.forwarded.is_none(), "{method} {uri}");
    }
    assert_eq!(explained("DELETE", "/orders/7").allow, ["GET", "POST"]);
    let missing = explained("GET", "http://shop.example/shop");
    assert_eq!(
        missing.cluster.unwrap(),
        "gone",
        "the cluster that the route names"
    );
}

#[test]
fn of_weighted_clusters_the_largest_is_shown() {
    let explanation = explained("GET", "/split");
    assert_eq!(explanation.cluster.unwrap(), "c1");
    assert_eq!(
        explanation.weighted_clusters,
        [("c2".into(), 0.25), ("c1".into(), 0.75)]
    );
}

#[test]
fn of_partitioned_clusters_the_one_that_has_the_key_is_shown() {
    let partition = |source: &str, key: Option<&str>, number: Option<&str>| json!({ "source": source, "key": key, "number": number, "keys": null, "why": null });
    let with = |mut partition: Value, name: &str, text: &str| {
        partition[name] = json!(text);
        partition
    };
    let shelf =
        |key: &str, number: Option<&str>| partition("the route value shelf", Some(key), number);
    for (path, tenant, cluster, expected) in [
        (
            "/shelves/10",
            None,
            Some("c1"),
            with(shelf("10", Some("10")), "keys", "10"),
        ),
        (
            "/shelves/%30%35",
            None,
            Some("gone"),
            with(shelf("05", Some("5")), "keys", "0 to 9"),
        ),
        (
            "/shelves/11",
            None,
            None,
            with(shelf("11", Some("11")), "why", "no partition has the key"),
        ),
        (
            "/shelves/x",
            None,
            None,
            with(
                shelf("x", None),
                "why",
                "the partition key is not a whole number of 64 bits",
            ),
        ),
        (
            "/tenants",
            Some("foobar"),
            Some("c1"),
            with(
                partition(
                    "the header x-tenant",
                    Some("foobar"),
                    Some("-8821353812377114648"),
                ),
                "keys",
                "-9223372036854775808 to -1",
            ),
        ),
        (
            "/tenants",
            None,
            None,
            with(
                partition("the header x-tenant", None, None),
                "why",
                "the request has no partition key",
            ),
        ),
    ] {
        let mut request = parts("GET", path);
        if let Some(tenant) = tenant {
            request.headers.insert("x-tenant", tenant.parse().unwrap());
        }
        let explanation = explain(
            &snapshot(CONFIG),
            &ProxySettings::default(),
            &request,
            ConnectionInfo::default(),
        );
        let shown = serde_json::to_value(&explanation.partition).unwrap();
        assert_eq!(shown, expected, "{path}");
        let found = explanation.cluster.as_ref().map(ClusterId::as_str);
        assert_eq!(found, cluster, "{path}");
    }
    assert_eq!(explained("GET", "/split").partition, None);
}

#[test]
fn a_live_proxy_knows_about_health() {
    let (proxy, _driver) = Proxy::builder().snapshot(snapshot(CONFIG)).build().unwrap();
    {
        let generation = proxy.shared().load();
        let cluster = generation.cluster(ClusterIndex(0));
        let a = &cluster.destinations()[1];
        a.health()
            .update(|record| record.health = Health::Unhealthy);
        cluster.live().health_changed();
    }
    let explanation = proxy.explain(&parts("GET", "/orders/7"), ConnectionInfo::default());
    let a = &explanation.destinations[1];
    assert_eq!(a.why.as_deref(), Some("unhealthy by its active check"));
    assert_eq!(
        explanation.forwarded.unwrap().uri,
        "http://h2:8000/base/orders/7"
    );
}

#[test]
fn the_json_has_the_documented_shape() {
    let json = serde_json::to_value(explained("PUT", "/orders/7")).unwrap();
    assert_eq!(json["outcome"], "method_not_allowed");
    assert_eq!(json["status"], 405);
    assert_eq!(json["allow"], serde_json::json!(["GET", "POST"]));
    assert!(json["route"].is_null() && json["cluster"].is_null() && json["forwarded"].is_null());
    assert_eq!(json["route_values"], serde_json::json!({}));
    assert_eq!(json["considered"][0]["rejected"], "method");

    let json = serde_json::to_value(explained("GET", "/orders/7")).unwrap();
    assert_eq!(json["outcome"], "matched");
    assert!(json["status"].is_null());
    assert_eq!(
        json["destinations"][1],
        serde_json::json!({"id":"a","address":"http://h1:8000/","eligible":true,"why":null})
    );
    assert_eq!(json["forwarded"]["method"], "GET");
    assert!(json["forwarded"]["headers"][0].is_array());
}

#[test]
fn the_nearest_miss_of_500_routes_comes_first_with_what_was_wanted_and_came() {
    let routes: Vec<_> = (0..500)
        .map(|i| {
            format!(
                r#""svc{i}":{{"ClusterId":"c","Match":{{"Hosts":["svc{i}.example"],"Path":"/svc{i}/{{**rest}}"}}}}"#
            )
        })
        .collect();
    let config = format!(
        r#"{{"Routes":{{{},"keyed":{{"ClusterId":"c","Match":{{"Path":"/keyed","Headers":[
            {{"Name":"X-Tenant","Values":["a","b"]}},{{"Name":"X-Api-Key","Values":["hidden"]}}]}}}}}},"Clusters":{{"c":{{}}}}}}"#,
        routes.join(",")
    );
    let snapshot = snapshot(&config);
    let explained = |path: &str, tenant: &str| {
        let mut request = parts("GET", path);
        request
            .headers
            .insert(http::header::HOST, "nohost.example".parse().unwrap());
        request.headers.insert("x-tenant", tenant.parse().unwrap());
        let settings = ProxySettings::default();
        explain(&snapshot, &settings, &request, ConnectionInfo::default())
    };
    let nearest = explained("/svc499/abc", "c").considered.swap_remove(0);
    assert_eq!(
        (nearest.route.as_str(), &*nearest.rejected),
        ("svc499", "host")
    );
    assert_eq!(nearest.misses.len(), 1);
    assert_eq!(nearest.misses[0].wanted, "svc499.example");
    assert_eq!(nearest.misses[0].came.as_deref(), Some("nohost.example"));

    let keyed = explained("/keyed", "c").considered.swap_remove(0);
    assert_eq!(keyed.route, "keyed");
    let misses: Vec<_> = keyed
        .misses
        .iter()
        .map(|miss| (&*miss.criterion, &*miss.wanted, miss.came.as_deref()))
        .collect();
    assert_eq!(
        misses,
        [
            ("header x-tenant", "ExactHeader a or b", Some("c")),
            ("header x-api-key", "(redacted)", None),
        ]
    );
    // Of equal misses, the path that shares most comes first.
    let mistyped = explained("/svc49x", "c");
    assert!(mistyped.considered[1].route.as_str().starts_with("svc49"));
}

#[test]
fn a_route_that_no_request_can_reach_is_found() {
    let snapshot = snapshot(
        r#"{"Routes":{
            "all":{"Order":-1,"ClusterId":"c","Match":{"Path":"/api/{**rest}"}},
            "below":{"ClusterId":"c","Match":{"Path":"/api/orders"}},
            "beside":{"ClusterId":"c","Match":{"Path":"/other"}},
            "first":{"Order":1,"ClusterId":"c","Match":{"Path":"/x/{a}"}},
            "wide":{"Order":2,"ClusterId":"c","Match":{"Path":"/x/{**a}"}}},
        "Clusters":{"c":{}}}"#,
    );
    let shadowed = shadowed_routes(&snapshot);
    assert_eq!(shadowed.len(), 1, "{shadowed:?}");
    assert_eq!(
        (shadowed[0].route.as_str(), shadowed[0].by.as_str()),
        ("below", "all")
    );
}

#[test]
fn a_long_list_of_routes_is_cut() {
    let routes: Vec<_> = (0..500)
        .map(|i| format!(r#""r{i}":{{"ClusterId":"c","Match":{{"Path":"/r{i}"}}}}"#))
        .collect();
    let config = format!(
        r#"{{"Routes":{{{}}},"Clusters":{{"c":{{}}}}}}"#,
        routes.join(",")
    );
    let request = parts("GET", "/r499");
    let explanation = explain(
        &snapshot(&config),
        &ProxySettings::default(),
        &request,
        ConnectionInfo::default(),
    );
    assert_eq!(explanation.considered.len(), 200);
    assert_eq!(explanation.considered_omitted, 299);
}
