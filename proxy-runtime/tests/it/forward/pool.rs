//! Reuse of pooled connections.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use proxy_runtime::Proxy;
use proxy_runtime::upstream::UpstreamOptions;
use serde_json::json;
use testkit::body;
use testkit::faults;
use testkit::origin::{Incoming, Origin, Protocols};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::changed;
use crate::forward::front::{Front, config, config_with, h2c};

/// An origin that responds when permitted.
fn gated(protocols: Protocols) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::builder()
        .protocols(protocols)
        .start(move |_: Request<Incoming>| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Response::new(body::full("done"))
            }
        });
    (origin, opened)
}

fn limited(url: &str, connections: u32) -> serde_json::Value {
    let settings = json!({ "HttpClient": { "MaxConnectionsPerServer": connections } });
    config_with(&[url], &settings)
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    for _ in 0..10 {
        // Connections of clients and of the proxy are independent.
        front.http1().await.get("/").await.unwrap();
    }
    assert_eq!(origin.traffic().counts().accepted, 1);
    let destination = front.destination(0);
    assert_eq!((destination.connections, destination.connects), (1, 1));
}

/// HEAD, 204 and the like end with their head: their connection is reused at once.
#[tokio::test]
async fn responses_without_a_body_free_their_connection() {
    let origin = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    for _ in 0..10 {
        let request = client.request("HEAD", "/").body(body::empty()).unwrap();
        client.send(request).await.unwrap();
    }
    assert_eq!(origin.traffic().counts().accepted, 1);
}

#[tokio::test]
async fn a_connection_that_the_origin_closes_is_forgotten() {
    let origin = faults::closes_after_answer();
    let front = Front::to(origin.url());
    front.http1().await.get("/").await.unwrap();
    front.connections(0, 0).await;
}

#[tokio::test(start_paused = true)]
async fn idle_connections_close_after_a_while() {
    for settings in [json!({}), h2c()] {
        let origin = Origin::echo();
        let options =
            changed(|options: &mut UpstreamOptions| options.idle_timeout = Duration::from_secs(30));
        let front = Front::build(
            &config_with(&[&origin.url()], &settings),
            Origin::builder(),
            Proxy::builder().upstream(options),
        );
        let mut client = front.http1().await;
        client.get("/").await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        client.get("/").await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(front.destination(0).connections, 1, "used 20 s ago");
        tokio::time::sleep(Duration::from_secs(20)).await;
        front.connections(0, 0).await;
        client.get("/").await.unwrap();
        assert_eq!(front.destination(0).connects, 2);
    }
}

/// E24: settings that do not concern connections do not affect them.
#[tokio::test]
async fn e24_a_reload_keeps_connections_unless_their_settings_change() {
    let origin = Origin::echo();
    let before = limited(&origin.url(), 10);
    let front = Front::start(&before);
    let mut client = front.http1().await;
    client.get("/").await.unwrap();

    let mut same = before.clone();
    same["Routes"]["more"] = json!({ "ClusterId": "c", "Match": { "Path": "/more" } });
    same["Clusters"]["c"]["Destinations"]["d1"] = json!({ "Address": "http://127.0.0.1:1/" });
    same["Clusters"]["c"]["LoadBalancingPolicy"] = json!("FirstAlphabetical");
    front.reload(&same);
    client.get("/").await.unwrap();
    assert_eq!(origin.traffic().counts().accepted, 1);

    let mut other = same.clone();
    other["Clusters"]["c"]["HttpClient"]["MaxConnectionsPerServer"] = json!(20);
    front.reload(&other);
    client.get("/").await.unwrap();
    assert_eq!(origin.traffic().counts().accepted, 2);
    origin.traffic().wait_for_open(1).await;
}

#[tokio::test]
async fn connections_to_a_removed_destination_close() {
    let (first, second) = (Origin::echo(), Origin::echo());
    for settings in [json!({}), h2c()] {
        let front = Front::start(&config_with(&[&first.url()], &settings));
        let mut client = front.http1().await;
        client.get("/").await.unwrap();
        front.reload(&config_with(&[&second.url()], &settings));
        first.traffic().wait_for_open(0).await;
        client.get("/").await.unwrap();
    }
}

/// A request in progress at a removed destination continues to its end.
#[tokio::test]
async fn a_removed_destination_finishes_its_requests() {
    let (origin, gate) = gated(Protocols::Http1);
    let other = Origin::echo();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    let request = tokio::spawn(async move { client.get("/").await.unwrap().text() });
    origin.traffic().wait_for_requests(1).await;
    front.reload(&config(&[&other.url()]));
    gate.add_permits(1);
    assert_eq!(request.await.unwrap(), "done");
    origin.traffic().wait_for_open(0).await;
    // Its result does not count for the replacement.
    front.settled().await;
    let now = front.destination(0);
    assert_eq!(
        (now.requests, now.responses.success, now.connects),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn connections_end_with_their_service() {
    let origin = Origin::echo();
    for settings in [json!({}), h2c()] {
        let front = Front::start(&config_with(&[&origin.url()], &settings));
        let mut service = front.proxy.service();
        let request = Request::get("http://h/").body(body::empty()).unwrap();
        let response = service.call(request).await.unwrap();
        http_body_util::BodyExt::collect(response.into_body())
            .await
            .unwrap();
        front.connections(0, 1).await;
        drop(service);
        front.connections(0, 0).await;
        origin.traffic().wait_for_open(0).await;
    }
}

/// The limit applies to the whole proxy, whatever the number of services, and requests wait in
/// order.
#[tokio::test]
async fn max_connections_holds_across_services() {
    for (protocols, version) in [(Protocols::Http1, json!({})), (Protocols::Http2, h2c())] {
        let (origin, gate) = gated(protocols);
        let mut config = limited(&origin.url(), 2);
        if let Some(request) = version.get("HttpRequest") {
            config["Clusters"]["c"]["HttpRequest"] = request.clone();
        }
        let front = Front::start(&config);
        let requests: Vec<_> = (0..12)
            .map(|_| {
                let mut service = front.proxy.service();
                tokio::spawn(async move {
                    let request = Request::get("http://h/").body(body::empty()).unwrap();
                    let response = service.call(request).await.unwrap();
                    let status = response.status();
                    http_body_util::BodyExt::collect(response.into_body())
                        .await
                        .unwrap();
                    status
                })
            })
            .collect();
        let at_once = if protocols == Protocols::Http2 { 12 } else { 2 };
        origin.traffic().wait_for_requests(at_once).await;
        gate.add_permits(12);
        for request in requests {
            assert_eq!(request.await.unwrap(), 200);
        }
        let counts = origin.traffic().counts();
        assert_eq!(counts.requests, 12);
        assert!(counts.accepted <= 2, "{} connections", counts.accepted);
        front.settled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_a_connection_gets_504_and_one_too_many_503() {
    let (origin, gate) = gated(Protocols::Http1);
    let options = changed(|options: &mut UpstreamOptions| options.max_waiting_per_destination = 1);
    let front = Front::build(
        &limited(&origin.url(), 1),
        Origin::builder(),
        Proxy::builder().upstream(options),
    );
    let get = |mut client: testkit::client::Connection| {
        tokio::spawn(async move { client.get("/").await.unwrap().status })
    };
    let first = get(front.http1().await);
    origin.traffic().wait_for_requests(1).await;
    let statuses = [get(front.http1().await), get(front.http1().await)];
    let mut rejected = Vec::new();
    for status in statuses {
        rejected.push(status.await.unwrap().as_u16());
    }
    rejected.sort_unstable();
    assert_eq!(rejected, [503, 504]);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap(), 200);
    // The queue is empty, so the connection is free.
    gate.add_permits(1);
    assert_eq!(front.http1().await.get("/").await.unwrap().status, 200);
    assert_eq!(origin.traffic().counts().accepted, 1);
    front.settled().await;
}

/// A request that stops waiting is skipped; later ones get their turn.
#[tokio::test]
async fn who_leaves_the_queue_holds_up_nobody() {
    let (origin, gate) = gated(Protocols::Http1);
    let front = Front::start(&limited(&origin.url(), 1));
    let call = || {
        let mut service = front.proxy.service();
        tokio::spawn(async move {
            let request = Request::get("http://h/").body(body::empty()).unwrap();
            let response = service.call(request).await.unwrap();
            http_body_util::BodyExt::collect(response.into_body())
                .await
                .unwrap();
        })
    };
    let first = call();
    origin.traffic().wait_for_requests(1).await;
    let impatient: Vec<_> = (0..5).map(|_| call()).collect();
    let last = call();
    tokio::task::yield_now().await;
    for request in &impatient {
        request.abort();
    }
    gate.add_permits(2);
    first.await.unwrap();
    last.await.unwrap();
    assert_eq!(origin.traffic().counts().accepted, 1);
    front.settled().await;
}
