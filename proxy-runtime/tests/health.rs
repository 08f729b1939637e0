//! Active health checks over real sockets.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use http::{Request, Response};
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

/// The same, with the task of the driver.
#[track_caller]
fn start_driven(
    active: &Value,
    request: &Value,
    destinations: &[Value],
) -> (Proxy, JoinHandle<()>) {
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
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    (proxy, tokio::spawn(driver))
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

/// What a probe looked like.
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
        *record.lock().unwrap() = Some(Seen {
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
                // Nobody is there; the probes go elsewhere.
                "Address": RefusingPort::new().url(),
                "Health": format!("{}/base/", origin.url()),
                "Host": "orders.example",
            })],
        );
        becomes(&proxy, 0, Health::Healthy).await;
        let seen = seen.lock().unwrap().clone().unwrap();
        assert_eq!((&*seen.method, &*seen.uri), ("GET", "/base/status?deep=1"));
        assert_eq!(seen.host, "orders.example");
        assert!(seen.agent.contains("health check"), "{}", seen.agent);
    }
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
