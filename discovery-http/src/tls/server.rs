//! TLS of servers with one certificate.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, ServerConfig};

use super::store;

/// Creates the TLS configuration of a server: the certificate followed by its chain, the key, the ALPN protocols in
/// order of preference, and a verifier if clients must present a certificate.
///
/// # Errors
///
/// Certificate and key do not belong together, or cannot be used.
pub fn server_config(
    provider: Arc<CryptoProvider>,
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    clients: Option<Arc<dyn ClientCertVerifier>>,
    protocols: &[&str],
) -> Result<ServerConfig, Error> {
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = protocols
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Ok(config)
}

/// Requires of clients a certificate that one of these authorities issued.
///
/// # Errors
///
/// A certificate is not well formed, or there is none.
pub fn client_verifier(
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let roots = Arc::new(store(authorities)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(verifier)
}
