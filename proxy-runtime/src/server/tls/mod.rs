//! TLS at the server's side.

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

/// Sessions that clients may resume, over all workers: some kilobytes each at most.
const SESSIONS: usize = 4096;

/// How a listener speaks TLS: 1.2 and 1.3, with the certificates of a [`CertificateStore`]. Cheap to clone; clones share
/// the sessions that clients may resume.
///
/// HTTP/2 and HTTP/1.1 are offered by ALPN; a client that offers neither is refused. Early data (0-RTT) is off, since a
/// replayed request is no less harmful for being fast.
#[derive(Clone)]
pub struct TlsServerConfig {
    rustls: Arc<ServerConfig>,
    certificates: CertificateStore,
}

/// Which clients may shake hands.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ClientAuth {
    /// Clients are not asked for a certificate.
    #[default]
    Off,
    /// Clients may have a certificate; if they do, one of these authorities must have issued it.
    Optional(Vec<CertificateDer<'static>>),
    /// Clients must have a certificate that one of these authorities issued.
    Required(Vec<CertificateDer<'static>>),
}

impl TlsServerConfig {
    /// TLS with the cryptography of `provider`. The process-wide provider is neither asked nor set.
    ///
    /// # Errors
    ///
    /// The provider supports neither TLS 1.2 nor 1.3.
    pub fn new(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
    ) -> Result<Self, TlsConfigError> {
        Self::with_client_auth(provider, certificates, ClientAuth::Off)
    }

    /// The same, with certificates of clients.
    ///
    /// # Errors
    ///
    /// The provider supports neither TLS 1.2 nor 1.3, or an authority's certificate cannot be read, or there is none.
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
        let mut config = builder.with_cert_resolver(Arc::new(certificates.clone()));
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

    /// Lets clients resume sessions with tickets that `ticketer` encrypts, rather than with sessions that the process
    /// remembers: for many clients, or for several processes behind one name.
    #[must_use]
    pub fn with_ticketer(mut self, ticketer: Arc<dyn ProducesTickets>) -> Self {
        Arc::make_mut(&mut self.rustls).ticketer = ticketer;
        self
    }

    /// The certificates, which may be replaced while the server runs.
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
