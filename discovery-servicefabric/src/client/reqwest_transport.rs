//! The built-in transport.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_http::{Transport, TransportError, TransportOptions};
use http::{Request, Response};

use super::builder::BuildError;
use super::tls::{ClientIdentity, ServerTrust, client_config};

/// The HTTP and TLS options of [`ReqwestTransport`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReqwestOptions {
    /// The servers to trust. Default: certificates for the endpoint's host that the operating system
    /// trusts.
    pub trust: ServerTrust,
    /// The client certificate. Default: none.
    pub identity: Option<ClientIdentity>,
    /// The time limit for opening a connection, including TLS. Default: 5 s.
    pub connect_timeout: Duration,
    /// True to use the proxies in the environment variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    /// Default: false.
    pub environment_proxy: bool,
}

impl Default for ReqwestOptions {
    fn default() -> Self {
        Self {
            trust: ServerTrust::default(),
            identity: None,
            connect_timeout: Duration::from_secs(5),
            environment_proxy: false,
        }
    }
}

impl ReqwestOptions {
    /// Sets [`trust`](Self::trust).
    #[must_use]
    pub fn with_trust(mut self, trust: ServerTrust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets [`identity`](Self::identity).
    #[must_use]
    pub fn with_identity(mut self, identity: ClientIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets [`environment_proxy`](Self::environment_proxy).
    #[must_use]
    pub fn with_environment_proxy(mut self, environment_proxy: bool) -> Self {
        self.environment_proxy = environment_proxy;
        self
    }
}

/// The built-in transport: HTTP/1.1 and HTTP/2 over reqwest and rustls, with aws-lc-rs as cryptography. A
/// process-wide default is neither needed nor set.
///
/// Connections are kept for 30 s after their last request. Redirects are not followed: a gateway sends
/// none, and a credential must not be sent elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReqwestTransport(discovery_http::ReqwestTransport);

impl ReqwestTransport {
    /// Sets up HTTP and TLS. Reads the operating system's certificates if those are trusted.
    ///
    /// # Errors
    ///
    /// Returns an error if certificate and key do not belong together, or if the operating system has no
    /// certificates to trust.
    pub fn new(options: ReqwestOptions) -> Result<Self, BuildError> {
        Self::for_endpoints(options, true)
    }

    /// Sets up HTTP. If no endpoint uses TLS, the options for it are not checked.
    pub(super) fn for_endpoints(options: ReqwestOptions, secure: bool) -> Result<Self, BuildError> {
        let failed = |error: Box<dyn Error + Send + Sync>| BuildError::Setup(error);
        let trust = if secure {
            options.trust
        } else {
            ServerTrust::no_server()
        };
        let tls = client_config(&trust, options.identity.as_ref())
            .map_err(|error| failed(Box::new(error)))?;
        let mut http = TransportOptions::new(concat!(
            env!("CARGO_PKG_NAME"),
            "/",
            env!("CARGO_PKG_VERSION")
        ));
        http.connect_timeout = options.connect_timeout;
        http.idle_timeout = Duration::from_secs(30);
        http.http2 = true;
        http.environment_proxy = options.environment_proxy;
        discovery_http::ReqwestTransport::new(tls, &http)
            .map(Self)
            .map_err(|error| failed(error.into_source()))
    }
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
