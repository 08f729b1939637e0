//! Construction of a client.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Transport;
use super::address::Address;
use super::call::Budget;
use super::options::ConsulOptions;
#[cfg(feature = "reqwest")]
use super::reqwest_transport;
use super::token::{TokenFile, Tokens};
use super::{ConsulClient, Shared};

/// Makes a [`ConsulClient`]; see [`ConsulClient::builder`].
#[must_use = "a builder makes nothing until `build` is called"]
pub struct ClientBuilder {
    options: ConsulOptions,
    transport: Option<Arc<dyn Transport>>,
}

impl ClientBuilder {
    pub(super) fn new(options: ConsulOptions) -> Self {
        Self {
            options,
            transport: None,
        }
    }

    /// Uses another transport. The options for certificates and connecting do not apply to it.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Builds the client without making a call. Files with certificates are read, but not yet that of a
    /// token.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is invalid, if certificates cannot be used, or if there is no
    /// transport.
    pub fn build(self) -> Result<ConsulClient, BuildError> {
        let options = self.options.bounded();
        let address = Address::parse(&options.address)?;
        #[cfg(feature = "reqwest")]
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(reqwest_transport::transport(&options, address.is_secure())?),
        };
        #[cfg(not(feature = "reqwest"))]
        let transport = self.transport.ok_or(BuildError::NoTransport)?;
        let tokens = match (&options.token_file, &options.token) {
            (Some(path), _) => Tokens::File(Arc::new(TokenFile::new(path.clone()))),
            (None, Some(token)) => Tokens::Fixed(token.clone()),
            (None, None) => Tokens::None,
        };
        let connections = options.max_connections;
        Ok(ConsulClient {
            shared: Arc::new(Shared {
                transport,
                base: address.base().to_owned(),
                tokens,
                budget: Budget {
                    all: Semaphore::new(connections),
                    blocking: Semaphore::new((connections * 3 / 4).max(1)),
                },
                options,
            }),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}

/// The reason why no client can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The address is invalid.
    #[error("`{address}` is not the address of a Consul agent: {reason}")]
    Address {
        /// The address as given, without a part that may be a password.
        address: String,
        /// The reason.
        reason: &'static str,
    },
    /// TLS or HTTP cannot be set up.
    #[error("TLS or HTTP cannot be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
    /// No transport: the feature `reqwest` is disabled, and none was set.
    #[error("there is no transport: switch the feature `reqwest` on, or give one")]
    NoTransport,
}
