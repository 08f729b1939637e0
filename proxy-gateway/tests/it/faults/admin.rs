//! The admin listener under a flood.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::raw::RawClient;
use testkit::time::{GUARD, eventually};
use tokio::task::JoinSet;

use crate::common::{ConfigFile, address_after, start};
use crate::faults::{READY, Requests};

/// Number of clients with half a head each: more than the listener has connections.
const HALVES: usize = 200;

/// The time in which most readiness checks are answered: the least that load balancers wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// Number of readiness checks during the flood.
const CHECKS: usize = 40;

/// Attempts of a check. A busy machine may let 128 newer connections in between the connect and the request of one,
/// which closes it. Load balancers do not act on one failure either.
const ATTEMPTS: usize = 2;

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
/// them. The number is that of the half heads that are on an open connection.
fn flood(admin: SocketAddr) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let mut clients = JoinSet::new();
    let open = Arc::new(AtomicUsize::new(0));
    for number in 0..HALVES {
        let open = Arc::clone(&open);
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
                let is_sent = client.write_all(text).await.is_ok();
                if is_sent && number % 4 != 0 {
                    open.fetch_add(1, Ordering::Relaxed);
                    // Until it is closed for another one.
                    let _ = client.read_to_end().await;
                    open.fetch_sub(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    (clients, open)
}

/// Sends one readiness check from a thread of its own: its request is not behind those of the flood.
fn is_ready_at(admin: SocketAddr) -> bool {
    let exchange = || -> std::io::Result<String> {
        let mut client = TcpStream::connect(admin)?;
        client.set_read_timeout(Some(GUARD))?;
        client
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        client.read_to_string(&mut response)?;
        Ok(response)
    };
    exchange().is_ok_and(|response| response.starts_with("HTTP/1.1 200 "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_the_admin_listener_fails_no_request_and_no_readiness_check() {
    let origin = Origin::named("blue");
    let file = ConfigFile::new(&config(&origin.url()));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let requests = Requests::start(proxy).await;
    let (mut flood, open) = flood(admin);
    // A client that requests anything else than health may have to make room.
    let told = async |path: &str| {
        let mut client = Connection::http1(admin).await.ok()?;
        Some(client.get(path).await.ok()?.text())
    };
    let evicted = async || {
        let name = "proxy_admin_evicted_connections_total ";
        let metrics = told("/metrics").await?;
        let mut counts = metrics.lines().filter_map(|line| line.strip_prefix(name));
        counts.next()?.parse::<u64>().ok()
    };
    let before = Cell::new(0);
    eventually("the listener is full", async || {
        before.set(evicted().await.unwrap_or_default());
        before.get() > 0
    })
    .await;
    let (mut failed, mut late) = (0, 0);
    let mut fewest = HALVES;
    for _ in 0..CHECKS {
        fewest = fewest.min(open.load(Ordering::Relaxed));
        let begun = Instant::now();
        let mut is_ready = false;
        for _ in 0..ATTEMPTS {
            let check = tokio::task::spawn_blocking(move || is_ready_at(admin));
            is_ready = check.await.expect("it does not panic");
            if is_ready {
                break;
            }
        }
        failed += usize::from(!is_ready);
        late += usize::from(begun.elapsed() > PATIENCE);
    }
    assert_eq!(failed, 0, "of {CHECKS} readiness checks");
    // A busy machine delays one now and then. Where the flood holds all places, it delays each.
    assert!(
        late <= CHECKS / 4,
        "{late} of {CHECKS} checks took longer than {PATIENCE:?}"
    );
    requests.go_on("the admin listener is flooded").await;
    // How many there are at once depends on the machine: each that is closed comes back after 20 ms.
    assert!(fewest > 0, "the flood goes on at each check");
    eventually("it was full until now", async || {
        evicted().await.is_some_and(|after| after > before.get())
    })
    .await;
    flood.shutdown().await;
    eventually("the overview is told", async || {
        let overview = told("/api/v1/overview").await;
        overview.is_some_and(|overview| overview.contains("All is well"))
    })
    .await;
    requests.end().await;
}
