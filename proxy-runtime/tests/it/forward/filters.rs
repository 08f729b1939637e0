//! Filters of the program.

use http::{HeaderValue, StatusCode};
use proxy_model::compiled::Route;
use proxy_model::{ClusterId, RequestHead};
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use proxy_runtime::{ConnectionInfo, Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::body;
use testkit::faults::RefusingPort;
use testkit::origin::{Echo, Origin};

use crate::forward::front::{Front, config, config_with, config_with_route, h2c};

/// Marks requests and responses, and acts by the path.
struct Mark(&'static str);

impl Filter for Mark {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        assert_eq!(context.route.id().as_str(), "all");
        assert_eq!(context.cluster.id().as_str(), "c");
        assert_ne!(context.connection, ConnectionInfo::default());
        head.append("x-mark", self.0).unwrap();
        if head.path() == "/panic" && self.0 == "b" {
            panic!("as the path says");
        }
        if head.path() == "/answer" && self.0 == "b" {
            return Reply::new(StatusCode::UNAUTHORIZED)
                .with_header(
                    http::header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("Basic"),
                )
                .with_body("who are you?")
                .into();
        }
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        head.append("x-mark", self.0).unwrap();
        assert!(head.header("x-panic").is_none() || self.0 != "b");
    }
}

/// Redirects requests to another target.
struct Redirect;

impl Filter for Redirect {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        head.set_path("/else/where").unwrap();
        head.set_query(Some("a=b")).unwrap();
        head.set_host("elsewhere.example").unwrap();
        head.remove("accept").unwrap();
        Flow::Continue
    }
}

fn marks() -> ProxyBuilder {
    Proxy::builder()
        .filter("a", Mark("a"))
        .filter("b", Mark("b"))
        .filter("c", Mark("c"))
        .filter("Redirect", Redirect)
}

fn front(config: &Value) -> Front {
    Front::build(config, Origin::builder(), marks())
}

#[tokio::test]
async fn requests_and_responses_pass_in_order() {
    let origin = Origin::echo();
    let config = config_with_route(&[&origin.url()], &json!({ "Filters": ["a", "b", "c"] }));
    let front = front(&config);
    for mut client in [front.http1().await, front.http2().await] {
        let request = client.request("POST", "/").body(body::full("content"));
        let answer = client.send(request.unwrap()).await.unwrap();
        let echo: Echo = answer.json();
        assert_eq!(echo.header("x-mark"), ["a", "b", "c"]);
        assert_eq!(echo.body_text.as_deref(), Some("content"));
        let marks: Vec<_> = answer.headers.get_all("x-mark").iter().collect();
        assert_eq!(marks, ["c", "b", "a"]);
    }
    front.settled().await;
}

#[tokio::test]
async fn an_answer_reaches_no_origin() {
    let origin = Origin::echo();
    let config = config_with_route(&[&origin.url()], &json!({ "Filters": ["a", "b", "c"] }));
    let front = front(&config);
    let mut client = front.http1().await;
    let answer = client.get("/answer").await.unwrap();
    assert_eq!(answer.status, 401);
    assert_eq!(answer.text(), "who are you?");
    assert_eq!(answer.header("www-authenticate"), Some("Basic"));
    assert_eq!(answer.header("x-mark"), Some("a"), "the one before sees it");
    front.settled().await;
    assert_eq!(origin.traffic().requests(), 0);
    assert_eq!(front.proxy.routes()[0].requests, 1);
    assert_eq!(front.errors("Extension"), 0);
}

#[tokio::test]
async fn a_panic_is_one_requests_500() {
    let origin = Origin::start(|_| async {
        let mut response = http::Response::new(body::full("x"));
        let headers = response.headers_mut();
        headers.insert("x-panic", HeaderValue::from_static("yes"));
        response
    });
    let config = config_with_route(&[&origin.url()], &json!({ "Filters": ["a", "b"] }));
    let front = front(&config);
    let mut client = front.http1().await;
    for (path, marks, count) in [("/panic", Some("a"), 1), ("/late", None, 2)] {
        let answer = client.get(path).await.unwrap();
        assert_eq!(answer.status, 500, "{path}");
        assert_eq!(answer.text(), "500 Internal Server Error\n");
        assert_eq!(answer.header("x-mark"), marks);
        front.wait_for_errors("Extension", count).await;
    }
    front.settled().await;
}

/// The target changes, and the route does not.
#[tokio::test]
async fn target_and_host_are_sent_as_changed() {
    let origin = Origin::echo();
    let config = config_with_route(&[&origin.url()], &json!({ "Filters": ["redirect"] }));
    let front = front(&config);
    for mut client in [front.http1().await, front.http2().await] {
        let request = client
            .request_for("shop.example", "GET", "/here?x=y")
            .header("accept", "*/*")
            .body(body::empty());
        let echo: Echo = client.send(request.unwrap()).await.unwrap().json();
        assert_eq!(echo.path_and_query(), "/else/where?a=b");
        assert_eq!(echo.header("host"), ["elsewhere.example"]);
        assert_eq!(echo.header("x-forwarded-host"), ["shop.example"]);
        assert!(echo.header("accept").is_empty());
    }
}

#[tokio::test]
async fn transforms_have_the_last_word() {
    let origin = Origin::echo();
    let route = json!({
        "Filters": ["redirect", "a"],
        "Transforms": [
            { "PathPrefix": "/v1" },
            { "RequestHeader": "X-Mark", "Set": "transform" },
            { "RequestHeader": "Host", "Set": "transform.example" },
            { "ResponseHeader": "X-Mark", "Append": "transform", "When": "Always" },
        ],
    });
    let front = front(&config_with_route(&[&origin.url()], &route));
    let mut client = front.http1().await;
    let answer = client.get("/").await.unwrap();
    let echo: Echo = answer.json();
    assert_eq!(echo.path_and_query(), "/v1/else/where?a=b");
    assert_eq!(echo.header("host"), ["transform.example"]);
    assert_eq!(echo.header("x-mark"), ["transform"]);
    let marks: Vec<_> = answer.headers.get_all("x-mark").iter().collect();
    assert_eq!(marks, ["a", "transform"]);
}

/// A retry at another destination has the changes as well, and filters see local replies.
#[tokio::test]
async fn changes_hold_for_the_second_destination_and_for_errors() {
    let (port, origin) = (RefusingPort::new(), Origin::echo());
    let first = json!({ "LoadBalancingPolicy": "RoundRobin" });
    let mut both = config_with(&[&port.url(), &origin.url()], &first);
    both["Routes"]["all"]["Filters"] = json!(["a"]);
    let front = front(&both);
    let mut client = front.http1().await;
    for _ in 0..2 {
        let echo: Echo = client.get("/").await.unwrap().json();
        assert_eq!(echo.header("x-mark"), ["a"]);
    }

    let mut none = config(&[&port.url()]);
    none["Routes"]["all"]["Filters"] = json!(["a", "b"]);
    let front = self::front(&none);
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.status, 502);
    let marks: Vec<_> = answer.headers.get_all("x-mark").iter().collect();
    assert_eq!(marks, ["b", "a"]);
}

/// Assigns the cluster that a header names.
struct Assign(ClusterId);

impl Filter for Assign {
    fn cluster(&self, head: &dyn RequestHead, _: &Route) -> Option<&ClusterId> {
        let mut wanted = false;
        head.for_each_header("x-cluster", &mut |value| {
            assert_ne!(value, b"panic", "as the header says");
            wanted |= value == self.0.as_str().as_bytes();
            true
        });
        wanted.then_some(&self.0)
    }

    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        head.set("x-chosen", context.cluster.id().as_str()).unwrap();
        Flow::Continue
    }
}

/// Routes with one cluster, with weighted ones, with partitions and without any; destinations of either protocol.
#[tokio::test]
async fn a_filter_assigns_a_cluster() {
    let origin = Origin::echo();
    let cluster = || json!({ "Destinations": { "d": { "Address": origin.url() } } });
    let partitions = json!({
        "Key": { "Header": "X-Tenant" }, "Hash": "Fnv1a64",
        "Partitions": [{ "ClusterId": "c", "LowKey": i64::MIN, "HighKey": i64::MAX }],
    });
    for target in [
        json!({ "ClusterId": "c" }),
        json!({ "WeightedClusters": [{ "ClusterId": "c", "Weight": 1 }] }),
        json!({ "PartitionedClusters": partitions }),
        json!({}),
        json!({ "ClusterId": "c", "Layers": ["plain"] }),
    ] {
        let mut route = json!({ "Match": { "Path": "/{**rest}" }, "Filters": ["b", "b2", "gone"] });
        let fields = route.as_object_mut().unwrap();
        fields.extend(target.as_object().unwrap().clone());
        let mut later = cluster();
        later["HttpRequest"] = h2c()["HttpRequest"].clone();
        let config = json!({
            "Routes": { "all": route },
            "Clusters": { "c": cluster(), "b": cluster(), "b2": later },
        });
        let assign = |id: &str| Assign(ClusterId::from(id));
        let builder = Proxy::builder()
            .layer(
                "plain",
                tower_layer::layer_fn(|service: proxy_runtime::layer::RouteService| service),
            )
            .filter("b", assign("b"))
            .filter("b2", assign("b2"))
            .filter("gone", assign("gone"));
        let front = Front::build(&config, Origin::builder(), builder);
        for mut client in [front.http1().await, front.http2().await] {
            for (wanted, expected) in [
                ("b", Ok("b")),
                // HTTP/2 is spoken to this one.
                ("b2", Ok("b2")),
                ("gone", Err(503)),
                ("panic", Err(500)),
                (
                    "other",
                    if target == json!({}) {
                        Err(503)
                    } else {
                        Ok("c")
                    },
                ),
            ] {
                let request = client.request("GET", "/").header("x-cluster", wanted);
                let request = request.header("x-tenant", "t").body(body::empty()).unwrap();
                let answer = client.send(request).await.unwrap();
                match expected {
                    Ok(cluster) => {
                        assert_eq!(answer.status, 200, "{target} {wanted}");
                        let echo: Echo = answer.json();
                        assert_eq!(echo.header("x-chosen"), [cluster], "{target}");
                    }
                    Err(status) => assert_eq!(answer.status, status, "{target} {wanted}"),
                }
            }
        }
        front.settled().await;
    }
}
