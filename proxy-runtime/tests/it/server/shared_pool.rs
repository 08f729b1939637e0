//! Connections that all workers share: those to destinations with a connection limit.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::{Request, Response};
use parking_lot::Mutex;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{AccessLogSink, AccessRecord, Listener, Server, ServerHandle};
use serde_json::{Value, json};
use testkit::body;
use testkit::origin::{Incoming, Origin, Protocols};
use testkit::raw::RawClient;
use testkit::time::{eventually, guarded};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::server::support::loopback;

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(25);

/// Records the worker of each client.
#[derive(Debug, Default)]
struct Workers(Mutex<HashMap<SocketAddr, String>>);

impl Workers {
    fn of(&self, client: SocketAddr) -> Option<String> {
        self.0.lock().get(&client).cloned()
    }

    /// A client of this worker; the kernel assigns each client to some worker.
    async fn client_of(&self, worker: usize, address: SocketAddr) -> RawClient {
        for _ in 0..100 {
            let mut client = RawClient::connect(address).await.unwrap();
            assert_eq!(get(&mut client, "/nowhere").await, 404);
            let own = client.local_addr();
            eventually("a record", async || self.of(own).is_some()).await;
            if self.of(own) == Some(format!("proxy-worker-{worker}")) {
                return client;
            }
        }
        panic!("worker {worker} gets no client");
    }
}

impl AccessLogSink for Workers {
    fn log(&self, record: &AccessRecord<'_>) {
        let worker = thread::current().name().unwrap().to_owned();
        self.0.lock().insert(record.remote.unwrap(), worker);
    }
}

async fn get(client: &mut RawClient, path: &str) -> u16 {
    ask(client, path).await;
    client.read_response().await.unwrap().status()
}

async fn ask(client: &mut RawClient, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: t.example\r\n\r\n");
    client.write_all(request).await.unwrap();
}

/// An origin that responds to `/up/held` when permitted, and to everything else at once.
fn gated(protocols: Protocols) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::builder()
        .protocols(protocols)
        .start(move |request: Request<Incoming>| {
            let gate = gate.clone();
            async move {
                if request.uri().path() == "/up/held" {
                    gate.acquire().await.unwrap().forget();
                }
                Response::new(body::full("done"))
            }
        });
    (origin, opened)
}

/// The versions of HTTP of destinations, with the cluster settings for each.
fn versions() -> Vec<(Protocols, Value)> {
    let mut versions = vec![(Protocols::Http1, json!({}))];
    if cfg!(feature = "http2") {
        let exact = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
        versions.push((Protocols::Http2, exact));
    }
    versions
}

/// A proxy with a limit of one connection to `origin`.
fn proxy(origin: &Origin, request: &Value) -> Proxy {
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/up/{**rest}" } } },
        "Clusters": { "c": {
            "HttpClient": { "MaxConnectionsPerServer": 1 },
            "HttpRequest": request,
            "Destinations": { "d": { "Address": origin.url() } },
        } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let (proxy, driver) = Proxy::builder()
        .snapshot(Arc::new(snapshot))
        .build()
        .unwrap();
    tokio::spawn(driver);
    proxy
}

fn serve(proxy: &Proxy, count: usize, workers: &Arc<Workers>) -> (ServerHandle, SocketAddr) {
    let server = Server::for_proxy(proxy)
        .with_workers(NonZeroUsize::new(count).unwrap())
        .with_access_log(workers.clone())
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

/// A worker without work continues for others whose requests use its connections.
#[tokio::test]
async fn a_request_outlives_the_work_of_the_worker_that_opened_its_connection() {
    for (protocols, request) in versions() {
        let (origin, gate) = gated(protocols);
        let workers = Arc::default();
        let (server, address) = serve(&proxy(&origin, &request), 2, &workers);
        let mut opener = workers.client_of(0, address).await;
        let mut other = workers.client_of(1, address).await;
        assert_eq!(get(&mut opener, "/up").await, 200);
        drop(opener);
        ask(&mut other, "/up/held").await;
        origin.traffic().wait_for_requests(2).await;
        assert_eq!(origin.traffic().counts().accepted, 1);

        let shutdown = tokio::spawn(server.shutdown(LONG));
        eventually("the port to be free", async || {
            std::net::TcpListener::bind(address).is_ok()
        })
        .await;
        let mut response = pin!(other.read_response());
        // No response can arrive, unless the connection ends with the first worker.
        let early = timeout(Duration::from_millis(300), &mut response).await;
        assert!(early.is_err(), "{protocols:?}: {early:?}");
        gate.add_permits(1);
        let response = guarded("the response", response).await.unwrap();
        assert_eq!((response.status(), response.text().as_str()), (200, "done"));
        assert_eq!(shutdown.await.unwrap().cut, 0);
    }
}

/// Workers wait for each other at most until the deadline.
#[tokio::test]
async fn a_worker_with_nothing_to_do_is_gone_at_the_deadline() {
    for (protocols, request) in versions() {
        let (origin, _gate) = gated(protocols);
        let workers = Arc::default();
        let (server, address) = serve(&proxy(&origin, &request), 2, &workers);
        let mut client = workers.client_of(1, address).await;
        ask(&mut client, "/up/held").await;
        origin.traffic().wait_for_requests(1).await;
        let shutdown = server.shutdown(Duration::from_millis(50));
        let report = guarded("the end", shutdown).await;
        assert_eq!((report.drained, report.cut), (0, 1));
        client.assert_closed().await;
    }
}

/// Connections of a server that has ended must not be used: they would accept a request, and never
/// deliver its response.
#[tokio::test]
async fn connections_of_a_server_that_has_ended_are_not_used() {
    for (protocols, request) in versions() {
        let (origin, _gate) = gated(protocols);
        let proxy = proxy(&origin, &request);
        for round in 1..=3 {
            let (server, address) = serve(&proxy, 1, &Arc::default());
            let mut client = RawClient::connect(address).await.unwrap();
            for _ in 0..2 {
                assert_eq!(get(&mut client, "/up").await, 200, "{protocols:?} {round}");
            }
            server.shutdown(LONG).await;
        }
        let counts = origin.traffic().counts();
        assert_eq!((counts.requests, counts.accepted), (6, 3), "{protocols:?}");
    }
}

/// Two servers that share a proxy have separate connections: those of the other end with it,
/// whichever server uses them.
#[tokio::test]
async fn a_request_outlives_another_server_that_had_a_connection_for_it() {
    for (protocols, request) in versions() {
        let (origin, gate) = gated(protocols);
        let proxy = proxy(&origin, &request);
        let (first, its_address) = serve(&proxy, 1, &Arc::default());
        let (_second, address) = serve(&proxy, 1, &Arc::default());
        let mut client = RawClient::connect(its_address).await.unwrap();
        assert_eq!(get(&mut client, "/up").await, 200);
        let mut other = RawClient::connect(address).await.unwrap();
        ask(&mut other, "/up/held").await;
        origin.traffic().wait_for_requests(2).await;
        let report = first.shutdown(LONG).await;
        assert_eq!(report.cut, 0);

        gate.add_permits(1);
        let response = guarded("the response", other.read_response()).await;
        let response = response.unwrap();
        let status = (response.status(), response.text());
        assert_eq!(status, (200, "done".to_owned()), "{protocols:?}");
        // The limit applies to both together.
        assert_eq!(origin.traffic().counts().accepted, 2, "{protocols:?}");
    }
}

/// A connection released by one server makes room for the other one, which waits.
#[tokio::test]
async fn servers_that_share_a_limit_take_turns() {
    for (protocols, request) in versions() {
        let (origin, gate) = gated(protocols);
        let proxy = proxy(&origin, &request);
        let (_first, its_address) = serve(&proxy, 1, &Arc::default());
        let (_second, address) = serve(&proxy, 1, &Arc::default());
        let mut clients = Vec::new();
        for address in [its_address, address] {
            clients.push(RawClient::connect(address).await.unwrap());
        }
        ask(&mut clients[0], "/up/held").await;
        origin.traffic().wait_for_requests(1).await;
        ask(&mut clients[1], "/up").await;
        gate.add_permits(1);
        for client in &mut clients {
            let response = guarded("the response", client.read_response()).await;
            assert_eq!(response.unwrap().status(), 200, "{protocols:?}");
        }
        for round in 0..10 {
            let turn = get(&mut clients[round % 2], "/up");
            assert_eq!(guarded("a turn", turn).await, 200, "{protocols:?} {round}");
        }
        let open = origin.traffic().counts();
        assert!(open.accepted >= 2, "{protocols:?}: {open:?}");
    }
}

/// A server that always has waiting requests does not block those of the other. For HTTP/1.1 only:
/// over HTTP/2 no request waits for a connection, since a stream of the other server is preferred.
#[tokio::test]
async fn a_busy_server_leaves_the_other_its_turns() {
    let (origin, _gate) = gated(Protocols::Http1);
    let proxy = proxy(&origin, &json!({}));
    let (_first, its_address) = serve(&proxy, 1, &Arc::default());
    let (_second, address) = serve(&proxy, 1, &Arc::default());
    let mut busy = JoinSet::new();
    for _ in 0..16 {
        busy.spawn(async move {
            let mut client = RawClient::connect(its_address).await.unwrap();
            loop {
                assert_eq!(get(&mut client, "/up").await, 200);
            }
        });
    }
    let traffic = origin.traffic();
    traffic.wait_for_requests(100).await;
    let mut client = RawClient::connect(address).await.unwrap();
    for turn in 0..3 {
        let turned = guarded("its turn", get(&mut client, "/up")).await;
        assert_eq!(turned, 200, "{turn}");
    }
    // The server was busy all the time: none of its clients has failed or waits forever.
    let served = traffic.requests();
    guarded("more", traffic.wait_for_requests(served + 100)).await;
    if let Some(ended) = busy.try_join_next() {
        ended.unwrap();
    }
}
