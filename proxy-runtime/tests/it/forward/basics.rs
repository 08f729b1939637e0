//! Basic forwarding of requests and responses.

use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE};
use serde_json::json;
use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::faults::RefusingPort;
use testkit::origin::{Echo, Origin};
use testkit::raw::RawClient;

use crate::forward::front::{Front, config, config_with_route};

async fn send(client: &mut Connection, method: &str, path: &str, content: &'static str) -> Answer {
    let request = client.request(method, path).body(match content {
        "" => body::empty(),
        content => body::full(content),
    });
    client.send(request.unwrap()).await.unwrap()
}

#[tokio::test]
async fn methods_bodies_and_queries_arrive() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    for mut client in [front.http1().await, front.http2().await] {
        for (method, content) in [
            ("GET", ""),
            ("POST", "posted"),
            ("PUT", "put"),
            ("PATCH", ""),
            ("DELETE", "why not"),
            ("OPTIONS", ""),
            ("QUERY", "of a kind"),
        ] {
            let answer = send(&mut client, method, "/a/b?c=d&e", content).await;
            let echo: Echo = answer.json();
            assert_eq!(echo.method, method);
            assert_eq!(echo.path_and_query(), "/a/b?c=d&e");
            assert_eq!(echo.body_text.as_deref(), Some(content), "{method}");
            assert_eq!(echo.body_error, None);
        }
    }
    front.settled().await;
}

#[tokio::test]
async fn encoded_paths_arrive_as_they_were_sent() {
    let origin = Origin::echo();
    let front = Front::to(format!("{}/base/", origin.url()));
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    for path in ["/a%2Fb%2f%20", "//", "/%C3%BC;x=1", "/?a=%2F&b=c%20d+e"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        client.write_all(request).await.unwrap();
        let response = client.read_response().await.unwrap();
        let echo: Echo = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(echo.uri, format!("/base{path}"));
    }
}

#[tokio::test]
async fn the_origin_learns_where_the_request_came_from() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    let request = client
        .request_for("shop.example:8080", "GET", "/")
        .header("x-forwarded-for", "6.6.6.6")
        .header("forwarded", "for=6.6.6.6")
        .header("connection", "x-hop, close")
        .header("x-hop", "1")
        .body(body::empty());
    let echo: Echo = client.send(request.unwrap()).await.unwrap().json();
    assert_eq!(echo.header("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(echo.header("x-forwarded-host"), ["shop.example:8080"]);
    assert_eq!(echo.header("x-forwarded-proto"), ["http"]);
    assert_eq!(echo.header("host"), [origin.addr().to_string()]);
    assert!(echo.header("forwarded").is_empty());
    assert!(echo.header("x-hop").is_empty());
    assert!(echo.header("connection").is_empty());
}

/// `:authority` of HTTP/2 is the host that a route may send on.
#[tokio::test]
async fn the_original_host_is_kept_over_both_versions() {
    let origin = Origin::echo();
    let transforms = json!({ "Transforms": [{ "RequestHeaderOriginalHost": "true" }] });
    let front = Front::start(&config_with_route(&[&origin.url()], &transforms));
    for mut client in [front.http1().await, front.http2().await] {
        let request = client
            .request_for("shop.example", "GET", "/")
            .body(body::empty());
        let echo: Echo = client.send(request.unwrap()).await.unwrap().json();
        assert_eq!(echo.header("host"), ["shop.example"]);
    }
}

#[tokio::test]
async fn requests_that_go_nowhere_are_answered_by_the_proxy() {
    let origin = Origin::echo();
    let mut config = config(&[&origin.url()]);
    config["Clusters"]["empty"] = json!({});
    config["Routes"] = json!({
        "get": { "ClusterId": "c", "Match": { "Path": "/get", "Methods": ["GET", "HEAD"] } },
        "none": { "Match": { "Path": "/none" } },
        "missing": { "ClusterId": "missing", "Match": { "Path": "/missing" } },
        "empty": { "ClusterId": "empty", "Match": { "Path": "/empty" } },
        "anonymous": {
            "ClusterId": "c", "AuthorizationPolicy": "anonymous", "Match": { "Path": "/open" }
        },
        "protected": {
            "ClusterId": "c", "AuthorizationPolicy": "Default", "Match": { "Path": "/closed" }
        },
    });
    let front = Front::start(&config);
    for mut client in [front.http1().await, front.http2().await] {
        for (method, path, status) in [
            ("GET", "/get", 200),
            ("POST", "/get", 405),
            ("GET", "/nothing", 404),
            ("GET", "/none", 503),
            ("GET", "/missing", 503),
            ("GET", "/empty", 503),
            ("GET", "/open", 200),
            ("GET", "/closed", 500),
        ] {
            let answer = send(&mut client, method, path, "").await;
            assert_eq!(answer.status, status, "{method} {path}");
            let allow = answer.header(ALLOW.as_str());
            assert_eq!(allow, (status == 405).then_some("GET, HEAD"), "{path}");
            if status != 200 {
                let reason = StatusCode::from_u16(status)
                    .unwrap()
                    .canonical_reason()
                    .unwrap();
                assert_eq!(answer.text(), format!("{status} {reason}\n"));
                assert_eq!(
                    answer.header(CONTENT_TYPE.as_str()),
                    Some("text/plain; charset=utf-8")
                );
            }
        }
    }
    assert_eq!(
        origin.traffic().requests(),
        4,
        "nothing that was rejected was sent"
    );
    front.settled().await;
}

/// Internal errors are hidden from clients: no address, no name, no system message.
#[tokio::test]
async fn errors_leak_nothing() {
    let port = RefusingPort::new();
    let front = Front::to(port.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status(), 502);
    assert_eq!(response.text(), "502 Bad Gateway\n");
    let head = format!("{:?}", response.head);
    assert!(!head.contains(&port.addr().port().to_string()), "{head}");
}

#[tokio::test]
async fn a_tunnel_to_anywhere_is_rejected() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    let request = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
    client.write_all(request).await.unwrap();
    let head = client.read_response_head().await.unwrap();
    assert!(head.status >= 400, "{}", head.status);
    assert_eq!(origin.traffic().requests(), 0);
}

#[tokio::test]
async fn a_large_body_goes_through_unchanged() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let content: Vec<u8> = (0..3_000_000_u32).map(|i| ((i * 31) >> 5) as u8).collect();
    for mut client in [front.http1().await, front.http2().await] {
        let request = client
            .request("POST", "/")
            .body(body::full(content.clone()))
            .unwrap();
        let echo: Echo = client.send(request).await.unwrap().json();
        assert_eq!(echo.body_length, content.len() as u64);
        assert_eq!(echo.body_sha256, Echo::sha256(&content));
    }
    front.settled().await;
    assert_eq!(front.destination(0).bytes_sent, 2 * content.len() as u64);
}

#[tokio::test]
async fn requests_are_counted() {
    let origin = Origin::start(
        |request: http::Request<testkit::origin::Incoming>| async move {
            let status = request.uri().path()[1..].parse().unwrap();
            let mut response = http::Response::new(body::full("12345"));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
        },
    );
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    for path in ["/200", "/201", "/404", "/500", "/200"] {
        client.get(path).await.unwrap();
    }
    front.settled().await;
    let destination = front.destination(0);
    assert_eq!(destination.requests, 5);
    assert_eq!(destination.responses.success, 3);
    assert_eq!(destination.responses.client_error, 1);
    assert_eq!(destination.responses.server_error, 1);
    assert_eq!(destination.bytes_received, 25);
    assert_eq!((destination.connects, destination.connections), (1, 1));
    assert!(destination.errors.is_empty());
}
