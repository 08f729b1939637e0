//! TLS of clients and servers: certificates and keys from PEM, trust, and the configuration of rustls with aws-lc-rs.

pub mod file;
pub mod pem;
mod rule;
mod server;

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};

pub use self::rule::{CertificateRule, Presented, rule_verifier};
pub use self::server::{client_verifier, server_config};

/// The cryptography of all connections: aws-lc-rs. The process-wide default is neither needed nor set.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A configuration with a verifier and, if there is one, a client certificate with its chain and key.
///
/// # Errors
///
/// Certificate and key do not belong together.
pub fn client_config(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key),
        None => Ok(builder.with_no_client_auth()),
    }
}

/// Trusts the authorities of the operating system.
///
/// # Errors
///
/// The operating system has no certificates.
#[cfg(feature = "reqwest")]
pub fn system_verifier(
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    Ok(Arc::new(rustls_platform_verifier::Verifier::new(
        Arc::clone(provider),
    )?))
}

/// Trusts these authorities alone.
///
/// # Errors
///
/// A certificate is not well formed, or there is none.
pub fn authorities_verifier(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let roots = Arc::new(store(authorities)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(verifier)
}

/// A store of these authorities.
///
/// # Errors
///
/// A certificate is not well formed.
pub fn store(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for authority in authorities {
        store.add(authority)?;
    }
    Ok(store)
}

/// Verifies certificates as another verifier does, for a fixed name in place of the host's: servers of a cluster may share a
/// certificate for the cluster's name.
pub fn named_verifier(
    verifier: Arc<dyn ServerCertVerifier>,
    name: ServerName<'static>,
    provider: &Arc<CryptoProvider>,
) -> Arc<dyn ServerCertVerifier> {
    rule_verifier(FixedName { verifier, name }, provider)
}

/// Trusts no certificate and needs nothing of the operating system, for clients that do not use TLS.
pub fn rejecting_verifier(provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    rule_verifier(Reject, provider)
}

#[derive(Debug)]
struct FixedName {
    verifier: Arc<dyn ServerCertVerifier>,
    name: ServerName<'static>,
}

impl CertificateRule for FixedName {
    fn check(&self, presented: &Presented<'_>) -> Result<(), Error> {
        self.verifier
            .verify_server_cert(
                presented.certificate,
                presented.intermediates,
                &self.name,
                presented.ocsp_response,
                presented.now,
            )
            .map(drop)
    }
}

#[derive(Debug)]
struct Reject;

impl CertificateRule for Reject {
    fn check(&self, _: &Presented<'_>) -> Result<(), Error> {
        Err(CertificateError::UnknownIssuer.into())
    }
}
