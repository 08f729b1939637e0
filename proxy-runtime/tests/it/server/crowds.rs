//! More clients than connection slots, and clients that use more than their share.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use proxy_runtime::server::{Limits, Listener, Server};
use testkit::raw::RawClient;
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::changed;
use crate::server::support::{Gate, Handler, loopback, serve};

const HALF: &str = "GET / HTTP/1.1\r\nHost: t.exam";
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: t.example\r\n\r\n";

/// Half a head has a minute, even if its slot is needed.
fn patient(connections: usize) -> Limits {
    let minute = Duration::from_secs(60);
    changed(|limits: &mut Limits| {
        limits.connections = Some(connections);
        limits.header_timeout = minute;
        limits.closing_grace = minute;
    })
}

/// A client at another address of this machine.
async fn connect_from(local: &str, server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(SocketAddr::new(local.parse().unwrap(), 0))
        .unwrap();
    guarded("a connection", socket.connect(server))
        .await
        .unwrap()
}

async fn is_answered(client: &mut TcpStream) -> bool {
    let mut begin = [0; 12];
    let read = guarded("an answer or the end", client.read_exact(&mut begin)).await;
    read.is_ok() && begin == *b"HTTP/1.1 200"
}

#[tokio::test]
async fn half_heads_give_way_to_requests() {
    let (server, address) = serve(Handler::echo(), patient(4));
    let mut halves = Vec::new();
    for round in 0..30 {
        for _ in 0..4 {
            let mut half = RawClient::connect(address).await.unwrap();
            half.write_all(HALF).await.unwrap();
            halves.push(half);
        }
        let answer = guarded("a request", RawClient::exchange(address, REQUEST)).await;
        assert_eq!(answer.unwrap().status(), 200, "{round}");
    }
    let counts = server.metrics().counts();
    assert!(counts.evicted_connections >= 100, "{counts:?}");
    assert!(counts.active_connections <= 5, "{counts:?}");
    // The last connections are still open.
    let mut last = halves.pop().unwrap();
    last.write_all("ple\r\n\r\n").await.unwrap();
    assert_eq!(
        guarded("it", last.read_response()).await.unwrap().status(),
        200
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_sends_many_half_heads_takes_places_from_itself() {
    let (server, address) = serve(Handler::echo(), patient(6));
    let mut slow = connect_from("127.0.0.2", address).await;
    slow.write_all(HALF.as_bytes()).await.unwrap();
    eventually("it to be there", async || {
        server.metrics().counts().active_connections == 1
    })
    .await;
    let mut halves = Vec::new();
    for _ in 0..40 {
        let mut half = RawClient::connect(address).await.unwrap();
        half.write_all(HALF).await.unwrap();
        halves.push(half);
    }
    eventually("the others", async || {
        server.metrics().counts().accepted_connections == 41
    })
    .await;
    slow.write_all(b"ple\r\n\r\n").await.unwrap();
    assert!(is_answered(&mut slow).await);
}

/// A request in progress, or an idle connection, is not half a head.
#[tokio::test]
async fn requests_give_way_to_nobody() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), patient(2));
    let mut clients = Vec::new();
    for expected in 1..=2 {
        let mut client = RawClient::connect(address).await.unwrap();
        // In two parts, so that it has been half a head.
        let (begin, end) = REQUEST.split_at(10);
        client.write_all(begin).await.unwrap();
        tokio::task::yield_now().await;
        client.write_all(end).await.unwrap();
        clients.push(client);
        gate.wait_for_waiting(expected).await;
    }
    let mut third = RawClient::connect(address).await.unwrap();
    third.write_all(REQUEST).await.unwrap();
    gate.open();
    for client in clients.iter_mut().chain([&mut third]) {
        let answer = guarded("an answer", client.read_response()).await;
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert_eq!(server.metrics().counts().evicted_connections, 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_has_so_many_connections_whoever_serves_them() {
    let limits = changed(|limits: &mut Limits| limits.connections_per_address = Some(3));
    let server = Server::builder(Handler::echo)
        .with_workers(NonZeroUsize::new(2).unwrap())
        .with_limits(limits)
        .with_listener(Listener::http(loopback()))
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let addresses = server.local_addrs().to_vec();
    let mut clients = Vec::new();
    for address in [addresses[0], addresses[1], addresses[0]] {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        clients.push(client);
    }
    let mut further = RawClient::connect(addresses[1]).await.unwrap();
    // The connection may be closed before.
    let _ = further.write_all(REQUEST).await;
    assert!(guarded("the end", further.read_response()).await.is_err());
    let mut other = connect_from("127.0.0.2", addresses[0]).await;
    other.write_all(REQUEST.as_bytes()).await.unwrap();
    assert!(is_answered(&mut other).await);
    let counts = server.metrics().counts();
    assert_eq!(counts.connections_beyond_address_limit, 1);
    clients.pop();
    eventually("its place", async || {
        server.metrics().counts().active_connections == 3
    })
    .await;
    let again = guarded("a request", RawClient::exchange(addresses[1], REQUEST)).await;
    assert_eq!(again.unwrap().status(), 200);
}
