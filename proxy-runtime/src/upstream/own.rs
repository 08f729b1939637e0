//! Connectors of the program.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use proxy_model::compiled::DestinationAddress;
use proxy_model::{ClusterId, same_id};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::ConnectError;
use super::protocol::Protocols;
use super::transport::{Opened, Took, UpstreamTransport};
use crate::BoxError;
use crate::contain::{Panicked, contained};

/// Opens the connections to the destinations of clusters that name it in `HttpClient.Connector`, in place of the proxy:
/// over a Unix socket, with a TLS configuration of the program's own, in memory.
///
/// A program registers a connector with [`ProxyBuilder::connector`](crate::ProxyBuilder::connector). Connections are
/// pooled as all are: by destination, and apart from those that another connector has opened. Limits, timeouts,
/// retries and probes of health checks are the same, too.
///
/// # Examples
///
/// Destinations at Unix sockets, which are named as their hosts are:
///
/// ```
/// # #[cfg(unix)] mod example {
/// use async_trait::async_trait;
/// use proxy_runtime::upstream::{ConnectTarget, Connected, DestinationConnector};
/// use tokio::net::UnixStream;
///
/// struct UnixSockets;
///
/// #[async_trait]
/// impl DestinationConnector for UnixSockets {
///     async fn connect(
///         &self,
///         target: &ConnectTarget<'_>,
///     ) -> Result<Connected, Box<dyn std::error::Error + Send + Sync>> {
///         let path = format!("/run/services/{}.sock", target.address.host());
///         let stream = UnixStream::connect(path).await?;
///         // Nothing is negotiated without TLS.
///         Ok(match target.may_use_http1 {
///             true => Connected::http1(stream),
///             false => Connected::http2(stream),
///         })
///     }
/// }
/// # }
/// ```
#[async_trait]
pub trait DestinationConnector: Send + Sync {
    /// Opens a connection that is ready for HTTP: with the TLS handshake, if the destination wants one.
    ///
    /// # Errors
    ///
    /// The destination cannot be reached. Nothing was sent, so the request may go to another one.
    ///
    /// # Cancel safety
    ///
    /// Dropped when the request goes away or `connect_timeout` is over, and must leave nothing behind then. It needs no
    /// timeout of its own. A panic is an error.
    async fn connect(&self, target: &ConnectTarget<'_>) -> Result<Connected, BoxError>;
}

/// The destination of a connection that is to be opened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectTarget<'a> {
    /// The cluster of the destination.
    pub cluster: &'a ClusterId,
    /// The address of the destination, or of its health checks.
    pub address: &'a DestinationAddress,
    /// True if the connection may speak HTTP/1.1.
    pub may_use_http1: bool,
    /// True if the connection may speak HTTP/2.
    pub may_use_http2: bool,
}

/// A connection that a [`DestinationConnector`] has opened.
#[derive(Debug)]
pub struct Connected {
    stream: OwnStream,
    is_http2: bool,
    peer: Option<SocketAddr>,
}

impl Connected {
    /// Creates a connection that speaks HTTP/1.1.
    pub fn http1(stream: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static) -> Self {
        Self {
            stream: OwnStream(Box::new(stream)),
            is_http2: false,
            peer: None,
        }
    }

    /// Creates a connection that speaks HTTP/2.
    pub fn http2(stream: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static) -> Self {
        Self {
            is_http2: true,
            ..Self::http1(stream)
        }
    }

    /// Sets the address at the other end, for access logs and traces. Default: `0.0.0.0:0`.
    #[must_use]
    pub fn with_peer(mut self, peer: SocketAddr) -> Self {
        self.peer = Some(peer);
        self
    }
}

/// Bytes to and from a destination, by whatever means.
trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// The stream of a connector.
pub(super) struct OwnStream(Box<dyn Duplex>);

impl OwnStream {
    /// Returns true if the other end has closed the stream or sent unexpected bytes, which are lost.
    pub(super) fn has_ended(&mut self) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(Waker::noop());
        // Only an open stream without bytes would wait.
        Pin::new(&mut self.0)
            .poll_read(&mut cx, &mut byte)
            .is_ready()
    }
}

impl AsyncRead for OwnStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for OwnStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl fmt::Debug for OwnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnStream")
    }
}

/// The connectors of a program by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct Connectors(BTreeMap<Arc<str>, Arc<dyn DestinationConnector>>);

impl Connectors {
    /// Adds a connector. A later registration of the same name replaces it.
    pub(crate) fn register(&mut self, name: Arc<str>, connector: Arc<dyn DestinationConnector>) {
        self.0.retain(|registered, _| !same_id(registered, &name));
        self.0.insert(name, connector);
    }

    /// The names that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// Opens a connection with the connector of this name.
    pub(super) async fn open(
        &self,
        name: &str,
        cluster: &ClusterId,
        address: &DestinationAddress,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let mut connectors = self.0.iter();
        let Some((_, connector)) = connectors.find(|(known, _)| same_id(known, name)) else {
            // A configuration with an unknown connector is rejected before it gets here.
            return Err(ConnectError::Unsupported(
                "the cluster's connector is not registered",
            ));
        };
        let target = ConnectTarget {
            cluster,
            address,
            may_use_http1: protocols.allows_http1(),
            may_use_http2: protocols != Protocols::Http1,
        };
        let begun = tokio::time::Instant::now();
        let failed = |error: BoxError| ConnectError::Connector(Arc::from(error));
        let connected = match contained(connector.connect(&target)).await {
            Ok(connected) => connected.map_err(failed)?,
            Err(Panicked(message)) => {
                return Err(failed(format!("the connector panicked: {message}").into()));
            }
        };
        let is_allowed = match connected.is_http2 {
            true => target.may_use_http2 && cfg!(feature = "http2"),
            false => target.may_use_http1,
        };
        if !is_allowed {
            let error = io::Error::other(
                "the connector has chosen a version of HTTP that the cluster does not allow",
            );
            return Err(failed(error.into()));
        }
        let nowhere = || SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Ok(Opened {
            transport: UpstreamTransport::Own(connected.stream),
            peer: connected.peer.unwrap_or_else(nowhere),
            http2: connected.is_http2,
            absolute: None,
            took: Took {
                name: None,
                tcp: begun.elapsed(),
                tls: None,
            },
        })
    }
}

impl fmt::Debug for Connectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
