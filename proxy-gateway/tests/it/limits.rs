//! `Server.Limits`: the program enforces them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::{ConfigFile, address_after, start};
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::CertificateAuthority;
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::PeerProcess;
use testkit::raw::RawClient;
use testkit::time::guarded;

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

/// The shortest default timeout: who is given up sooner has another one.
const SOON: Duration = Duration::from_secs(10);

/// A running gateway in front of a destination that echoes requests.
struct Gateway {
    process: PeerProcess,
    _origin: Origin,
    _file: ConfigFile,
}

impl Gateway {
    async fn start(limits: Value) -> Self {
        Self::listening(json!({ "Address": "127.0.0.1:0" }), limits).await
    }

    async fn listening(listener: Value, limits: Value) -> Self {
        let origin = Origin::start(|request| async {
            let real_ip = request.headers().get("x-real-ip").cloned();
            // The rest of a too slow request never arrives.
            let sent = request.into_body().collect().await;
            let mut response = Response::new(body::full(sent.unwrap_or_default().to_bytes()));
            if let Some(real_ip) = real_ip {
                response.headers_mut().insert("x-seen-real-ip", real_ip);
            }
            response
        });
        let config = json!({
            "Listeners": { "web": listener },
            "Admin": { "Enabled": false },
            "Server": { "Workers": 1, "Limits": limits },
            "ReverseProxy": {
                "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
                "Clusters": { "c": { "Destinations": { "d": { "Address": origin.url() } } } },
            },
        });
        let file = ConfigFile::new(&config.to_string());
        Self {
            process: start(&["run", "--config", &file.argument()], READY).await,
            _origin: origin,
            _file: file,
        }
    }

    fn address(&self) -> SocketAddr {
        address_after(&self.process.output(), "listening on http://")
    }
}

#[tokio::test]
async fn a_target_that_is_too_long_is_rejected() {
    let gateway = Gateway::start(json!({ "RequestLine": 300 })).await;
    for mut client in [
        Connection::http1(gateway.address()).await.unwrap(),
        Connection::http2(gateway.address()).await.unwrap(),
    ] {
        for (length, status) in [(200, 200), (300, 414)] {
            let target = format!("/{}", "a".repeat(length));
            let answer = client.get(&target).await.unwrap();
            assert_eq!(answer.status, status, "{:?}", client.protocol());
        }
    }
}

#[tokio::test]
async fn a_client_has_so_many_connections() {
    let gateway = Gateway::start(json!({ "ConnectionsPerAddress": 1 })).await;
    let mut client = Connection::http1(gateway.address()).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    let mut further = RawClient::connect(gateway.address()).await.unwrap();
    further.assert_closed().await;
    assert_eq!(client.get("/").await.unwrap().status, 200);
}

/// The rules of a listener reach the server.
#[tokio::test]
async fn a_listener_may_be_strict_and_trusting() {
    for (listener, is_strict, is_trusting) in [
        (json!({ "Address": "127.0.0.1:0" }), false, false),
        (
            json!({ "Address": "127.0.0.1:0", "StrictPaths": true, "TrustedSenders": true }),
            true,
            true,
        ),
    ] {
        let gateway = Gateway::listening(listener, json!({})).await;
        let request = "GET /a;b HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let answer = RawClient::exchange(gateway.address(), request)
            .await
            .unwrap();
        assert_eq!(answer.status() == 400, is_strict);
        let request = "GET /a HTTP/1.1\r\nHost: a.example\r\nX-Real-IP: 192.0.2.1\r\n\r\n";
        let answer = RawClient::exchange(gateway.address(), request)
            .await
            .unwrap();
        let is_there = answer.header("x-seen-real-ip") == Some("192.0.2.1");
        assert_eq!(is_there, is_trusting);
    }
}

#[tokio::test]
async fn a_connection_ends_after_so_many_requests() {
    let gateway = Gateway::start(json!({ "RequestsPerConnection": 2 })).await;
    let mut client = RawClient::connect(gateway.address()).await.unwrap();
    for connection in [None, Some("close")] {
        let request = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
        client.write_all(request).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.header("connection"), connection);
    }
    client.assert_closed().await;

    let mut client = Connection::http2(gateway.address()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(client.get("/").await.unwrap().status, 200);
    }
    guarded("the connection to end", client.closed()).await;
}

#[tokio::test]
async fn a_connection_ends_at_its_age() {
    let limits = json!({ "ConnectionAge": "1s", "RequestsPerConnection": i64::MAX });
    let gateway = Gateway::start(limits).await;
    let mut client = Connection::http1(gateway.address()).await.unwrap();
    let until_told = async {
        loop {
            let answer = client.get("/").await.expect("told before the end");
            if answer.header("connection") == Some("close") {
                break;
            }
        }
    };
    guarded("a response that is the last", until_told).await;
}

#[tokio::test]
async fn clients_get_the_time_that_is_set() {
    let certificate = CertificateAuthority::new("one").issue(&["a.example"]);
    let pem = certificate.write_pem();
    let files = json!({ "CertificateFile": pem.certificate(), "KeyFile": pem.key() });
    let tls = json!({ "Address": "127.0.0.1:0", "Tls": { "Certificates": [files] } });
    let gateway = Gateway::listening(tls, json!({ "TlsHandshakeTimeout": "100ms" })).await;
    let address = address_after(&gateway.process.output(), "listening on https://");
    let begun = Instant::now();
    let mut client = RawClient::connect(address).await.unwrap();
    client.assert_closed().await;
    assert!(begun.elapsed() < SOON, "of a handshake");

    let limits = json!({
        "HeaderTimeout": "100ms",
        "DataRate": { "BytesPerSecond": 1_000_000, "Window": "1s" },
    });
    let gateway = Gateway::start(limits).await;
    for begins in [
        "GET / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\nsome",
    ] {
        let begun = Instant::now();
        let answer = RawClient::exchange(gateway.address(), begins).await;
        assert_eq!(answer.unwrap().status(), 408, "{begins}");
        assert!(begun.elapsed() < SOON, "{begins}");
    }
}

/// Kinds of frames, and ids of settings (RFC 9113 sections 6 and 6.5.2).
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const ENHANCE_YOUR_CALM: u32 = 11;

/// Returns a frame of the connection.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a short one");
    let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, 0];
    frame.extend(payload);
    frame
}

/// Waits for a frame of this kind.
async fn payload(client: &mut RawClient, kind: u8) -> Vec<u8> {
    loop {
        let head = client.read_exact(9).await.expect("a frame");
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = client.read_exact(length).await.expect("all of it");
        if head[3] == kind {
            return payload;
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at..].first_chunk().expect("four bytes");
    u32::from_be_bytes(*four)
}

#[tokio::test]
async fn clients_of_http_2_are_told_their_limits_and_held_to_them() {
    let http2 = json!({
        "ConcurrentStreams": 7,
        "StreamWindow": 70_000,
        "ConnectionWindow": 200_000,
        "PingsPerSecond": 3,
    });
    let gateway = Gateway::start(json!({ "Http2": http2 })).await;
    let mut client = RawClient::connect(gateway.address()).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let begin = [preface, &frame(SETTINGS, &[])].concat();
    client.write_all(begin).await.unwrap();
    let told = payload(&mut client, SETTINGS).await;
    let told: Vec<_> = told
        .chunks_exact(6)
        .map(|setting| {
            (
                u16::from_be_bytes([setting[0], setting[1]]),
                u32_at(setting, 2),
            )
        })
        .collect();
    assert!(told.contains(&(MAX_CONCURRENT_STREAMS, 7)), "{told:?}");
    assert!(told.contains(&(INITIAL_WINDOW_SIZE, 70_000)), "{told:?}");
    // The window begins with 65,535.
    let update = payload(&mut client, WINDOW_UPDATE).await;
    assert_eq!(u32_at(&update, 0), 200_000 - 65_535);

    // With less than a second between them, since the default would allow them all.
    let pings = frame(PING, &[0; 8]).repeat(50);
    client.write_all(pings).await.unwrap();
    let reason = payload(&mut client, GOAWAY).await;
    assert_eq!(u32_at(&reason, 4), ENHANCE_YOUR_CALM);
}

/// The minimum and maximum values still serve requests.
#[tokio::test]
async fn the_ends_of_the_ranges_serve() {
    const ANY: u32 = u32::MAX;
    let least = json!({
        "HeaderBytes": 1024, "HeaderFields": 1, "RequestLine": 256, "BufferBytes": 8192,
        "RequestsPerConnection": 1, "MemoryBytes": 16_777_216,
        "DataRate": { "BytesPerSecond": 1, "Window": "1s" },
        "Http2": {
            "ConcurrentStreams": 1, "StreamWindow": 1024, "ConnectionWindow": 65535,
            "PendingResets": 1, "ResetsPerSecond": 1, "ResetsPerConnection": 1,
            "PingsPerSecond": 1, "SettingsPerSecond": 1,
            "OtherFramesPerSecond": 1, "ErrorResets": 1,
        },
    });
    let most = json!({
        "HeaderBytes": 1_048_576, "HeaderFields": 10_000, "RequestLine": 1_048_576, "BufferBytes": 67_108_864,
        "Connections": 10_000_000, "ConnectionsPerAddress": 10_000_000, "RequestsPerConnection": i64::MAX, "BodyBytes": i64::MAX,
        "MemoryBytes": i64::MAX,
        "HeaderTimeout": "1d", "TlsHandshakeTimeout": "1d", "ClosingGrace": "1m",
        "KeepAlive": "Infinite", "ConnectionAge": "Infinite",
        "DataRate": { "BytesPerSecond": ANY, "Window": "1d" },
        "Http2": {
            "ConcurrentStreams": ANY, "StreamWindow": 2_147_483_647, "ConnectionWindow": 2_147_483_647,
            "PendingResets": ANY, "ResetsPerSecond": ANY, "ResetsPerConnection": ANY,
            "PingsPerSecond": ANY, "SettingsPerSecond": ANY,
            "OtherFramesPerSecond": ANY, "ErrorResets": ANY,
        },
    });
    for limits in [least, most] {
        let gateway = Gateway::start(limits.clone()).await;
        let mut client = Connection::http1(gateway.address()).await.unwrap();
        let answer = client.get("/").await.unwrap();
        assert_eq!(answer.status, 200, "HTTP/1.1 with {limits}");
        // More than the minimum of any window.
        let sent = "some".repeat(100_000);
        let mut client = Connection::http2(gateway.address()).await.unwrap();
        // `Host` is the one field that may be: without a known length there is no `Content-Length`.
        let unknown_length = body::frames([Ok(body::data(sent.clone()))]);
        let request = client.request("POST", "/").body(unknown_length);
        let answer = client.send(request.unwrap()).await.unwrap();
        assert_eq!(answer.status, 200, "HTTP/2 with {limits}");
        assert!(answer.text() == sent, "HTTP/2 with {limits}");
    }
}
