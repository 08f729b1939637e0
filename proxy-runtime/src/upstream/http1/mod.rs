//! HTTP/1.1 connections to destinations.
//!
//! A connection is a plain value: no task stands behind it. Whoever uses it reads and writes it; in the pool nobody does,
//! and whether it is still good is found out when it is next wanted, or by the pool's sweep, without a system call unless
//! the destination has closed it.
//!
//! # Two bodies at once
//!
//! Most requests have no body, or one that leaves with the head; then the response is all there is to wait for. A body that
//! takes longer is sent while the head of the response is waited for. When the destination answers before it has all of
//! it, the upload goes on whenever the body of the response is polled, so that neither of the two needs a task; a client
//! that takes nothing of its response sends nothing more either. When the response ends first, a task finishes the upload
//! (see [`Lease::finish`](super::Lease::finish)) and closes the connection.
//!
//! A connection carries another request only if it is known where both messages have ended: the request was sent to its
//! end before the response began, that was read to its end, nothing came behind it, and the destination keeps the connection. Whatever is
//! dropped before closes it.

mod body;
mod early;
mod error;
mod output;
mod request_head;
mod request_writer;
mod response_head;
mod round_trip;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::unconstrained;
use tokio::time::Instant;

pub(crate) use self::body::{Http1Body, Rest};
#[cfg(feature = "server")]
pub(crate) use self::early::Early;
pub(crate) use self::error::Http1Error;
pub(crate) use self::output::Output;
pub(super) use self::request_writer::RequestWriter;
#[cfg(any(feature = "http2", feature = "server"))]
pub(crate) use self::response_head::MOST_INTERIM;
#[cfg(feature = "server")]
pub(crate) use self::response_head::limits;
pub(crate) use self::round_trip::Http1RoundTrip;
use super::group::RuntimeGroup;
use super::io::UpstreamIo;
use crate::http1::Method;
use crate::retry::Over;
#[cfg(feature = "server")]
use crate::retry::Sent;
use crate::stream::{ByteStream, ReadBuffer};

/// The longest head of a response, as .NET's `MaxResponseHeadersLength` in YARP: 64 KiB.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// A connection that is given back and taken within this time was not idle: no destination closes one so soon.
const NOT_IDLE: Duration = Duration::from_millis(1);

/// An HTTP/1.1 connection. Dropped, it closes.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    pub(crate) io: UpstreamIo,
    /// What was read and not used yet. Empty between two requests.
    pub(crate) input: ReadBuffer,
    /// The destination's address.
    pub(crate) peer: SocketAddr,
    pub(super) idle_since: Instant,
    /// Of the runtime that it was opened on.
    pub(super) group: RuntimeGroup,
    is_reused: bool,
}

/// How much of a request is kept, for it may have to be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// What of the body was taken, until a byte of the request is sent.
    pub(crate) if_unsent: bool,
    /// The head of a request that has nothing else, until its response comes.
    pub(crate) if_sent: bool,
}

impl Http1Connection {
    /// Speaks HTTP/1.1 over `io`.
    pub(super) fn new(io: UpstreamIo, peer: SocketAddr) -> Self {
        Self {
            io,
            input: ReadBuffer::default(),
            peer,
            idle_since: Instant::now(),
            group: RuntimeGroup::current(),
            is_reused: false,
        }
    }

    /// Whether it has carried a request before.
    #[cfg(test)]
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// What a request that it is given now has hold of.
    pub(crate) fn over(&self) -> Over {
        match self.is_reused {
            true => Over::Reused,
            false => Over::Fresh,
        }
    }

    /// How much of a request of this `method` is kept, should this connection turn out to be closed.
    #[inline]
    pub(crate) fn keep(&self, method: Method) -> Keep {
        Keep {
            if_unsent: !self.io.is_tls(),
            if_sent: method.is_idempotent(),
        }
    }

    /// What of a request has been sent over it, given whether something was handed to it. TLS takes bytes before it knows whether
    /// it can send them.
    #[cfg(feature = "server")]
    pub(crate) fn sent(&self, is_begun: bool) -> Sent {
        match is_begun || self.io.is_tls() {
            true => Sent::Something,
            false => Sent::Nothing,
        }
    }

    /// Whether the destination has closed it by `now`, for use between two requests that cannot be repeated. Unlike
    /// [`is_open`](Self::is_open), which knows what has been noticed, it asks the system, unless the last request is over for less
    /// than a millisecond.
    pub(super) fn has_ended(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.idle_since) >= NOT_IDLE && self.io.has_ended()
    }

    /// Whether another request can be sent: the destination has neither closed it nor sent what nobody asked for.
    ///
    /// For use between two requests only. Costs no system call if the answer is yes.
    pub(crate) fn is_open(&mut self) -> bool {
        self.input.is_empty()
            && (!self.io.may_be_readable()
                || self
                    .poll_disturbed(&mut Context::from_waker(Waker::noop()))
                    .is_pending())
    }

    /// Whether the runtime that it was opened on is still there. Without that nothing of what the destination sends is
    /// ever noticed, though a request would be sent.
    ///
    /// To be asked of a connection that [is open](Self::is_open). Costs no system call.
    pub(super) fn has_runtime(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        // A task that has used up its share would be told that nothing is known.
        let readable = unconstrained(poll_fn(|cx| self.io.poll_readable(cx)));
        !matches!(pin!(readable).poll(cx), Poll::Ready(Err(_)))
    }

    /// Ready when something comes that nobody asked for, be it the end.
    fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        let mut unwanted = ReadBuf::new(&mut byte);
        // A task that has used up its share would be told that nothing came.
        let read = unconstrained(poll_fn(|cx| {
            Pin::new(&mut self.io).poll_read(cx, &mut unwanted)
        }));
        pin!(read).poll(cx).map(drop)
    }

    /// Its request is over, and another one may come.
    pub(super) fn rest(&mut self, now: Instant) {
        self.is_reused = true;
        self.input.rest();
        self.idle_since = now;
    }

    /// Closes it between two requests, and says so in TLS (RFC 8446 section 6.1) if that can be done without waiting.
    pub(super) fn close(mut self) {
        if self.io.is_tls() {
            let cx = &mut Context::from_waker(Waker::noop());
            let farewell = unconstrained(poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)));
            let _ = pin!(farewell).poll(cx);
        }
    }

    /// Sends the rest of a request whose response has ended, as long as the destination takes it. The connection has to be
    /// closed then.
    pub(super) async fn finish_upload(&mut self, rest: &mut RequestWriter) {
        poll_fn(|cx| {
            if self.poll_disturbed(cx).is_ready() {
                return Poll::Ready(());
            }
            rest.poll(&mut self.io, cx).map(drop)
        })
        .await
    }
}
