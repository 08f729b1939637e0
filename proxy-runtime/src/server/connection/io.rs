//! The socket of a connection, with an eye on what passes.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Sleep, sleep};

use super::state::ConnectionState;
#[cfg(feature = "tls")]
use crate::server::accept::ClientSocket;
use crate::server::memory::TUNNEL_BUFFERS;
use crate::server::shared::ConnectionPermit;
use crate::stream::ByteStream;
#[cfg(target_os = "linux")]
use crate::stream::LateSocket;

/// Time and number of bytes that are read from a client after the last response, so that a reset does not destroy it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// A byte stream that a connection may run over.
pub(crate) trait Transport: ByteStream + Send + 'static {
    /// Lets the stream end with an error at the peer (RST), where it would otherwise look complete.
    fn reset_on_drop(&self);

    /// Returns true if the end must be announced before the stream closes, as in TLS.
    fn lingers_on_close(&self) -> bool;

    /// Returns true if the peer sends nothing more, as far as the runtime knows. Bytes that were not read may still be
    /// there. Default: it is not known.
    fn has_ended_behind(&self) -> bool {
        false
    }
}

/// Returns true if the runtime has already reported the end of the peer's data.
fn has_ended_behind(socket: &TcpStream) -> bool {
    let ready = pin!(socket.ready(Interest::READABLE));
    let polled = ready.poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Ok(ready)) if ready.is_read_closed())
}

impl Transport for TcpStream {
    fn has_ended_behind(&self) -> bool {
        has_ended_behind(self)
    }

    fn reset_on_drop(&self) {
        // Without it the peer sees a plain end; nothing more can be done here.
        let _ = self.set_zero_linger();
    }

    fn lingers_on_close(&self) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
impl Transport for LateSocket {
    fn has_ended_behind(&self) -> bool {
        self.as_registered().is_some_and(has_ended_behind)
    }

    fn reset_on_drop(&self) {
        // As above.
        let _ = self.set_zero_linger();
    }

    fn lingers_on_close(&self) -> bool {
        false
    }
}

#[cfg(feature = "tls")]
impl ByteStream for tokio_rustls::server::TlsStream<ClientSocket> {}

#[cfg(feature = "tls")]
impl Transport for tokio_rustls::server::TlsStream<ClientSocket> {
    fn has_ended_behind(&self) -> bool {
        self.get_ref().0.has_ended_behind()
    }

    fn reset_on_drop(&self) {
        self.get_ref().0.reset_on_drop();
    }

    // By a close_notify, without which the end may be an attacker's (RFC 8446 section 6.1).
    fn lingers_on_close(&self) -> bool {
        true
    }
}

/// The socket of a connection: counts bytes, notes which side waits for the other, and ends the connection properly.
///
/// Outlives all other parts of a connection, also after a switch to a tunnel, and so holds the connection's place in
/// the count.
pub(crate) struct ConnectionIo<T: Transport> {
    transport: T,
    /// Bytes to read again: the start of HTTP/2.
    prefix: Option<Box<Bytes>>,
    state: Arc<ConnectionState>,
    /// The task of the connection is woken as soon as there is something to read.
    is_awaited: bool,
    linger: Linger,
    // After `transport`: when the last connection ends, its socket must be closed already.
    _permit: ConnectionPermit,
}

impl<T: Transport> ConnectionIo<T> {
    pub(crate) fn new(transport: T, state: Arc<ConnectionState>, permit: ConnectionPermit) -> Self {
        Self {
            transport,
            prefix: None,
            state,
            is_awaited: false,
            linger: Linger::No,
            _permit: permit,
        }
    }

    /// Returns bytes to the front of the input, to be read again before new ones.
    #[cfg(feature = "http2")]
    pub(crate) fn read_again(&mut self, bytes: Bytes) {
        self.prefix = Some(Box::new(bytes));
    }

    /// Returns true if a clean end needs more than dropping the connection after the last write.
    pub(crate) fn lingers_on_close(&self) -> bool {
        self.transport.lingers_on_close() || self.state.should_linger()
    }

    /// Returns true if the client sends nothing more, although bytes may be left to read.
    pub(crate) fn has_ended_behind(&mut self, cx: &mut Context<'_>) -> bool {
        // A socket that the runtime does not know is registered: its end is known from the next look on.
        self.poll_readable(cx).map(|result| result.is_err()) == Poll::Ready(true)
            || self.transport.has_ended_behind()
    }

    #[inline(never)]
    fn register(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.transport.poll_readable(cx);
        // A task that has used up its share is only told to come again.
        self.is_awaited = polled.is_pending() && has_budget_remaining();
        polled
    }

    /// # Errors
    ///
    /// Fails if the connection must end because of the memory that it holds.
    #[inline]
    fn may_go_on(&self) -> io::Result<()> {
        match self.state.is_shed() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    fn wrote(&self, result: &Poll<io::Result<usize>>, cx: &Context<'_>) {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.state.sent(*bytes);
                self.state.write_blocked.store(false, Relaxed);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.state.write_blocked.store(true, Relaxed),
        }
        self.waited(result.is_pending(), cx);
    }

    #[inline]
    fn waited(&self, waits: bool, cx: &Context<'_>) {
        if self.state.tunnel.load(Relaxed) {
            self.hold_for_tunnel(waits, cx);
        }
    }

    /// Records the memory of a tunnel whose client does not read. Tunnels over HTTP/2 record their own.
    #[cold]
    fn hold_for_tunnel(&self, waits: bool, cx: &Context<'_>) {
        match waits && self.state.is_http1() {
            true => {
                let bytes = TUNNEL_BUFFERS + self.state.behind_socket();
                // A connection that is asked to end notices when it is woken.
                let _ = self.state.hold(bytes, cx.waker());
            }
            false => self.state.hold_nothing(),
        }
    }
}

impl<T: Transport> AsyncRead for ConnectionIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Bytes that were read earlier come first.
        if let Some(prefix) = &mut this.prefix {
            let part = prefix.len().min(buffer.remaining());
            buffer.put_slice(&prefix[..part]);
            prefix.advance(part);
            if prefix.is_empty() {
                this.prefix = None;
            }
            return Poll::Ready(Ok(()));
        }
        this.may_go_on()?;
        this.is_awaited = false;
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.transport).poll_read(cx, buffer);
        let read = buffer.filled().len() - before;
        if read > 0 {
            this.state.received(read);
        }
        result
    }
}

impl<T: Transport> AsyncWrite for ConnectionIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.may_go_on()?;
        let result = Pin::new(&mut this.transport).poll_write(cx, bytes);
        this.wrote(&result, cx);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.may_go_on()?;
        let result = Pin::new(&mut this.transport).poll_write_vectored(cx, slices);
        this.wrote(&result, cx);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.may_go_on()?;
        let result = Pin::new(&mut this.transport).poll_flush(cx);
        this.state.write_blocked.store(result.is_pending(), Relaxed);
        // TLS has taken what was written, and waits for the socket here.
        this.waited(result.is_pending(), cx);
        result
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.linger {
                Linger::No => {
                    ready!(Pin::new(&mut this.transport).poll_shutdown(cx))?;
                    // RFC 9112 section 9.6: a close with unread bytes could cost the client its response.
                    this.linger = if this.state.should_linger() {
                        Linger::Reading {
                            until: Box::pin(sleep(LINGER)),
                            left: LINGER_BYTES,
                        }
                    } else {
                        Linger::Done
                    };
                }
                Linger::Reading { until, left } => {
                    ready!(poll_discard(&mut this.transport, until.as_mut(), left, cx));
                    this.linger = Linger::Done;
                }
                Linger::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}

/// Reads and discards until the peer closes, the time is over, or the maximum of bytes is reached.
///
/// Closing a socket with unread bytes makes the system send a reset, and a reset makes the peer's system drop what it
/// had received: the response that explains the rejection (RFC 9112 section 9.6).
fn poll_discard<T: Transport>(
    transport: &mut T,
    until: Pin<&mut Sleep>,
    left: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if until.poll(cx).is_ready() {
        return Poll::Ready(());
    }
    let mut discarded = [0; 4096];
    loop {
        let mut buffer = ReadBuf::new(&mut discarded);
        let result = ready!(Pin::new(&mut *transport).poll_read(cx, &mut buffer));
        let read = buffer.filled().len();
        // A client that sends on and on gets no more time.
        if result.is_err() || read == 0 || read >= *left {
            return Poll::Ready(());
        }
        *left -= read;
    }
}

impl<T: Transport> ByteStream for ConnectionIo<T> {
    #[inline]
    fn is_early(&self) -> bool {
        self.transport.is_early()
    }

    fn has_come_early(&self) -> bool {
        self.transport.has_come_early()
    }

    #[inline]
    fn may_be_readable(&self) -> bool {
        self.prefix.is_some() || self.transport.may_be_readable()
    }

    /// Registers the task once and not with each poll: a connection has one task, and the event that wakes it stays
    /// visible in [`may_be_readable`](Self::may_be_readable) until the socket is read.
    #[inline]
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.may_be_readable() {
            self.is_awaited = false;
            return Poll::Ready(Ok(()));
        }
        if self.is_awaited {
            return Poll::Pending;
        }
        self.register(cx)
    }

    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if self.prefix.is_some() {
            return pin!(self.read_buf(buffer)).poll(cx);
        }
        let result = self.transport.poll_fill(cx, buffer);
        if let Poll::Ready(Ok(read)) = result {
            self.state.received(read);
        }
        result
    }

    #[inline]
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_go_on()?;
        let result = self.transport.poll_send(cx, slices);
        self.wrote(&result, cx);
        result
    }
}

enum Linger {
    No,
    Reading { until: Pin<Box<Sleep>>, left: usize },
    Done,
}

impl<T: Transport> Drop for ConnectionIo<T> {
    fn drop(&mut self) {
        // A plain close would make a truncated response look complete.
        if self.state.abort.load(Relaxed) || self.state.is_shed() || self.state.worker.is_cutting()
        {
            self.transport.reset_on_drop();
        }
        #[cfg(feature = "http2")]
        self.state.backlog.is_gone();
        self.state.end_tunnel();
    }
}
