//! Validated certificates with their keys.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use webpki::EndEntityCert;

use super::error::TlsConfigError;
use super::validity;

/// A certificate chain with its private key. The constructors check that they match.
#[derive(Clone)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    names: Vec<String>,
    expires: Option<SystemTime>,
    origin: String,
}

impl Certificate {
    /// Reads two PEM files: the chain, beginning with the server's certificate, and the key. Both
    /// may be in one file.
    ///
    /// Blocks while reading.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or lacks the PEM section, or if chain and key do not match.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsConfigError> {
        let (chain, key) = (chain.as_ref(), key.as_ref());
        Self::parse(&Pem::read(chain)?, &Pem::read(key)?, provider)
    }

    /// Reads two PEM texts.
    ///
    /// # Errors
    ///
    /// Fails if a text lacks the PEM section, or if chain and key do not match.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        provider: &CryptoProvider,
    ) -> Result<Self, TlsConfigError> {
        let text = |text: &[u8], origin: &str| Pem {
            text: text.to_vec(),
            origin: origin.to_owned(),
        };
        Self::parse(
            &text(chain, "the certificate's text"),
            &text(key, "the key's text"),
            provider,
        )
    }

    /// Takes a chain, beginning with the server's certificate, and its key in DER form.
    ///
    /// # Errors
    ///
    /// Fails if the chain is empty or invalid, or if chain and key do not match.
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsConfigError> {
        Self::new(chain, key, "the chain", "the key", provider)
    }

    /// The DNS names in lower case. A name may begin with `*.`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The end of the validity, if it can be read.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires
    }

    pub(super) fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires < now)
    }

    fn parse(chain: &Pem, key: &Pem, provider: &CryptoProvider) -> Result<Self, TlsConfigError> {
        Self::new(
            chain.certificates()?,
            key.key()?,
            &chain.origin,
            &key.origin,
            provider,
        )
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        origin: &str,
        key_origin: &str,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsConfigError> {
        let own = chain.first().ok_or_else(|| TlsConfigError::NoCertificate {
            origin: origin.to_owned(),
        })?;
        let names = names(own).map_err(|reason| TlsConfigError::Certificate {
            origin: origin.to_owned(),
            reason,
        })?;
        let expires = validity::not_after(own);
        let signing_key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|source| TlsConfigError::Key {
                origin: key_origin.to_owned(),
                source,
            })?;
        let key = CertifiedKey::new(chain, signing_key);
        match key.keys_match() {
            // A provider that does not reveal the public half of a key cannot compare it; the key
            // may be right.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                return Err(TlsConfigError::Mismatch {
                    certificate: origin.to_owned(),
                    key: key_origin.to_owned(),
                });
            }
            Err(error) => {
                return Err(TlsConfigError::Certificate {
                    origin: origin.to_owned(),
                    reason: error.to_string(),
                });
            }
        }
        Ok(Self {
            key: Arc::new(key),
            names,
            expires,
            origin: origin.to_owned(),
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("names", &self.names)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

fn names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, String> {
    let certificate = EndEntityCert::try_from(certificate).map_err(|error| error.to_string())?;
    Ok(certificate
        .valid_dns_names()
        .map(str::to_ascii_lowercase)
        .collect())
}

/// A PEM text with its origin.
struct Pem {
    text: Vec<u8>,
    origin: String,
}

impl Pem {
    fn read(path: &Path) -> Result<Self, TlsConfigError> {
        let text = std::fs::read(path).map_err(|source| TlsConfigError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            text,
            origin: path.display().to_string(),
        })
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
        let certificates = CertificateDer::pem_slice_iter(&self.text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| self.invalid(source))?;
        if certificates.is_empty() {
            return Err(TlsConfigError::NoCertificate {
                origin: self.origin.clone(),
            });
        }
        Ok(certificates)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
        match PrivateKeyDer::from_pem_slice(&self.text) {
            Ok(key) => Ok(key),
            // An encrypted key counts as none: its section has another label.
            Err(pem::Error::NoItemsFound) => Err(TlsConfigError::NoKey {
                origin: self.origin.clone(),
            }),
            Err(source) => Err(self.invalid(source)),
        }
    }

    fn invalid(&self, source: pem::Error) -> TlsConfigError {
        TlsConfigError::Pem {
            origin: self.origin.clone(),
            source,
        }
    }
}
