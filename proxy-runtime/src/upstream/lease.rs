//! A connection while one request uses it.

use std::net::SocketAddr;
#[cfg(feature = "http2")]
use std::sync::Arc;
use std::sync::Weak;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::runtime::Handle;

use super::destination::DestinationPool;
use super::error::ConnectError;
use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::Http2Connection;
use super::io::UpstreamIo;
use crate::forward::RequestBody;

/// A connection while one request uses it.
///
/// Dropped, the request is over as far as the proxy is concerned: an HTTP/1.1 connection closes, since nobody knows what
/// is still to come on it; an HTTP/2 connection serves the others. [`finish`](Self::finish) gives an HTTP/1.1
/// connection back to the pool instead.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Held,
    pool: Weak<DestinationPool>,
}

#[derive(Debug)]
enum Held {
    Http1(Option<Http1Connection>),
    #[cfg(feature = "http2")]
    Http2(Arc<Http2Connection>),
}

/// Why there is no response. The request is still in it if no byte of it was sent.
type SendError = TrySendError<Request<RequestBody>>;

impl Lease {
    /// Begins to speak HTTP over `io`.
    pub(super) async fn greet(
        io: UpstreamIo,
        peer: SocketAddr,
        is_http2: bool,
        pool: Weak<DestinationPool>,
    ) -> Result<Self, ConnectError> {
        if is_http2 {
            return Self::greet_http2(io, peer, pool).await;
        }
        let connection = Http1Connection::handshake(io, peer).await?;
        Ok(Self::http1(connection, pool))
    }

    #[cfg(feature = "http2")]
    async fn greet_http2(
        io: UpstreamIo,
        peer: SocketAddr,
        pool: Weak<DestinationPool>,
    ) -> Result<Self, ConnectError> {
        let connection = Http2Connection::handshake(io, peer).await?;
        Ok(Self::http2(&Arc::new(connection), &pool))
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_async, reason = "as with HTTP/2")]
    async fn greet_http2(
        _: UpstreamIo,
        _: SocketAddr,
        _: Weak<DestinationPool>,
    ) -> Result<Self, ConnectError> {
        Err(ConnectError::Unsupported(
            "the destination speaks HTTP/2, and this build does not",
        ))
    }

    pub(super) fn http1(connection: Http1Connection, pool: Weak<DestinationPool>) -> Self {
        Self {
            held: Held::Http1(Some(connection)),
            pool,
        }
    }

    #[cfg(feature = "http2")]
    pub(super) fn http2(connection: &Arc<Http2Connection>, pool: &Weak<DestinationPool>) -> Self {
        connection.enter();
        Self {
            held: Held::Http2(Arc::clone(connection)),
            pool: Weak::clone(pool),
        }
    }

    /// The connection that other requests can share.
    #[cfg(feature = "http2")]
    pub(super) fn shared(&self) -> Option<&Arc<Http2Connection>> {
        match &self.held {
            Held::Http1(_) => None,
            Held::Http2(connection) => Some(connection),
        }
    }

    /// Whether HTTP/2 is spoken on it.
    pub(crate) fn is_http2(&self) -> bool {
        match &self.held {
            Held::Http1(_) => false,
            #[cfg(feature = "http2")]
            Held::Http2(_) => true,
        }
    }

    /// The destination's address.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match &self.held {
            Held::Http1(connection) => connection.as_ref().map(|connection| connection.peer),
            #[cfg(feature = "http2")]
            Held::Http2(connection) => Some(connection.peer),
        }
    }

    /// Closes the connection if it carries other requests as well; those may end first. The connection of one request alone
    /// needs nobody to close it: it goes with the lease.
    #[cfg(feature = "http2")]
    pub(crate) fn closing(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let connection = Arc::clone(self.shared()?);
        Some(async move { connection.close().await })
    }

    /// Sees to it that a WebSocket can be asked for, if that is done with CONNECT over this connection.
    ///
    /// # Errors
    ///
    /// The destination has no extended CONNECT.
    pub(crate) async fn prepare_connect(&self) -> Result<(), ConnectError> {
        match &self.held {
            Held::Http1(_) => Ok(()),
            #[cfg(feature = "http2")]
            Held::Http2(connection) => match connection.allows_connect().await {
                true => Ok(()),
                false => Err(ConnectError::NoConnect),
            },
        }
    }

    /// Sends a request and waits for the head of its response. It has no timeout of its own.
    ///
    /// Dropping the future and the lease cancels the request: the HTTP/1.1 connection closes, the HTTP/2 stream is
    /// reset with `CANCEL`.
    ///
    /// # Panics
    ///
    /// Never: a lease that was finished cannot be used.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        match &mut self.held {
            Held::Http1(connection) => {
                let connection = connection
                    .as_mut()
                    .expect("only `finish` and `drop`, which consume the lease, take it out");
                connection.used = true;
                connection.send.try_send_request(request).await
            }
            #[cfg(feature = "http2")]
            Held::Http2(connection) => connection.sender().try_send_request(request).await,
        }
    }

    /// Gives the connection back for further requests. The response must have been read to its end.
    ///
    /// The request may still be sending. The connection is used again when that has ended too, for which a task waits; if
    /// `give_up` ends before, the connection is closed.
    pub(crate) fn finish<F>(mut self, give_up: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let taken = match &mut self.held {
            Held::Http1(connection) => connection.take(),
            #[cfg(feature = "http2")]
            Held::Http2(_) => None,
        };
        let Some(mut connection) = taken else {
            return;
        };
        if connection.send.is_ready() {
            if let Some(pool) = self.pool.upgrade() {
                pool.put(connection);
            }
        } else if !connection.send.is_closed()
            && let Ok(runtime) = Handle::try_current()
        {
            let pool = Weak::clone(&self.pool);
            let give_up = give_up();
            runtime.spawn(async move {
                let is_free = tokio::select! {
                    biased;
                    ready = connection.send.ready() => ready.is_ok(),
                    () = give_up => false,
                };
                if is_free && let Some(pool) = pool.upgrade() {
                    pool.put(connection);
                }
            });
        }
    }
}

#[cfg(feature = "http2")]
impl Drop for Lease {
    fn drop(&mut self) {
        if let Held::Http2(connection) = &self.held
            && connection.leave()
            && let Some(pool) = self.pool.upgrade()
        {
            pool.http2_idle();
        }
    }
}
