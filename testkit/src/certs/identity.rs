use rcgen::{Certificate, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{Alpn, CertificateAuthority, PemFiles, config, pem};

/// A certificate with its private key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: PrivatePkcs8KeyDer<'static>,
    key_pem: String,
}

impl Identity {
    pub(super) fn new(certificate: &Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            key_pem: key.serialize_pem(),
        }
    }

    /// The certificate.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// The certificate as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    /// The private key as PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// A server configuration with this identity, without client certificates.
    pub fn server_config(&self, alpn: Alpn) -> ServerConfig {
        config::server(self, None, alpn)
    }

    /// A server configuration with this identity, which requires a client certificate from
    /// `clients`.
    pub fn server_config_requiring(
        &self,
        clients: &CertificateAuthority,
        alpn: Alpn,
    ) -> ServerConfig {
        config::server(self, Some(clients.roots()), alpn)
    }

    /// Writes certificate and key as PEM files into a new temporary directory.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be written.
    #[track_caller]
    pub fn write_pem(&self) -> PemFiles {
        pem::write(self)
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}
