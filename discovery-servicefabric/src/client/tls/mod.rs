//! TLS with a gateway: trusted servers, and the client's certificate.

mod common_name;
mod identity;
mod thumbprint;
mod trust;
mod verifier;

use std::path::{Path, PathBuf};

use discovery_http::tls as shared;
use discovery_http::tls::pem::{self, PemError};
use rustls::ClientConfig;

pub use self::identity::ClientIdentity;
pub use self::thumbprint::Thumbprint;
pub use self::trust::ServerTrust;

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// No certificate where one is required.
    #[error("there is no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// No private key where one is required.
    #[error(
        "there is no private key in PEM form (`-----BEGIN PRIVATE KEY-----`); an encrypted one must be decrypted first"
    )]
    NoKey,
    /// A text is not PEM.
    #[error("the PEM is not well formed: {0}")]
    Pem(String),
    /// A text is not a thumbprint.
    #[error("`{0}` is not a SHA-1 thumbprint, which has 40 hexadecimal digits")]
    Thumbprint(String),
    /// An empty list of names, thumbprints or authorities to trust.
    #[error("the list of trusted certificates is empty")]
    NothingTrusted,
    /// rustls rejects the options: certificate and key do not belong together, a certificate cannot be
    /// read, or the operating system has no certificates.
    #[error("the certificates cannot be used")]
    Rustls(#[from] rustls::Error),
}

impl From<PemError> for TlsError {
    fn from(error: PemError) -> Self {
        match error {
            PemError::NoCertificate => Self::NoCertificate,
            PemError::NoKey => Self::NoKey,
            PemError::Malformed(problem) => Self::Pem(problem),
            other => Self::Pem(other.to_string()),
        }
    }
}

/// The content of a file of certificates or keys.
fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    pem::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The configuration of rustls.
pub(super) fn client_config(
    trust: &ServerTrust,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, TlsError> {
    let provider = shared::provider();
    let verifier = trust.verifier(&provider)?;
    let identity = identity.map(|identity| (identity.chain(), identity.key()));
    Ok(shared::client_config(provider, verifier, identity)?)
}
