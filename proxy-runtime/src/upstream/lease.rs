//! Connections out of the pool: a request holds one at a time, and gives it back or drops it.

use std::net::SocketAddr;
use std::pin::Pin;
#[cfg(feature = "http2")]
use std::sync::Arc;
use std::sync::Weak;

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::error::{ConnectError, ExchangeError, SendError};
use super::http1::{self, Http1Connection, RequestWriter, Rest};
#[cfg(feature = "http2")]
use super::http2::Http2Connection;
use super::incoming::IncomingBody;
use super::io::UpstreamIo;
use super::slot::Slot;
use super::tunnel::Switching;
use crate::progress::OutgoingBody;
use crate::retry::Over;

/// A connection while one request uses it.
///
/// Dropped, the request is over as far as the proxy is concerned: an HTTP/1.1 connection closes, since nobody knows what
/// is still to come on it; an HTTP/2 connection serves the others. [`finish`](Self::finish) and
/// [`give_back`](Self::give_back) give an HTTP/1.1 connection back to the pool instead.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Held,
}

#[derive(Debug)]
enum Held {
    Http1(Option<Box<Http1Connection>>),
    #[cfg(feature = "http2")]
    Http2(Arc<Http2Connection>),
}

impl Lease {
    /// Begins to speak HTTP over `io`.
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
            held: Held::Http1(Some(connection)),
        }
    }

    #[cfg(feature = "http2")]
    pub(super) fn http2(connection: &Arc<Http2Connection>) -> Self {
        connection.enter();
        Self {
            held: Held::Http2(Arc::clone(connection)),
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

    /// What a request that it is lent to has hold of.
    pub(crate) fn over(&self) -> Over {
        match &self.held {
            Held::Http1(Some(connection)) => connection.over(),
            Held::Http1(None) => Over::None,
            #[cfg(feature = "http2")]
            Held::Http2(connection) => match connection.is_reused() {
                true => Over::Reused,
                false => Over::Fresh,
            },
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

    /// The HTTP/1.1 connection, for who speaks HTTP over it without this lease's help, and then
    /// [gives it back](Self::give_back). `None` if HTTP/2 is spoken.
    #[inline]
    pub(crate) fn raw(&mut self) -> Option<&mut Http1Connection> {
        match &mut self.held {
            Held::Http1(connection) => connection.as_deref_mut(),
            #[cfg(feature = "http2")]
            Held::Http2(_) => None,
        }
    }

    /// Gives an HTTP/1.1 connection back for further requests. All of the request must have been sent, and all of a response
    /// after which the destination keeps the connection must have been read. If more has been read than that, it closes.
    #[inline]
    pub(crate) fn give_back(mut self, now: Instant) {
        if let Some(connection) = self.take()
            && let Some(pool) = connection.io.pool().and_then(Weak::upgrade)
        {
            pool.put(connection, now);
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
    pub(crate) fn send(&mut self, request: Request<OutgoingBody>) -> SendFuture<'_> {
        match &mut self.held {
            Held::Http1(connection) => {
                let connection = connection
                    .as_mut()
                    .expect("only what ends the lease takes it out");
                SendFuture::Http1(connection.send(request))
            }
            #[cfg(feature = "http2")]
            Held::Http2(connection) => SendFuture::Http2(Box::pin(send_http2(connection, request))),
        }
    }

    /// The next part of the body of the response that [`send`](Self::send) gave.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut IncomingBody,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        incoming.poll_frame(self.raw(), cx)
    }

    /// The other end of a tunnel, after a response with which the destination agreed to one; `None` if none comes of it.
    ///
    /// The connection of HTTP/1.1 goes with it; of HTTP/2 it is one stream, and the lease is to be held as long.
    pub(crate) fn switch(&mut self, response: &mut Response<IncomingBody>) -> Option<Switching> {
        match response.body_mut() {
            IncomingBody::Http1(body) if body.is_tunnel() => self.take().map(Switching::Http1),
            IncomingBody::Http1(_) => None,
            #[cfg(feature = "http2")]
            // `hyper` makes tunnels of 200 and of no other 2xx, and `hyper::upgrade::on` does not tell before it is awaited.
            IncomingBody::Http2(_) => response.extensions_mut().remove().map(Switching::Http2),
        }
    }

    /// Ends the exchange whose response had this body. If it was read to its end, the connection can serve another request.
    ///
    /// The request may still be sending. A task goes on with that, until `give_up` ends, and closes the connection.
    pub(crate) fn finish<F>(mut self, incoming: IncomingBody, give_up: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let rest = match incoming {
            IncomingBody::Http1(body) => body.into_rest(),
            #[cfg(feature = "http2")]
            IncomingBody::Http2(_) => return,
        };
        match rest {
            Rest::Nothing => self.give_back(Instant::now()),
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
            Held::Http1(connection) => connection.take(),
            #[cfg(feature = "http2")]
            Held::Http2(_) => None,
        }
    }
}

/// The head of a response, or why there is none.
type Answered = Result<Response<IncomingBody>, Box<SendError>>;

/// The head of a response to come.
#[must_use = "futures do nothing unless polled"]
#[cfg_attr(
    feature = "http2",
    expect(
        clippy::large_enum_variant,
        reason = "the large one is meant to be where it is; the other is small beside what a stream costs"
    )
)]
pub(crate) enum SendFuture<'a> {
    Http1(http1::SendFuture<'a>),
    #[cfg(feature = "http2")]
    Http2(Pin<Box<dyn Future<Output = Answered> + Send + 'a>>),
}

impl SendFuture<'_> {
    /// Whether something came since this was last asked, as far as that can be known: interim responses of HTTP/2 are not seen.
    pub(crate) fn take_news(&mut self) -> bool {
        match self {
            Self::Http1(sent) => sent.take_news(),
            #[cfg(feature = "http2")]
            Self::Http2(_) => false,
        }
    }
}

impl Future for SendFuture<'_> {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Http1(sent) => Pin::new(sent).poll(cx).map(|answered| match answered {
                Ok(response) => Ok(response.map(IncomingBody::Http1)),
                Err(failed) => Err(failed),
            }),
            #[cfg(feature = "http2")]
            Self::Http2(sent) => sent.as_mut().poll(cx),
        }
    }
}

#[cfg(feature = "http2")]
async fn send_http2(connection: &Http2Connection, request: Request<OutgoingBody>) -> Answered {
    if !connection.allows_streams() {
        return Err(SendError::not_allowed(Some(request)));
    }
    let sending = connection.sender().try_send_request(request);
    let sent = match connection.has_settings() {
        true => sending.await,
        false => tokio::select! {
            biased;
            sent = sending => sent,
            () = connection.allowed_nothing() => return Err(SendError::not_allowed(None)),
        },
    };
    match sent {
        Ok(response) => Ok(response.map(IncomingBody::Http2)),
        Err(mut failed) => {
            let unsent = failed.take_message();
            Err(SendError::of_stream(failed.into_error(), unsent))
        }
    }
}

/// Sends the rest of a request whose response has ended, and closes the connection then; `give_up` cuts it off.
async fn finish_upload(
    mut connection: Box<Http1Connection>,
    mut upload: Box<RequestWriter>,
    give_up: impl Future<Output = ()>,
) {
    tokio::select! {
        biased;
        () = connection.finish_upload(&mut upload) => {}
        () = give_up => {}
    }
}

#[cfg(feature = "http2")]
impl Drop for Lease {
    fn drop(&mut self) {
        if let Held::Http2(connection) = &self.held
            && connection.leave()
            && let Some(pool) = connection.pool.as_ref().and_then(Weak::upgrade)
        {
            pool.http2_idle();
        }
    }
}
