//! Additions of a program to routes and clusters: transforms of its own, hooks, policies of available destinations.

use std::sync::Arc;

use proxy_model::compiled::{Cluster, Route};
use proxy_model::config::{ProxyConfig, TransformConfig};
use proxy_model::{ClusterId, DestinationId, Snapshot};
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
use proxy_runtime::health::{AvailableDestinationsPolicy, Health};
use proxy_runtime::{ClusterChange, Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::origin::{Echo, Origin};

use crate::forward::front::{Front, config, config_with, config_with_route, snapshot};

/// Adds a line to `x-mark`.
struct Mark(String);

impl Filter for Mark {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        head.append("x-mark", &*self.0).unwrap();
        Flow::Continue
    }
}

fn mark(entry: &TransformConfig) -> Result<Arc<dyn Filter>, String> {
    match &*entry["Mark"] {
        "" => Err("a mark is not empty".to_owned()),
        "panic" => panic!("a mark panics"),
        text => Ok(Arc::new(Mark(text.to_owned()))),
    }
}

fn builder() -> ProxyBuilder {
    let hook = |route: &Route| -> Vec<Arc<dyn Filter>> {
        let metadata = route.config().metadata.as_ref();
        let hooked = metadata.and_then(|metadata| metadata.get("Hooked"));
        let mark = |text: &String| -> Arc<dyn Filter> { Arc::new(Mark(text.clone())) };
        hooked.map(mark).into_iter().collect()
    };
    Proxy::builder()
        .filter("named", Mark("named".to_owned()))
        .transform("Mark", mark)
        .route_hook(hook)
}

#[tokio::test]
async fn transforms_of_the_program_are_filters_of_the_route() {
    let origin = Origin::echo();
    let route = json!({
        "Filters": ["named"],
        "Metadata": { "Hooked": "hook" },
        "Transforms": [
            { "Mark": "first" }, { "PathPrefix": "/x" }, { "Mark": "second" },
            { "RequestHeader": "x-mark", "Append": "built-in" },
        ],
    });
    let config = config_with_route(&[&origin.url()], &route);
    let front = Front::build(&config, Origin::builder(), builder());
    for mut client in [front.http1().await, front.http2().await] {
        let echo: Echo = client.get("/").await.unwrap().json();
        assert_eq!(echo.path_and_query(), "/x/");
        let marks: Vec<_> = echo
            .header("x-mark")
            .iter()
            .flat_map(|line| line.split(", "))
            .collect();
        assert_eq!(marks, ["named", "first", "second", "hook", "built-in"]);
    }
}

/// Problems of a configuration whose route has these transforms.
fn problems(transforms: &Value) -> Vec<(String, String)> {
    let config = config_with_route(&["http://h/"], &json!({ "Transforms": transforms }));
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    match Snapshot::compile(config, &builder().compile_options()) {
        Ok(_) => Vec::new(),
        Err(problems) => {
            let each = problems.iter();
            each.map(|it| (it.pointer.clone(), it.code.to_string()))
                .collect()
        }
    }
}

#[test]
fn a_wrong_entry_is_found_when_it_is_compiled() {
    let error = |code: &str| vec![("/Routes/all/Transforms/0".to_owned(), code.to_owned())];
    assert_eq!(problems(&json!([{ "Mark": "a" }])), []);
    assert_eq!(
        problems(&json!([{ "Mark": "" }])),
        error("invalid_transform_value")
    );
    assert_eq!(
        problems(&json!([{ "Mark": "panic" }])),
        error("invalid_transform_value")
    );
    assert_eq!(
        problems(&json!([{ "Marc": "a" }])),
        error("unknown_transform")
    );
    // A built-in transform is one, whatever else is there.
    let both = problems(&json!([{ "PathSet": "/", "Mark": "a" }]));
    assert_eq!(both[0].1, "unexpected_transform_key");
}

#[test]
fn a_key_of_another_proxy_is_rejected() {
    let config = config_with_route(&["http://h/"], &json!({ "Transforms": [{ "Mark": "a" }] }));
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &builder().compile_options()).unwrap();
    let built = Proxy::builder().snapshot(Arc::new(snapshot)).build();
    let problems = built.map(drop).unwrap_err();
    assert!(
        problems.iter().any(|it| it.code == "unknown_transform"),
        "{problems}"
    );
}

#[test]
fn a_hook_that_panics_rejects_the_configuration() {
    let builder = Proxy::builder().route_hook(|_| panic!("a hook"));
    let snapshot = snapshot(&config(&["http://h/"]));
    let problems = builder.snapshot(snapshot).build().map(drop).unwrap_err();
    assert!(problems.to_string().contains("a hook"), "{problems}");
}

/// All destinations while more than half of them are unhealthy, and never the one called `d2`.
struct AtLeastHalf;

impl AvailableDestinationsPolicy for AtLeastHalf {
    fn select(&self, cluster: &Cluster, health: &[Health], available: &mut [bool]) {
        let unhealthy = health.iter().filter(|it| **it == Health::Unhealthy).count();
        if unhealthy * 2 > health.len() {
            available.fill(true);
        }
        for (destination, available) in cluster.destinations().iter().zip(available) {
            *available &= destination.id().as_str() != "d2";
        }
    }
}

#[tokio::test]
async fn a_policy_of_the_program_chooses_available_destinations() {
    let origins = ["a", "b", "never"].map(Origin::named);
    let urls = origins.each_ref().map(|origin| origin.url());
    let urls = urls.each_ref().map(String::as_str);
    let policy = json!({
        "HealthCheck": { "AvailableDestinationsPolicy": "athalf" }, "LoadBalancingPolicy": "RoundRobin",
    });
    let builder = Proxy::builder().available_destinations_policy("AtHalf", Arc::new(AtLeastHalf));
    let front = Front::build(&config_with(&urls, &policy), Origin::builder(), builder);
    let set = |destination: &str, health| {
        let destination = DestinationId::from(destination);
        assert!(
            front
                .proxy
                .set_health(&ClusterId::from("c"), &destination, health)
        );
    };
    let served = async || {
        let mut client = front.http1().await;
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(client.get("/").await.unwrap().text());
        }
        names.sort();
        names.concat()
    };
    assert_eq!(served().await, "aabb");
    set("d0", Health::Unhealthy);
    assert_eq!(served().await, "bbbb");
    set("d1", Health::Unhealthy);
    assert_eq!(served().await, "aabb", "two of three are unhealthy");
    set("d0", Health::Healthy);
    assert_eq!(served().await, "aaaa");
    let why = front.destination(2).why;
    assert_eq!(
        why.as_deref(),
        Some("left out by the policy of available destinations")
    );
}

#[tokio::test]
async fn changes_of_clusters_are_told_in_one_step() {
    let of = |clusters: &Value| snapshot(&json!({ "Clusters": clusters }));
    let cluster = |address: &str| json!({ "Destinations": { "d": { "Address": address } } });
    let first = json!({ "a": cluster("http://a/"), "b": cluster("http://b/") });
    let (proxy, _driver) = Proxy::builder().snapshot(of(&first)).build().unwrap();
    let mut changes = proxy.cluster_changes();
    let id = |name: &str| ClusterId::from(name);
    let added = |name: &str| ClusterChange::Added(id(name));
    assert_eq!(changes.next().await, [added("a"), added("b")]);
    // Two configurations, of which the second takes back a part of the first.
    let second = json!({ "b": cluster("http://other/"), "c": cluster("http://c/"), "d": cluster("http://d/") });
    proxy.publish(of(&second)).unwrap();
    let third = json!({ "b": cluster("http://other/"), "c": cluster("http://c/") });
    proxy.publish(of(&third)).unwrap();
    let expected = [
        ClusterChange::Removed(id("a")),
        ClusterChange::Changed(id("b")),
        added("c"),
    ];
    assert_eq!(changes.next().await, expected);
    // A configuration without a change of clusters tells nothing.
    let (waiting, published) = tokio::join!(
        tokio::time::timeout(std::time::Duration::from_millis(50), changes.next()),
        async { proxy.publish(of(&third)).unwrap() },
    );
    assert!(waiting.is_err(), "{waiting:?} after {published}");
}
