//! The agent, and how it is reached.

use std::io;
use std::sync::Arc;

use tokio::time::timeout;

use crate::client::{ClientError, ClientErrorKind, ConnectOptions, SerfClient};
use crate::discoverer::Dial;

/// The connection to an agent.
#[derive(Clone)]
pub(super) struct Agent {
    options: ConnectOptions,
    /// The dialer. `None` for TCP.
    dialer: Option<Arc<dyn Dial>>,
}

impl Agent {
    pub(super) fn new(options: ConnectOptions, dialer: Option<Arc<dyn Dial>>) -> Self {
        Self { options, dialer }
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<SerfClient, ClientError> {
        let options = &self.options;
        let Some(dialer) = &self.dialer else {
            return SerfClient::connect(options).await;
        };
        let unreachable = |source: io::Error| {
            let address = options.address.as_str().into();
            let detail = "the agent cannot be reached";
            let error = ClientError::new(ClientErrorKind::Unreachable, &address, "dial", detail);
            error.with_source(source)
        };
        let dialed = timeout(options.connect_timeout, dialer.dial(&options.address)).await;
        let dialed = dialed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        SerfClient::connect_over(dialed.map_err(unreachable)?, options).await
    }
}
