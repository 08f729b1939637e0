use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use proxy_runtime::ConnectionInfo;
use proxy_runtime::server::{
    Certificate, CertificateStore, ClientAuth, Limits, Listener, ServerHandle, TlsConfigError,
    TlsServerConfig,
};
use testkit::certs::{Alpn, CertificateAuthority, Identity, provider};
use testkit::client::{ClientError, Connection, Protocol};
use testkit::raw::RawClient;
use testkit::time::eventually;
use tokio::io::AsyncWriteExt;

use crate::changed;
use crate::server::support::{Handler, builder, loopback, text};
use crate::server::tls_failures;

fn certificate(identity: &Identity) -> Certificate {
    Certificate::from_der(vec![identity.certificate()], identity.key(), &provider()).unwrap()
}

pub(crate) fn store(identities: &[&Identity]) -> CertificateStore {
    CertificateStore::new(identities.iter().map(|identity| certificate(identity))).unwrap()
}

fn serve(tls: TlsServerConfig, limits: Limits) -> (ServerHandle, SocketAddr) {
    serve_at(loopback(), tls, limits)
}

fn serve_at(at: SocketAddr, tls: TlsServerConfig, limits: Limits) -> (ServerHandle, SocketAddr) {
    let handler = Handler::new(|request| async move {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        text(if info.tls { "tls" } else { "cleartext" })
    });
    let server = builder(handler, limits)
        .with_listener(Listener::https(at, tls))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

fn serve_store(store: &CertificateStore) -> (ServerHandle, SocketAddr) {
    let tls = TlsServerConfig::new(provider(), store.clone()).unwrap();
    serve(tls, Limits::default())
}

#[tokio::test]
async fn alpn_decides_the_protocol() {
    let authority = CertificateAuthority::new("test");
    let store = store(&[&authority.issue(&["a.example"])]);
    let (_server, address) = serve_store(&store);
    for (alpn, protocol) in [
        (Alpn::Both, Protocol::Http2),
        (Alpn::Http2, Protocol::Http2),
        (Alpn::Http1, Protocol::Http1),
        (Alpn::Absent, Protocol::Http1),
    ] {
        let config = authority.client_config(alpn);
        let mut client = Connection::tls(address, "a.example", config).await.unwrap();
        assert_eq!(client.protocol(), protocol, "{alpn:?}");
        assert_eq!(client.get("/").await.unwrap().text(), "tls");
    }
}

/// Case 293.
#[tokio::test]
async fn unknown_protocols_are_rejected() {
    let authority = CertificateAuthority::new("test");
    let store = store(&[&authority.issue(&["a.example"])]);
    let (server, address) = serve_store(&store);
    let mut config = authority.client_config(Alpn::Absent);
    config.alpn_protocols = vec![b"junk".to_vec()];
    let result = Connection::tls(address, "a.example", config).await;
    assert!(matches!(result, Err(ClientError::Tls(_))));
    wait_for_failure(&server).await;
}

async fn wait_for_failure(server: &ServerHandle) {
    eventually("a failed handshake to be counted", async || {
        server.metrics().counts().tls_handshake_failures == 1
    })
    .await;
}

/// Connects with a client that trusts only the authority of the expected certificate.
async fn is_shown(address: SocketAddr, name: &str, authority: &CertificateAuthority) -> bool {
    let config = authority.client_config(Alpn::Both);
    match Connection::tls(address, name, config).await {
        Ok(_) => true,
        Err(ClientError::Tls(_)) => false,
        Err(error) => panic!("{name}: {error}"),
    }
}

#[tokio::test]
async fn the_name_that_is_asked_for_chooses_the_certificate() {
    let [default, exact, wildcard] =
        ["default", "exact", "wildcard"].map(CertificateAuthority::new);
    let store = store(&[
        &default.issue(&[
            "default.example",
            "other.example",
            "127.0.0.1",
            "a.b.w.example",
        ]),
        &exact.issue(&["a.example", "x.w.example"]),
        &wildcard.issue(&["*.w.example", "a.example"]),
    ]);
    let (_server, address) = serve_store(&store);
    for (name, authority) in [
        ("a.example", &exact),
        ("A.Example", &exact),
        ("x.w.example", &exact),
        ("y.w.example", &wildcard),
        ("Y.W.example", &wildcard),
        // A wildcard stands for one label.
        ("a.b.w.example", &default),
        ("other.example", &default),
        // An address is never sent as a server name.
        ("127.0.0.1", &default),
    ] {
        assert!(is_shown(address, name, authority).await, "{name}");
    }
}

/// F31: a hundred changes, with a mismatched key in between.
#[tokio::test]
async fn certificates_change_under_load_without_a_failed_handshake() {
    let authority = CertificateAuthority::new("test");
    let identities: Vec<_> = (0..4).map(|_| authority.issue(&["a.example"])).collect();
    let store = store(&[&identities[0]]);
    tls_failures::record();
    let tls = TlsServerConfig::new(provider(), store.clone()).unwrap();
    let (server, address) = serve_at(secluded(), tls, Limits::default());
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let config = Arc::new(authority.client_config(Alpn::Both));
        let stop = stop.clone();
        clients.spawn(async move {
            let mut handshakes = Vec::new();
            while !stop.load(SeqCst) {
                let mut client = Connection::tls(address, "a.example", config.clone())
                    .await
                    .unwrap();
                assert_eq!(client.get("/").await.unwrap().status, 200);
                handshakes.push(client.local_addr());
            }
            handshakes
        });
    }
    let metrics = server.metrics();
    for round in 0..100 {
        let accepted = metrics.counts().accepted_connections;
        let next = &identities[round % identities.len()];
        store.replace([certificate(next)]).unwrap();
        let wrong_key = identities[(round + 1) % identities.len()].key();
        let result = Certificate::from_der(vec![next.certificate()], wrong_key, &provider());
        assert!(matches!(result, Err(TlsConfigError::Mismatch { .. })));
        eventually("another handshake", async || {
            metrics.counts().accepted_connections > accepted
        })
        .await;
    }
    stop.store(true, SeqCst);
    let handshakes: Vec<SocketAddr> = clients.join_all().await.concat();
    assert!(handshakes.len() >= 100, "{}", handshakes.len());
    let failures = metrics.counts().tls_handshake_failures;
    let clients = handshakes.into_iter().collect();
    assert_eq!(failures, 0, "{}", tls_failures::explain(&clients));
}

/// An address without clients of other tests, which might look for a server that has ended on a
/// reused port.
fn secluded() -> SocketAddr {
    // All of 127/8 exists on Linux, and no other test uses this address.
    match cfg!(target_os = "linux") {
        true => SocketAddr::from(([127, 84, 76, 83], 0)),
        false => loopback(),
    }
}

/// The reason of a failed handshake is part of the assertion's message.
#[tokio::test]
async fn failed_handshakes_are_explained() {
    tls_failures::record();
    let authority = CertificateAuthority::new("test");
    let (server, address) = serve_store(&store(&[&authority.issue(&["a.example"])]));
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(b"no TLS at all\r\n\r\n").await.unwrap();
    wait_for_failure(&server).await;
    let clients = std::collections::HashSet::from([client.local_addr().unwrap()]);
    eventually("the failure to be logged", async || {
        let text = tls_failures::explain(&clients);
        let line = text
            .lines()
            .find(|line| line.starts_with("a client of this test: "));
        line.is_some_and(|line| line.contains("error="))
    })
    .await;
}

#[tokio::test]
async fn a_handshake_that_stalls_is_cut() {
    let authority = CertificateAuthority::new("test");
    let store = store(&[&authority.issue(&["a.example"])]);
    let tls = TlsServerConfig::new(provider(), store).unwrap();
    let limits =
        changed(|limits: &mut Limits| limits.tls_handshake_timeout = Duration::from_millis(100));
    let (server, address) = serve(tls, limits);
    let mut client = RawClient::connect(address).await.unwrap();
    // The beginning of a record.
    client.write_all([0x16, 0x03, 0x01, 0x02]).await.unwrap();
    client.assert_closed().await;
    wait_for_failure(&server).await;
}

#[tokio::test]
async fn cleartext_on_a_tls_port_is_rejected() {
    let authority = CertificateAuthority::new("test");
    let store = store(&[&authority.issue(&["a.example"])]);
    let (server, address) = serve_store(&store);
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .unwrap();
    // An alert, in a record of type 21.
    let answer = client
        .read_to_end()
        .await
        .unwrap_or_else(|_| client.buffered().to_vec());
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
    wait_for_failure(&server).await;
    assert_eq!(server.metrics().counts().requests, 0);
}

/// Case 297.
#[tokio::test]
async fn clients_may_have_to_show_a_certificate() {
    let authority = CertificateAuthority::new("test");
    let stranger = CertificateAuthority::new("stranger");
    let identity = authority.issue(&["a.example"]);
    let known = authority.client_config_with(&authority.issue_client("me"), Alpn::Http1);
    let unknown = authority.client_config_with(&stranger.issue_client("me"), Alpn::Http1);
    let nobody = authority.client_config(Alpn::Http1);
    let roots = vec![authority.certificate()];
    for (auth, expected) in [
        (ClientAuth::Required(roots.clone()), [true, false, false]),
        (ClientAuth::Optional(roots), [true, false, true]),
        (ClientAuth::Off, [true, true, true]),
    ] {
        let tls = TlsServerConfig::with_client_auth(provider(), store(&[&identity]), auth.clone());
        let (_server, address) = serve(tls.unwrap(), Limits::default());
        for (config, expected) in [&known, &unknown, &nobody].into_iter().zip(expected) {
            let answer = async {
                let mut client = Connection::tls(address, "a.example", config.clone()).await?;
                client.get("/").await
            };
            assert_eq!(answer.await.is_ok(), expected, "{auth:?}");
        }
    }
}

#[tokio::test]
async fn authorities_of_clients_are_needed() {
    let identity = CertificateAuthority::new("test").issue(&["a.example"]);
    let result = TlsServerConfig::with_client_auth(
        provider(),
        store(&[&identity]),
        ClientAuth::Required(Vec::new()),
    );
    assert!(matches!(result, Err(TlsConfigError::ClientAuthorities(_))));
}
