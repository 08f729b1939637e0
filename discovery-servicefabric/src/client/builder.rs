//! Construction of a client.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use discovery_core::text::shortened;

use super::Transport;
use super::aad::AadMemory;
use super::endpoint::{GatewayEndpoint, GatewayEndpoints};
use super::options::ClientOptions;
#[cfg(feature = "reqwest")]
use super::reqwest_transport::{ReqwestOptions, ReqwestTransport};
#[cfg(feature = "reqwest")]
use super::tls::{ClientIdentity, ServerTrust};
use super::token::TokenSource;
use super::{Client, Shared};

/// Makes a [`Client`]; see [`Client::builder`].
#[must_use = "a builder makes nothing until `build` is called"]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    options: ClientOptions,
    tokens: Option<Arc<dyn TokenSource>>,
    transport: Option<Arc<dyn Transport>>,
    #[cfg(feature = "reqwest")]
    http: ReqwestOptions,
}

impl ClientBuilder {
    pub(super) fn new(endpoint: String) -> Self {
        Self {
            endpoints: vec![endpoint],
            options: ClientOptions::default(),
            tokens: None,
            transport: None,
            #[cfg(feature = "reqwest")]
            http: ReqwestOptions::default(),
        }
    }

    /// Adds another gateway of the same cluster, for when those before it cannot be reached.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoints.push(endpoint.into());
        self
    }

    /// Sets how the client behaves.
    pub fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }

    /// Sends a bearer token with every call. Default: none.
    pub fn token_source(mut self, source: impl TokenSource + 'static) -> Self {
        self.tokens = Some(Arc::new(source));
        self
    }

    /// Uses another transport. The options for certificates, trust and HTTP do not apply to it.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Shows a certificate to the gateway. Default: none.
    #[cfg(feature = "reqwest")]
    pub fn client_certificate(mut self, identity: ClientIdentity) -> Self {
        self.http = self.http.with_identity(identity);
        self
    }

    /// Sets whom to trust. Default: certificates for the endpoint's host that the operating system trusts.
    #[cfg(feature = "reqwest")]
    pub fn server_trust(mut self, trust: ServerTrust) -> Self {
        self.http = self.http.with_trust(trust);
        self
    }

    /// Sets everything about HTTP and TLS, in place of [`client_certificate`](Self::client_certificate) and
    /// [`server_trust`](Self::server_trust).
    #[cfg(feature = "reqwest")]
    pub fn http(mut self, options: ReqwestOptions) -> Self {
        self.http = options;
        self
    }

    /// Builds the client without making a call. The certificates of the operating system are read if they
    /// are trusted and an endpoint is `https`.
    ///
    /// # Errors
    ///
    /// Returns an error if an endpoint is not the URL of a gateway, or if there is no transport. Returns an
    /// error as well if TLS cannot be set up, for example because certificate and key do not belong
    /// together, or if tokens would be sent unencrypted to another machine.
    pub fn build(self) -> Result<Client, BuildError> {
        let endpoints: Vec<_> = self
            .endpoints
            .iter()
            .map(|text| GatewayEndpoint::parse(text))
            .collect::<Result<_, _>>()?;
        if self.tokens.is_some()
            && let Some(exposed) = endpoints.iter().find(|endpoint| endpoint.is_exposed())
        {
            return Err(BuildError::TokenInTheClear {
                endpoint: exposed.base().to_owned(),
            });
        }
        #[cfg(feature = "reqwest")]
        let transport = match self.transport {
            Some(transport) => transport,
            None => {
                let secure = endpoints.iter().any(GatewayEndpoint::is_secure);
                Arc::new(ReqwestTransport::for_endpoints(self.http, secure)?)
            }
        };
        #[cfg(not(feature = "reqwest"))]
        let transport = self.transport.ok_or(BuildError::NoTransport)?;
        Ok(Client {
            shared: Arc::new(Shared {
                transport,
                endpoints: GatewayEndpoints::new(endpoints),
                options: self.options.bounded(),
                tokens: self.tokens,
                kinds_as_numbers: AtomicBool::new(false),
                aad: AadMemory::default(),
            }),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Endpoints are not checked yet, and may have a password.
        f.debug_struct("ClientBuilder")
            .field("endpoints", &self.endpoints.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The reason why no client can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An endpoint is not the URL of a gateway.
    #[error("the endpoint `{endpoint}` is not the URL of a gateway: {reason}")]
    Endpoint {
        /// The endpoint as given, without a part that may be a password.
        endpoint: String,
        /// The reason.
        reason: &'static str,
    },
    /// A token would be sent in the clear to another machine.
    #[error("a token would be sent in the clear to {endpoint}: use https")]
    TokenInTheClear {
        /// The endpoint.
        endpoint: String,
    },
    /// TLS or HTTP cannot be set up.
    #[error("TLS or HTTP cannot be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
    /// No transport: the feature `reqwest` is disabled, and none was set.
    #[error("there is no transport: switch the feature `reqwest` on, or give one")]
    NoTransport,
}

impl BuildError {
    pub(super) fn endpoint(text: &str, reason: &'static str) -> Self {
        // All before an `@` may be a user with a password.
        let shown = text
            .rsplit_once('@')
            .map_or_else(|| text.to_owned(), |(_, host)| format!("…@{host}"));
        Self::Endpoint {
            endpoint: shortened(&shown, 200),
            reason,
        }
    }
}
