//! Connections to agents.

use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream to an agent.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Opens connections to agents: over something else than TCP, a Unix socket or a tunnel with TLS.
#[async_trait]
pub trait Dial: Send + Sync {
    /// Opens a connection to the agent at this address, one of
    /// [`SerfOptions::agents`](crate::SerfOptions::agents), without sending anything. The time limit is
    /// [`SerfOptions::connect_timeout`](crate::SerfOptions::connect_timeout).
    ///
    /// # Errors
    ///
    /// Returns an error if the agent cannot be reached.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when it takes too long.
    async fn dial(&self, address: &str) -> io::Result<Box<dyn Transport>>;
}
