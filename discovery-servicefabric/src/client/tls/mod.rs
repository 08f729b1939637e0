//! TLS with a gateway: whom to trust, and which certificate to show.

mod common_name;
mod identity;
mod pem;
mod thumbprint;
mod trust;
mod verifier;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

pub use self::identity::ClientIdentity;
pub use self::thumbprint::Thumbprint;
pub use self::trust::ServerTrust;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate where one should be.
    #[error("there is no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// There is no private key where one should be.
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
    /// There is nothing to trust.
    #[error("the list of what is trusted is empty")]
    NothingTrusted,
    /// rustls does not take it: certificate and key do not belong together, a certificate cannot be read, or the operating
    /// system has no certificates.
    #[error("the certificates cannot be used")]
    Rustls(#[from] rustls::Error),
}

/// What rustls needs to know.
pub(super) fn client_config(
    trust: &ServerTrust,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, TlsError> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = trust.verifier(&provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(identity) => builder.with_client_auth_cert(identity.chain(), identity.key())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
