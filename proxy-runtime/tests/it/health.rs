//! Active health checks over real sockets.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::status::DestinationStatus;
use serde_json::{Value, json};
use testkit::body;
use testkit::faults::{self, RefusingPort};
use testkit::origin::{Incoming, Origin};
use testkit::time::{eventually, guarded};
use tokio::task::JoinHandle;

/// Starts a proxy with one cluster: these settings of the active check, and destinations d0, d1 …
#[track_caller]
fn start(active: &Value, request: &Value, destinations: &[Value]) -> Proxy {
    start_driven(active, request, destinations).0
}

/// Like [`start`], with the task of the driver.
#[track_caller]
fn start_driven(
    active: &Value,
    request: &Value,
    destinations: &[Value],
) -> (Proxy, JoinHandle<()>) {
    let snapshot = compiled(active, request, destinations);
    let builder = Proxy::builder().snapshot(snapshot);
    let (proxy, driver) = builder.build().unwrap();
    (proxy, tokio::spawn(driver))
}

/// A cluster with these settings of the active check, and destinations d0, d1 …
#[track_caller]
fn compiled(active: &Value, request: &Value, destinations: &[Value]) -> Arc<Snapshot> {
    let named = destinations.iter().enumerate();
    let named: serde_json::Map<_, _> = named.map(|(i, d)| (format!("d{i}"), d.clone())).collect();
    let mut check = json!({ "Enabled": true, "Interval": "00:00:00.05", "Timeout": "00:00:05" });
    let settings = active.as_object().cloned().unwrap_or_default();
    check.as_object_mut().unwrap().extend(settings);
    let config = json!({ "Clusters": { "c": {
        "HealthCheck": { "Active": check },
        "HttpRequest": request,
        "Destinations": named,
    }}});
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    Arc::new(snapshot)
}

fn destination(proxy: &Proxy, index: usize) -> DestinationStatus {
    proxy.clusters()[0].destinations[index].clone()
}

async fn becomes(proxy: &Proxy, index: usize, health: Health) {
    eventually(format!("d{index} becomes {health}"), || async {
        destination(proxy, index).health == health
    })
    .await;
}

#[tokio::test]
async fn a_destination_falls_ill_and_recovers() {
    let (sick, well) = (Origin::named("sick"), Origin::named("well"));
    let proxy = start(
        &json!({ "Path": "/health" }),
        &json!({}),
        &[
            json!({ "Address": sick.url() }),
            json!({ "Address": well.url() }),
        ],
    );
    becomes(&proxy, 0, Health::Healthy).await;
    becomes(&proxy, 1, Health::Healthy).await;

    sick.set_healthy(false);
    becomes(&proxy, 0, Health::Unhealthy).await;
    let status = destination(&proxy, 0);
    assert!(!status.eligible);
    assert!(status.reason.unwrap().contains("503"));
    assert!(destination(&proxy, 1).eligible);

    sick.set_healthy(true);
    becomes(&proxy, 0, Health::Healthy).await;
    assert_eq!(
        (sick.served(), well.served()),
        (0, 0),
        "probes go to their path only"
    );
    assert_eq!(
        destination(&proxy, 0).requests,
        0,
        "probes are not counted as requests"
    );
    assert_eq!(destination(&proxy, 0).connections, 0);
}

#[tokio::test]
async fn destinations_that_do_not_answer_are_unhealthy_and_the_reason_says_how() {
    let closed = RefusingPort::new();
    let garbage = faults::garbage();
    let silent = faults::never_answers();
    let gone = faults::closes_before_answer();
    let proxy = start(
        &json!({ "Timeout": "00:00:00.2" }),
        &json!({}),
        &[
            json!({ "Address": closed.url() }),
            json!({ "Address": garbage.url() }),
            json!({ "Address": silent.url() }),
            json!({ "Address": gone.url() }),
        ],
    );
    for (index, reason) in ["refused", "no answer", "within 200ms", "no answer"]
        .iter()
        .enumerate()
    {
        becomes(&proxy, index, Health::Unhealthy).await;
        let found = destination(&proxy, index).reason.unwrap();
        assert!(found.contains(reason), "d{index}: {found}");
    }
    assert!(proxy.clusters()[0].panic, "none is left, so all are used");
}

/// A received probe.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    method: String,
    uri: String,
    host: String,
    agent: String,
}

fn recorder() -> (Origin, Arc<Mutex<Option<Seen>>>) {
    let seen = Arc::new(Mutex::new(None));
    let record = Arc::clone(&seen);
    let origin = Origin::start(move |request: Request<Incoming>| {
        let header = |name| {
            request
                .headers()
                .get(name)
                .map(|v| v.to_str().unwrap().to_owned())
        };
        let authority = request.uri().authority().map(ToString::to_string);
        *record.lock() = Some(Seen {
            method: request.method().to_string(),
            uri: request.uri().path_and_query().unwrap().to_string(),
            host: authority.or_else(|| header("host")).unwrap_or_default(),
            agent: header("user-agent").unwrap_or_default(),
        });
        std::future::ready(Response::new(body::full("fine")))
    });
    (origin, seen)
}

#[tokio::test]
async fn a_probe_is_a_get_of_path_and_query_at_the_health_address() {
    let exact = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
    for version in [json!({}), exact] {
        let (origin, seen) = recorder();
        let proxy = start(
            &json!({ "Path": "/status", "Query": "?deep=1" }),
            &version,
            &[json!({
                // A rejected port; the probes go elsewhere.
                "Address": RefusingPort::new().url(),
                "Health": format!("{}/base/", origin.url()),
                "Host": "orders.example",
            })],
        );
        becomes(&proxy, 0, Health::Healthy).await;
        let seen = seen.lock().clone().unwrap();
        assert_eq!((&*seen.method, &*seen.uri), ("GET", "/base/status?deep=1"));
        assert_eq!(seen.host, "orders.example");
        assert!(seen.agent.contains("health check"), "{}", seen.agent);
    }
}

/// An origin that is healthy at these paths only, and records the paths of probes.
fn well_at(paths: &[&str]) -> (Origin, Arc<Mutex<BTreeSet<String>>>) {
    let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let record = Arc::clone(&asked);
    let origin = Origin::start(move |request: Request<Incoming>| {
        let target = request.uri().path_and_query().unwrap().to_string();
        let mut response = Response::new(body::full(""));
        if !paths.contains(&target) {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        record.lock().insert(target);
        std::future::ready(response)
    });
    (origin, asked)
}

#[tokio::test]
async fn destinations_of_one_cluster_are_probed_at_their_own_paths() {
    let (first, asked_first) = well_at(&["/healthz?deep=1"]);
    let (second, asked_second) = well_at(&["/base/status/live?deep=1"]);
    let (third, asked_third) = well_at(&["/health?deep=1"]);
    let proxy = start(
        &json!({ "Path": "/health", "Query": "?deep=1" }),
        &json!({}),
        &[
            json!({ "Address": first.url(), "HealthPath": "/healthz" }),
            json!({
                // A rejected port; the probes go elsewhere, and the path is appended to that
                // address.
                "Address": RefusingPort::new().url(),
                "Health": format!("{}/base", second.url()),
                "HealthPath": "/status/live",
            }),
            json!({ "Address": third.url() }),
        ],
    );
    for (index, url) in [
        format!("{}/healthz", first.url()),
        format!("{}/base/status/live", second.url()),
        format!("{}/health", third.url()),
    ]
    .into_iter()
    .enumerate()
    {
        becomes(&proxy, index, Health::Healthy).await;
        assert_eq!(
            destination(&proxy, index).probe,
            Some(url),
            "without the query"
        );
    }
    for (asked, expected) in [
        (asked_first, "/healthz?deep=1"),
        (asked_second, "/base/status/live?deep=1"),
        (asked_third, "/health?deep=1"),
    ] {
        assert_eq!(*asked.lock(), BTreeSet::from([expected.to_owned()]));
    }
}

#[tokio::test]
async fn a_path_that_fails_takes_out_its_own_destination_only() {
    let (both, _) = well_at(&["/health", "/healthz"]);
    let (one, _) = well_at(&["/health"]);
    let at = |path: Option<&str>| {
        [
            json!({ "Address": both.url(), "HealthPath": "/healthz" }),
            json!({ "Address": one.url(), "HealthPath": path }),
            json!({ "Address": one.url() }),
        ]
    };
    let active = json!({ "Path": "/health" });
    let proxy = start(&active, &json!({}), &at(Some("/healthz")));
    becomes(&proxy, 1, Health::Unhealthy).await;
    becomes(&proxy, 0, Health::Healthy).await;
    becomes(&proxy, 2, Health::Healthy).await;
    let reason = destination(&proxy, 1).reason.unwrap();
    assert!(reason.contains("404"), "{reason}");
    let eligible = [0, 1, 2].map(|index| destination(&proxy, index).eligible);
    assert_eq!(eligible, [true, false, true]);

    proxy
        .publish(compiled(&active, &json!({}), &at(None)))
        .unwrap();
    becomes(&proxy, 1, Health::Healthy).await;
}

#[tokio::test]
async fn the_driver_takes_its_probes_along() {
    let origin = Origin::named("one");
    let (proxy, driver) = start_driven(
        &json!({ "Path": "/health" }),
        &json!({}),
        &[json!({ "Address": origin.url() })],
    );
    becomes(&proxy, 0, Health::Healthy).await;
    drop(proxy);
    guarded("the driver ends with the proxy", driver)
        .await
        .unwrap();
    eventually("no connection is left open", || async {
        origin.traffic().counts().open() == 0
    })
    .await;
}

#[tokio::test]
async fn a_tcp_probe_asks_for_a_connection_alone() {
    let closed = RefusingPort::new();
    let silent = faults::never_answers();
    let proxy = start(
        &json!({ "Probe": "Tcp" }),
        &json!({}),
        &[
            json!({ "Address": closed.url() }),
            json!({ "Address": silent.url() }),
        ],
    );
    becomes(&proxy, 0, Health::Unhealthy).await;
    becomes(&proxy, 1, Health::Healthy).await;
    let healthy = destination(&proxy, 1);
    assert_eq!(healthy.last_probe.as_deref(), Some("connected"));
    assert_eq!(healthy.connections, 0);
}

/// A destination whose health service answers with this status of HTTP, message and code.
#[cfg(feature = "http2")]
fn health_service(message: &'static [u8], code: &'static str) -> Origin {
    use http::{HeaderMap, HeaderValue, Version};

    Origin::start(move |request: Request<Incoming>| async move {
        assert_eq!(request.version(), Version::HTTP_2);
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        assert_eq!(request.headers()["te"], "trailers");
        let asked = http_body_util::BodyExt::collect(request.into_body()).await;
        let asked = asked.unwrap().to_bytes();
        assert_eq!(*asked, *b"\0\0\0\0\x06\x0a\x04shop");
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(code));
        Response::builder()
            .header("content-type", "application/grpc")
            .body(body::with_trailers(message, trailers))
            .unwrap()
    })
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn a_grpc_probe_asks_for_the_health_of_a_service() {
    let well = health_service(b"\0\0\0\0\x02\x08\x01", "0");
    let sick = health_service(b"\0\0\0\0\x02\x08\x02", "0");
    let unknown = health_service(b"", "5");
    let strange = health_service(b"\0\0\0\0\x02\xff\xff", "0");
    let without = health_service(b"", "12");
    let other = faults::garbage();
    let urls = [
        well.url(),
        sick.url(),
        unknown.url(),
        strange.url(),
        without.url(),
        other.url(),
    ];
    let proxy = start(
        &json!({ "Probe": "Grpc", "GrpcService": "shop" }),
        &json!({}),
        &urls.map(|url| json!({ "Address": url })),
    );
    for (index, expected) in [
        (0, "answered SERVING"),
        (1, "answered NOT_SERVING"),
        (2, "answered grpc-status 5: it has no service `shop`"),
        (3, "answered something that is no HealthCheckResponse"),
        (
            4,
            "answered grpc-status 12: it does not speak grpc.health.v1",
        ),
        (5, "no answer"),
    ] {
        let health = if index == 0 {
            Health::Healthy
        } else {
            Health::Unhealthy
        };
        becomes(&proxy, index, health).await;
        let last = destination(&proxy, index).last_probe.unwrap();
        assert!(last.starts_with(expected), "{index}: {last}");
    }
}
