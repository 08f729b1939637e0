use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{Alpn, CertificateAuthority, Leaf, trusting_no_one};
use crate::client::{ClientError, Connection};
use crate::origin::Origin;

/// One exchange; the error is the whole chain as text.
async fn exchange(server: ServerConfig, client: ClientConfig, name: &str) -> Result<(), String> {
    let origin = Origin::builder().tls(server).start_named("a");
    let outcome = async {
        Connection::tls(origin.addr(), name, client)
            .await?
            .get("/")
            .await?;
        Ok::<_, ClientError>(())
    };
    outcome.await.map_err(|error| error.chain())
}

#[tokio::test]
async fn names_and_addresses_are_verified() {
    let ca = CertificateAuthority::new("ca");
    let identity = ca.issue(&["a.example", "*.b.example", "127.0.0.1", "::1"]);
    let cases = [
        ("a.example", true),
        ("x.b.example", true),
        ("127.0.0.1", true),
        ("::1", true),
        ("b.example", false),
        ("127.0.0.2", false),
    ];
    for (name, valid) in cases {
        let outcome = exchange(
            identity.server_config(Alpn::Both),
            ca.client_config(Alpn::Both),
            name,
        );
        assert_eq!(outcome.await.is_ok(), valid, "{name}");
    }
}

#[tokio::test]
async fn bad_server_certificates_are_rejected() {
    let ca = CertificateAuthority::new("ca");
    let other = CertificateAuthority::new("other");
    let good = ca.issue(&["a.example"]);
    let cases = [
        (
            ca.issue_leaf(&Leaf::server(&["a.example"]).expired()),
            ca.client_config(Alpn::Both),
            "expired",
        ),
        (
            ca.issue_leaf(&Leaf::server(&["a.example"]).not_yet_valid()),
            ca.client_config(Alpn::Both),
            "not valid yet",
        ),
        (
            ca.issue_leaf(&Leaf::client("a.example")),
            ca.client_config(Alpn::Both),
            "extended key usage",
        ),
        (
            ca.issue(&["a.example"]),
            other.client_config(Alpn::Both),
            "UnknownIssuer",
        ),
        (good, trusting_no_one(Alpn::Both), "UnknownIssuer"),
    ];
    for (identity, client, reason) in cases {
        let error = exchange(identity.server_config(Alpn::Both), client, "a.example").await;
        let error = error.unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[tokio::test]
async fn client_certificates_are_required_and_verified() {
    let ca = CertificateAuthority::new("ca");
    let other = CertificateAuthority::new("other");
    let server = ca.issue(&["a.example"]);
    let cases = [
        (
            ca.client_config_with(&ca.issue_client("alice"), Alpn::Both),
            true,
        ),
        (ca.client_config(Alpn::Both), false),
        (
            ca.client_config_with(&other.issue_client("alice"), Alpn::Both),
            false,
        ),
        (
            ca.client_config_with(&ca.issue_leaf(&Leaf::client("a").expired()), Alpn::Both),
            false,
        ),
        (
            ca.client_config_with(&ca.issue(&["alice"]), Alpn::Both),
            false,
        ),
    ];
    for (case, (client, valid)) in cases.into_iter().enumerate() {
        let config = server.server_config_requiring(&ca, Alpn::Both);
        let outcome = exchange(config, client, "a.example").await;
        assert_eq!(outcome.is_ok(), valid, "case {case}: {outcome:?}");
    }
}

#[tokio::test]
async fn handshake_fails_without_a_common_protocol() {
    let ca = CertificateAuthority::new("ca");
    let server = ca.issue(&["a.example"]).server_config(Alpn::Http2);
    let error = exchange(server, ca.client_config(Alpn::Http1), "a.example")
        .await
        .unwrap_err();
    assert!(error.contains("NoApplicationProtocol"), "{error}");
}

#[test]
fn pem_files_hold_the_identity_and_go_away() {
    let ca = CertificateAuthority::new("ca");
    let identity = ca.issue(&["a.example"]);
    let files = identity.write_pem();
    let authority = files.add_authority(&ca);
    let certificate = CertificateDer::from_pem_file(files.certificate()).unwrap();
    assert_eq!(certificate, identity.certificate());
    assert_eq!(
        PrivateKeyDer::from_pem_file(files.key()).unwrap(),
        identity.key()
    );
    assert_eq!(
        CertificateDer::from_pem_file(&authority).unwrap(),
        ca.certificate()
    );
    let directory = files.directory().to_owned();
    drop(files);
    assert!(!directory.exists());
}
