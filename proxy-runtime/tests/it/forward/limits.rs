//! The maximum request body of a route.

use proxy_runtime::Proxy;
use serde_json::json;
use testkit::body;
use testkit::origin::{Echo, Origin};
use testkit::raw::RawClient;

use crate::forward::front::{Front, config_with, config_with_route, h2c};

#[tokio::test]
async fn a_body_that_says_that_it_is_too_large_is_not_read() {
    let origin = Origin::echo();
    let limit = json!({ "MaxRequestBodySize": 10 });
    let front = Front::start(&config_with_route(&[&origin.url()], &limit));
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n";
    client.write_all(head).await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 413);
    assert_eq!(origin.traffic().requests(), 0);
    front.settled().await;
    assert_eq!(front.errors("RequestBodyClient"), 1);
}

#[tokio::test]
async fn a_body_that_becomes_too_large_is_cut_off() {
    let origin = Origin::echo();
    let limit = json!({ "MaxRequestBodySize": 10 });
    let front = Front::start(&config_with_route(&[&origin.url()], &limit));
    for [mut client, mut another] in [
        [front.http1().await, front.http1().await],
        [front.http2().await, front.http2().await],
    ] {
        let upload = body::frames([Ok(body::data("12345")), Ok(body::data("678901"))]);
        let request = client.request("POST", "/").body(upload).unwrap();
        assert_eq!(client.send(request).await.unwrap().status, 413);

        let upload = body::frames([Ok(body::data("12345")), Ok(body::data("67890"))]);
        let client = &mut another;
        let request = client.request("POST", "/").body(upload).unwrap();
        let echo: Echo = client.send(request).await.unwrap().json();
        assert_eq!(
            echo.body_text.as_deref(),
            Some("1234567890"),
            "the limit itself is allowed"
        );
    }
    front.settled().await;
    front.wait_for_errors("RequestBodyClient", 2).await;
}

/// Bytes on a stream count as sent, and rejected bytes do not.
#[tokio::test]
async fn what_is_rejected_was_not_sent_over_http2_either() {
    let origin = Origin::echo();
    let mut config = config_with(&[&origin.url()], &h2c());
    config["Routes"]["all"]["MaxRequestBodySize"] = json!(10);
    let front = Front::start(&config);
    // Whether the first frame leaves before the second is there is a matter of time.
    let mut before = 0;
    for (frames, status, sent) in [
        (["12345", "678901"], 413, [0, 5]),
        (["12345", "67890"], 200, [10, 10]),
    ] {
        let upload = body::frames(frames.map(|frame| Ok(body::data(frame))));
        let mut client = front.http2().await;
        let request = client.request("POST", "/").body(upload).unwrap();
        assert_eq!(client.send(request).await.unwrap().status, status);
        front.settled().await;
        let now = front.destination(0).bytes_sent;
        assert!(sent.contains(&(now - before)), "{frames:?}: {now}");
        before = now;
    }
}

#[tokio::test]
async fn unlimited_is_unlimited() {
    let origin = Origin::echo();
    let limit = json!({ "MaxRequestBodySize": -1 });
    let front = Front::start(&config_with_route(&[&origin.url()], &limit));
    let mut client = front.http1().await;
    let request = client
        .request("POST", "/")
        .body(body::full(vec![b'x'; 1 << 20]))
        .unwrap();
    let echo: Echo = client.send(request).await.unwrap().json();
    assert_eq!(echo.body_length, 1 << 20);
}

/// E19 to E21: the limit of the route, or else of the proxy, takes the place of YARP's server
/// limit.
#[tokio::test]
async fn e19_to_e21_the_route_says_else_the_proxy() {
    let origin = Origin::echo();
    for (of_proxy, of_route, length, status) in [
        (Some(10), json!({ "MaxRequestBodySize": 11 }), 11, 200),
        (Some(10), json!({ "MaxRequestBodySize": 11 }), 12, 413),
        (Some(10), json!({}), 10, 200),
        (Some(10), json!({}), 11, 413),
        (Some(10), json!({ "MaxRequestBodySize": -1 }), 1000, 200),
        (None, json!({ "MaxRequestBodySize": 10 }), 11, 413),
        (None, json!({}), 1000, 200),
    ] {
        let mut builder = Proxy::builder();
        if let Some(bytes) = of_proxy {
            builder = builder.max_request_body(bytes);
        }
        let config = config_with_route(&[&origin.url()], &of_route);
        let front = Front::build(&config, Origin::builder(), builder);
        let mut client = front.http1().await;
        let body = body::full(vec![b'x'; length]);
        let request = client.request("POST", "/").body(body).unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.status, status, "{of_proxy:?} {of_route} {length}");
    }
}

/// L17: a body with another length than declared is the client's fault. Servers ensure this for
/// clients on the wire; a program that calls the service may violate it as well.
#[tokio::test]
async fn l17_a_body_of_another_length_is_400() {
    use tower_service::Service;
    let origin = Origin::echo();
    let front = Front::start(&config_with_route(&[&origin.url()], &json!({})));
    for (length, content) in [("1", ""), ("1", "12"), ("2", "1")] {
        let request = http::Request::post("http://h/")
            .header("content-length", length)
            .body(body::frames([Ok(body::data(content))]))
            .unwrap();
        let response = front.proxy.service().call(request).await.unwrap();
        assert_eq!(response.status(), 400, "{length} {content:?}");
    }
    front.settled().await;
    assert_eq!(front.errors("RequestBodyClient"), 3);
}
