//! Tests of trust and client certificates, against real servers.

mod identity;
mod names;
mod trust;

use std::sync::Arc;

use discovery_servicefabric::client::{Client, ServerTrust};
use discovery_servicefabric::{CallError, CallErrorKind};
use http::{Request, Response};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha1::{Digest, Sha1};
use testkit::certs::provider;
use testkit::origin::{Incoming, Origin};
use testkit::time::guarded;

pub(super) const HOST: &str = "127.0.0.1";

pub(super) fn serve(config: ServerConfig) -> Origin {
    Origin::builder()
        .tls(config)
        .start(|_: Request<Incoming>| async {
            Response::new(testkit::body::full(r#"{"Version":"9.1.0"}"#))
        })
}

pub(super) fn thumbprint(certificate: &CertificateDer<'_>) -> String {
    let hash = Sha1::digest(certificate.as_ref());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One call to a server with this configuration.
pub(super) async fn call(config: ServerConfig, trust: ServerTrust) -> Result<(), CallError> {
    let origin = serve(config);
    let client = Client::builder(origin.url())
        .server_trust(trust)
        .build()
        .unwrap();
    guarded("an answer", client.cluster_version())
        .await
        .map(drop)
}

pub(super) fn rejected(result: Result<(), CallError>, reason: &str) {
    let error = result.unwrap_err();
    assert_eq!(
        error.kind(),
        CallErrorKind::Unreachable,
        "{}",
        error.chain()
    );
    assert!(
        error.to_string().contains("certificate is not trusted"),
        "{error}"
    );
    assert!(
        error.chain().contains(reason),
        "{reason}: {}",
        error.chain()
    );
}

/// A server that shows this chain and signs with this key, whether or not they belong together.
pub(super) fn showing(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
) -> ServerConfig {
    #[derive(Debug)]
    struct Fixed(Arc<CertifiedKey>);

    impl ResolvesServerCert for Fixed {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    let provider = provider();
    let key = provider
        .key_provider
        .load_private_key(key.clone_key())
        .unwrap();
    let certified = Fixed(Arc::new(CertifiedKey::new(chain, key)));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certified))
}

/// A self-signed certificate with a common name and no alternative name, as clusters often have.
pub(super) fn common_name_only(name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Contoso");
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2999, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    (certificate.der().clone(), key.into())
}
