//! The admin listener under a flood.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::raw::RawClient;
use testkit::time::{eventually, within};
use tokio::task::JoinSet;

use crate::common::{ConfigFile, address_after, start};
use crate::faults::{READY, Requests, assert_soon};

/// Number of clients with half a head each: more than the listener has connections.
const HALVES: usize = 200;

/// Number of readiness checks during the flood.
const CHECKS: usize = 40;

/// Time limit for a readiness check. Load balancers usually wait for one to five seconds.
const PATIENCE: Duration = Duration::from_secs(2);

fn config(destination: &str) -> String {
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{destination}/" }} }} }} }}
            }}
        }}"#
    )
}

/// Half heads that are replaced as soon as they are closed, and clients that request large responses and do not read
/// them.
fn flood(admin: SocketAddr) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..HALVES {
        clients.spawn(async move {
            loop {
                let Ok(mut client) = RawClient::connect(admin).await else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                let text = match number % 4 {
                    0 => "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    _ => "GET /metrics HT",
                };
                let _ = client.write_all(text).await;
                if number % 4 != 0 {
                    // Until it is closed for another one.
                    let _ = client.read_to_end().await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    clients
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_the_admin_listener_fails_no_request_and_no_readiness_check() {
    let origin = Origin::named("blue");
    let file = ConfigFile::new(&config(&origin.url()));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let requests = Requests::start(proxy).await;
    let mut flood = flood(admin);
    // A client that requests anything else than health may have to make room.
    let told = async |path: &str| {
        let mut client = Connection::http1(admin).await.ok()?;
        Some(client.get(path).await.ok()?.text())
    };
    let is_evicting = |metrics: String| {
        let name = "proxy_admin_evicted_connections_total ";
        let mut counts = metrics.lines().filter_map(|line| line.strip_prefix(name));
        counts.any(|count| count != "0")
    };
    eventually("the listener is full", async || {
        told("/metrics").await.is_some_and(is_evicting)
    })
    .await;
    let ready = async || {
        let mut client = Connection::http1(admin).await.ok()?;
        client.get("/readyz").await.ok()
    };
    let mut failed = 0;
    for _ in 0..CHECKS {
        let answer = within(PATIENCE, ready()).await;
        failed += usize::from(!matches!(answer, Ok(Some(answer)) if answer.status == 200));
    }
    assert_eq!(failed, 0, "of {CHECKS} readiness checks");
    requests.go_on("the admin listener is flooded").await;
    assert!(!flood.is_empty(), "it was flooded until now");
    flood.shutdown().await;
    let begin = Instant::now();
    eventually("the overview is told", async || {
        let overview = told("/api/v1/overview").await;
        overview.is_some_and(|overview| overview.contains("All is well"))
    })
    .await;
    assert_soon(begin, "the admin listener");
    requests.end().await;
}
