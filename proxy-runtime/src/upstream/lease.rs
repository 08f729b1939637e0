//! Connections in use: a request holds one at a time, and releases or drops it.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request;
use http_body::Frame;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::error::{ConnectError, ExchangeError, SendError};
use super::http1::{Http1Connection, Http1Error, RequestWriter, Rest};
#[cfg(feature = "http2")]
use super::http2::{Http2Connection, Http2RoundTrip};
use super::incoming::IncomingBody;
use super::io::UpstreamIo;
use super::round_trip::{Answer, RoundTrip};
use super::slot::Slot;
use super::tunnel::Tunnel;
use crate::progress::{Continuation, OutgoingBody};
use crate::retry::Over;

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
    Http2(Arc<Http2Connection>),
}

impl Lease {
    /// Starts HTTP on a new transport: the handshake of HTTP/2, nothing for HTTP/1.1.
    pub(super) async fn greet(
        io: UpstreamIo,
        peer: SocketAddr,
        is_http2: bool,
    ) -> Result<Self, ConnectError> {
        if is_http2 {
            return Self::greet_http2(io, peer).await;
        }
        Ok(Self::http1(Box::new(Http1Connection::new(io, peer))))
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
        connection.enter();
        Self {
            held: LeasedConnection::Http2(Arc::clone(connection)),
        }
    }

    /// Returns the HTTP/2 connection, which other requests can share.
    #[cfg(feature = "http2")]
    pub(super) fn shared(&self) -> Option<&Arc<Http2Connection>> {
        match &self.held {
            LeasedConnection::Http1(_) => None,
            LeasedConnection::Http2(connection) => Some(connection),
        }
    }

    /// The kind of connection that the request uses, for the decision about retries.
    pub(crate) fn over(&self) -> Over {
        match &self.held {
            LeasedConnection::Http1(Some(connection)) => connection.over(),
            LeasedConnection::Http1(None) => Over::None,
            #[cfg(feature = "http2")]
            LeasedConnection::Http2(connection) => match connection.is_reused() {
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
            LeasedConnection::Http2(_) => true,
        }
    }

    /// The destination's address.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match &self.held {
            LeasedConnection::Http1(connection) => {
                connection.as_ref().map(|connection| connection.peer)
            }
            #[cfg(feature = "http2")]
            LeasedConnection::Http2(connection) => Some(connection.peer),
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
            LeasedConnection::Http2(connection) => match connection.allows_connect().await {
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
            LeasedConnection::Http2(_) => None,
        }
    }

    /// Releases an HTTP/1.1 connection for further requests. The whole request must have been sent, and the whole
    /// response read, after which the destination must keep the connection. If further bytes were read, it closes.
    #[inline]
    pub(crate) fn release(mut self, now: Instant) {
        if let Some(connection) = self.take()
            && let Some(pool) = connection.io.pool().and_then(Weak::upgrade)
        {
            pool.put(connection, now);
        }
    }

    /// Begins to send a request. `continuation` is notified of `100 Continue` over HTTP/1.1.
    ///
    /// Dropping the round trip and the lease cancels the request: the HTTP/1.1 connection closes, the HTTP/2 stream
    /// is reset with `CANCEL`.
    ///
    /// # Errors
    ///
    /// The request cannot be sent in the version of the connection.
    #[cfg_attr(
        not(feature = "http2"),
        expect(clippy::needless_pass_by_value, reason = "HTTP/2 takes it")
    )]
    pub(crate) fn begin(
        &mut self,
        head: request::Parts,
        body: OutgoingBody,
        continuation: Option<Arc<Continuation>>,
    ) -> Result<RoundTrip, Box<SendError>> {
        match &mut self.held {
            LeasedConnection::Http1(Some(connection)) => {
                RoundTrip::over_http1(connection, &head, body, continuation)
                    .map_err(SendError::fatal)
            }
            LeasedConnection::Http1(None) => Err(SendError::fatal(Http1Error::NoResponse)),
            #[cfg(feature = "http2")]
            LeasedConnection::Http2(connection) => {
                let connection = Arc::clone(connection);
                let round_trip = Http2RoundTrip::new(connection, head, body);
                Ok(RoundTrip::Http2(round_trip))
            }
        }
    }

    /// Continues to send a request that was [begun](Self::begin). Ready with the head of the response. Has no timeout.
    ///
    /// # Errors
    ///
    /// There is no response. The error has the body if it is complete, for another connection.
    pub(crate) fn poll_answer(
        &mut self,
        round_trip: &mut RoundTrip,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, Box<SendError>>> {
        round_trip.poll(self.raw(), cx)
    }

    /// Polls the next frame of the response body.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut IncomingBody,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        incoming.poll_frame(self.raw(), cx)
    }

    /// Returns the destination's side of a tunnel after the response with this body; `None` if the response opened
    /// none.
    ///
    /// The tunnel takes the connection of HTTP/1.1. Of HTTP/2 it is one stream, and the lease must be kept as long.
    pub(crate) fn switch(&mut self, body: IncomingBody) -> Option<Tunnel> {
        match body {
            IncomingBody::Http1(body) if body.is_tunnel() => self.take().map(Tunnel::Http1),
            IncomingBody::Http1(_) => None,
            #[cfg(feature = "http2")]
            IncomingBody::Http2(body) => body.into_tunnel().map(Tunnel::Http2),
        }
    }

    /// Ends the exchange whose response had this body. If the body was read completely, the connection is released.
    ///
    /// If the request is still being sent, a task continues until `give_up` ends, and then closes the connection.
    pub(crate) fn finish<F>(mut self, incoming: IncomingBody, give_up: impl FnOnce() -> F)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let rest = match incoming {
            IncomingBody::Http1(body) => body.into_rest(),
            #[cfg(feature = "http2")]
            IncomingBody::Http2(body) => return body.finish(give_up),
        };
        match rest {
            Rest::Nothing => self.release(Instant::now()),
            Rest::Upload(upload) => {
                if let Some(connection) = self.take()
                    && let Ok(runtime) = Handle::try_current()
                {
                    runtime.spawn(finish_upload(connection, upload, give_up()));
                }
            }
            Rest::Close => {}
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
            LeasedConnection::Http2(_) => None,
        }
    }
}

/// Sends the rest of a request whose response has ended, and closes the connection then; `give_up` cuts it off.
async fn finish_upload(
    mut connection: Box<Http1Connection>,
    mut upload: Box<RequestWriter>,
    give_up: impl Future<Output = bool>,
) {
    tokio::select! {
        biased;
        () = connection.finish_upload(&mut upload) => {}
        _ = give_up => {}
    }
}

#[cfg(feature = "http2")]
impl Drop for Lease {
    fn drop(&mut self) {
        if let LeasedConnection::Http2(connection) = &self.held
            && connection.leave()
            && let Some(pool) = connection.pool.as_ref().and_then(Weak::upgrade)
        {
            pool.http2_idle();
        }
    }
}
