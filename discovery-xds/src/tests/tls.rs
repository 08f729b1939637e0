//! TLS on sockets, both sides showing who they are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use testkit::certs::{Alpn, CertificateAuthority};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::transport::Server;

use super::script::{Script, Service, delta};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::{ClientError, TlsOptions, XdsDiscoverer, XdsOptions};
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Route as Rds};

/// Starts a control plane that requires a certificate of `authority`.
async fn control_plane(authority: &CertificateAuthority) -> (String, Script) {
    let identity = authority.issue(&["xds.test"]);
    let config = identity.server_config_requiring(authority, Alpn::Http2);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let incoming = stream::unfold((listener, acceptor), |(listener, acceptor)| async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                // The server knows of pipes, and nothing of this kind of stream.
                let (mut inner, outer) = tokio::io::duplex(1 << 16);
                tokio::spawn(async move {
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut inner).await;
                });
                return Some((Ok::<_, std::io::Error>(outer), (listener, acceptor)));
            }
        }
    });
    let (service, script) = Service::new();
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming),
    );
    (server, script)
}

#[tokio::test]
async fn both_sides_show_who_they_are() {
    let authority = CertificateAuthority::new("fleet");
    let (server, mut script) = control_plane(&authority).await;
    let client = authority.issue_client("gateway").write_pem();
    let ca = client.add_authority(&authority);
    let tls = TlsOptions::default()
        .with_ca_file(ca)
        .with_certificate(client.certificate(), client.key())
        .with_server_name("xds.test");
    let options = XdsOptions::default()
        .with_listeners(false)
        .with_servers(vec![server])
        .with_tls(tls);
    let provider = XdsDiscoverer::new(options).unwrap().runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Rds, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;
}

#[tokio::test]
async fn a_control_plane_of_somebody_else_is_not_obeyed() {
    let (server, _script) = control_plane(&CertificateAuthority::new("others")).await;
    let authority = CertificateAuthority::new("fleet");
    let client = authority.issue_client("gateway").write_pem();
    let ca = client.add_authority(&authority);
    let tls = TlsOptions::default()
        .with_ca_file(ca)
        .with_certificate(client.certificate(), client.key())
        .with_server_name("xds.test");
    let options = XdsOptions::default()
        .with_servers(vec![server.clone()])
        .with_tls(tls);
    let provider = XdsDiscoverer::new(options).unwrap().runner().start();
    let mut states = states(&provider);
    let failing = state(&mut states, |state| state.status.last_error.is_some()).await;
    let message = failing.status.last_error.as_ref().unwrap().message.clone();
    assert!(
        message.contains(&server) && message.contains("certificate"),
        "{message}"
    );
}

/// Certificates that are renewed while a proxy runs are those of its next connection.
#[tokio::test]
async fn renewed_certificates_are_those_of_the_next_connection() {
    let (old, new) = (
        CertificateAuthority::new("old"),
        CertificateAuthority::new("new"),
    );
    let (first, mut script) = control_plane(&old).await;
    let (second, mut next) = control_plane(&new).await;
    let client = old.issue_client("gateway").write_pem();
    let ca = client.add_authority(&old);
    let tls = TlsOptions::default()
        .with_ca_file(&ca)
        .with_certificate(client.certificate(), client.key())
        .with_server_name("xds.test");
    let options = XdsOptions::default()
        .with_listeners(false)
        .with_servers(vec![first, second])
        .with_backoff((Duration::from_millis(10), Duration::from_millis(50)))
        .with_tls(tls);
    let provider = XdsDiscoverer::new(options).unwrap().runner().start();
    let mut states = states(&provider);
    let one = resources(ONE);
    let stream = script.delta().await;
    for (kind, nonce) in [(Cds, "1"), (Rds, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;

    let renewed = new.issue_client("gateway");
    std::fs::write(&ca, new.certificate_pem()).unwrap();
    std::fs::write(client.certificate(), renewed.certificate_pem()).unwrap();
    std::fs::write(client.key(), renewed.key_pem()).unwrap();
    drop((stream, script));
    let stream = next.delta().await;
    let moved = ONE.replace("10.0.0.1", "10.0.0.2");
    let moved_resources = resources(&moved);
    stream.answer(delta(Eds, "4", "2", &moved_resources)).await;
    serving(&mut states, &moved).await;
}

#[test]
fn what_cannot_work_is_said_before_anything_is_asked() {
    let with = |server: &str| XdsOptions::default().with_servers(vec![server.to_owned()]);
    let error = |options| XdsDiscoverer::new(options).unwrap_err();
    for server in ["", "xds.test:1701", "ftp://xds.test", "http://"] {
        assert!(
            matches!(error(with(server)), ClientError::Server { .. }),
            "{server}"
        );
    }
    assert!(matches!(
        error(XdsOptions::default().with_servers(Vec::new())),
        ClientError::NoServer
    ));
    assert!(matches!(
        error(with("https://xds.test")),
        ClientError::NoRoots
    ));
    let missing = TlsOptions::default().with_ca_file("/nowhere/ca.pem");
    let error = error(with("https://xds.test").with_tls(missing));
    assert!(
        error.to_string().starts_with("/nowhere/ca.pem: "),
        "{error}"
    );
}
