//! TLS, on either side.
#![cfg(feature = "tls")]

use std::net::SocketAddr;
use std::sync::Arc;

use proxy_runtime::Proxy;
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::{self, Alpn, CertificateAuthority};
use testkit::client::{Connection, Message, Protocol, websocket};
use testkit::faults;
use testkit::origin::{Echo, Origin, Protocols};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::front::{Front, config_with};

fn trusting(ca: &CertificateAuthority) -> UpstreamOptions {
    let roots = (*ca.roots()).clone();
    let client = TlsClient::with_roots(certs::provider(), roots).unwrap();
    UpstreamOptions::default().with_tls(client)
}

fn secure_echo(ca: &CertificateAuthority, alpn: Alpn) -> Origin {
    let identity = ca.issue(&["localhost", "127.0.0.1"]);
    Origin::builder()
        .tls(identity.server_config(alpn))
        .start_echo()
}

/// By name, so that the certificate's name and SNI are those of the address.
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

/// Never in the clear, whatever is missing.
#[tokio::test]
async fn a_secure_destination_is_never_spoken_to_in_the_clear() {
    let origin = Origin::echo();
    let url = format!("https://{}", origin.addr());
    let front = start(&url, &json!({}), UpstreamOptions::default());
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    assert_eq!(origin.traffic().counts().accepted, 0);
    front.settled().await;
    assert_eq!(front.errors("RequestCreation"), 1);

    // With TLS settings, to an origin that speaks none.
    let ca = CertificateAuthority::new("test");
    let front = start(&url, &json!({}), trusting(&ca));
    assert_eq!(echo(&front).await.unwrap_err(), 502);
    assert_eq!(origin.traffic().requests(), 0);
}

/// N08: prior knowledge is a matter of cleartext, and ALPN one of TLS.
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

/// A WebSocket needs HTTP/1.1. The only connection that there may be speaks HTTP/2, and is given up for it when it is idle.
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
        // Answered without an upgrade, over HTTP/2.
        assert_eq!(echo(&front).await.unwrap_err(), 426);
        front.connections(0, 1).await;
        let address = front.server.addr();
        let mut socket = websocket(address, "/").await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.receive().await.unwrap(),
            Some(Message::text("hello"))
        );
        // The other way round: the tunnel has the only connection, until it ends.
        let mut client = front.http1().await;
        let waiting = tokio::spawn(async move { client.get("/").await.unwrap().status });
        tokio::task::yield_now().await;
        socket.close().await.unwrap();
        assert_eq!(waiting.await.unwrap(), 426);
        front.settled().await;
        assert!(front.destination(0).connections <= 1);
    }
}

/// E15 to E17 over TLS: a destination that was resolved has an IP address and keeps its name as `Host`.
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

/// Ends TLS in front of origins in the clear: the first connection agrees on HTTP/2 and goes to `first`, the others agree on
/// HTTP/1.1 and go to `others`. Gives its URL.
async fn changing(ca: &CertificateAuthority, first: SocketAddr, others: SocketAddr) -> String {
    let identity = ca.issue(&["localhost"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    tokio::spawn(async move {
        let mut chosen = [(Alpn::Http2, first)].into_iter();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (alpn, origin) = chosen.next().unwrap_or((Alpn::Http1, others));
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

/// What a destination speaks may change from one connection to the next, as when the servers behind one name are replaced.
#[tokio::test]
async fn a_second_try_is_made_in_the_version_of_its_connection() {
    let ca = CertificateAuthority::new("test");
    let (leaving, echoing) = (faults::h2::goes_away(), Origin::echo());
    let url = changing(&ca, leaving.addr(), echoing.addr()).await;
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
