//! Hosts, authorities and thumbprints.

use discovery_servicefabric::CallErrorKind;
use discovery_servicefabric::client::{Client, ClientOptions, ServerTrust};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use testkit::certs::{Alpn, CertificateAuthority, Leaf, provider};
use testkit::origin::Origin;
use testkit::time::guarded;

use super::{HOST, call, common_name_only, rejected, serve, showing, thumbprint};

#[tokio::test]
async fn authorities_vouch_for_hosts() {
    let (ours, other) = (
        CertificateAuthority::new("ours"),
        CertificateAuthority::new("other"),
    );
    let trust = || ServerTrust::authorities_pem(ours.certificate_pem().as_bytes()).unwrap();
    let config = |identity: testkit::certs::Identity| identity.server_config(Alpn::Both);
    call(config(ours.issue(&[HOST])), trust()).await.unwrap();
    rejected(
        call(config(other.issue(&[HOST])), trust()).await,
        "UnknownIssuer",
    );
    rejected(
        call(config(ours.issue(&["other.example"])), trust()).await,
        "not valid for name",
    );
    let expired = ours.issue_leaf(&Leaf::server(&[HOST]).expired());
    rejected(call(config(expired), trust()).await, "expired");
    // Files, and several authorities.
    let files = ours.issue(&[HOST]).write_pem();
    let path = files.add_authority(&other);
    let both = format!(
        "{}{}",
        std::fs::read_to_string(&path).unwrap(),
        ours.certificate_pem()
    );
    std::fs::write(&path, both).unwrap();
    let trust = ServerTrust::authorities_file(&path).unwrap();
    call(config(ours.issue(&[HOST])), trust.clone())
        .await
        .unwrap();
    call(config(other.issue(&[HOST])), trust).await.unwrap();
}

#[tokio::test]
async fn the_operating_system_does_not_know_clusters() {
    let authority = CertificateAuthority::new("ca");
    let identity = authority.issue(&[HOST]);
    let result = call(identity.server_config(Alpn::Both), ServerTrust::default()).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert!(
        error
            .to_string()
            .contains("trust its authority, its thumbprint"),
        "{error}"
    );
    let named = ServerTrust::names([HOST]).unwrap();
    call(identity.server_config(Alpn::Both), named)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_thumbprint_is_enough_whatever_host_and_date() {
    let authority = CertificateAuthority::new("ca");
    for leaf in [
        Leaf::server(&["other.example"]),
        Leaf::server(&[HOST]).expired(),
    ] {
        let identity = authority.issue_leaf(&leaf);
        let hex = thumbprint(&identity.certificate());
        let colons: Vec<_> = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap())
            .collect();
        for text in [
            hex.clone(),
            hex.to_uppercase(),
            colons.join(":"),
            colons.join(" "),
        ] {
            let other = "00".repeat(20);
            let trust = ServerTrust::thumbprints([other, text]).unwrap();
            call(identity.server_config(Alpn::Both), trust)
                .await
                .unwrap();
        }
        let trust = ServerTrust::thumbprints(["00".repeat(20)]).unwrap();
        rejected(
            call(identity.server_config(Alpn::Both), trust).await,
            &hex.to_uppercase(),
        );
    }
}

#[tokio::test]
async fn whoever_shows_a_certificate_must_have_its_key() {
    let authority = CertificateAuthority::new("ca");
    let (gateway, thief) = (authority.issue(&[HOST]), authority.issue(&[HOST]));
    let chain = vec![gateway.certificate(), authority.certificate()];
    let pem = authority.certificate_pem();
    let pin = thumbprint(&gateway.certificate());
    for trust in [
        ServerTrust::authorities_pem(pem.as_bytes()).unwrap(),
        ServerTrust::thumbprints([&pin]).unwrap(),
        ServerTrust::names([HOST])
            .unwrap()
            .authorities(pem.as_bytes())
            .unwrap(),
        ServerTrust::names([HOST])
            .unwrap()
            .issued_by([thumbprint(&authority.certificate())])
            .unwrap(),
        ServerTrust::names([HOST])
            .unwrap()
            .issued_by([&pin])
            .unwrap(),
        ServerTrust::no_verify(),
    ] {
        call(showing(chain.clone(), &gateway.key()), trust.clone())
            .await
            .unwrap();
        rejected(
            call(showing(chain.clone(), &thief.key()), trust.clone()).await,
            "BadSignature",
        );
        let tls12 = |key: &PrivateKeyDer<'static>| {
            let resolver = showing(chain.clone(), key).cert_resolver;
            ServerConfig::builder_with_provider(provider())
                .with_protocol_versions(&[&rustls::version::TLS12])
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(resolver)
        };
        call(tls12(&gateway.key()), trust.clone()).await.unwrap();
        rejected(call(tls12(&thief.key()), trust).await, "BadSignature");
    }
}

#[tokio::test]
async fn anybody_is_trusted_only_when_asked_to() {
    let (certificate, key) = common_name_only("whoever");
    call(showing(vec![certificate], &key), ServerTrust::no_verify())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wrong_scheme_is_explained() {
    let authority = CertificateAuthority::new("ca");
    let secure = serve(authority.issue(&[HOST]).server_config(Alpn::Both));
    let plain = Origin::named("plain");
    let options = || ClientOptions::default().with_attempts(1);
    let client = Client::builder(format!("http://{}", secure.addr()))
        .options(options())
        .build()
        .unwrap();
    let error = guarded("an error", client.cluster_version())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert!(
        error.to_string().contains("begins with `https://`"),
        "{}",
        error.chain()
    );

    let client = Client::builder(format!("https://{}", plain.addr()))
        .options(options())
        .build()
        .unwrap();
    let error = guarded("an error", client.cluster_version())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert!(
        error.to_string().contains("begins with `http://`"),
        "{}",
        error.chain()
    );
}
