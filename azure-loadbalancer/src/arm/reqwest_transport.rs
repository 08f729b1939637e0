//! The transport that is built in.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::transport::{Transport, TransportError, TransportErrorKind};

/// How long a connection is kept after its last request.
const IDLE: Duration = Duration::from_secs(60);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Speaks HTTP over reqwest and rustls, with aws-lc-rs as cryptography; no process-wide default is needed or set.
///
/// Redirects are not followed, and proxies of the environment are not asked: a token must not go elsewhere. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
}

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportSetupError {
    /// The file with certificates of authorities cannot be read, or has none.
    #[error("cannot read certificates from {}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// rustls or reqwest cannot be set up: the operating system has no certificates, for example.
    #[error("TLS cannot be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
}

impl ReqwestTransport {
    /// A transport that trusts whom the operating system trusts.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, TransportSetupError> {
        let provider = provider();
        let verifier = Verifier::new(Arc::clone(&provider))
            .map_err(|error| TransportSetupError::Setup(Box::new(error)))?;
        Self::with_verifier(provider, Arc::new(verifier))
    }

    /// A transport that trusts the authorities of a file (PEM) and nobody else.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has no certificate, or TLS cannot be set up.
    pub fn trusting(authorities: &Path) -> Result<Self, TransportSetupError> {
        let failed = |source: Box<dyn Error + Send + Sync>| TransportSetupError::Authorities {
            path: authorities.to_owned(),
            source,
        };
        let mut roots = RootCertStore::empty();
        let certificates =
            CertificateDer::pem_file_iter(authorities).map_err(|error| failed(Box::new(error)))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| failed(Box::new(error)))?;
            roots
                .add(certificate)
                .map_err(|error| failed(Box::new(error)))?;
        }
        let provider = provider();
        // It refuses to be built without any certificate.
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| failed(Box::new(error)))?;
        Self::with_verifier(provider, verifier)
    }

    /// The client below, for bodies that come bit by bit.
    #[cfg(feature = "kube")]
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, TransportSetupError> {
        let setup = |error: Box<dyn Error + Send + Sync>| TransportSetupError::Setup(error);
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(Box::new(error)))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|error| setup(Box::new(error)))?;
        Ok(Self { client })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let request = reqwest::Request::try_from(request).map_err(classified)?;
        let mut response = self.client.execute(request).await.map_err(classified)?;
        let too_large = || {
            let message = format!("the answer is larger than {max_body} bytes");
            TransportError::new(TransportErrorKind::TooLarge, message)
        };
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |length| length > max_body) {
            return Err(too_large());
        }
        // The announced length is not believed: memory grows with what really comes.
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(classified)? {
            if chunk.len() > max_body - body.len() {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let mut answer = Response::new(body.freeze());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}

/// What kind of error it is, by its causes.
fn classified(error: reqwest::Error) -> TransportError {
    use TransportErrorKind::{Connect, Interrupted, Tls};
    let (kind, message) = match is_of_tls(&error) {
        true => (Tls, "no TLS with the server"),
        false if error.is_connect() => (Connect, "cannot connect"),
        false => (
            Interrupted,
            "the connection ended, or what came is not HTTP",
        ),
    };
    // Without the URL: the call's name is in the message already.
    TransportError::new(kind, message).with_source(error.without_url())
}

/// Whether rustls is among the causes.
fn is_of_tls(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error hides what it wraps, since its source is the source of that.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
