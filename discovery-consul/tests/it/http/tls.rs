//! Tests of trust and client certificates.

use std::path::PathBuf;

use discovery_consul::client::{
    BuildError, ConsulClient, ConsulError, ConsulErrorKind, ConsulOptions, TlsOptions,
};
use http::{Request, Response};
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::origin::{Incoming, Origin};
use testkit::time::guarded;

const HOST: &str = "127.0.0.1";
const NAME: &str = "server.sas.consul";

/// A folder for files of a test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn serve(config: rustls::ServerConfig) -> Origin {
    Origin::builder()
        .tls(config)
        .start(|_: Request<Incoming>| async {
            Response::new(testkit::body::full(r#""10.0.0.1:8300""#))
        })
}

async fn ask(origin: &Origin, tls: TlsOptions) -> Result<Option<String>, ConsulError> {
    let options = ConsulOptions::default()
        .with_address(origin.url())
        .with_tls(tls);
    let client = ConsulClient::new(options).unwrap();
    guarded("an answer", client.leader()).await
}

#[tokio::test]
async fn an_authority_vouches_for_the_host_or_for_the_name_that_is_set() {
    let (ours, other) = (
        CertificateAuthority::new("ours"),
        CertificateAuthority::new("other"),
    );
    let files = Files::new();
    let ours_file = files.write("ours.pem", &ours.certificate_pem());
    let other_file = files.write("other.pem", &other.certificate_pem());
    let trusting = |file: &PathBuf| TlsOptions::default().with_ca_file(file.clone());
    let for_host = serve(ours.issue(&[HOST]).server_config(Alpn::Both));
    let for_name = serve(ours.issue(&[NAME]).server_config(Alpn::Both));

    assert!(
        ask(&for_host, trusting(&ours_file))
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        ask(&for_name, trusting(&ours_file).with_server_name(NAME))
            .await
            .unwrap()
            .is_some()
    );
    for (origin, tls) in [
        (&for_host, trusting(&other_file)),
        (&for_name, trusting(&ours_file)),
        (&for_host, trusting(&ours_file).with_server_name(NAME)),
        (&for_name, trusting(&other_file).with_server_name(NAME)),
    ] {
        let error = ask(origin, tls).await.unwrap_err();
        assert_eq!(error.kind(), ConsulErrorKind::Tls, "{}", error.explained());
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_an_agent_that_wants_one() {
    let authority = CertificateAuthority::new("ours");
    let config = authority
        .issue(&[HOST])
        .server_config_requiring(&authority, Alpn::Both);
    let origin = serve(config);
    let files = Files::new();
    let trusting =
        TlsOptions::default().with_ca_file(files.write("ca.pem", &authority.certificate_pem()));
    let ours = authority.issue_client("proxy");
    let certificate = files.write("cert.pem", ours.certificate_pem());
    let key = files.write("key.pem", ours.key_pem());
    let both = files.write(
        "both.pem",
        &format!("{}{}", ours.certificate_pem(), ours.key_pem()),
    );
    let separate = trusting
        .clone()
        .with_client_certificate_file(certificate)
        .with_client_key_file(key);
    let combined = trusting.clone().with_client_certificate_file(both);
    for tls in [separate, combined] {
        assert!(ask(&origin, tls).await.unwrap().is_some());
    }
    let error = ask(&origin, trusting).await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ConsulErrorKind::Tls | ConsulErrorKind::Unreachable
        ),
        "{}",
        error.explained()
    );
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_when_the_client_is_made() {
    let files = Files::new();
    let nonsense = files.write("nonsense.pem", "nonsense");
    for tls in [
        TlsOptions::default().with_ca_file("/nowhere/ca.pem"),
        TlsOptions::default().with_ca_file(nonsense.clone()),
        TlsOptions::default().with_client_certificate_file(nonsense),
    ] {
        let options = ConsulOptions::default()
            .with_address("https://127.0.0.1:8501")
            .with_tls(tls.clone());
        let Err(BuildError::Setup(error)) = ConsulClient::new(options) else {
            panic!("{tls:?}");
        };
        assert!(error.to_string().contains(".pem"), "{error}");
        // Without TLS nothing of it is needed.
        ConsulClient::new(ConsulOptions::default().with_tls(tls)).unwrap();
    }
}
