//! TLS of the server.

mod certificate;
mod error;
mod store;
#[cfg(test)]
mod tests;
mod validity;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;

pub use self::certificate::Certificate;
pub use self::error::TlsConfigError;
pub use self::store::CertificateStore;

/// Maximum number of resumable sessions over all workers, of some kilobytes each.
const SESSIONS: usize = 4096;

/// The TLS settings of a listener: TLS 1.2 and 1.3, with the certificates of a
/// [`CertificateStore`]. Cheap to clone; clones share the resumable sessions.
///
/// ALPN offers HTTP/2 and HTTP/1.1; a client that uses ALPN with neither is rejected. Early data
/// (0-RTT) is disabled, since it can be replayed.
#[derive(Clone)]
pub struct TlsServerConfig {
    rustls: Arc<ServerConfig>,
    certificates: CertificateStore,
}

/// The client certificates that a handshake requires.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ClientAuth {
    /// Clients are not asked for certificates. The default.
    #[default]
    Off,
    /// Clients may present a certificate, which one of these authorities must have issued.
    Optional(Vec<CertificateDer<'static>>),
    /// Clients must present a certificate that one of these authorities issued.
    Required(Vec<CertificateDer<'static>>),
}

impl TlsServerConfig {
    /// Creates settings without client certificates, with the cryptography of `provider`. The
    /// process-wide provider is neither used nor set.
    ///
    /// # Errors
    ///
    /// Fails if the provider supports neither TLS 1.2 nor 1.3.
    pub fn new(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
    ) -> Result<Self, TlsConfigError> {
        Self::with_client_auth(provider, certificates, ClientAuth::Off)
    }

    /// Creates settings with client certificates.
    ///
    /// # Errors
    ///
    /// Fails if the provider supports neither TLS 1.2 nor 1.3, or if an authority's certificate is
    /// invalid, or if there is none.
    pub fn with_client_auth(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
        clients: ClientAuth,
    ) -> Result<Self, TlsConfigError> {
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsConfigError::Provider)?;
        let (authorities, is_required) = match clients {
            ClientAuth::Off => (None, false),
            ClientAuth::Optional(authorities) => (Some(authorities), false),
            ClientAuth::Required(authorities) => (Some(authorities), true),
        };
        let builder = match authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots(authorities)?, provider);
                let verifier = if is_required {
                    verifier
                } else {
                    verifier.allow_unauthenticated()
                };
                builder.with_client_cert_verifier(
                    verifier
                        .build()
                        .map_err(TlsConfigError::ClientAuthorities)?,
                )
            }
        };
        // The clone shares the table, so replacements apply to later handshakes.
        let mut config = builder.with_cert_resolver(Arc::new(certificates.clone()));
        // In the order of the server's preference.
        config.alpn_protocols = vec![
            #[cfg(feature = "http2")]
            b"h2".to_vec(),
            b"http/1.1".to_vec(),
        ];
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        Ok(Self {
            rustls: Arc::new(config),
            certificates,
        })
    }

    /// Lets clients resume sessions with tickets that `ticketer` encrypts, instead of sessions in
    /// memory: for many clients, or for several processes behind one name.
    #[must_use]
    pub fn with_ticketer(mut self, ticketer: Arc<dyn ProducesTickets>) -> Self {
        Arc::make_mut(&mut self.rustls).ticketer = ticketer;
        self
    }

    /// The certificates, which can be replaced while the server runs.
    pub fn certificates(&self) -> &CertificateStore {
        &self.certificates
    }

    pub(crate) fn rustls(&self) -> Arc<ServerConfig> {
        self.rustls.clone()
    }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<Arc<RootCertStore>, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority)
            .map_err(TlsConfigError::ClientAuthority)?;
    }
    Ok(Arc::new(roots))
}

impl fmt::Debug for TlsServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServerConfig")
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}
