//! Opens connections to destinations.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Unreachable, UnreachableClusters};
use proxy_model::ClusterId;
use proxy_model::compiled::{DestinationAddress, Scheme, Upstream, WebProxy};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::UpstreamOptions;
use super::error::ConnectError;
use super::own::Connectors;
use super::protocol::Protocols;
use super::proxy_header::{self, AnnouncedClient};
use super::resolve::{Names, Resolver};
use super::tcp;
#[cfg(feature = "tls")]
use super::tls::{TlsClient, server_name};
use super::transport::{Opened, Took, UpstreamTransport};
use super::web_proxy::{self, AbsoluteForm, WebProxyError};

/// Opens connections: name, TCP, forward proxy, TLS. One for the whole proxy.
#[derive(Debug)]
pub(super) struct Connector {
    resolver: Resolver,
    keep_alive: Option<Duration>,
    /// The connectors of the program.
    connectors: Connectors,
    #[cfg(feature = "tls")]
    tls: Option<TlsClient>,
    /// The receiver of reports about unreachable clusters.
    unreachable: Option<Arc<UnreachableClusters>>,
}

impl Connector {
    pub(super) fn new(
        options: &UpstreamOptions,
        connectors: Connectors,
        unreachable: Option<Arc<UnreachableClusters>>,
    ) -> Self {
        Self {
            resolver: Resolver::new(options),
            keep_alive: options.tcp_keep_alive,
            connectors,
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

    /// Opens a connection to a destination of `cluster` for one of `protocols`, announced for a client if the cluster
    /// wants that. Has no timeout.
    ///
    /// Cancel-safe: if dropped, it closes the connection.
    pub(super) async fn open(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        protocols: Protocols,
        announced: Option<AnnouncedClient>,
    ) -> Result<Opened, ConnectError> {
        if let Some(name) = upstream.connector() {
            // Boxed as all but the plain way, which most connections take.
            let opening = self.connectors.open(name, cluster, address, protocols);
            return Box::pin(opening).await;
        }
        match address.scheme() {
            Scheme::Http => {
                self.open_plain(cluster, address, upstream, protocols, announced)
                    .await
            }
            Scheme::Https => {
                let opening = self.open_tls(cluster, address, upstream, protocols, announced);
                Box::pin(opening).await
            }
        }
    }

    /// Opens a TCP connection to a port of a host, for the proxy's own use.
    pub(super) async fn open_port(
        &self,
        cluster: &ClusterId,
        host: &str,
        port: u16,
    ) -> Result<TcpStream, ConnectError> {
        let addresses = self.resolver.resolve(cluster, host, port);
        let addresses = addresses.await.map_err(ConnectError::Resolve)?;
        let stream = tcp::connect(addresses, self.keep_alive).await;
        stream.map_err(|error| ConnectError::Open(Arc::new(error)))
    }

    /// Opens a connection without TLS, through the cluster's forward proxy if it has one.
    async fn open_plain(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        protocols: Protocols,
        announced: Option<AnnouncedClient>,
    ) -> Result<Opened, ConnectError> {
        if let Some(proxy) = upstream.web_proxy(address) {
            return Box::pin(self.open_through(cluster, proxy, address, protocols)).await;
        }
        let begun = Instant::now();
        let addresses = self
            .resolver
            .resolve(cluster, address.host(), address.port())
            .await
            .map_err(ConnectError::Resolve)?;
        let resolved = Instant::now();
        let failed = |error| ConnectError::Open(Arc::new(error));
        let mut stream = tcp::connect(addresses, self.keep_alive)
            .await
            .map_err(failed)?;
        let peer = stream.peer_addr().map_err(failed)?;
        // The header comes before everything else on the connection, TLS included.
        if upstream.sends_proxy_protocol() {
            let header = proxy_header::header(announced);
            stream.write_all(&header).await.map_err(failed)?;
        }
        Ok(Opened {
            transport: UpstreamTransport::Tcp(stream),
            peer,
            // Without TLS nothing is negotiated: HTTP/2 takes prior knowledge (RFC 9113 section 3.3).
            http2: protocols == Protocols::Http2,
            absolute: None,
            took: took(address.host(), begun, resolved),
        })
    }

    /// Opens a connection to a forward proxy: for requests in absolute form, or, where the proxy is not to read
    /// them, a tunnel to the destination. The name of the destination is for the proxy to look up.
    async fn open_through(
        &self,
        cluster: &ClusterId,
        proxy: &WebProxy,
        address: &DestinationAddress,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let failed = |error| ConnectError::WebProxy {
            proxy: proxy.to_string(),
            error: Arc::new(error),
        };
        let begun = Instant::now();
        let addresses = self.resolver.resolve(cluster, proxy.host(), proxy.port());
        let addresses = addresses
            .await
            .map_err(|error| failed(WebProxyError::Resolve(error)))?;
        let resolved = Instant::now();
        let unconnected = |error| failed(WebProxyError::Connect(Arc::new(error)));
        let stream = tcp::connect(addresses, self.keep_alive).await;
        let mut stream = stream.map_err(unconnected)?;
        let peer = stream.peer_addr().map_err(unconnected)?;
        let http2 = protocols == Protocols::Http2;
        // A request in absolute form has to be HTTP/1.1, and the forward proxy reads it.
        let is_tunnel = address.scheme() == Scheme::Https || http2;
        if is_tunnel {
            let connected = web_proxy::connect(&mut stream, proxy, address).await;
            connected.map_err(failed)?;
        }
        Ok(Opened {
            transport: UpstreamTransport::Tcp(stream),
            peer,
            http2,
            absolute: (!is_tunnel).then(|| Box::new(AbsoluteForm::new(proxy, address))),
            took: took(proxy.host(), begun, resolved),
        })
    }

    #[cfg(feature = "tls")]
    async fn open_tls(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        protocols: Protocols,
        announced: Option<AnnouncedClient>,
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
        let opened = self
            .open_plain(cluster, address, upstream, protocols, announced)
            .await?;
        let name = server_name(address, upstream);
        tls.handshake(config, name, opened, protocols).await
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
        _: Option<AnnouncedClient>,
    ) -> Result<Opened, ConnectError> {
        Err(ConnectError::Unsupported(
            "the destination is https, and this build speaks no TLS",
        ))
    }
}

/// The times of a connection to `host` that is open now.
fn took(host: &str, begun: Instant, resolved: Instant) -> Took {
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    Took {
        // A literal address needs no lookup, so it has no time for one.
        name: (!is_address).then(|| resolved - begun),
        tcp: resolved.elapsed(),
        tls: None,
    }
}
