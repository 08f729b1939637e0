//! The handshake with a client.

use std::io;
use std::sync::Arc;

#[cfg(feature = "admin")]
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use super::{ConnectionPolicy, TlsServerConfig};

/// A connection whose handshake is over.
pub(crate) struct Shaken<S> {
    pub(crate) stream: TlsStream<S>,
    /// `None` if all names have the same policy.
    pub(crate) policy: Option<ConnectionPolicy>,
}

impl TlsServerConfig {
    /// Shakes hands by the policy of the name that the client sends.
    ///
    /// Cancel safe: dropped, it closes the connection.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<Shaken<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let policies = self.policies();
        // One policy for all names needs no look at the hello.
        if policies.is_uniform() {
            let acceptor = TlsAcceptor::from(policies.rustls(None));
            let stream = acceptor.accept(stream).await?;
            return Ok(Shaken {
                stream,
                policy: None,
            });
        }
        let started = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let hello = started.client_hello();
        let config = policies.rustls(hello.server_name());
        let policy = ConnectionPolicy::new(Arc::clone(&policies), hello.server_name());
        let stream = started.into_stream(config).await?;
        Ok(Shaken { stream, policy })
    }

    /// Shakes hands with a client of the admin server, which speaks HTTP/1.1 only.
    ///
    /// Cancel safe: dropped, it closes the connection.
    #[cfg(feature = "admin")]
    pub(crate) async fn accept_http1<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let policies = self.policies();
        let started = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        // The clone shares certificates and sessions.
        let mut config =
            ServerConfig::clone(&policies.rustls(started.client_hello().server_name()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        started.into_stream(Arc::new(config)).await
    }
}
