//! The builder of a client.

use std::sync::Arc;

use url::Url;

use super::Transport;
use super::call_log::CallLog;
use super::client::{ArmClient, Inner};
use super::options::ArmOptions;
use super::throttle::Gates;
use super::token::{TokenCache, TokenSource};

/// The URL of Azure's public resource manager.
pub const PUBLIC_CLOUD: &str = "https://management.azure.com";

/// A builder of an [`ArmClient`].
#[must_use]
pub struct ArmClientBuilder {
    transport: Arc<dyn Transport>,
    endpoint: String,
    tokens: Option<Arc<dyn TokenSource>>,
    options: ArmOptions,
}

/// The error of an invalid URL of a resource manager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address:?} is not the address of a resource manager: {why}; write for example {PUBLIC_CLOUD}"
)]
pub struct EndpointError {
    address: String,
    why: String,
}

impl ArmClientBuilder {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            endpoint: PUBLIC_CLOUD.to_owned(),
            tokens: None,
            options: ArmOptions::default(),
        }
    }

    /// Sets the URL of the resource manager. Default: [`PUBLIC_CLOUD`].
    pub fn endpoint(mut self, address: impl Into<String>) -> Self {
        self.endpoint = address.into();
        self
    }

    /// Sets the source of tokens. Default: none, which only an emulator accepts.
    pub fn tokens(mut self, source: impl TokenSource + 'static) -> Self {
        self.tokens = Some(Arc::new(source));
        self
    }

    /// Sets time limits, retries and versions.
    pub fn options(mut self, options: ArmOptions) -> Self {
        self.options = options;
        self
    }

    /// Builds the client. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// The endpoint is not an absolute `http` or `https` address, has a path, or would get tokens over plain
    /// HTTP although it is not on this machine.
    pub fn build(self) -> Result<ArmClient, EndpointError> {
        let Self {
            transport,
            endpoint,
            tokens,
            options,
        } = self;
        let wrong = |why: &str| EndpointError {
            address: endpoint.clone(),
            why: why.to_owned(),
        };
        let url = Url::parse(&endpoint).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong("it is not an http or https address"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has more than a host and a port"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("credentials do not belong there"));
        }
        if tokens.is_some() && url.scheme() == "http" && !is_loopback(&url) {
            return Err(wrong("a token would be sent over plain HTTP"));
        }
        Ok(ArmClient::new(Inner {
            transport,
            endpoint: url,
            tokens: tokens.map(TokenCache::new),
            options,
            gates: Gates::default(),
            log: CallLog::default(),
        }))
    }
}

/// Returns true if the URL leads to this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl std::fmt::Debug for ArmClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArmClientBuilder")
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
