//! Forwarding loops.

use std::num::NonZeroUsize;
use std::sync::Arc;

use http::Request;
use proxy_runtime::explain::Verdict;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::{Listener, Server, ServerHandle};
use proxy_runtime::{ConnectionInfo, Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::body;
use testkit::client::Connection;
use testkit::origin::{Echo, Origin};
use testkit::raw::RawClient;
use testkit::time::eventually;

use crate::server::filtered;
use crate::server::support::{connections, loopback};
use crate::server::ways::Disguised;

/// A listening proxy without configuration.
struct Front {
    proxy: Proxy,
    server: ServerHandle,
}

impl Front {
    /// `as_bytes`: on the byte path instead of over `http` types.
    fn start(as_bytes: bool) -> Self {
        Self::with(Proxy::builder(), as_bytes)
    }

    fn with(builder: ProxyBuilder, as_bytes: bool) -> Self {
        let (proxy, driver) = filtered::registered(builder).build().unwrap();
        tokio::spawn(driver);
        let listener = Listener::http(loopback());
        let server = if as_bytes {
            let server = Server::for_proxy(&proxy).with_workers(NonZeroUsize::MIN);
            server.with_listener(listener).bind().unwrap().start()
        } else {
            let typed = proxy.clone();
            let server = Server::builder(move || Disguised(typed.service()));
            let server = server.with_workers(NonZeroUsize::MIN);
            server.with_listener(listener).bind().unwrap().start()
        };
        let server = server.unwrap();
        Self { proxy, server }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.local_addrs()[0])
    }

    fn lead_to(&self, address: &str) {
        self.route(address, &json!({}), &json!({}));
    }

    /// Routes everything to `address`, with these settings of route and cluster.
    fn route(&self, address: &str, route: &Value, cluster: &Value) {
        let (mut route, mut cluster) = (route.clone(), cluster.clone());
        route["ClusterId"] = json!("c");
        route["Match"] = json!({ "Path": "/{**rest}" });
        cluster["Destinations"] = json!({ "d": { "Address": address } });
        let config = json!({ "Routes": { "r": route }, "Clusters": { "c": cluster } });
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let options = filtered::registered(Proxy::builder()).compile_options();
        let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
        self.proxy.publish(Arc::new(snapshot)).unwrap();
    }

    /// The status of a request on this connection, and the `CDN-Loop` values that the origin received.
    async fn get(
        &self,
        client: &mut Connection,
        header: Option<(&str, &str)>,
    ) -> (u16, Vec<String>) {
        let mut request = client.request("GET", "/a");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.body(body::empty()).unwrap();
        let answer = client.send(request).await.unwrap();
        let members = match answer.status.is_success() {
            true => {
                let echo: Echo = answer.json();
                echo.header("cdn-loop")
                    .iter()
                    .map(|m| (*m).to_owned())
                    .collect()
            }
            false => Vec::new(),
        };
        (answer.status.as_u16(), members)
    }

    /// Waits until `requests` were served, and fails if there were more.
    async fn until_served(&self, requests: u64) {
        let served = || self.proxy.routes()[0].requests;
        eventually("requests are counted", || async { served() >= requests }).await;
        assert_eq!(served(), requests);
    }

    async fn stop(self) {
        self.server.shutdown(std::time::Duration::ZERO).await;
    }
}

#[tokio::test]
async fn a_request_that_comes_back_gets_508() {
    let routes = [
        (json!({}), json!({})),
        (
            json!({ "Transforms": [{ "RequestHeadersCopy": "false" }] }),
            json!({}),
        ),
        (
            json!({ "Transforms": [{ "RequestHeader": "CDN-Loop", "Set": "x" }] }),
            json!({}),
        ),
        (
            json!({ "Transforms": [{ "RequestHeader": "X-A", "Append": "1" }] }),
            json!({}),
        ),
        (
            json!({ "Transforms": [{ "PathPrefix": "/deeper" }] }),
            json!({}),
        ),
        (json!({ "Filters": ["a"] }), json!({})),
        #[cfg(feature = "http2")]
        (
            json!({}),
            json!({ "HttpRequest": { "Version": "2", "VersionPolicy": "RequestVersionExact" } }),
        ),
    ];
    for as_bytes in [true, false] {
        for (route, cluster) in &routes {
            let front = Front::start(as_bytes);
            front.route(&front.url(), route, cluster);
            let mut sent = 0;
            for mut client in connections(front.server.local_addrs()[0]).await {
                for _ in 0..2 {
                    let (status, _) = front.get(&mut client, None).await;
                    assert_eq!(status, 508, "{as_bytes} {route} {cluster}");
                    sent += 1;
                }
            }
            front.until_served(2 * sent).await;
            let errors = front.proxy.overview().errors;
            assert_eq!(
                errors.get("LoopDetected"),
                Some(&sent),
                "{as_bytes} {route} {cluster}"
            );
            let problems = front.proxy.observed_problems();
            let problem = problems.iter().next().expect("it is a problem");
            assert_eq!(
                (&*problem.code, &*problem.pointer),
                ("loop_detected", "/Routes/r")
            );
            assert!(
                problem.message.contains(&format!("{sent} so far")),
                "{problem}"
            );
            front.stop().await;
        }
    }
}

#[tokio::test]
async fn a_loop_of_two_proxies_ends_at_the_first() {
    let (one, two) = (Front::start(true), Front::start(false));
    one.lead_to(&two.url());
    two.lead_to(&one.url());
    for mut client in connections(one.server.local_addrs()[0]).await {
        assert_eq!(one.get(&mut client, None).await.0, 508);
    }
    assert_eq!(two.proxy.overview().errors.get("LoopDetected"), None);
    assert!(two.proxy.observed_problems().is_empty());
}

#[tokio::test]
async fn proxies_in_a_chain_are_no_loop() {
    let origin = Origin::echo();
    for as_bytes in [true, false] {
        let (one, two) = (Front::start(as_bytes), Front::start(as_bytes));
        one.lead_to(&two.url());
        two.lead_to(&origin.url());
        for mut client in connections(one.server.local_addrs()[0]).await {
            let (status, members) = one
                .get(&mut client, Some(("cdn-loop", "cdn.example; a=b")))
                .await;
            assert_eq!(status, 200, "{members:?}");
            let [first, second, third] = &members[..] else {
                panic!("{members:?}");
            };
            assert_eq!(first, "cdn.example; a=b");
            assert!(second.starts_with("proxy-") && third.starts_with("proxy-"));
            assert_ne!(second, third);
        }
    }
}

#[tokio::test]
async fn a_client_cannot_have_the_field_removed() {
    let origin = Origin::echo();
    for as_bytes in [true, false] {
        let front = Front::start(as_bytes);
        front.lead_to(&origin.url());
        let mut client = RawClient::connect(front.server.local_addrs()[0])
            .await
            .unwrap();
        client
            .write_all("GET / HTTP/1.1\r\nHost: a\r\nCDN-Loop: x\r\nConnection: cdn-loop\r\n\r\n")
            .await
            .unwrap();
        let response = client.read_response().await.unwrap();
        let echo: Echo = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(echo.header("cdn-loop").len(), 2, "{as_bytes}");
    }
}

#[tokio::test]
async fn the_guard_is_off_where_it_is_not_wanted() {
    let origin = Origin::echo();
    let removed = json!({ "Transforms": [{ "RequestHeaderRemove": "CDN-Loop" }] });
    for as_bytes in [true, false] {
        let off = Front::with(Proxy::builder().loop_guard(false), as_bytes);
        off.lead_to(&origin.url());
        let route = Front::start(as_bytes);
        route.route(&origin.url(), &removed, &json!({}));
        for (front, expected) in [(off, vec!["x"]), (route, vec![])] {
            for mut client in connections(front.server.local_addrs()[0]).await {
                let (status, members) = front.get(&mut client, Some(("cdn-loop", "x"))).await;
                assert_eq!(
                    (status, members),
                    (200, expected.iter().map(|m| (*m).to_owned()).collect())
                );
            }
        }
    }
}

/// A loop through another route is accepted by a route without protection.
#[tokio::test]
async fn a_second_passage_can_be_allowed() {
    let origin = Origin::echo();
    let front = Front::start(true);
    let config = json!({
        "Routes": {
            "inner": {
                "ClusterId": "origin", "Match": { "Path": "/inner/a" },
                "Transforms": [{ "RequestHeaderRemove": "CDN-Loop" }],
            },
            "outer": {
                "ClusterId": "self", "Match": { "Path": "/a" },
                "Transforms": [{ "PathPrefix": "/inner" }],
            },
        },
        "Clusters": {
            "origin": { "Destinations": { "d": { "Address": origin.url() } } },
            "self": { "Destinations": { "d": { "Address": front.url() } } },
        },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let options = Proxy::builder().compile_options();
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    front.proxy.publish(Arc::new(snapshot)).unwrap();
    for mut client in connections(front.server.local_addrs()[0]).await {
        assert_eq!(front.get(&mut client, None).await, (200, vec![]));
    }
}

#[tokio::test]
async fn a_websocket_that_comes_back_gets_508() {
    for as_bytes in [true, false] {
        let front = Front::start(as_bytes);
        front.lead_to(&front.url());
        let mut client = RawClient::connect(front.server.local_addrs()[0])
            .await
            .unwrap();
        client
            .write_all(
                "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            )
            .await
            .unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.head.status, 508);
        front.until_served(2).await;
    }
}

#[tokio::test]
async fn an_explanation_shows_the_member_and_recognises_it() {
    let front = Front::start(true);
    front.lead_to("http://192.0.2.1");
    let ask = |member: Option<&str>| {
        let mut request = Request::get("/a").header("host", "a");
        if let Some(member) = member {
            request = request.header("cdn-loop", member);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        front.proxy.explain(&parts, ConnectionInfo::default())
    };
    let first = ask(None);
    assert_eq!(first.outcome, Verdict::Matched);
    let headers = first.forwarded.unwrap().headers;
    let (_, member) = headers.iter().find(|(name, _)| name == "Cdn-Loop").unwrap();
    let again = ask(Some(member));
    assert_eq!(again.outcome, Verdict::LoopDetected);
    assert_eq!(again.status.unwrap(), 508);
    assert_eq!(ask(Some("other")).outcome, Verdict::Matched);
}
