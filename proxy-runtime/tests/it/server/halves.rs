//! Connections without a complete request, including incomplete TLS handshakes and HTTP/2 prefaces:
//! they are evicted for others.

use std::net::SocketAddr;
use std::time::Duration;

use proxy_runtime::server::{
    Certificate, CertificateStore, Limits, Listener, ServerHandle, TlsServerConfig,
};
use testkit::certs::{Alpn, CertificateAuthority, provider};
use testkit::client::{Connection, Protocol};
use testkit::raw::frame::{self, Frame};
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::changed;
use crate::server::support::{Handler, builder, loopback};

/// Number of connection slots.
const PLACES: usize = 4;

const NAME: &str = "a.example";

/// An incomplete beginning of a client.
#[derive(Clone, Copy, Debug)]
enum Half {
    /// The first record of a handshake.
    Handshake,
    /// Not even that.
    Silence,
    /// The preface of HTTP/2 without its settings.
    Preface,
    /// A request's header block.
    Block,
}

impl Half {
    fn is_tls(self) -> bool {
        matches!(self, Self::Handshake | Self::Silence)
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            // The beginning of a record of 512 bytes.
            Self::Handshake => vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
            Self::Silence => Vec::new(),
            Self::Preface => frame::PREFACE.to_vec(),
            Self::Block => [
                frame::PREFACE,
                &*Frame::settings(&[]).encode(),
                &*Frame::new(frame::SETTINGS, frame::ACK, 0, []).encode(),
                &*Frame::new(frame::HEADERS, frame::END_STREAM, 1, *b"\x82\x86\x84").encode(),
            ]
            .concat(),
        }
    }
}

struct Bench {
    server: ServerHandle,
    address: SocketAddr,
    half: Half,
    authority: CertificateAuthority,
}

impl Bench {
    /// A server with few connection slots. Incomplete requests have an hour, even if their slot is
    /// needed.
    fn new(half: Half) -> Self {
        let authority = CertificateAuthority::new("test");
        let identity = authority.issue(&[NAME]);
        let certificate =
            Certificate::from_der(vec![identity.certificate()], identity.key(), &provider());
        let store = CertificateStore::new([certificate.unwrap()]).unwrap();
        let listener = match half.is_tls() {
            true => {
                let tls = TlsServerConfig::new(provider(), store).unwrap();
                Listener::https(loopback(), tls)
            }
            false => Listener::http(loopback()),
        };
        let hour = Duration::from_secs(3600);
        let limits = changed(|limits: &mut Limits| {
            limits.connections = Some(PLACES);
            limits.header_timeout = hour;
            limits.tls_handshake_timeout = hour;
            limits.closing_grace = hour;
        });
        let server = builder(Handler::echo(), limits).with_listener(listener);
        let server = server.bind().unwrap().start().unwrap();
        let address = server.local_addrs()[0];
        Self {
            server,
            address,
            half,
            authority,
        }
    }

    async fn begin(&self, local: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        let local = SocketAddr::new(local.parse().unwrap(), 0);
        socket.bind(local).unwrap();
        let connecting = socket.connect(self.address);
        let mut stream = guarded("a connection", connecting).await.unwrap();
        stream.write_all(&self.half.bytes()).await.unwrap();
        stream
    }

    /// Asserts that a complete request is served.
    async fn serves(&self) {
        let connecting = async {
            let mut connection = match self.half {
                Half::Handshake | Half::Silence => {
                    let config = self.authority.client_config(Alpn::Both);
                    Connection::tls(self.address, NAME, config).await
                }
                Half::Preface | Half::Block => Connection::http2(self.address).await,
            }
            .unwrap();
            assert_eq!(connection.protocol(), Protocol::Http2);
            connection.get("/").await.unwrap().status
        };
        assert_eq!(guarded("an answer", connecting).await, 200);
    }

    async fn are_accepted(&self, connections: u64) {
        eventually("all to be accepted", async || {
            self.server.metrics().counts().accepted_connections >= connections
        })
        .await;
    }
}

const HALVES: [Half; 4] = [Half::Handshake, Half::Silence, Half::Preface, Half::Block];

#[tokio::test]
async fn half_handshakes_and_openings_give_way_to_requests() {
    for half in HALVES {
        let bench = Bench::new(half);
        let mut halves = Vec::new();
        for _ in 0..10 {
            for _ in 0..PLACES {
                halves.push(bench.begin("127.0.0.1").await);
            }
            bench.serves().await;
        }
        let counts = bench.server.metrics().counts();
        assert!(counts.evicted_connections >= 30, "{half:?}: {counts:?}");
        assert!(counts.active_connections <= 5, "{half:?}: {counts:?}");
        assert_eq!(counts.header_timeouts, 0, "{half:?}: nobody was late");
        // The oldest connections are closed, perhaps with a reset.
        let mut rest = Vec::new();
        let _ = guarded("the end", halves[0].read_to_end(&mut rest)).await;
    }
}

/// Connections of one address are evicted, and not the only one of another address, though that is
/// older.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_begins_much_takes_places_from_itself() {
    for half in HALVES {
        let bench = Bench::new(half);
        let mut slow = bench.begin("127.0.0.2").await;
        bench.are_accepted(1).await;
        let mut halves = Vec::new();
        for _ in 0..20 {
            halves.push(bench.begin("127.0.0.1").await);
        }
        bench.are_accepted(21).await;
        bench.serves().await;
        let mut byte = [0; 1024];
        // HTTP/2 settings may have arrived.
        while let Ok(Ok(count)) =
            tokio::time::timeout(Duration::from_millis(20), slow.read(&mut byte)).await
        {
            assert!(count > 0, "{half:?}: it had to give way");
        }
        drop(slow);
    }
}

/// An HTTP/2 connection with a request in progress, or an idle one, is not evicted.
#[tokio::test]
async fn whole_requests_give_way_to_none() {
    let bench = Bench::new(Half::Preface);
    let mut connections = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::http2(bench.address).await.unwrap();
        assert_eq!(connection.get("/").await.unwrap().status, 200);
        connections.push(connection);
    }
    let mut halves = Vec::new();
    for _ in 0..10 {
        halves.push(bench.begin("127.0.0.1").await);
    }
    bench.are_accepted(12).await;
    for connection in &mut connections {
        assert_eq!(connection.get("/").await.unwrap().status, 200);
    }
    let counts = bench.server.metrics().counts();
    assert!(counts.evicted_connections >= 8, "{counts:?}");
}
