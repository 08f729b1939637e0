//! Own transforms that wait, where they meet time limits, retries, explanations and handshakes.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use proxy_runtime::ConnectionInfo;
use proxy_runtime::server::{AccessLogSink, AccessRecord, Listener, Server, ServerHandle};
use serde_json::json;
use testkit::client::{Connection, Message, WebSocket};
use testkit::origin::Origin;
use testkit::raw::{RawClient, RawOrigin, Recording};
use testkit::time::{eventually, guarded};

use super::own_transforms::{Asked, GET, endless, proxy, transformed};

/// The causes of requests.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let cause = record.cause().map(|cause| cause.to_string());
        self.0.lock().push(cause.unwrap_or_default());
    }
}

/// The first line of the response to a client of HTTP/1.1.
async fn status(address: SocketAddr, request: &str) -> String {
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(request).await.unwrap();
    let response = guarded(request, client.read_response()).await.unwrap();
    response.head.status.to_string()
}

use crate::server::support::loopback;
use crate::server::waits::{Way, ways};
use crate::server::ways::OK;

/// The time of a transform is the route's, and no fault of the destination.
#[tokio::test]
async fn the_time_limit_of_the_route_includes_the_work() {
    let failing = [
        (json!([{ "Token": "fails" }]), "500"),
        (json!([{ "Sign": "fails" }]), "500"),
    ];
    let late = endless().map(|transforms| (transforms, "504"));
    for (transforms, expected) in late.into_iter().chain(failing) {
        for layers in [json!([]), json!(["pass"])] {
            let origin = RawOrigin::answering(OK);
            let asked = Asked::default();
            let route = json!({
                "Timeout": "00:00:00.05", "Layers": layers, "Transforms": transforms,
            });
            let route = match expected {
                "504" => route,
                _ => json!({ "Layers": layers, "Transforms": transforms }),
            };
            let proxy = proxy(&asked, &origin.url(), &route);
            let log = Log::default();
            let server = Server::for_proxy(&proxy)
                .with_workers(NonZeroUsize::MIN)
                .with_listener(Listener::http(loopback()))
                .with_access_log(Arc::new(log.clone()));
            let server = server.bind().unwrap().start().unwrap();
            let label = format!("{route}");
            assert_eq!(
                status(server.local_addrs()[0], GET).await,
                expected,
                "{label}"
            );
            assert_eq!(asked.waiting.load(Relaxed), 0, "{label}");
            eventually("it is logged", async || !log.0.lock().is_empty()).await;
            assert_eq!(*log.0.lock(), ["extension_failed"], "{label}");
            let cluster = &proxy.clusters()[0];
            assert_eq!(cluster.errors.get("Extension"), Some(&1), "{label}");
            assert_eq!(cluster.errors.len(), 1, "{label}: {:?}", cluster.errors);
        }
    }
}

/// The work is done once for a request, whatever the number of attempts; a layer that calls twice makes two requests.
#[tokio::test]
async fn another_attempt_does_not_repeat_the_work() {
    for Way { way, serve, route } in ways() {
        // Each connection ends with its second request, and so does the first attempt of that.
        let origin = RawOrigin::script(|mut connection| async move {
            connection.read_whole_request().await?;
            connection.write_all(OK).await?;
            connection.read_whole_request().await?;
            Ok(())
        });
        let asked = Asked::default();
        let transforms = json!([{ "Token": "t" }, { "Sign": "s" }]);
        let server = serve(&proxy(
            &asked,
            &origin.url(),
            &transformed(&route, transforms),
        ));
        for _ in 0..2 {
            assert_eq!(status(server.local_addrs()[0], GET).await, "200", "{way}");
        }
        let sent: String = origin.recordings().iter().map(Recording::text).collect();
        assert_eq!(sent.matches("GET ").count(), 3, "{way}: {sent}");
        assert_eq!(sent.matches("x-token: t\r\n").count(), 3, "{way}: {sent}");
        assert_eq!(
            asked.calls.load(Relaxed),
            4,
            "{way}: twice for each request"
        );
    }
}

/// `explain` calls none of them, and names them.
#[tokio::test]
async fn they_are_named_by_explain() {
    let route =
        json!({ "Transforms": [{ "Token": "never" }, { "PathPrefix": "/x" }, { "Sum": "a" }] });
    let asked = Asked::default();
    let proxy = proxy(&asked, "http://127.0.0.1:1", &route);
    let request = http::Request::get("http://h/a")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let explained = proxy.explain(&request, ConnectionInfo::default());
    assert_eq!(explained.filters, ["Token", "Sum"]);
    assert!(explained.forwarded.unwrap().uri.ends_with("/x/a"));
    assert_eq!(asked.calls.load(Relaxed), 0);
}

/// A handshake of WebSocket waits as other requests do, and then bytes pass as they are.
#[tokio::test]
async fn a_handshake_waits() {
    let origin = Origin::upgrade_echo();
    let asked = Asked::default();
    let transforms = json!([{ "Token": "t" }, { "Sign": "s" }, { "Sum": "never called" }]);
    for Way { way, serve, route } in ways() {
        let route = transformed(&route, transforms.clone());
        let server: ServerHandle = serve(&proxy(&asked, &origin.url(), &route));
        let address = server.local_addrs()[0];
        let mut clients = vec![Connection::http1(address).await.unwrap()];
        if cfg!(feature = "http2") {
            clients.push(Connection::http2(address).await.unwrap());
        }
        for client in clients {
            let mut socket = guarded(way, WebSocket::over(client, "/")).await.unwrap();
            let signed = &socket.response().headers()["x-signed"];
            assert!(
                ["s 101", "s 200"].contains(&signed.to_str().unwrap()),
                "{way}"
            );
            socket.send(Message::text("hello")).await.unwrap();
            let echoed = guarded(way, socket.receive()).await.unwrap();
            assert_eq!(echoed, Some(Message::text("hello")), "{way}");
        }
    }
}
