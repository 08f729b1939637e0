//! The client's own certificate.

use std::sync::OnceLock;

use discovery_servicefabric::CallErrorKind;
use discovery_servicefabric::client::{
    BuildError, Client, ClientIdentity, ClientOptions, ServerTrust, TlsError,
};
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::time::guarded;

use super::{HOST, serve};

#[tokio::test]
async fn client_certificates_open_the_door() {
    let (ours, other) = (
        CertificateAuthority::new("ours"),
        CertificateAuthority::new("other"),
    );
    let gateway = ours.issue(&[HOST]);
    let origin = serve(gateway.server_config_requiring(&ours, Alpn::Both));
    let builder = || {
        let trust = ServerTrust::authorities_pem(ours.certificate_pem().as_bytes()).unwrap();
        Client::builder(origin.url())
            .server_trust(trust)
            .options(ClientOptions::default().with_attempts(1))
    };
    let good = ours.issue_client("admin");
    let files = good.write_pem();
    let combined = files.directory().join("both.pem");
    std::fs::write(
        &combined,
        format!("{}{}", good.key_pem(), good.certificate_pem()),
    )
    .unwrap();
    for identity in [
        ClientIdentity::from_pem(good.certificate_pem().as_bytes(), good.key_pem().as_bytes()),
        ClientIdentity::from_files(files.certificate(), files.key()),
        ClientIdentity::from_combined_file(&combined),
        ClientIdentity::from_combined_pem(&std::fs::read(&combined).unwrap()),
    ] {
        let client = builder()
            .client_certificate(identity.unwrap())
            .build()
            .unwrap();
        guarded("an answer", client.cluster_version())
            .await
            .unwrap();
    }
    let stranger = other.issue_client("admin");
    let stranger = ClientIdentity::from_pem(
        stranger.certificate_pem().as_bytes(),
        stranger.key_pem().as_bytes(),
    );
    for client in [builder(), builder().client_certificate(stranger.unwrap())] {
        let client = client.build().unwrap();
        let error = guarded("an answer", client.cluster_version())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Denied, "{}", error.chain());
        assert!(
            error.to_string().contains("requires a client certificate"),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_certificate_or_key_is_rejected() {
    static AUTHORITY: OnceLock<CertificateAuthority> = OnceLock::new();
    let authority = AUTHORITY.get_or_init(|| CertificateAuthority::new("ca"));
    let (one, two) = (authority.issue_client("one"), authority.issue_client("two"));
    let (certificate, key) = (one.certificate_pem().as_bytes(), one.key_pem().as_bytes());
    let no = ClientIdentity::from_pem;
    assert!(matches!(no(key, key), Err(TlsError::NoCertificate)));
    assert!(matches!(no(certificate, certificate), Err(TlsError::NoKey)));
    assert!(matches!(no(b"", b""), Err(TlsError::NoCertificate)));
    let cut = &key[..key.len() - 30];
    let error = no(certificate, cut).unwrap_err();
    assert!(matches!(error, TlsError::Pem(_)), "{error}");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let error = no(certificate, encrypted.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.contains("must be decrypted"), "{error}");
    let missing =
        ClientIdentity::from_files("/nonexistent/cert.pem", "/nonexistent/key.pem").unwrap_err();
    assert!(
        missing.to_string().contains("/nonexistent/cert.pem"),
        "{missing}"
    );

    let mixed = no(certificate, two.key_pem().as_bytes()).unwrap();
    assert_eq!(
        format!("{mixed:?}"),
        "ClientIdentity { certificates: 1, .. }"
    );
    let trust = ServerTrust::authorities_pem(authority.certificate_pem().as_bytes()).unwrap();
    let builder = Client::builder("https://a")
        .server_trust(trust)
        .client_certificate(mixed);
    assert!(matches!(builder.build(), Err(BuildError::Setup(_))));

    assert!(matches!(
        ServerTrust::thumbprints(["x"]),
        Err(TlsError::Thumbprint(_))
    ));
    assert!(matches!(
        ServerTrust::thumbprints::<&str>([]),
        Err(TlsError::NothingTrusted)
    ));
    assert!(matches!(
        ServerTrust::names::<&str>([]),
        Err(TlsError::NothingTrusted)
    ));
    assert!(matches!(
        ServerTrust::names(["", " "]),
        Err(TlsError::NothingTrusted)
    ));
    assert!(matches!(
        ServerTrust::authorities_pem(b"x"),
        Err(TlsError::NoCertificate)
    ));
}
