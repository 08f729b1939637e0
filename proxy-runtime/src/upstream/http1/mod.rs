//! HTTP/1.1 connections to destinations.
//!
//! A connection is a plain value without a task. The request that uses it reads and writes it. In the pool it is
//! idle; a close by the destination is noticed at the next use or by the pool's sweep, without a system call unless
//! it has closed.
//!
//! # Reuse
//!
//! A connection is reused only if the end of both messages is certain: the request was sent completely before the
//! response began, the response was read completely, no bytes followed it, and the destination keeps the connection.
//! Dropping an exchange earlier closes the connection.

mod body;
mod early;
mod error;
mod response_head;
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

pub(crate) use self::body::Http1Body;
pub(crate) use self::early::Early;
pub(crate) use self::error::Http1Error;
#[cfg(feature = "http2")]
pub(super) use self::response_head::MAX_HEAD;
pub(crate) use self::response_head::MOST_INTERIM;
pub(crate) use self::response_head::limits;
pub(crate) use self::response_head::to_map;
use super::error::SendError;
use super::group::RuntimeGroup;
#[cfg(feature = "http2")]
use super::http2::Http2Io;
use super::io::UpstreamIo;
#[cfg(feature = "http2")]
use super::transport::UpstreamTransport;
use super::web_proxy::AbsoluteForm;
use crate::http1::Method;
use crate::retry::Over;
use crate::retry::Sent;
use crate::stream::{ByteStream, ReadBuffer};

/// Idle time below which a connection is not checked for a close: no destination closes one so soon.
const NOT_IDLE: Duration = Duration::from_millis(1);

/// An HTTP/1.1 connection, which closes when dropped.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    pub(crate) io: UpstreamIo,
    /// Bytes that were read and not used. Empty between two requests.
    pub(crate) input: ReadBuffer,
    /// The destination's address.
    pub(crate) peer: SocketAddr,
    pub(super) idle_since: Instant,
    /// The group of the runtime that opened it.
    pub(super) group: RuntimeGroup,
    is_reused: bool,
    /// The additions to requests for a forward proxy at the other end. `None`: the other end is the destination.
    pub(super) absolute: Option<Box<AbsoluteForm>>,
}

impl Http1Connection {
    /// Creates a connection over `io`.
    pub(super) fn new(io: UpstreamIo, peer: SocketAddr) -> Self {
        Self {
            io,
            input: ReadBuffer::default(),
            peer,
            idle_since: Instant::now(),
            group: RuntimeGroup::current(),
            is_reused: false,
            absolute: None,
        }
    }

    /// A stream of HTTP/2, for one request.
    #[cfg(feature = "http2")]
    pub(super) fn of_stream(stream: Http2Io, peer: SocketAddr) -> Self {
        let transport = UpstreamTransport::Http2(Box::new(stream));
        Self::new(UpstreamIo::uncounted(transport), peer)
    }

    /// The failure of a stream of HTTP/2 before its response, if it has failed.
    pub(crate) fn failed(&self) -> Option<&SendError> {
        #[cfg(feature = "http2")]
        return self.io.stream()?.failed();
        #[cfg(not(feature = "http2"))]
        None
    }

    /// Returns true for a stream of HTTP/2.
    #[inline]
    pub(crate) fn is_stream(&self) -> bool {
        #[cfg(feature = "http2")]
        return self.io.stream().is_some();
        #[cfg(not(feature = "http2"))]
        false
    }

    /// Number of response bytes that may have arrived and were not read: the window of a stream.
    pub(crate) fn behind(&self) -> u64 {
        match self.is_stream() {
            #[cfg(feature = "http2")]
            true => u64::from(super::http2::STREAM_WINDOW),
            _ => 0,
        }
    }

    /// Records that the destination of a stream has taken no more of the request for too long.
    #[cold]
    pub(crate) fn give_up_upload(&self) {
        #[cfg(feature = "http2")]
        if let Some(stream) = self.io.stream() {
            stream.give_up_upload();
        }
    }

    /// Ready when the destination has reset the stream, so that it takes no more of the request.
    #[cfg_attr(
        not(feature = "http2"),
        expect(clippy::unused_self, reason = "of HTTP/2")
    )]
    pub(crate) fn poll_refused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        #[cfg(feature = "http2")]
        if let Some(stream) = self.io.stream_mut() {
            return stream.poll_refused(cx);
        }
        let _ = cx;
        Poll::Pending
    }

    /// Returns true if it has carried a request before.
    #[cfg(test)]
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// The kind of connection, for the decision about retries.
    pub(crate) fn over(&self) -> Over {
        match self.is_reused {
            true => Over::Reused,
            false => Over::Fresh,
        }
    }

    /// Returns true if a request with this `method` and without a body is kept for a retry until its response arrives.
    #[inline]
    pub(crate) fn keeps(&self, method: Method) -> bool {
        // A destination may say that it has not looked at the request on a stream.
        method.is_idempotent() || self.is_stream()
    }

    /// Returns how much of a request has been sent. TLS accepts bytes before it can send them, so over TLS the answer
    /// is always "something".
    pub(crate) fn sent(&self, is_begun: bool) -> Sent {
        match is_begun || self.io.is_tls() {
            true => Sent::Something,
            false => Sent::Nothing,
        }
    }

    /// Returns true if the destination has closed the connection by `now`. For requests that cannot be retried. Unlike
    /// [`is_open`](Self::is_open) it costs a system call, unless the last request ended less than a millisecond ago.
    pub(super) fn has_ended(&mut self, now: Instant) -> bool {
        now.saturating_duration_since(self.idle_since) >= NOT_IDLE && self.io.has_ended()
    }

    /// Returns true if another request can be sent: the destination has neither closed the connection nor sent
    /// unexpected bytes.
    ///
    /// For use between two requests only. Costs no system call if true.
    pub(crate) fn is_open(&mut self) -> bool {
        self.input.is_empty()
            && (!self.io.may_be_readable()
                || self
                    .poll_disturbed(&mut Context::from_waker(Waker::noop()))
                    .is_pending())
    }

    /// Returns true if the runtime that opened the connection still runs. Otherwise a request could be sent, but its
    /// response would never be noticed.
    ///
    /// Only valid for a connection that [is open](Self::is_open). Costs no system call.
    pub(super) fn has_runtime(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        // A task without budget would always see `Pending`.
        let readable = unconstrained(poll_fn(|cx| self.io.poll_readable(cx)));
        !matches!(pin!(readable).poll(cx), Poll::Ready(Err(_)))
    }

    /// Ready when unexpected bytes or the end arrive.
    fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        let mut unwanted = ReadBuf::new(&mut byte);
        // A task without budget would always see `Pending`.
        let read = unconstrained(poll_fn(|cx| {
            Pin::new(&mut self.io).poll_read(cx, &mut unwanted)
        }));
        pin!(read).poll(cx).map(drop)
    }

    /// Prepares the connection for the pool, after its request.
    pub(super) fn rest(&mut self, now: Instant) {
        self.is_reused = true;
        self.input.rest();
        self.idle_since = now;
    }

    /// Closes an idle connection, with a TLS close alert (RFC 8446 section 6.1) if that needs no wait.
    pub(super) fn close(mut self) {
        if self.io.is_tls() {
            let cx = &mut Context::from_waker(Waker::noop());
            let farewell = unconstrained(poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)));
            let _ = pin!(farewell).poll(cx);
        }
    }
}
