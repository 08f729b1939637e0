//! HTTP/2 connections to destinations.

mod carrier;
mod message_head;
mod message_io;
mod message_text;
mod message_upload;
mod opening;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use self::carrier::{DestinationSettings, Heard, STREAMS_AT_FIRST, Signs, carry};
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::message_head::stream_request;
pub(crate) use self::message_io::Http2Io;
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::message_text::response_text;
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::message_upload::upload;
use self::opening::AllowedNothing;
use super::error::ConnectError;
use super::group::RuntimeGroup;
use super::http1::MAX_HEAD;
use super::io::UpstreamIo;
use super::slot::ConnectionOwner;

/// Bytes that a destination may send per stream before the client has taken some of them: as much as a transfer over
/// HTTP/1.1 has on the way, and 2 Gbit/s at a round trip of 1 ms.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// The receive window of the whole connection. Bytes are released only as clients read, so it must exceed the
/// streams' windows together: otherwise a few clients that do not read would stop all other responses. The streams'
/// own windows bound the memory, and with them the number of requests. It is as in Go's transport, and room for
/// 4,096 streams.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Requests that share a connection if there may be others, whatever the destination allows: so all of them together
/// wait for no more than 256 MiB.
const MOST_STREAMS: usize = 1024;
/// Bytes of one request body that wait for the destination.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// Number of streams that may be reset for errors of the destination before the connection is closed.
const MOST_ERRORS: usize = 1024;

/// Assumed limit of streams until the destination has announced its own.
const STREAMS_ASSUMED: usize = 100;
/// The time that a destination may take to send its settings, which have to be its first bytes (RFC 9113 section 3.4).
const SETTINGS_PATIENCE: Duration = Duration::from_secs(5);
/// The time that a request may take which was sent before it was known that the destination allows none.
const NOT_ALLOWED_PATIENCE: Duration = Duration::from_secs(1);

/// An HTTP/2 connection, shared by requests. It closes when the pool and all requests have let go of it.
#[derive(Debug)]
pub(crate) struct Http2Connection {
    /// A handle of the connection for its task. The task must not hold it itself: the connection would never end.
    _send: Arc<SendRequest<Bytes>>,
    /// Opens streams, one request at a time.
    gate: tokio::sync::Mutex<SendRequest<Bytes>>,
    pub(super) peer: SocketAddr,
    is_tls: bool,
    signs: Arc<Signs>,
    settings: watch::Receiver<DestinationSettings>,
    /// A request is over.
    has_served: AtomicBool,
    /// No further request may go over it.
    is_retired: AtomicBool,
    pub(super) opened_at: Instant,
    idle_since: Mutex<Instant>,
    /// The group of the runtime whose task carries it.
    pub(super) group: RuntimeGroup,
    /// The pool that keeps it, if one does.
    pub(super) pool: Option<Weak<dyn ConnectionOwner>>,
}

impl Http2Connection {
    /// Speaks HTTP/2 over `io`. A task on the current runtime carries the connection until it is let go of or the
    /// destination closes it.
    pub(super) async fn handshake(io: UpstreamIo, peer: SocketAddr) -> Result<Self, ConnectError> {
        let pool = io.pool().cloned();
        let is_tls = io.is_tls();
        let signs = Arc::<Signs>::default();
        let (send, connection) = Builder::new()
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(MAX_SEND_BUFFER)
            .max_header_list_size(MAX_HEAD as u32)
            .max_local_error_reset_streams(Some(MOST_ERRORS))
            // The proxy passes no pushed responses on.
            .enable_push(false)
            .handshake(Heard::new(io, Arc::clone(&signs)))
            .await
            .map_err(|error| ConnectError::Handshake(Arc::new(error)))?;
        let (seen, settings) = watch::channel(DestinationSettings::default());
        let gate = tokio::sync::Mutex::new(send.clone());
        let send = Arc::new(send);
        let known = Arc::downgrade(&send);
        let carrying = carry(connection, known, seen, Arc::clone(&signs), peer);
        tokio::spawn(carrying);
        let now = Instant::now();
        Ok(Self {
            _send: send,
            gate,
            peer,
            is_tls,
            signs,
            settings,
            has_served: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
            opened_at: now,
            idle_since: Mutex::new(now),
            group: RuntimeGroup::current(),
            pool,
        })
    }

    /// Returns whether requests can be sent over it. The destination may have sent GOAWAY and it is not known yet; a
    /// request that comes too late is given back unsent.
    ///
    /// A destination that allows no stream on it takes no request any more, as if it were closing it.
    pub(super) fn is_open(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed)
            && !self.signs.has_ended()
            && self.allows_streams()
            && !self.has_gone_away()
    }

    /// Returns whether it has failed, or the destination has sent GOAWAY.
    fn has_gone_away(&self) -> bool {
        // The request that opens a stream on it at the moment finds out as well.
        let Ok(mut send) = self.gate.try_lock() else {
            return false;
        };
        let ready = send.poll_ready(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Err(_)))
    }

    /// Returns true if the destination allows requests at all, as far as its settings are known.
    pub(super) fn allows_streams(&self) -> bool {
        self.settings.borrow().max_streams > 0
    }

    /// Returns a wait for the word that the destination allows no requests, unless its settings are known.
    fn may_allow_nothing(self: &Arc<Self>) -> Option<AllowedNothing> {
        let are_known = self.settings.borrow().are_known;
        (!are_known).then(|| Box::pin(Arc::clone(self).allowed_nothing()) as AllowedNothing)
    }

    /// Ready when the destination allows one more stream, with true, or none at all, with false. Ready with true also
    /// when the connection has ended, which opening a stream then reports.
    ///
    /// A request is not given to `h2` before: a stream that `h2` holds back and that was cancelled is still opened
    /// later, so that it is not known whether the destination will get the request.
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        if let Some(room) = self.room() {
            return Poll::Ready(room);
        }
        self.signs.room.register(cx.waker());
        // Checked again: a stream may have ended before the waker was registered.
        self.room().map_or(Poll::Pending, Poll::Ready)
    }

    fn room(&self) -> Option<bool> {
        if self.signs.has_ended() {
            return Some(true);
        }
        let max = self.settings.borrow().max_streams;
        let has_room = max > self.signs.opened.load(Ordering::Acquire);
        (has_room || max == 0).then_some(has_room)
    }

    /// Waits until one second after the destination's first settings have forbidden all requests. A request that
    /// was sent before may have been answered by then; one that waits is never sent.
    async fn allowed_nothing(self: Arc<Self>) {
        let mut settings = self.settings.clone();
        let known = settings.wait_for(|settings| settings.are_known);
        let allows_some = known
            .await
            .map_or(true, |settings| settings.max_streams > 0);
        if allows_some {
            // Whatever becomes of the request comes another way.
            return std::future::pending().await;
        }
        sleep(NOT_ALLOWED_PATIENCE).await;
    }

    /// Sends no further request over it. It closes when those that it carries have ended.
    fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Requests that are on it.
    pub(super) fn streams(&self) -> usize {
        self.signs.streams.load(Ordering::Relaxed)
    }

    /// Returns whether a further request would have to wait for another one to end.
    pub(super) fn is_full(&self) -> bool {
        let max = match self.settings.borrow().max_streams {
            // A destination that really allows so few has all requests wait on one connection.
            ..=STREAMS_AT_FIRST => STREAMS_ASSUMED,
            max => max.min(MOST_STREAMS),
        };
        self.streams() >= max
    }

    /// Returns true if the destination supports WebSockets (RFC 8441). Waits at most 5 s for its settings.
    pub(super) async fn allows_connect(&self) -> bool {
        let mut settings = self.settings.clone();
        let known = settings.wait_for(|settings| settings.are_known);
        let _ = timeout(SETTINGS_PATIENCE, known).await;
        self.settings.borrow().connect
    }

    /// The time since which there is no request on it.
    pub(super) fn idle_since(&self) -> Instant {
        *self.lock_idle_since()
    }

    /// Returns whether it has carried requests, and carries no other than one that is about to be sent.
    fn is_idle(&self) -> bool {
        self.has_served.load(Ordering::Relaxed) && self.streams() <= 1
    }

    pub(super) fn enter(&self) {
        self.signs.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether it carries, or has carried, another request than one that is on it.
    pub(super) fn is_reused(&self) -> bool {
        self.has_served.load(Ordering::Relaxed) || self.streams() > 1
    }

    /// A request is over. Returns whether it was the last one.
    pub(super) fn leave(&self) -> bool {
        self.has_served.store(true, Ordering::Relaxed);
        let last = self.signs.streams.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            *self.lock_idle_since() = Instant::now();
        }
        last
    }

    fn lock_idle_since(&self) -> parking_lot::MutexGuard<'_, Instant> {
        self.idle_since.lock()
    }
}
