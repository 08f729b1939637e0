//! A service that outlives the runtime of its connections.

use http::{Request, Response};
use http_body_util::BodyExt;
use proxy_runtime::{Proxy, ProxyBody, ProxyService};
use serde_json::{Value, json};
use testkit::body;
use testkit::origin::{Incoming, Origin, Protocols};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::forward::front::{config_with, h2c, snapshot};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// An origin on its own runtime, and a service that sends everything there.
struct Stage {
    origin: Origin,
    service: ProxyService,
    _origins: Runtime,
}

impl Stage {
    fn new(protocols: Protocols, settings: &Value) -> Self {
        let origins = multi_thread();
        let entered = origins.enter();
        let origin =
            Origin::builder()
                .protocols(protocols)
                .start(|request: Request<Incoming>| async move {
                    let is_last = request.uri().path() == "/last";
                    let mut response = Response::new(body::full("done"));
                    if is_last {
                        let headers = response.headers_mut();
                        headers.insert("connection", "close".parse().unwrap());
                    }
                    response
                });
        drop(entered);
        let snapshot = snapshot(&config_with(&[&origin.url()], settings));
        let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
        Self {
            origin,
            service: proxy.service(),
            _origins: origins,
        }
    }

    async fn send(&self, method: &str, path: &str) -> Response<ProxyBody> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "h").body(body::full("content"));
        let mut service = self.service.clone();
        service.call(request.unwrap()).await.unwrap()
    }

    /// The status of a request after its whole response.
    async fn ask(&self, method: &str, path: &str) -> u16 {
        let response = self.send(method, path).await;
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        status
    }

    /// Number of requests and connections at the origin.
    fn seen(&self) -> (u64, u64) {
        let counts = self.origin.traffic().counts();
        (counts.requests, counts.accepted)
    }
}

/// Connections of an ended runtime would accept a request that must not be repeated, and never
/// deliver its response.
#[test]
fn connections_of_a_runtime_that_has_ended_are_not_used() {
    let limited = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    for (protocols, settings) in [
        (Protocols::Http1, json!({})),
        (Protocols::Http1, limited),
        (Protocols::Http2, h2c()),
    ] {
        for runtime in [current_thread, multi_thread] {
            let stage = Stage::new(protocols, &settings);
            for round in 1..=3 {
                let runtime = runtime();
                for method in ["POST", "GET"] {
                    let status = runtime.block_on(stage.ask(method, "/"));
                    assert_eq!(status, 200, "{protocols:?} {settings} round {round}");
                }
            }
            assert_eq!(stage.seen(), (6, 3), "{protocols:?} {settings}");
        }
    }
}

/// Idle connections hold sockets on both sides; no task closes them after their runtime has ended.
#[test]
fn idle_connections_close_with_their_runtime() {
    for (protocols, settings) in [(Protocols::Http1, json!({})), (Protocols::Http2, h2c())] {
        let stage = Stage::new(protocols, &settings);
        let runtime = current_thread();
        assert_eq!(runtime.block_on(stage.ask("GET", "/")), 200);
        drop(runtime);
        current_thread().block_on(stage.origin.traffic().wait_for_open(0));
    }
}

/// The response is readable after the end of the runtime, as far as it had arrived.
#[test]
fn a_connection_that_is_in_use_when_its_runtime_ends_is_not_kept() {
    let stage = Stage::new(Protocols::Http1, &json!({}));
    let runtime = current_thread();
    let response = runtime.block_on(stage.send("GET", "/"));
    drop(runtime);
    let next = current_thread();
    // Bytes that had not arrived at the end of the runtime never arrive.
    let _ = next.block_on(response.into_body().collect());
    assert_eq!(next.block_on(stage.ask("POST", "/")), 200);
    assert_eq!(stage.seen(), (2, 2));
}

/// The end of a runtime on which connections were opened, though not the pool's first one.
#[test]
fn connections_of_several_runtimes_are_told_apart() {
    let stage = Stage::new(Protocols::Http1, &json!({}));
    let first = current_thread();
    assert_eq!(first.block_on(stage.ask("GET", "/last")), 200);
    let second = current_thread();
    assert_eq!(second.block_on(stage.ask("GET", "/")), 200);
    drop(second);
    for _ in 0..2 {
        assert_eq!(first.block_on(stage.ask("POST", "/")), 200);
    }
    assert_eq!(stage.seen(), (4, 3));
}
