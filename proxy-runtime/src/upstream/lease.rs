//! Connections in use: a request holds one at a time, and releases or drops it.

use std::net::SocketAddr;
#[cfg(feature = "http2")]
use std::sync::Arc;
use std::sync::Weak;

use tokio::time::Instant;

use super::error::ConnectError;
use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::{Http2Connection, Http2Io};
use super::io::UpstreamIo;
use super::slot::Slot;
use super::web_proxy::AbsoluteForm;
use crate::retry::Over;
use crate::transform::Invalid;

/// A connection while one request uses it.
///
/// Dropping it ends the request. An HTTP/1.1 connection closes, because the rest of the response may still come; an
/// HTTP/2 connection goes on for other requests. [`finish`](Self::finish) and [`release`](Self::release) return
/// an HTTP/1.1 connection to the pool instead.
#[derive(Debug)]
pub(crate) struct Lease {
    held: LeasedConnection,
}

#[derive(Debug)]
enum LeasedConnection {
    Http1(Option<Box<Http1Connection>>),
    #[cfg(feature = "http2")]
    Http2 {
        shared: Arc<Http2Connection>,
        /// The HTTP/2 stream of the request, once the head is written.
        stream: Option<Box<Http1Connection>>,
    },
}

impl Lease {
    /// Starts HTTP on a new transport: the handshake of HTTP/2, nothing for HTTP/1.1.
    pub(super) async fn greet(
        io: UpstreamIo,
        peer: SocketAddr,
        is_http2: bool,
        absolute: Option<Box<AbsoluteForm>>,
    ) -> Result<Self, ConnectError> {
        if is_http2 {
            return Box::pin(Self::greet_http2(io, peer)).await;
        }
        let mut connection = Http1Connection::new(io, peer);
        connection.absolute = absolute;
        Ok(Self::http1(Box::new(connection)))
    }

    #[cfg(feature = "http2")]
    async fn greet_http2(io: UpstreamIo, peer: SocketAddr) -> Result<Self, ConnectError> {
        let connection = Http2Connection::handshake(io, peer).await?;
        Ok(Self::http2(&Arc::new(connection)))
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_async, reason = "as with HTTP/2")]
    async fn greet_http2(_: UpstreamIo, _: SocketAddr) -> Result<Self, ConnectError> {
        Err(ConnectError::Unsupported(
            "the destination speaks HTTP/2, and this build does not",
        ))
    }

    pub(super) fn http1(connection: Box<Http1Connection>) -> Self {
        Self {
            held: LeasedConnection::Http1(Some(connection)),
        }
    }

    #[cfg(feature = "http2")]
    pub(super) fn http2(connection: &Arc<Http2Connection>) -> Self {
        // The last request that leaves makes the connection idle.
        connection.enter();
        Self {
            held: LeasedConnection::Http2 {
                shared: Arc::clone(connection),
                stream: None,
            },
        }
    }

    /// Returns the HTTP/2 connection, which other requests can share.
    #[cfg(feature = "http2")]
    pub(super) fn shared(&self) -> Option<&Arc<Http2Connection>> {
        match &self.held {
            LeasedConnection::Http1(_) => None,
            LeasedConnection::Http2 { shared, .. } => Some(shared),
        }
    }

    /// The kind of connection that the request uses, for the decision about retries.
    pub(crate) fn over(&self) -> Over {
        match &self.held {
            LeasedConnection::Http1(Some(connection)) => connection.over(),
            LeasedConnection::Http1(None) => Over::None,
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { shared, .. } => match shared.is_reused() {
                true => Over::Reused,
                false => Over::Fresh,
            },
        }
    }

    /// Returns true for an HTTP/2 connection.
    pub(crate) fn is_http2(&self) -> bool {
        match &self.held {
            LeasedConnection::Http1(_) => false,
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { .. } => true,
        }
    }

    /// Waits until it is known whether an HTTP/2 connection supports WebSockets by extended CONNECT.
    ///
    /// # Errors
    ///
    /// The destination does not support extended CONNECT.
    pub(crate) async fn prepare_connect(&self) -> Result<(), ConnectError> {
        match &self.held {
            LeasedConnection::Http1(_) => Ok(()),
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { shared, .. } => match shared.allows_connect().await {
                true => Ok(()),
                false => Err(ConnectError::NoConnect),
            },
        }
    }

    /// Returns the HTTP/1.1 connection for direct use, before it is [released](Self::release). `None` for HTTP/2.
    #[inline]
    pub(crate) fn raw(&mut self) -> Option<&mut Http1Connection> {
        match &mut self.held {
            LeasedConnection::Http1(connection) => connection.as_deref_mut(),
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { stream, .. } => stream.as_deref_mut(),
        }
    }

    /// Prepares the connection for a request with this HTTP/1.1 head. Over HTTP/2 it is converted to the head of a
    /// stream.
    ///
    /// # Errors
    ///
    /// The head makes no valid request.
    #[inline]
    pub(crate) fn prepare(&mut self, head: &mut Vec<u8>) -> Result<(), Invalid> {
        match &mut self.held {
            LeasedConnection::Http1(Some(connection)) => {
                // A forward proxy needs the absolute form (RFC 9112 section 3.2.2).
                if let Some(absolute) = &connection.absolute {
                    absolute.add_to(head);
                }
                Ok(())
            }
            LeasedConnection::Http1(None) => Err(Invalid),
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { shared, stream } => {
                let io = Http2Io::new(Arc::clone(shared), head).ok_or(Invalid)?;
                *stream = Some(Box::new(Http1Connection::of_stream(io, shared.peer)));
                Ok(())
            }
        }
    }

    /// Undoes [`prepare`](Self::prepare), for a head that another connection sends.
    #[cold]
    pub(crate) fn restore(&self, head: &mut Vec<u8>) {
        if let LeasedConnection::Http1(Some(connection)) = &self.held
            && let Some(absolute) = &connection.absolute
        {
            absolute.remove_from(head);
        }
    }

    /// Releases an HTTP/1.1 connection for further requests. The whole request must have been sent, and the whole
    /// response read, after which the destination must keep the connection. If further bytes were read, it closes.
    #[inline]
    pub(crate) fn release(mut self, now: Instant) {
        if let Some(connection) = self.take()
            // Without its pool, as after the removal of a destination, the connection closes.
            && let Some(pool) = connection.io.pool().and_then(Weak::upgrade)
        {
            pool.put(connection, now);
        }
    }

    /// Ends it, and gives the slot of a connection that was this request's alone, which closes.
    pub(super) fn into_slot(mut self) -> Option<Slot> {
        self.take()?.io.take_slot()
    }

    fn take(&mut self) -> Option<Box<Http1Connection>> {
        match &mut self.held {
            LeasedConnection::Http1(connection) => connection.take(),
            #[cfg(feature = "http2")]
            LeasedConnection::Http2 { .. } => None,
        }
    }
}

#[cfg(feature = "http2")]
impl Drop for Lease {
    fn drop(&mut self) {
        if let LeasedConnection::Http2 { shared, .. } = &self.held
            && shared.leave()
            && let Some(pool) = shared.pool.as_ref().and_then(Weak::upgrade)
        {
            pool.http2_idle();
        }
    }
}
