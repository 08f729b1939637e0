//! Connecting: TCP, handshake, authentication.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection::Handle;
use super::{ClientError, ClientErrorKind, ConnectOptions, SerfClient};
use crate::wire::messages::Request;

/// The version of the protocol. There has been one.
const VERSION: i32 = 1;

impl SerfClient {
    /// Connects to an agent and does the handshake.
    ///
    /// An agent that requires a key accepts a connection without one: only the first request is
    /// [`Denied`](ClientErrorKind::Denied) then.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](ClientErrorKind::Unreachable), [`TimedOut`](ClientErrorKind::TimedOut) for each
    /// step, [`Denied`](ClientErrorKind::Denied), [`Version`](ClientErrorKind::Version), and for another
    /// server at that address [`Protocol`](ClientErrorKind::Protocol) or
    /// [`Closed`](ClientErrorKind::Closed).
    ///
    /// # Panics
    ///
    /// Panics when called outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the connection is closed then.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ClientError> {
        let error = |kind, detail: String| {
            ClientError::new(kind, &options.address.as_str().into(), "connect", detail)
        };
        let within = options.connect_timeout;
        let stream = match timeout(within, TcpStream::connect(&options.address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => {
                let detail = "no agent answers at this address";
                let error = error(ClientErrorKind::Unreachable, detail.to_owned());
                return Err(error.with_source(source));
            }
            Err(_) => {
                let detail = format!("no connection within {within:?}");
                return Err(error(ClientErrorKind::TimedOut, detail));
            }
        };
        // Requests are short and each is waited for. If this fails, so will the rest.
        let _ = stream.set_nodelay(true);
        Self::connect_over(stream, options).await
    }

    /// Does the handshake with the agent at the other end of any transport: a Unix socket, a tunnel, a pipe
    /// in a test. The address in the options is then used only in messages.
    ///
    /// # Errors
    ///
    /// The errors of [`connect`](Self::connect), except [`Unreachable`](ClientErrorKind::Unreachable).
    ///
    /// # Panics
    ///
    /// Panics when called outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the transport is dropped then.
    pub async fn connect_over<Io>(io: Io, options: &ConnectOptions) -> Result<Self, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let client = Self {
            handle: Handle::start(io, options),
        };
        match client.introduce(options).await {
            Ok(()) => Ok(client),
            // Another server, which sent data first, is recognized by that data, and not by the end of the
            // connection.
            Err(error) if error.kind() == ClientErrorKind::Closed => {
                Err(client.end().cloned().unwrap_or(error))
            }
            Err(error) => Err(error),
        }
    }

    async fn introduce(&self, options: &ConnectOptions) -> Result<(), ClientError> {
        let within = options.handshake_timeout;
        let handshake = Request::Handshake { version: VERSION };
        self.handle.tell(&handshake, within).await?;
        if let Some(key) = options.auth_key.clone() {
            // Awaited before anything else is sent: an agent that has rejected a command takes its body for
            // the next one.
            self.handle.tell(&Request::Auth { key }, within).await?;
        }
        Ok(())
    }
}
