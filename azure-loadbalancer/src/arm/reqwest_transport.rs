//! The built-in transport.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_http::tls::{self, authorities_verifier, pem, system_verifier};
use discovery_http::{Transport, TransportError, TransportOptions};
use http::{Request, Response};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;

/// The built-in transport: HTTP/1.1 over reqwest and rustls, with aws-lc-rs as cryptography. It neither needs
/// nor sets a process-wide default.
///
/// Redirects are not followed: a token must not go elsewhere. Proxies of the environment are used only on
/// request ([`Self::through_proxies`]). Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReqwestTransport(discovery_http::ReqwestTransport);

/// The error of setting up a transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportSetupError {
    /// The file with certificate authorities cannot be read, or has none.
    #[error("cannot read certificates from {}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// rustls or reqwest cannot be set up: the operating system has no certificates, for example.
    #[error("TLS cannot be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
}

impl ReqwestTransport {
    /// Creates a transport that trusts the authorities of the operating system.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, TransportSetupError> {
        Self::with(None, false)
    }

    /// Creates a transport that obeys `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` of the environment, and
    /// trusts the authorities of a file (PEM) or those of the operating system. Over TLS a proxy sees no
    /// token. Not for the metadata service of a machine, which no proxy reaches.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`] and [`Self::trusting`].
    pub fn through_proxies(authorities: Option<&Path>) -> Result<Self, TransportSetupError> {
        Self::with(authorities, true)
    }

    /// Creates a transport that trusts only the authorities in a file (PEM).
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no certificate, or TLS cannot be set up.
    pub fn trusting(authorities: &Path) -> Result<Self, TransportSetupError> {
        Self::with(Some(authorities), false)
    }

    fn with(
        authorities: Option<&Path>,
        environment_proxy: bool,
    ) -> Result<Self, TransportSetupError> {
        let provider = tls::provider();
        let verifier = match authorities {
            None => system_verifier(&provider)
                .map_err(|error| TransportSetupError::Setup(Box::new(error)))?,
            Some(path) => trusted(path, &provider).map_err(|source| {
                let path = path.to_owned();
                TransportSetupError::Authorities { path, source }
            })?,
        };
        Self::with_verifier(provider, verifier, environment_proxy)
    }

    /// Returns reqwest's client, for streamed bodies.
    #[cfg(feature = "kube")]
    pub(crate) fn client(&self) -> &reqwest::Client {
        self.0.client()
    }

    fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
        environment_proxy: bool,
    ) -> Result<Self, TransportSetupError> {
        let tls = tls::client_config(provider, verifier, None)
            .map_err(|error| TransportSetupError::Setup(Box::new(error)))?;
        let mut options = TransportOptions::new(concat!(
            env!("CARGO_PKG_NAME"),
            "/",
            env!("CARGO_PKG_VERSION")
        ));
        options.environment_proxy = environment_proxy;
        discovery_http::ReqwestTransport::new(tls, &options)
            .map(Self)
            .map_err(|error| TransportSetupError::Setup(error.into_source()))
    }
}

fn trusted(
    authorities: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Box<dyn Error + Send + Sync>> {
    let certificates = pem::certificates(&pem::read(authorities)?)?;
    Ok(authorities_verifier(certificates, provider)?)
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        self.0.send(request, max_body).await
    }
}
