//! TLS, on either side.
#![cfg(feature = "tls")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use proxy_runtime::{Proxy, ProxyService};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::{self, Alpn, CertificateAuthority};
use testkit::client::{Connection, Message, Protocol, websocket};
use testkit::faults;
use testkit::origin::{Echo, Origin, Protocols};
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::changed;
use crate::forward::front::{Front, config_with};

fn trusting(ca: &CertificateAuthority) -> UpstreamOptions {
    let roots = (*ca.roots()).clone();
    let client = TlsClient::with_roots(certs::provider(), roots).unwrap();
    changed(|options: &mut UpstreamOptions| options.tls = Some(client))
}

fn secure_echo(ca: &CertificateAuthority, alpn: Alpn) -> Origin {
    let identity = ca.issue(&["localhost", "127.0.0.1"]);
    Origin::builder()
        .tls(identity.server_config(alpn))
        .start_echo()
}

/// The URL by name, so that the certificate's name and SNI match the address.
fn by_name(origin: &Origin) -> String {
    format!("https://localhost:{}", origin.addr().port())
}

async fn echo(front: &Front) -> Result<Echo, u16> {
    let answer = front.http1().await.get("/").await.unwrap();
    if answer.status == 200 {
        Ok(answer.json())
    } else {
        Err(answer.status.as_u16())
    }
}

fn start(url: &str, cluster: &Value, options: UpstreamOptions) -> Front {
    Front::build(
        &config_with(&[url], cluster),
        Origin::builder(),
        Proxy::builder().upstream(options),
    )
}

fn version(version: &str, policy: &str) -> Value {
    let policy = format!("RequestVersion{policy}");
    json!({ "HttpRequest": { "Version": version, "VersionPolicy": policy } })
}

#[tokio::test]
async fn alpn_chooses_the_version_within_the_policy() {
    let ca = CertificateAuthority::new("test");
    for (alpn, policy, expected) in [
        (Alpn::Both, json!({}), Some(("HTTP/2.0", Some("h2")))),
        (Alpn::Http1, json!({}), Some(("HTTP/1.1", Some("http/1.1")))),
        (Alpn::Absent, json!({}), Some(("HTTP/1.1", None))),
        (
            Alpn::Both,
            version("1.1", "Exact"),
            Some(("HTTP/1.1", Some("http/1.1"))),
        ),
        (
            Alpn::Both,
            version("1.1", "OrHigher"),
            Some(("HTTP/2.0", Some("h2"))),
        ),
        (
            Alpn::Both,
            version("2", "Exact"),
            Some(("HTTP/2.0", Some("h2"))),
        ),
        (Alpn::Http1, version("2", "Exact"), None),
        (Alpn::Absent, version("2", "OrHigher"), None),
        (
            Alpn::Both,
            version("3", "OrLower"),
            Some(("HTTP/2.0", Some("h2"))),
        ),
        (Alpn::Both, version("3", "Exact"), None),
    ] {
        let origin = secure_echo(&ca, alpn);
        let front = start(&by_name(&origin), &policy, trusting(&ca));
        for _ in 0..2 {
            match (echo(&front).await, expected) {
                (Ok(echo), Some((version, alpn))) => {
                    assert_eq!(echo.version, version, "{alpn:?} {policy}");
                    assert_eq!(echo.alpn.as_deref(), alpn, "{policy}");
                    assert_eq!(echo.server_name.as_deref(), Some("localhost"));
                }
                (Err(status), None) => assert_eq!(status, 502, "{alpn:?} {policy}"),
                (found, _) => panic!("{alpn:?} {policy}: {found:?}"),
            }
        }
        if expected.is_some() {
            assert_eq!(origin.traffic().counts().accepted, 1, "{alpn:?} {policy}");
        }
    }
}

#[tokio::test]
async fn both_sides_can_be_secure() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let server = ca.issue(&["front.example"]).server_config(Alpn::Both);
    let front = Front::build(
        &config_with(&[&by_name(&origin)], &json!({})),
        Origin::builder().tls(server),
        Proxy::builder().upstream(trusting(&ca)),
    );
    for (alpn, protocol) in [
        (Alpn::Http1, Protocol::Http1),
        (Alpn::Both, Protocol::Http2),
    ] {
        let config = ca.client_config(alpn);
        let address = front.server.addr();
        let mut client = Connection::tls(address, "front.example", config)
            .await
            .unwrap();
        assert_eq!(client.protocol(), protocol);
        let request = client
            .request("POST", "/x")
            .body(body::full("secret"))
            .unwrap();
        let echo: Echo = client.send(request).await.unwrap().json();
        assert_eq!(echo.body_text.as_deref(), Some("secret"));
        assert_eq!(echo.version, "HTTP/2.0");
    }
    front.settled().await;
}

#[tokio::test]
async fn certificates_are_checked_unless_the_cluster_says_otherwise() {
    let (ca, other) = (
        CertificateAuthority::new("test"),
        CertificateAuthority::new("other"),
    );
    let any = json!({ "HttpClient": { "DangerousAcceptAnyServerCertificate": true } });
    let origin = secure_echo(&ca, Alpn::Both);
    let trusted = start(&by_name(&origin), &json!({}), trusting(&ca));
    assert!(echo(&trusted).await.is_ok());
    let untrusted = start(&by_name(&origin), &json!({}), trusting(&other));
    assert_eq!(echo(&untrusted).await.unwrap_err(), 502);
    let lax = start(&by_name(&origin), &any, trusting(&other));
    assert!(echo(&lax).await.is_ok());

    let misnamed = Origin::builder()
        .tls(ca.issue(&["elsewhere.example"]).server_config(Alpn::Both))
        .start_echo();
    let front = start(&by_name(&misnamed), &json!({}), trusting(&ca));
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    front.settled().await;
    front.connections(0, 0).await;
}

#[tokio::test]
async fn versions_of_tls_are_those_of_the_cluster() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    for protocols in ["Tls12", "Tls13", "Tls12, Tls13"] {
        let settings = json!({ "HttpClient": { "SslProtocols": protocols } });
        let front = start(&by_name(&origin), &settings, trusting(&ca));
        assert!(echo(&front).await.is_ok(), "{protocols}");
    }
}

/// No fallback to cleartext, whatever is missing.
#[tokio::test]
async fn a_secure_destination_is_never_spoken_to_in_the_clear() {
    let origin = Origin::echo();
    let url = format!("https://{}", origin.addr());
    let front = start(&url, &json!({}), UpstreamOptions::default());
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    assert_eq!(origin.traffic().counts().accepted, 0);
    front.settled().await;
    assert_eq!(front.errors("RequestCreation"), 1);

    // With TLS settings, to an origin without TLS.
    let ca = CertificateAuthority::new("test");
    let front = start(&url, &json!({}), trusting(&ca));
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    assert_eq!(origin.traffic().requests(), 0);
}

/// N08: prior knowledge applies to cleartext only, and ALPN to TLS.
#[tokio::test]
async fn http2_in_the_clear_needs_an_origin_that_speaks_it() {
    let origin = Origin::builder().protocols(Protocols::Http1).start_echo();
    let front = start(
        &origin.url(),
        &version("2", "Exact"),
        UpstreamOptions::default(),
    );
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    front.settled().await;
}

/// A WebSocket needs HTTP/1.1. The only permitted connection speaks HTTP/2, and is closed for it
/// while idle.
#[tokio::test]
async fn an_idle_http2_connection_makes_room_for_an_upgrade() {
    let ca = CertificateAuthority::new("test");
    let identity = ca.issue(&["localhost"]);
    let origin = Origin::builder()
        .tls(identity.server_config(Alpn::Both))
        .start_upgrade_echo();
    let settings = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    let front = start(&by_name(&origin), &settings, trusting(&ca));
    for _ in 0..2 {
        // The response has no upgrade, over HTTP/2.
        assert_eq!(echo(&front).await.unwrap_err(), 426);
        front.connections(0, 1).await;
        let address = front.server.addr();
        let mut socket = websocket(address, "/").await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.receive().await.unwrap(),
            Some(Message::text("hello"))
        );
        // The other way round: the tunnel holds the only connection until it ends.
        let mut client = front.http1().await;
        let waiting = tokio::spawn(async move { client.get("/").await.unwrap().status });
        tokio::task::yield_now().await;
        socket.close().await.unwrap();
        assert_eq!(waiting.await.unwrap(), 426);
        front.settled().await;
        assert!(front.destination(0).connections <= 1);
    }
}

/// E15 to E17 over TLS: a resolved destination has an IP address and keeps its name as `Host`.
#[tokio::test]
async fn a_resolved_destination_is_asked_by_its_name() {
    let ca = CertificateAuthority::new("test");
    let identity = ca.issue(&["orders.example"]);
    let origin = Origin::builder()
        .tls(identity.server_config(Alpn::Http1))
        .start_echo();
    let url = format!("https://{}", origin.addr());
    for (host, expected) in [("orders.example:8443", Some("orders.example")), ("", None)] {
        let mut config = config_with(&[&url], &json!({}));
        if !host.is_empty() {
            config["Clusters"]["c"]["Destinations"]["d0"]["Host"] = json!(host);
        }
        let builder = Proxy::builder().upstream(trusting(&ca));
        let front = Front::build(&config, Origin::builder(), builder);
        let answer = echo(&front).await;
        match expected {
            Some(name) => assert_eq!(answer.unwrap().server_name.as_deref(), Some(name)),
            None => assert_eq!(
                answer.unwrap_err(),
                502,
                "the certificate is not for the address"
            ),
        }
    }
}

/// Terminates TLS in front of cleartext origins: the first connection negotiates this version and
/// goes to this origin, later ones to `others`. Returns the URL.
async fn changing(
    ca: &CertificateAuthority,
    first: (Alpn, SocketAddr),
    others: (Alpn, SocketAddr),
) -> String {
    let identity = ca.issue(&["localhost"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    tokio::spawn(async move {
        let mut chosen = [first].into_iter();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (alpn, origin) = chosen.next().unwrap_or(others);
            let acceptor = TlsAcceptor::from(Arc::new(identity.server_config(alpn)));
            tokio::spawn(async move {
                let mut near = acceptor.accept(stream).await?;
                let mut far = TcpStream::connect(origin).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    url
}

/// The version of a destination may change between connections, such as when the servers behind a
/// name are replaced.
#[tokio::test]
async fn a_second_try_is_made_in_the_version_of_its_connection() {
    let ca = CertificateAuthority::new("test");
    let (leaving, echoing) = (faults::h2::goes_away(), Origin::echo());
    let first = (Alpn::Http2, leaving.addr());
    let url = changing(&ca, first, (Alpn::Http1, echoing.addr())).await;
    let front = start(&url, &json!({}), trusting(&ca));
    let mut client = front.http1().await;
    let answer = client.get("/x?y").await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(leaving.traffic().requests(), 1);
    let echo: Echo = answer.json();
    assert_eq!(
        (echo.version.as_str(), echo.path_and_query()),
        ("HTTP/1.1", "/x?y")
    );
    let request = client.request("POST", "/").body(body::full("content"));
    let echo: Echo = client.send(request.unwrap()).await.unwrap().json();
    assert_eq!(echo.body_text.as_deref(), Some("content"));
    front.settled().await;
}

/// The same the other way round.
#[tokio::test]
async fn a_second_try_goes_from_http1_to_http2() {
    let ca = CertificateAuthority::new("test");
    let (leaving, echoing) = (faults::closes_at_next_request(), Origin::echo());
    for settings in [
        json!({}),
        json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } }),
    ] {
        let first = (Alpn::Http1, leaving.addr());
        let url = changing(&ca, first, (Alpn::Http2, echoing.addr())).await;
        let front = start(&url, &settings, trusting(&ca));
        let mut client = front.http1().await;
        let before = leaving.traffic().requests();
        assert_eq!(client.get("/").await.unwrap().status, 200);
        let answer = client.get("/x?y").await.unwrap();
        assert_eq!(leaving.traffic().requests(), before + 2);
        assert_eq!(answer.status, 200);
        let echo: Echo = answer.json();
        assert_eq!(
            (echo.version.as_str(), echo.path_and_query()),
            ("HTTP/2.0", "/x?y")
        );
        front.settled().await;
    }
}

/// A proxy in front of a destination that delays handshakes until permitted.
struct SlowHandshake {
    url: String,
    accepted: Arc<AtomicUsize>,
    /// Connections that ended before.
    ended: Arc<Semaphore>,
    gate: Arc<Semaphore>,
}

impl SlowHandshake {
    async fn start(origin: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let started = Self {
            url: format!("https://localhost:{port}"),
            accepted: Arc::default(),
            ended: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(0)),
        };
        let (accepted, ended) = (started.accepted.clone(), started.ended.clone());
        let gate = started.gate.clone();
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                let (ended, gate) = (ended.clone(), gate.clone());
                tokio::spawn(async move {
                    let mut held = Vec::new();
                    loop {
                        tokio::select! {
                            opened = gate.acquire() => break opened.unwrap().forget(),
                            read = near.read_buf(&mut held) => if !read.is_ok_and(|length| length > 0) {
                                ended.add_permits(1);
                                return Ok(());
                            }
                        }
                    }
                    let mut far = TcpStream::connect(origin).await?;
                    far.write_all(&held).await?;
                    copy_bidirectional(&mut near, &mut far).await.map(drop)
                });
            }
        });
        started
    }

    async fn wait_for_connections(&self, count: usize) {
        eventually(format!("{count} connections"), || async {
            self.accepted.load(Ordering::SeqCst) >= count
        })
        .await;
    }
}

fn get(mut service: ProxyService) -> JoinHandle<StatusCode> {
    let request = Request::get("http://h/").body(body::empty()).unwrap();
    tokio::spawn(async move { service.call(request).await.unwrap().status() })
}

/// A connection that requests can share is opened for all of them: it survives the request that
/// started it.
#[tokio::test]
async fn a_handshake_goes_on_when_its_client_has_gone() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let slow = SlowHandshake::start(origin.addr()).await;
    let front = start(&slow.url, &json!({}), trusting(&ca));
    let service = front.proxy.service();
    let begun = Instant::now();
    let first = get(service.clone());
    slow.wait_for_connections(1).await;
    let second = get(service.clone());
    eventually("both to wait", || async {
        front.destination(0).in_flight == 2
    })
    .await;
    first.abort();
    // No request waits for it any more.
    second.abort();
    front.settled().await;
    let third = get(service.clone());
    eventually("another one to wait", || async {
        front.destination(0).in_flight == 1
    })
    .await;
    let is_in_time = begun.elapsed() < Duration::from_millis(900);
    slow.gate.add_permits(3);
    assert_eq!(guarded("an answer", third).await.unwrap(), 200);
    // A slow machine opens another connection in parallel.
    assert!(slow.accepted.load(Ordering::SeqCst) == 1 || !is_in_time);
    front.settled().await;
}

/// The handshake ends with its pool.
#[tokio::test]
async fn a_handshake_ends_with_its_service() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let slow = SlowHandshake::start(origin.addr()).await;
    let front = start(&slow.url, &json!({}), trusting(&ca));
    let service = front.proxy.service();
    let first = get(service.clone());
    slow.wait_for_connections(1).await;
    first.abort();
    front.settled().await;
    assert_eq!(slow.ended.available_permits(), 0);
    drop(service);
    drop(guarded("its end", slow.ended.acquire()).await.unwrap());
}

/// A slow attempt does not block the next one, which runs in parallel. Each request waits at most
/// for the connect timeout.
#[tokio::test(start_paused = true)]
async fn handshakes_that_take_too_long_fail_each_who_waits() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let slow = SlowHandshake::start(origin.addr()).await;
    let front = start(&slow.url, &json!({}), trusting(&ca));
    let service = front.proxy.service();
    let begun = Instant::now();
    let first = get(service.clone());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let second = get(service.clone());
    assert_eq!(first.await.unwrap(), 504);
    assert_eq!(begun.elapsed().as_secs(), 15);
    assert_eq!(second.await.unwrap(), 504);
    assert_eq!(begun.elapsed().as_secs(), 25);
    assert_eq!(slow.accepted.load(Ordering::SeqCst), 2);
    drop(
        guarded("their end", slow.ended.acquire_many(2))
            .await
            .unwrap(),
    );
}

/// A proxy in front of a destination that sends nothing over the first connection.
async fn silent_at_first(origin: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let _silent = listener.accept().await.unwrap();
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(origin).await?;
                copy_bidirectional(&mut near, &mut far).await.map(drop)
            });
        }
    });
    format!("https://localhost:{port}")
}

#[tokio::test]
async fn a_connection_that_hangs_holds_up_no_other() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let url = silent_at_first(origin.addr()).await;
    let front = start(&url, &json!({}), trusting(&ca));
    let service = front.proxy.service();
    let first = get(service.clone());
    eventually("it to wait", || async {
        front.destination(0).in_flight == 1
    })
    .await;
    let second = guarded("an answer", get(service.clone())).await;
    assert_eq!(second.unwrap(), 200);
    assert!(!first.is_finished());
    first.abort();
    front.settled().await;
}

/// Panics, and counts its calls.
#[derive(Debug)]
struct Panicking(Arc<AtomicUsize>);

impl ServerCertVerifier for Panicking {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose");
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = certs::provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[tokio::test]
async fn a_verifier_that_panics_ends_one_attempt() {
    let ca = CertificateAuthority::new("test");
    let origin = secure_echo(&ca, Alpn::Both);
    let asked = Arc::<AtomicUsize>::default();
    let verifier = Arc::new(Panicking(Arc::clone(&asked)));
    let tls = TlsClient::with_verifier(certs::provider(), verifier);
    let options = changed(|options: &mut UpstreamOptions| options.tls = Some(tls));
    let front = start(&by_name(&origin), &json!({}), options);
    let answer = guarded("an answer", get(front.proxy.service())).await;
    assert_eq!(answer.unwrap(), 502);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    front.settled().await;
}
