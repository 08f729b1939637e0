//! Routes with partitioned clusters.

use http::{Request, Response};
use proxy_runtime::forward::ExchangeInfo;
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::origin::{Incoming, Origin};
use tower_service::Service;

use crate::forward::front::Front;

/// An origin that responds with its name.
fn origin(name: &'static str) -> Origin {
    Origin::start(move |_: Request<Incoming>| async move { Response::new(body::full(name)) })
}

/// A route for each source of a key, to clusters of one destination each: `a`, `b`, and `empty`,
/// which has none.
fn config(a: &Origin, b: &Origin) -> Value {
    let cluster = |origin: &Origin| json!({ "Destinations": { "d": { "Address": origin.url() } } });
    let range =
        |id: &str, low: i64, high: i64| json!({ "ClusterId": id, "LowKey": low, "HighKey": high });
    let name = |id: &str, name: &str| json!({ "ClusterId": id, "Name": name });
    json!({
        "Routes": {
            "header": {
                "Match": { "Path": "/header" },
                "PartitionedClusters": {
                    "Key": { "Header": "X-Key" },
                    "Partitions": [
                        range("a", i64::MIN, -1), range("b", 0, 99), range("gone", 100, 199), range("empty", 200, 200),
                    ],
                },
                "Transforms": [{ "ResponseHeader": "X-Route", "Set": "header", "When": "Always" }],
            },
            "query": {
                "Match": { "Path": "/query" },
                "PartitionedClusters": {
                    "Key": { "QueryParameter": "region" },
                    "Partitions": [name("a", "eu west"), name("b", "us")],
                },
            },
            "value": {
                "Match": { "Path": "/value/{tenant}/{**rest}" },
                "PartitionedClusters": {
                    "Key": { "RouteValue": "tenant" },
                    "Partitions": [name("a", "eu west"), name("b", "us")],
                },
            },
            "hash": {
                "Match": { "Path": "/hash" },
                "PartitionedClusters": {
                    "Key": { "Header": "X-Key" },
                    "Hash": "Fnv1a64",
                    "Partitions": [range("a", i64::MIN, -1), range("b", 0, i64::MAX)],
                },
            },
        },
        "Clusters": { "a": cluster(a), "b": cluster(b), "empty": {} },
    })
}

async fn ask(client: &mut Connection, path: &str, keys: &[&str]) -> Answer {
    let mut request = client.request("GET", path);
    for key in keys {
        request = request.header("x-key", *key);
    }
    client
        .send(request.body(body::empty()).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_key_decides_which_cluster_serves() {
    let (a, b) = (origin("a"), origin("b"));
    let front = Front::start(&config(&a, &b));
    const BAD: &str = "400 Bad Request\n";
    const NONE: &str = "503 Service Unavailable\n";
    for mut client in [front.http1().await, front.http2().await] {
        for (path, keys, expected) in [
            ("/header", &["-1"] as &[&str], "a"),
            ("/header", &["-9223372036854775808"], "a"),
            ("/header", &["0"], "b"),
            ("/header", &["7", "7"], "b"),
            ("/header", &["7", "8"], BAD),
            ("/header", &["100"], NONE),
            ("/header", &["200"], NONE),
            ("/header", &["201"], BAD),
            ("/header", &["seven"], BAD),
            ("/header", &[], BAD),
            ("/query?region=us", &[], "b"),
            ("/query?x&Region=eu+west", &[], "a"),
            ("/query?region=eu%20west&region=eu+west", &[], "a"),
            ("/query?region=us&region=eu+west", &[], BAD),
            ("/query?region=US", &[], BAD),
            ("/query", &["us"], BAD),
            ("/value/us/x", &[], "b"),
            ("/value/eu%20west", &[], "a"),
            ("/value/eu+west", &[], BAD),
            // af63dc4c8601ec8c and 85944171f73967e8 are negative as signed numbers;
            // 08985907b541d342 is not.
            ("/hash", &["a"], "a"),
            ("/hash", &["foobar"], "a"),
            ("/hash", &["fo"], "b"),
            ("/hash", &[], BAD),
        ] {
            let answer = ask(&mut client, path, keys).await;
            assert_eq!(answer.text(), expected, "{path} {keys:?}");
            let status = if expected == BAD { 400 } else { 503 };
            let expected_status = if expected.len() == 1 { 200 } else { status };
            assert_eq!(answer.status, expected_status, "{path} {keys:?}");
            let marked = answer.header("x-route").is_some();
            assert_eq!(
                marked,
                path == "/header",
                "a route changes its rejections, too"
            );
        }
    }
    assert_eq!(a.traffic().requests() + b.traffic().requests(), 2 * 12);
    front.settled().await;
    let errors = front.proxy.overview().errors;
    assert_eq!(errors.get("NoPartition"), Some(&18), "{errors:?}");
    let routes = front.proxy.routes();
    let header = routes.iter().find(|route| route.id == "header").unwrap();
    assert_eq!(header.requests, 20, "rejected ones are the route's as well");
}

#[tokio::test]
async fn a_rejection_says_why_to_whoever_logs() {
    let (a, b) = (origin("a"), origin("b"));
    let front = Front::start(&config(&a, &b));
    let mut service = front.proxy.service();
    let request = Request::get("/header").body(body::empty()).unwrap();
    let response = service.call(request).await.unwrap();
    assert_eq!(response.status(), 400);
    let info: &ExchangeInfo = response.extensions().get().unwrap();
    assert_eq!(info.error.unwrap().as_str(), "NoPartition");
    assert_eq!(info.route.as_ref().unwrap(), "header");
    assert!(info.cluster.is_none() && info.destination.is_none());
}

#[tokio::test]
async fn partitions_move_with_a_reload_and_keep_their_state() {
    let (a, b) = (origin("a"), origin("b"));
    let mut config = config(&a, &b);
    let front = Front::start(&config);
    let mut client = front.http1().await;
    assert_eq!(ask(&mut client, "/header", &["5"]).await.text(), "b");
    let generation = front.proxy.overview().generation;

    config["Routes"]["header"]["PartitionedClusters"]["Partitions"] = json!([
        { "ClusterId": "A", "LowKey": 0, "HighKey": 9 },
        { "ClusterId": "b", "LowKey": 10, "HighKey": 19 },
    ]);
    front.reload(&config);
    assert!(front.proxy.overview().generation > generation);
    assert_eq!(ask(&mut client, "/header", &["5"]).await.text(), "a");
    assert_eq!(ask(&mut client, "/header", &["15"]).await.text(), "b");
    assert_eq!(ask(&mut client, "/header", &["-1"]).await.status, 400);
    front.settled().await;
    let clusters = front.proxy.clusters();
    let b = clusters.iter().find(|cluster| cluster.id == "b").unwrap();
    assert_eq!(b.destinations[0].requests, 2, "counted before and after");
    assert_eq!(b.destinations[0].connects, 1, "over the same connection");
}
