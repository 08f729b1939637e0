//! Opens connections to destinations.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Unreachable, UnreachableClusters};
use proxy_model::ClusterId;
use proxy_model::compiled::{DestinationAddress, Scheme, Upstream};

use super::UpstreamOptions;
use super::error::ConnectError;
use super::protocol::Protocols;
use super::resolve::{Names, Resolver};
use super::tcp;
#[cfg(feature = "tls")]
use super::tls::TlsClient;
use super::transport::{Opened, UpstreamTransport};

/// Opens connections: name, TCP, TLS. One for the whole proxy.
#[derive(Debug)]
pub(super) struct Connector {
    resolver: Resolver,
    keep_alive: Option<Duration>,
    #[cfg(feature = "tls")]
    tls: Option<TlsClient>,
    /// The receiver of reports about unreachable clusters.
    unreachable: Option<Arc<UnreachableClusters>>,
}

impl Connector {
    pub(super) fn new(
        options: &UpstreamOptions,
        unreachable: Option<Arc<UnreachableClusters>>,
    ) -> Self {
        Self {
            resolver: Resolver::new(options),
            keep_alive: options.tcp_keep_alive,
            #[cfg(feature = "tls")]
            tls: options.tls.clone(),
            unreachable,
        }
    }

    /// Reports that no connection can be opened to a destination of the cluster.
    pub(super) fn report_unreachable(&self, cluster: &ClusterId) {
        if let Some(unreachable) = &self.unreachable {
            unreachable.report(cluster, Unreachable::Destination);
        }
    }

    /// The state of name lookups.
    pub(super) fn names(&self) -> &Names {
        self.resolver.names()
    }

    /// Opens a connection to a destination of `cluster` for one of `protocols`. Has no timeout.
    ///
    /// Cancel-safe: if dropped, it closes the connection.
    pub(super) async fn open(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        match address.scheme() {
            Scheme::Http => self.open_tcp(cluster, address, protocols).await,
            Scheme::Https => self.open_tls(cluster, address, upstream, protocols).await,
        }
    }

    async fn open_tcp(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let addresses = self
            .resolver
            .resolve(cluster, address.host(), address.port())
            .await
            .map_err(ConnectError::Resolve)?;
        let failed = |error| ConnectError::Open(Arc::new(error));
        let stream = tcp::connect(addresses, self.keep_alive)
            .await
            .map_err(failed)?;
        let peer = stream.peer_addr().map_err(failed)?;
        Ok(Opened {
            transport: UpstreamTransport::Tcp(stream),
            peer,
            http2: protocols == Protocols::Http2,
        })
    }

    #[cfg(feature = "tls")]
    async fn open_tls(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let Some(tls) = &self.tls else {
            return Err(ConnectError::Unsupported(
                "the destination is https, and the proxy was built without TLS settings for destinations",
            ));
        };
        // Settings are checked before connecting, so that bad ones do not load the destination.
        let config = tls
            .config(upstream, protocols)
            .map_err(|error| ConnectError::TlsSettings(Arc::new(error)))?;
        let opened = self.open_tcp(cluster, address, protocols).await?;
        tls.handshake(config, address, opened, protocols).await
    }

    /// Fails: an `https` destination is never connected to in cleartext.
    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "as with TLS")]
    async fn open_tls(
        &self,
        _: &ClusterId,
        _: &DestinationAddress,
        _: &Upstream,
        _: Protocols,
    ) -> Result<Opened, ConnectError> {
        Err(ConnectError::Unsupported(
            "the destination is https, and this build speaks no TLS",
        ))
    }
}
