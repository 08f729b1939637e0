//! Clients that make the server hold memory: together they cannot exceed the budget, and others are
//! served meanwhile.

use std::any::Any;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use h2::client::handshake;
use http::Request;
use proxy_runtime::Proxy;
use proxy_runtime::admin::Admin;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{
    Certificate, CertificateStore, Limits, Listener, Server, ServerCounts, ServerHandle,
    TlsServerConfig,
};
use serde_json::json;
use testkit::certs::{Alpn, CertificateAuthority, provider};
use testkit::raw::{RawConnection, RawOrigin};
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use crate::changed;
use crate::server::support::loopback;
use crate::server::ways::Disguised;

/// The memory budget for clients.
const BUDGET: u64 = 1 << 20;

/// Maximum of held memory until the connections told to end have run.
const MOST: u64 = BUDGET + BUDGET / 8;

/// Maximum that one HTTP/2 connection may hold before it is checked.
const TURN: u64 = 1 << 20;

const NAME: &str = "a.example";

/// A destination that sends more than clients read, reads less than they send, or responds.
fn origin() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            match &*head.target {
                "/flood" => flood(&mut connection, "200 OK\r\nContent-Length: 1073741824").await?,
                "/tunnel" => {
                    let switch = "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
                    flood(&mut connection, switch).await?;
                }
                "/hang" => connection.hold().await?,
                _ => {
                    let body = "x".repeat(200_000);
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n{body}");
                    connection.write_all(answer).await?;
                }
            }
        }
    })
}

async fn flood(connection: &mut RawConnection, head: &str) -> io::Result<()> {
    connection
        .write_all(format!("HTTP/1.1 {head}\r\n\r\n"))
        .await?;
    loop {
        connection.write_all([b'x'; 65_536]).await?;
    }
}

struct Bench {
    server: Option<ServerHandle>,
    clear: SocketAddr,
    tls: SocketAddr,
    authority: CertificateAuthority,
    peak: Arc<AtomicU64>,
    sampler: tokio::task::JoinHandle<()>,
    admin: Admin,
    _origin: RawOrigin,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.sampler.abort();
    }
}

impl Bench {
    /// `is_raw`: requests are forwarded on the byte path.
    fn new(is_raw: bool) -> Self {
        let origin = origin();
        let config = json!({
            "Routes": { "r1": { "ClusterId": "c1", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c1": { "Destinations": { "d1": { "Address": origin.url() } } } },
        });
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
        let builder = Proxy::builder().snapshot(Arc::new(snapshot));
        let (proxy, driver) = builder.build().unwrap();
        tokio::spawn(driver);
        let admin = Admin::builder(proxy.clone());
        let authority = CertificateAuthority::new("test");
        let identity = authority.issue(&[NAME]);
        let certificate =
            Certificate::from_der(vec![identity.certificate()], identity.key(), &provider());
        let store = CertificateStore::new([certificate.unwrap()]).unwrap();
        let tls = TlsServerConfig::new(provider(), store).unwrap();
        let listeners = [Listener::http(loopback()), Listener::https(loopback(), tls)];
        let limits = changed(|limits: &mut Limits| limits.memory_bytes = Some(BUDGET));
        macro_rules! start {
            ($builder:expr) => {{
                let builder = $builder.with_workers(NonZeroUsize::MIN).with_limits(limits);
                let builder = listeners
                    .into_iter()
                    .fold(builder, |builder, listener| builder.with_listener(listener));
                let server = builder.bind().unwrap();
                (admin.server(&server), server.start().unwrap())
            }};
        }
        let (admin, server) = match is_raw {
            true => start!(Server::for_proxy(&proxy)),
            false => start!(Server::builder(move || Disguised(proxy.service()))),
        };
        let (clear, tls) = (server.local_addrs()[0], server.local_addrs()[1]);
        let peak = Arc::<AtomicU64>::default();
        let (metrics, most) = (Arc::clone(server.metrics()), Arc::clone(&peak));
        let sampler = tokio::spawn(async move {
            loop {
                most.fetch_max(metrics.counts().held_bytes, Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self {
            server: Some(server),
            clear,
            tls,
            authority,
            peak,
            sampler,
            admin: admin.build(),
            _origin: origin,
        }
    }

    fn counts(&self) -> ServerCounts {
        self.server.as_ref().unwrap().metrics().counts()
    }

    /// The admin API's answer, as text.
    fn told(&self, path: &str) -> String {
        let request = Request::get(path).header("host", "localhost").body(());
        let response = self.admin.respond(&request.unwrap());
        String::from_utf8(response.into_body().to_vec()).unwrap()
    }

    /// Waits until connections were reset for lack of memory.
    async fn is_full(&self) {
        eventually("connections to be reset", async || {
            self.counts().shed_connections > 0
        })
        .await;
    }

    /// Asserts that another client gets a response larger than one read.
    async fn serves(&self) {
        let mut stream = connect("127.0.0.2", self.clear, None).await;
        let request = "GET /small HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        guarded("a response", stream.read_to_end(&mut response))
            .await
            .unwrap();
        assert!(response.starts_with(b"HTTP/1.1 200"));
        assert!(response.len() > 200_000, "{}", response.len());
    }

    fn assert_bounded(&self) {
        let counts = self.counts();
        assert_eq!(counts.held_bytes_limit, BUDGET);
        let peak = self.peak.load(Relaxed);
        assert!(peak > BUDGET / 2, "{peak}: it is not what this is about");
        assert!(peak <= MOST + TURN, "{peak} of {BUDGET}");
    }

    async fn holds_nothing(&self) {
        eventually("all to be given back", async || {
            self.counts().held_bytes == 0
        })
        .await;
    }
}

/// A client at a local address with a receive buffer of `buffer` bytes.
async fn connect(local: &str, server: SocketAddr, buffer: Option<u32>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    if let Some(buffer) = buffer {
        socket.set_recv_buffer_size(buffer).unwrap();
    }
    let local = SocketAddr::new(local.parse().unwrap(), 0);
    socket.bind(local).unwrap();
    guarded("a connection", socket.connect(server))
        .await
        .unwrap()
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The way in which a client makes the server hold memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
    /// A body that no destination reads.
    Upload,
    /// The same over HTTP/2.
    UploadHttp2,
    Tunnel,
    TunnelTls,
    /// Streams with tunnels whose client does not read.
    TunnelHttp2,
    HalfHead,
}

impl Way {
    /// Number of such clients that exceed the budget.
    fn too_many(self) -> usize {
        match self {
            Self::Http1 | Self::Http1Tls | Self::Upload | Self::TunnelTls => 24,
            Self::Http2 | Self::Http2Tls | Self::UploadHttp2 | Self::TunnelHttp2 => 6,
            Self::Tunnel => 80,
            Self::HalfHead => 60,
        }
    }

    fn is_tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls | Self::TunnelTls)
    }

    async fn open(self, bench: &Bench, local: &str) -> Box<dyn Any + Send> {
        let address = if self.is_tls() {
            bench.tls
        } else {
            bench.clear
        };
        let stream = connect(local, address, Some(4096)).await;
        let mut stream: Pin<Box<dyn Stream>> = match self {
            Self::Http1Tls | Self::Http2Tls | Self::TunnelTls => {
                let alpn = match self {
                    Self::Http2Tls => Alpn::Http2,
                    _ => Alpn::Http1,
                };
                let connector = TlsConnector::from(Arc::new(bench.authority.client_config(alpn)));
                let name = NAME.try_into().unwrap();
                Box::pin(connector.connect(name, stream).await.unwrap())
            }
            _ => Box::pin(stream),
        };
        let text = match self {
            Self::Http1 | Self::Http1Tls => "GET /flood HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Self::Upload => {
                "POST /hang HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1073741824\r\n\r\n"
            }
            Self::Tunnel | Self::TunnelTls => {
                "GET /tunnel HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            }
            Self::HalfHead => "GET / HTTP/1.1\r\nHost: a.exa",
            Self::Http2 | Self::Http2Tls | Self::UploadHttp2 => {
                return open_streams(stream, self == Self::UploadHttp2).await;
            }
            Self::TunnelHttp2 => return open_tunnels(stream).await,
        };
        stream.write_all(text.as_bytes()).await.unwrap();
        if self != Self::Upload {
            return Box::new(stream);
        }
        Box::new(Task(tokio::spawn(async move {
            while stream.write_all(&[0; 65_536]).await.is_ok() {}
        })))
    }
}

struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Twenty streams whose responses are not read, or four whose bodies are sent as far as possible.
async fn open_streams(stream: Pin<Box<dyn Stream>>, uploads: bool) -> Box<dyn Any + Send> {
    let (sender, connection) = handshake(stream).await.unwrap();
    let carrier = Task(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let mut held: Vec<Box<dyn Any + Send>> = vec![Box::new(carrier)];
    for _ in 0..(if uploads { 4 } else { 20 }) {
        let Ok(mut ready) = sender.clone().ready().await else {
            break;
        };
        let path = if uploads { "hang" } else { "flood" };
        let uri = format!("http://a.example/{path}");
        let request = match uploads {
            true => Request::post(uri),
            false => Request::get(uri),
        };
        let request = request.body(()).unwrap();
        let Ok((response, mut body)) = ready.send_request(request, !uploads) else {
            break;
        };
        if !uploads {
            held.push(Box::new((response, body)));
            continue;
        }
        let uploading = tokio::spawn(async move {
            loop {
                body.reserve_capacity(65_536);
                let Some(Ok(room)) = poll_fn(|cx| body.poll_capacity(cx)).await else {
                    break;
                };
                if body.send_data(Bytes::from(vec![0; room]), false).is_err() {
                    break;
                }
            }
        });
        held.push(Box::new((response, Task(uploading))));
    }
    Box::new((held, sender))
}

/// Twenty tunnels whose client has no receive window.
async fn open_tunnels(stream: Pin<Box<dyn Stream>>) -> Box<dyn Any + Send> {
    let mut builder = h2::client::Builder::new();
    let opened = builder.initial_window_size(0).handshake::<_, Bytes>(stream);
    let (sender, connection) = opened.await.unwrap();
    let carrier = Task(tokio::spawn(async move {
        let _ = connection.await;
    }));
    eventually("the server's settings", async || {
        sender.is_extended_connect_protocol_enabled()
    })
    .await;
    let mut held: Vec<Box<dyn Any + Send>> = vec![Box::new(carrier)];
    for _ in 0..20 {
        let Ok(mut ready) = sender.clone().ready().await else {
            break;
        };
        let request = Request::connect("http://a.example/tunnel")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .extension(h2::ext::Protocol::from_static("websocket"));
        match ready.send_request(request.body(()).unwrap(), false) {
            Ok(tunnel) => held.push(Box::new(tunnel)),
            Err(_) => break,
        }
    }
    Box::new((held, sender))
}

/// Clients together get the budget and no more, and others are served.
async fn together_they_get_no_more(is_raw: bool, ways: &[Way]) {
    for &way in ways {
        println!("{way:?}");
        let bench = Bench::new(is_raw);
        let mut clients = Vec::new();
        for _ in 0..way.too_many() {
            clients.push(way.open(&bench, "127.0.0.1").await);
        }
        bench.is_full().await;
        bench.serves().await;
        bench.assert_bounded();
        drop(clients);
        // A disconnect is not detected while the request waits for the destination; the
        // `ActivityTimeout` ends it.
        if way != Way::Upload {
            bench.holds_nothing().await;
        }
    }
}

#[tokio::test]
async fn slow_readers_get_no_more_than_the_budget() {
    let ways = [Way::Http1, Way::Http1Tls, Way::Http2, Way::Http2Tls];
    together_they_get_no_more(true, &ways).await;
}

#[tokio::test]
async fn slow_readers_of_services_get_no_more_than_the_budget() {
    let ways = [Way::Http1, Way::Http1Tls, Way::Http2, Way::Http2Tls];
    together_they_get_no_more(false, &ways).await;
}

#[tokio::test]
async fn uploads_that_nobody_takes_get_no_more_than_the_budget() {
    together_they_get_no_more(true, &[Way::Upload, Way::UploadHttp2]).await;
}

#[tokio::test]
async fn tunnels_and_half_heads_get_no_more_than_the_budget() {
    let ways = [Way::Tunnel, Way::TunnelTls, Way::TunnelHttp2, Way::HalfHead];
    together_they_get_no_more(true, &ways).await;
}

/// One budget for all ways at once; the client that holds the most is reset.
#[tokio::test]
async fn who_takes_little_stays_whatever_others_do() {
    let bench = Bench::new(true);
    assert!(
        !bench
            .told("/api/v1/problems")
            .contains("memory_limit_reached")
    );
    let mut modest = connect("127.0.0.2", bench.clear, Some(4096)).await;
    let request = "GET /small HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    modest.write_all(request.as_bytes()).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..4 {
        for way in [
            Way::Http1,
            Way::Http2Tls,
            Way::Upload,
            Way::Tunnel,
            Way::TunnelTls,
            Way::TunnelHttp2,
            Way::Http1Tls,
            Way::Http2,
        ] {
            clients.push(way.open(&bench, "127.0.0.1").await);
        }
    }
    bench.is_full().await;
    bench.assert_bounded();
    let problems = bench.told("/api/v1/problems");
    for part in [
        "memory_limit_reached",
        "127.0.0.1 held most",
        "than the 1024 KiB that they may hold",
        "Server.Limits.MemoryBytes",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    let verdict = bench.told("/api/v1/overview");
    assert!(verdict.contains("Server.Limits.MemoryBytes"), "{verdict}");
    // It has not read a byte so far.
    let mut response = Vec::new();
    guarded("a response", modest.read_to_end(&mut response))
        .await
        .unwrap();
    assert!(response.len() > 200_000, "{}", response.len());
}

/// The budget applies while the server stops, and the memory is released with it.
#[tokio::test]
async fn the_budget_holds_during_a_drain() {
    let mut bench = Bench::new(true);
    let mut clients = Vec::new();
    for _ in 0..Way::Http1.too_many() {
        clients.push(Way::Http1.open(&bench, "127.0.0.1").await);
    }
    bench.is_full().await;
    let server = bench.server.take().unwrap();
    let metrics = Arc::clone(server.metrics());
    let shutdown = server.shutdown(Duration::from_millis(500));
    let report = guarded("the end", shutdown).await;
    assert!(report.cut > 0, "{report:?}");
    assert!(bench.peak.load(Relaxed) <= MOST + TURN);
    assert_eq!(metrics.counts().held_bytes, 0);
}
