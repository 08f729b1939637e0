//! Headers on the wire, in both versions.

use serde_json::json;
use testkit::body;
use testkit::origin::{Echo, Origin};
use testkit::raw::{RawClient, RawOrigin};

use crate::forward::front::{Front, config, config_with, config_with_route, h2c};

/// M14 and M15: values keep their number and order.
#[tokio::test]
async fn m13_to_m15_values_are_neither_merged_nor_moved() {
    let origin = RawOrigin::answering(
        "HTTP/1.1 200 OK\r\n\
         Content-Length: 0\r\n\
         Set-Cookie: a=1; Path=/, b\r\n\
         Via: 1.1 x\r\n\
         Set-Cookie: c=2\r\n\
         WWW-Authenticate: Basic realm=\"a\", Digest\r\n\
         WWW-Authenticate: Bearer\r\n\
         X-Empty:\r\n\
         Via: 1.0 y, 1.1 z\r\n\r\n",
    );
    let front = Front::to(origin.url());
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-B: b\r\nX-A:\r\nX-A: 2, 3\r\n\r\n";
    let response = RawClient::exchange(front.server.addr(), request)
        .await
        .unwrap();
    let head = &response.head;
    assert_eq!(head.header_values("set-cookie"), ["a=1; Path=/, b", "c=2"]);
    assert_eq!(head.header_values("via"), ["1.1 x", "1.0 y, 1.1 z"]);
    assert_eq!(
        head.header_values("www-authenticate"),
        ["Basic realm=\"a\", Digest", "Bearer"]
    );
    assert_eq!(head.header_values("x-empty"), [""]);
    let received = origin.recording(0).text();
    let values: Vec<_> = received
        .lines()
        .filter_map(|line| {
            line.to_lowercase()
                .strip_prefix("x-a:")
                .map(|v| v.trim().to_owned())
        })
        .collect();
    assert_eq!(values, ["1", "", "2, 3"]);
}

/// M17: bytes are bytes.
#[tokio::test]
async fn m17_values_beyond_ascii_pass_through() {
    let utf8 = "grün".as_bytes();
    let latin1 = b"gr\xfcn";
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Utf8: ".to_vec();
    answer.extend_from_slice(utf8);
    answer.extend_from_slice(b"\r\nX-Latin1: ");
    answer.extend_from_slice(latin1);
    answer.extend_from_slice(b"\r\n\r\n");
    let origin = RawOrigin::answering(answer);
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    let request = client
        .request("GET", "/")
        .header("x-utf8", utf8)
        .header("x-latin1", &latin1[..])
        .body(body::empty());
    let answer = client.send(request.unwrap()).await.unwrap();
    assert_eq!(answer.headers["x-utf8"].as_bytes(), utf8);
    assert_eq!(answer.headers["x-latin1"].as_bytes(), latin1);
    let received = origin.recording(0).bytes();
    for value in [utf8, latin1] {
        assert!(received.windows(value.len()).any(|window| window == value));
    }
}

/// M01 on the wire, in both directions and both versions.
#[tokio::test]
async fn m01_fields_about_a_connection_stay_on_it() {
    let origin = RawOrigin::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nAlt-Svc: h3=\":443\"\r\n\
         Upgrade: h2c\r\nProxy-Authenticate: Basic\r\nFoo: bar\r\n\r\n",
    );
    let front = Front::to(origin.url());
    for mut client in [front.http1().await, front.http2().await] {
        let answer = client.get("/").await.unwrap();
        assert_eq!(answer.header("foo"), Some("bar"));
        for name in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "alt-svc",
            "upgrade",
            "proxy-authenticate",
            "x-hop",
        ] {
            assert!(answer.header(name).is_none(), "{name}");
        }
    }

    let echo = Origin::echo();
    for config in [config(&[&echo.url()]), config_with(&[&echo.url()], &h2c())] {
        let front = Front::start(&config);
        let mut client = front.http1().await;
        let request = client
            .request("GET", "/")
            .header("connection", "keep-alive, x-hop")
            .header("x-hop", "1")
            .header("keep-alive", "timeout=5")
            .header("proxy-authorization", "Basic secret")
            .header("upgrade-insecure-requests", "1")
            .header("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA")
            .header("te", "trailers")
            .header("foo", "bar")
            .body(body::empty());
        let received: Echo = client.send(request.unwrap()).await.unwrap().json();
        let names: Vec<_> = received
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert!(names.contains(&"foo"));
        for name in [
            "connection",
            "keep-alive",
            "proxy-authorization",
            "upgrade-insecure-requests",
            "http2-settings",
            "te",
            "x-hop",
        ] {
            assert!(!names.contains(&name), "{name}");
        }
    }
}

/// `Upgrade` to an unsupported protocol is ignored.
#[tokio::test]
async fn upgrades_to_other_protocols_are_left_out() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    let request = client
        .request("GET", "/")
        .header("connection", "Upgrade, HTTP2-Settings")
        .header("upgrade", "h2c")
        .header("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA")
        .body(body::empty());
    let answer = client.send(request.unwrap()).await.unwrap();
    assert_eq!(answer.status, 200);
    let received: Echo = answer.json();
    assert!(received.header("upgrade").is_empty() && received.header("connection").is_empty());
}

/// M07: a header set by the route overrides that of the destination.
#[tokio::test]
async fn m07_strict_transport_security_of_the_proxy_wins() {
    let origin = RawOrigin::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nStrict-Transport-Security: max-age=1\r\n\r\n",
    );
    let name = "strict-transport-security";
    let front = Front::to(origin.url());
    assert_eq!(
        front.http1().await.get("/").await.unwrap().header(name),
        Some("max-age=1")
    );
    let transforms = json!({ "Transforms": [
        { "ResponseHeader": "Strict-Transport-Security", "Set": "max-age=31536000" }
    ] });
    let front = Front::start(&config_with_route(&[&origin.url()], &transforms));
    let answer = front.http1().await.get("/").await.unwrap();
    let values: Vec<_> = answer.headers.get_all(name).iter().collect();
    assert_eq!(values, ["max-age=31536000"]);
}

#[tokio::test]
async fn cookies_that_http2_cut_arrive_whole() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = front.http2().await;
    let request = client
        .request("GET", "/")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(body::empty());
    let received: Echo = client.send(request.unwrap()).await.unwrap().json();
    assert_eq!(received.header("cookie"), ["a=1; b=2"]);
}
