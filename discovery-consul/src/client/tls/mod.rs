//! TLS with an agent: whom to trust, and which certificate to show.

mod named;
mod pem;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use self::named::NamedVerifier;
use super::options::TlsOptions;

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
    /// A file has no PEM of the kind that is needed, or none that is well formed.
    #[error("{}: {problem}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A text is not the name of a server.
    #[error("`{0}` is not the name of a server")]
    ServerName(String),
    /// rustls does not take it: certificate and key do not belong together, or the operating system has no certificates.
    #[error("the certificates cannot be used")]
    Rustls(#[from] rustls::Error),
}

/// What rustls needs to know. HTTP/1.1 is the only protocol: one that hangs is given up by closing its connection, and
/// connections are what agents count.
pub(super) fn client_config(options: &TlsOptions, is_used: bool) -> Result<ClientConfig, TlsError> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(options, is_used, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let identity = options.client_certificate_file.as_ref().filter(|_| is_used);
    let mut config = match identity {
        Some(path) => {
            let key = options.client_key_file.as_ref().unwrap_or(path);
            builder.with_client_auth_cert(pem::certificates(path)?, pem::key(key)?)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn verifier(
    options: &TlsOptions,
    is_used: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if !is_used {
        // Nobody is spoken to with TLS, so nobody needs to be trusted, nor the system's certificates be read.
        return Ok(Arc::new(NamedVerifier::nobody(provider)));
    }
    let verifier: Arc<dyn ServerCertVerifier> = match &options.ca_file {
        None => Arc::new(Verifier::new(Arc::clone(provider))?),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in pem::certificates(path)? {
                roots.add(authority)?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?
        }
    };
    let Some(name) = &options.server_name else {
        return Ok(verifier);
    };
    let name =
        ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName(name.clone()))?;
    Ok(Arc::new(NamedVerifier::new(verifier, name, provider)))
}
