//! Filters of the program.

use http::{HeaderValue, StatusCode};
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use proxy_runtime::{ConnectionInfo, Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::body;
use testkit::faults::RefusingPort;
use testkit::origin::{Echo, Origin};

use crate::forward::front::{Front, config, config_with, config_with_route};

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
