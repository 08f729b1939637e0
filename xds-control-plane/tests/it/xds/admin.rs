//! The admin API over a real connection.

use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;
use prometheus_client::registry::Registry;
use serde_json::Value;
use testkit::client::{Answer, Connection};
use testkit::raw::RawClient;
use tokio::net::TcpListener;
use xds_control_plane::admin::{Admin, Quarantine, QuarantineEntry, WarningEntry};

use crate::xds::support::Running;
use crate::xds::support::resources::Plan;

struct Held;

impl Quarantine for Held {
    fn entries(&self) -> Vec<QuarantineEntry> {
        vec![QuarantineEntry {
            owner: "registry/bad".to_owned(),
            reasons: vec!["cluster bad: no checker".to_owned()],
            serves_last_known_good: true,
        }]
    }

    fn warnings(&self) -> Vec<WarningEntry> {
        vec![WarningEntry {
            owner: "consul".to_owned(),
            code: "source_failing".to_owned(),
            message: "no answer".to_owned(),
        }]
    }

    fn waiting_for(&self) -> Vec<String> {
        vec!["consul".to_owned()]
    }
}

async fn serve(server: &Running) -> SocketAddr {
    let mut registry = Registry::default();
    server.handle.register(&mut registry);
    let admin = Admin::builder(server.handle.clone(), registry)
        .quarantine(Arc::new(Held))
        .host("control-plane.example")
        .build();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin.serve(listener));
    address
}

async fn ask(address: SocketAddr, host: &str, method: &str, path: &str) -> Answer {
    let mut connection = Connection::http1(address).await.unwrap();
    let request = connection.request_for(host, method, path);
    let request = request.body(testkit::body::empty()).unwrap();
    connection.send(request).await.unwrap()
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "localhost", "GET", path).await
}

#[tokio::test]
async fn readiness_is_that_there_is_something_to_serve() {
    let server = Running::start(None).await;
    let admin = serve(&server).await;
    assert_eq!(get(admin, "/healthz").await.status, StatusCode::OK);
    let answer = get(admin, "/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text().contains("consul"), "{}", answer.text());
    let early = get(admin, "/api/v1/snapshot").await;
    assert_eq!(early.status, StatusCode::SERVICE_UNAVAILABLE);
    let overview: Value = get(admin, "/api/v1/overview").await.json();
    assert_eq!(overview["ready"], false);
    server.publish(Plan::default().snapshot());
    testkit::time::eventually("ready", async || {
        get(admin, "/readyz").await.status == StatusCode::OK
    })
    .await;
}

/// A kept snapshot is served, but readiness is not reported for it.
#[tokio::test]
async fn what_is_only_kept_is_served_and_not_ready() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let plan = Plan::default().service("a", &[]);
    let (ready, readiness) = tokio::sync::watch::channel(false);
    let options = xds_control_plane::server::ServerOptions::default();
    let server = Running::with_readiness(plan.snapshot(), options, Some(readiness)).await;
    let admin = serve(&server).await;
    let health = HealthClient::new(server.channel().await);
    let status = async || {
        let request = HealthCheckRequest::default();
        let mut health = health.clone();
        health.check(request).await.unwrap().into_inner().status()
    };
    testkit::time::eventually("served", async || server.handle.snapshot().is_some()).await;
    let answer = get(admin, "/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        answer.text().contains("served meanwhile"),
        "{}",
        answer.text()
    );
    assert_eq!(status().await, ServingStatus::NotServing);
    let overview: Value = get(admin, "/api/v1/overview").await.json();
    assert_eq!(overview["ready"], false);
    ready.send_replace(true);
    testkit::time::eventually("health is good", async || {
        status().await == ServingStatus::Serving
    })
    .await;
    assert_eq!(get(admin, "/readyz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_served_can_be_read() {
    let plan = Plan::default()
        .service("a", &["127.0.0.1:1".parse().unwrap()])
        .service("b", &[]);
    let server = Running::start(plan.snapshot()).await;
    testkit::time::eventually("ready", async || server.handle.is_ready()).await;
    let admin = serve(&server).await;
    let overview: Value = get(admin, "/api/v1/overview").await.json();
    assert_eq!(overview["types"]["cds"]["count"], 2);
    assert_eq!(overview["quarantined"], 1);
    let all: Value = get(admin, "/api/v1/snapshot").await.json();
    assert_eq!(all["eds"]["resources"][1]["name"], "b");
    let one: Value = get(admin, "/api/v1/snapshot?type=cds&name=a&via=rest")
        .await
        .json();
    let [resource] = one["resources"].as_array().unwrap().as_slice() else {
        panic!("{one}");
    };
    let source = &resource["resource"]["edsClusterConfig"]["edsConfig"];
    assert_eq!(source["apiConfigSource"]["apiType"], "REST");
    let wrong = get(admin, "/api/v1/snapshot?type=sds").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let quarantine: Value = get(admin, "/api/v1/quarantine").await.json();
    assert_eq!(quarantine["quarantine"][0]["owner"], "registry/bad");
    let warnings: Value = get(admin, "/api/v1/warnings").await.json();
    assert_eq!(warnings["warnings"][0]["code"], "source_failing");
    let nodes: Value = get(admin, "/api/v1/nodes").await.json();
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 0);
    let metrics = get(admin, "/metrics").await.text();
    for line in [
        "xds_resources{type=\"cds\"} 2",
        "xds_snapshots_total 1",
        "xds_snapshot_age_seconds ",
        "xds_refusals_total{type=\"rds\"} 0",
    ] {
        let mut lines = metrics.lines();
        assert!(lines.any(|it| it.starts_with(line)), "{line} in {metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
}

#[tokio::test]
async fn only_who_may_ask_is_answered_and_nothing_can_be_changed() {
    let server = Running::start(None).await;
    let admin = serve(&server).await;
    for (host, expected) in [
        ("127.0.0.1:1", StatusCode::OK),
        ("[::1]", StatusCode::OK),
        ("Control-Plane.example", StatusCode::OK),
        ("evil.example", StatusCode::MISDIRECTED_REQUEST),
    ] {
        let answer = ask(admin, host, "GET", "/healthz").await;
        assert_eq!(answer.status, expected, "{host}");
    }
    // Either of two may be the one of a page. Health checks without any are answered.
    for (path, hosts, expected) in [
        (
            "/api/v1/overview",
            "Host: localhost\r\nHost: evil.example\r\n",
            400,
        ),
        ("/api/v1/overview", "Host: \r\n", 421),
        ("/api/v1/overview", "", 400),
        ("/healthz", "", 200),
        ("/readyz", "", 503),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\n{hosts}\r\n");
        let answer = RawClient::exchange(admin, request).await.unwrap();
        assert_eq!(answer.status(), expected, "{path} {hosts:?}");
    }
    let answer = ask(admin, "localhost", "POST", "/healthz").await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    assert_eq!(get(admin, "/other").await.status, StatusCode::NOT_FOUND);
}
