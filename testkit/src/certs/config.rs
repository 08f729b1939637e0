use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::Identity;

/// The cryptography of all configurations: aws-lc-rs.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The protocols that a TLS configuration offers, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`, then `http/1.1`.
    #[default]
    Both,
    /// `http/1.1` only.
    Http1,
    /// `h2` only.
    Http2,
    /// No ALPN extension at all.
    Absent,
}

impl Alpn {
    /// The list in the form of rustls.
    pub fn protocols(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Both => &[b"h2", b"http/1.1"],
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 => &[b"h2"],
            Self::Absent => &[],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// A client configuration without trusted authorities: every handshake fails.
pub fn trusting_no_one(alpn: Alpn) -> ClientConfig {
    client(Arc::new(RootCertStore::empty()), None, alpn)
}

pub(super) fn client(
    roots: Arc<RootCertStore>,
    identity: Option<&Identity>,
    alpn: Alpn,
) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(vec![identity.certificate()], identity.key())
            .expect("certificate and key were made together"),
    };
    config.alpn_protocols = alpn.protocols();
    config
}

pub(super) fn server(
    identity: &Identity,
    clients: Option<Arc<RootCertStore>>,
    alpn: Alpn,
) -> ServerConfig {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(roots, provider())
                .build()
                .expect("an authority's store is not empty"),
        ),
    };
    let mut config = builder
        .with_single_cert(vec![identity.certificate()], identity.key())
        .expect("certificate and key were made together");
    config.alpn_protocols = alpn.protocols();
    config
}
