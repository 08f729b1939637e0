//! TLS with an agent: trust, and the client certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use discovery_http::tls::pem::{self, PemError};
use discovery_http::tls::{
    self, authorities_verifier, named_verifier, rejecting_verifier, system_verifier,
};
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;

use super::options::TlsOptions;

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
    /// A file has no PEM of the kind that is needed, or none that is well formed.
    #[error("{}: {problem}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A text is not the name of a server.
    #[error("`{0}` is not the name of a server")]
    ServerName(String),
    /// rustls rejects the options: certificate and key do not belong together, or the operating system has
    /// no certificates.
    #[error("the certificates cannot be used")]
    Rustls(#[from] rustls::Error),
}

/// The configuration of rustls.
pub(super) fn client_config(options: &TlsOptions, is_used: bool) -> Result<ClientConfig, TlsError> {
    let provider = tls::provider();
    let verifier = verifier(options, is_used, &provider)?;
    let identity = match options.client_certificate_file.as_ref().filter(|_| is_used) {
        Some(path) => {
            let key = options.client_key_file.as_ref().unwrap_or(path);
            Some((parsed(path, pem::certificates)?, parsed(key, pem::key)?))
        }
        None => None,
    };
    Ok(tls::client_config(provider, verifier, identity)?)
}

fn verifier(
    options: &TlsOptions,
    is_used: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if !is_used {
        // Without TLS no server needs to be trusted, and the system's certificates need not be read.
        return Ok(rejecting_verifier(provider));
    }
    let verifier = match &options.ca_file {
        None => system_verifier(provider)?,
        Some(path) => authorities_verifier(parsed(path, pem::certificates)?, provider)?,
    };
    let Some(name) = &options.server_name else {
        return Ok(verifier);
    };
    let name =
        ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName(name.clone()))?;
    Ok(named_verifier(verifier, name, provider))
}

/// The certificates or the key of a file.
fn parsed<T>(path: &Path, parse: fn(&[u8]) -> Result<T, PemError>) -> Result<T, TlsError> {
    let content = pem::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&content).map_err(|problem| TlsError::Pem {
        path: path.to_owned(),
        problem: problem.to_string(),
    })
}
