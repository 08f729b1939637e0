use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::{Duration, Instant};

use proxy_runtime::ConnectionInfo;
use proxy_runtime::server::{Limits, Listener, Server};
use testkit::raw::RawClient;
use testkit::time::eventually;

use crate::changed;
use crate::server::support::{Handler, builder, loopback, serve, text};

const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: t.example\r\n\r\n";

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[tokio::test]
async fn all_workers_serve() {
    let handler = Handler::echo();
    let server = Server::builder(move || handler.clone())
        .with_workers(workers(2))
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let address = server.local_addrs()[0];
    // The kernel chooses by the client's port: it is practically impossible that all of these go to
    // one worker.
    let mut clients = Vec::new();
    for _ in 0..128 {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        clients.push(client);
    }
    let metrics = server.metrics();
    let requests: Vec<_> = metrics.requests_by_worker().collect();
    assert_eq!(requests.iter().sum::<u64>(), 128);
    assert!(
        requests.iter().all(|requests| *requests > 0),
        "{requests:?}"
    );
    assert_eq!(metrics.counts().active_connections, 128);
}

#[tokio::test]
async fn each_worker_has_a_service_of_its_own() {
    let threads = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let server = Server::builder({
        let threads = threads.clone();
        move || {
            let thread = std::thread::current();
            threads.lock().push(thread.name().map(str::to_owned));
            Handler::echo()
        }
    })
    .with_workers(workers(3))
    .with_listener(Listener::http(loopback()))
    .bind()
    .unwrap()
    .start()
    .unwrap();
    let mut names: Vec<_> = threads.lock().drain(..).flatten().collect();
    names.sort();
    assert_eq!(
        names,
        ["proxy-worker-0", "proxy-worker-1", "proxy-worker-2"]
    );
    server.shutdown(Duration::ZERO).await;
}

#[test]
fn a_port_in_use_is_an_error_that_says_what_to_do() {
    let other = std::net::TcpListener::bind(loopback()).unwrap();
    let address = other.local_addr().unwrap();
    let error = builder(Handler::echo(), Limits::default())
        .with_listener(Listener::http(loopback()))
        .with_listener(Listener::http(address))
        .bind()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot listen on {address}: another program listens there; choose another port or stop that program"
        )
    );
}

#[test]
fn a_server_needs_an_address() {
    let error = builder(Handler::echo(), Limits::default())
        .bind()
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no address to listen on");
}

#[test]
fn a_factory_that_panics_is_an_error() {
    let result = Server::builder(|| -> Handler { panic!("as intended") })
        .with_workers(workers(2))
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start();
    assert_eq!(
        result.unwrap_err().to_string(),
        "a worker panicked while it started"
    );
}

/// The remote and local addresses that the service sees.
fn addresses() -> Handler {
    Handler::new(|request| async move {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        text(&format!(
            "{} {} {}",
            info.remote.unwrap(),
            info.local.unwrap(),
            info.tls
        ))
    })
}

#[tokio::test]
async fn the_service_is_told_the_addresses() {
    let (_server, address) = serve(addresses(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(
        response.text(),
        format!("{} {address} false", client.local_addr())
    );
}

#[tokio::test]
async fn the_unspecified_ipv6_address_takes_both_families() {
    let server = builder(addresses(), Limits::default())
        .with_listener(Listener::http("[::]:0".parse().unwrap()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let port = server.local_addrs()[0].port();
    for ip in ["127.0.0.1", "[::1]"] {
        let address: SocketAddr = format!("{ip}:{port}").parse().unwrap();
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let response = client.read_response().await.unwrap();
        // IPv4 clients appear as IPv4.
        assert_eq!(
            response.text(),
            format!("{} {address} false", client.local_addr())
        );
    }
}

/// F21, in a separate process with few open files.
#[test]
fn accepting_goes_on_when_there_are_descriptors_again() {
    const INSIDE: &str = "PROXY_TEST_FEW_DESCRIPTORS";
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::accepting_goes_on_when_there_are_descriptors_again");
    if std::env::var_os(INSIDE).is_some() {
        return few_descriptors();
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::main(flavor = "current_thread")]
async fn few_descriptors() {
    let (server, address) = serve(
        Handler::echo(),
        changed(|limits: &mut Limits| limits.connections = Some(1000)),
    );
    let metrics = server.metrics();
    // The client is in this process too: there is a descriptor for its side and none for the
    // server's.
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    files.pop();
    let waiting = RawClient::connect(address).await.unwrap();
    eventually("accepting to fail", async || {
        metrics.counts().accept_errors > 0
    })
    .await;
    // No busy loop: twenty attempts per second, of the time that has really passed.
    let begun = Instant::now();
    let before = metrics.counts().accept_errors;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let attempts = metrics.counts().accept_errors - before;
    let most = begun.elapsed().as_millis() / 50 + 2;
    assert!(
        u128::from(attempts) <= most,
        "{attempts} attempts, and not {most}"
    );

    let accepted = metrics.counts().accepted_connections;
    drop((files, waiting));
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 200);
    assert!(metrics.counts().accepted_connections > accepted);
}
