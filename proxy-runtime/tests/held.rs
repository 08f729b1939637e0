//! The memory that clients make the server hold for each byte that they send, and what is left when they are gone.

#![cfg(all(feature = "http2", feature = "server"))]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use cap::Cap;
use proxy_runtime::Proxy;
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Listener, Server};
use serde_json::json;
use socket2::{Domain, Socket, Type};
use testkit::raw::frame::{self, Frame};
use testkit::time::eventually;
use tower_layer::layer_fn;

/// Counts the heap of the whole process. Sockets and the stacks of threads are not a part of it.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const CONNECTIONS: usize = 8;
/// Streams of each connection: as many as the server allows.
const STREAMS: usize = 100;
const WAVES: usize = 4;

/// The most bytes that are held for each byte that clients send, at any time: SECURITY.md calls more than that a
/// vulnerability. The state of a stream, its head, and its share of what the connection holds.
const MOST: usize = 100;

/// The same for a route with layers, whose futures are larger.
const MOST_WITH_LAYERS: usize = 160;

/// The most bytes that a wave leaves behind, beyond those of the first one: the read buffers that a thread keeps for
/// later.
const MOST_LEFT: usize = 3 * 1024 * 1024;

/// A response without an end in sight.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n";
static CONTENT: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A destination, and the number of requests that it got.
type Origin = (SocketAddr, Arc<AtomicUsize>);

/// A destination that sends more than clients read, in threads without a heap.
fn flood() -> Origin {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, requests) = (stream.unwrap(), Arc::clone(&counted));
            let serving = move || {
                let (mut head, mut length) = ([0; 4096], 0);
                while !head[..length].ends_with(b"\r\n\r\n") {
                    match stream.read(&mut head[length..]) {
                        Ok(read @ 1..) => length += read,
                        _ => return,
                    }
                }
                requests.fetch_add(1, Relaxed);
                let _ = stream.write_all(HEAD);
                while stream.write_all(&CONTENT).is_ok() {}
            };
            let thread = thread::Builder::new().stack_size(128 * 1024);
            thread.spawn(serving).unwrap();
        }
    });
    (address, requests)
}

/// A destination that accepts nothing, so that connecting to it takes as long as it may.
fn silence() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    // The system drops what it gets beyond one or two connections.
    socket.listen(0).unwrap();
    socket
}

/// A client with the largest windows that there are, which reads nothing. Returns the number of bytes that it sent.
fn client(server: SocketAddr) -> (TcpStream, usize) {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    const LARGEST: u32 = (1 << 31) - 1;
    let rest = (LARGEST - 65_535).to_be_bytes();
    let mut text = frame::PREFACE.to_vec();
    text.extend(Frame::settings(&[(INITIAL_WINDOW_SIZE, LARGEST)]).encode());
    text.extend(Frame::new(frame::WINDOW_UPDATE, 0, 0, rest).encode());
    text.extend(Frame::new(frame::SETTINGS, frame::ACK, 0, []).encode());
    let head = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "shop.example"),
        (":path", "/"),
    ];
    for stream in 0..STREAMS as u32 {
        text.extend(Frame::headers(2 * stream + 1, &head, true).encode());
    }
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(&text).unwrap();
    (stream, text.len())
}

/// The largest heap until it has stopped growing.
async fn settled() -> usize {
    let (mut most, mut quiet) = (HEAP.allocated(), 0);
    while quiet < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = HEAP.allocated();
        quiet = if now > most { 0 } else { quiet + 1 };
        most = most.max(now);
    }
    most
}

/// The heap when it has stopped shrinking.
async fn let_go() -> usize {
    let (mut least, mut quiet) = (HEAP.allocated(), 0);
    while quiet < 4 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = HEAP.allocated();
        quiet = if now < least { 0 } else { quiet + 1 };
        least = least.min(now);
    }
    least
}

/// Sends waves of requests whose responses are not read. `requests`: those that reached the destination, if any do.
async fn streams_that_are_not_read_hold_little_and_leave_nothing(
    (origin, requests): (SocketAddr, Option<Arc<AtomicUsize>>),
    layers: &[&str],
    most: usize,
) {
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "Layers": layers } },
        "Clusters": { "c": { "Destinations": { "d": { "Address": format!("http://{origin}/") } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = Proxy::builder().layer("pass", layer_fn(|rest: RouteService| rest));
    let options = CompileOptions::default().with_layers(layers.iter().copied());
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy).with_workers(NonZeroUsize::MIN);
    let server = server.with_listener(Listener::http(([127, 0, 0, 1], 0).into()));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    let counts = || server.metrics().counts();

    let begin = settled().await;
    let (mut left, mut for_each) = (Vec::new(), Vec::new());
    for wave in 1..=WAVES {
        let (mut clients, mut sent) = (Vec::new(), 0);
        for _ in 0..CONNECTIONS {
            let (client, bytes) = client(address);
            clients.push(client);
            sent += bytes;
        }
        eventually(
            "all requests are as far as they get",
            async || match &requests {
                Some(requests) => requests.load(Relaxed) == wave * CONNECTIONS * STREAMS,
                None => counts().active_requests == (CONNECTIONS * STREAMS) as u64,
            },
        )
        .await;
        let held = settled().await - begin;
        let each = held / sent;
        println!("{held} bytes are held, {each} for each of {sent} that were sent");
        for_each.push(each);
        assert_eq!(
            counts().shed_connections,
            0,
            "the budget is not what bounds it"
        );
        drop(clients);
        eventually("all connections are closed", async || {
            counts().active_connections == 0 && proxy.overview().active_requests == 0
        })
        .await;
        left.push(let_go().await.saturating_sub(begin));
        println!("{} bytes are left after wave {wave}", left[wave - 1]);
    }
    assert!(for_each.iter().all(|each| *each <= most), "{for_each:?}");
    let grown = left[WAVES - 1].saturating_sub(left[0]);
    assert!(grown <= MOST_LEFT, "{left:?}");
}

#[tokio::test]
async fn streams_of_bytes() {
    let (origin, requests) = flood();
    let origin = (origin, Some(requests));
    streams_that_are_not_read_hold_little_and_leave_nothing(origin, &[], MOST).await;
}

#[tokio::test]
async fn streams_of_http_types() {
    let (origin, requests) = flood();
    let origin = (origin, Some(requests));
    let most = MOST_WITH_LAYERS;
    streams_that_are_not_read_hold_little_and_leave_nothing(origin, &["pass"], most).await;
}

#[tokio::test]
async fn streams_that_wait_for_a_connection() {
    let silent = silence();
    let origin = (silent.local_addr().unwrap().as_socket().unwrap(), None);
    streams_that_are_not_read_hold_little_and_leave_nothing(origin, &[], MOST).await;
}

#[tokio::test]
async fn streams_of_http_types_that_wait_for_a_connection() {
    let silent = silence();
    let origin = (silent.local_addr().unwrap().as_socket().unwrap(), None);
    let most = MOST_WITH_LAYERS;
    streams_that_are_not_read_hold_little_and_leave_nothing(origin, &["pass"], most).await;
}
