//! The client's own certificate.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use discovery_http::tls::pem;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{TlsError, read};

/// A certificate with its private key, which the client shows to the gateway. `Debug` does not show the key.
///
/// A cluster knows certificates of administrators and of readers. Discovery only reads; health reports need an
/// administrator's. Files are read once.
#[derive(Clone)]
pub struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl ClientIdentity {
    /// Reads PEM: the certificate, followed by those of its issuers if the gateway needs them, and the
    /// private key (PKCS #8, PKCS #1 or SEC 1, not encrypted).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no certificate or no key, or if the PEM is malformed. The client's
    /// builder checks that they belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self {
            chain: pem::certificates(certificates)?,
            key: Arc::new(pem::key(key)?),
        })
    }

    /// Reads certificate and key from one PEM text.
    ///
    /// # Errors
    ///
    /// The errors of [`from_pem`](Self::from_pem).
    pub fn from_combined_pem(pem: &[u8]) -> Result<Self, TlsError> {
        Self::from_pem(pem, pem)
    }

    /// Reads two files in PEM form.
    ///
    /// # Errors
    ///
    /// The errors of [`from_pem`](Self::from_pem), and an error if a file cannot be read.
    pub fn from_files(
        certificates: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        Self::from_pem(&read(certificates.as_ref())?, &read(key.as_ref())?)
    }

    /// Reads one file in PEM form with both.
    ///
    /// # Errors
    ///
    /// The errors of [`from_pem`](Self::from_pem), and an error if the file cannot be read.
    pub fn from_combined_file(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        Self::from_combined_pem(&read(path.as_ref())?)
    }

    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}
