//! HTTP/2 connections to destinations.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::destination::DestinationPool;
use super::error::ConnectError;
use super::group::RuntimeGroup;
use super::http1::MAX_HEAD;
use super::io::UpstreamIo;
use crate::observe::targets;
use crate::progress::OutgoingBody;

/// What a destination may send per stream before the client has taken some of it: as much as a transfer over HTTP/1.1 has on the
/// way, and 2 Gbit/s at a round trip of 1 ms.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all streams of a connection together. It is given back only as clients take what came, so it has to be more than all
/// streams can use up: else a few clients that take nothing would stop the responses to all the others. What bounds memory are the
/// streams' own windows, and with them the number of requests. It is as in Go's transport, and room for 4,096 streams.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Requests that share a connection if there may be others, whatever the destination allows: so all of them together wait for no more
/// than 256 MiB.
const MOST_STREAMS: usize = 1024;
/// Bytes of one request body that wait for the destination.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// How often a destination is asked for a sign of life while requests wait for it.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long it may take to give that sign.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Streams that are opened before the destination has said how many there may be: more could be refused, and it takes no
/// longer than the first response to know.
const STREAMS_AT_FIRST: usize = 1;
/// Streams that a destination most likely allows, for as long as it has not said so.
const STREAMS_ASSUMED: usize = 100;
/// How long a destination may take to send its settings, which have to be its first bytes (RFC 9113 section 3.4).
const SETTINGS_PATIENCE: Duration = Duration::from_secs(5);
/// How long a request may take that was sent before it was known that the destination allows none.
const NOT_ALLOWED_PATIENCE: Duration = Duration::from_secs(1);
/// How often a connection that is to close looks whether it can.
const CLOSING_CHECK: Duration = Duration::from_secs(1);
/// How long it waits at most.
const CLOSING_PATIENCE: Duration = Duration::from_secs(60);
/// The destination's settings are in the first bytes that it sends.
const POLLS_UNTIL_SETTINGS: usize = 8;

/// What a destination says of the connection, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    /// Streams that it allows.
    max_streams: usize,
    /// Whether it allows extended CONNECT.
    connect: bool,
}

impl Default for Settings {
    /// What is assumed until it is known.
    fn default() -> Self {
        Self {
            max_streams: STREAMS_AT_FIRST,
            connect: false,
        }
    }
}

/// An HTTP/2 connection, shared by requests. It closes when the pool and all requests have let go of it.
#[derive(Debug)]
pub(super) struct Http2Connection {
    send: SendRequest<OutgoingBody>,
    pub(super) peer: SocketAddr,
    /// Requests that are on it.
    streams: AtomicUsize,
    settings: watch::Receiver<Settings>,
    /// A request is over.
    has_served: AtomicBool,
    /// No further request may go over it.
    is_closing: AtomicBool,
    /// The task that reads and writes.
    carrier: Arc<OnceLock<AbortHandle>>,
    pub(super) opened_at: Instant,
    idle_since: Mutex<Instant>,
    /// Of the runtime whose tasks carry it.
    pub(super) group: RuntimeGroup,
    /// Where it is kept, if it is.
    pub(super) pool: Option<Weak<DestinationPool>>,
}

impl Http2Connection {
    /// Speaks HTTP/2 over `io`. Tasks on the current runtime carry the connection until it is let go of or the
    /// destination closes it.
    pub(super) async fn handshake(io: UpstreamIo, peer: SocketAddr) -> Result<Self, ConnectError> {
        let pool = io.pool().cloned();
        let executor = Tasks::default();
        let progress = Arc::clone(&executor.progress);
        let carrier = Arc::clone(&executor.carrier);
        let (send, connection) = Builder::new(executor)
            .timer(TokioTimer::new())
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .max_header_list_size(MAX_HEAD as u32)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| ConnectError::Handshake(Arc::new(error)))?;
        let (seen, settings) = watch::channel(Settings::default());
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = poll_fn(|cx| {
                progress.register(cx.waker());
                let polled = connection.as_mut().poll(cx);
                let now = Settings {
                    max_streams: connection.current_max_send_streams(),
                    connect: connection.is_extended_connect_protocol_enabled(),
                };
                seen.send_if_modified(|settings| {
                    let has_changed = *settings != now;
                    *settings = now;
                    has_changed
                });
                polled
            })
            .await;
            if let Err(error) = ended {
                debug!(target: targets::UPSTREAM, %peer, %error, "connection failed");
            }
        });
        let now = Instant::now();
        Ok(Self {
            send,
            peer,
            streams: AtomicUsize::new(0),
            settings,
            has_served: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            carrier,
            opened_at: now,
            idle_since: Mutex::new(now),
            group: RuntimeGroup::current(),
            pool,
        })
    }

    /// Whether requests can be sent over it. The destination may have said goodbye and it is not known yet; a request
    /// that comes too late is given back unsent.
    ///
    /// A destination that allows no stream on it takes no request any more, as if it were closing it.
    pub(super) fn is_open(&self) -> bool {
        !self.send.is_closed() && !self.is_closing.load(Ordering::Relaxed) && self.allows_streams()
    }

    /// Whether the destination allows a request at all, as far as it has said so.
    pub(super) fn allows_streams(&self) -> bool {
        self.settings.borrow().max_streams > 0
    }

    /// Whether the destination's settings are known.
    pub(super) fn has_settings(&self) -> bool {
        *self.settings.borrow() != Settings::default()
    }

    /// Ready a second after a destination has said with its first settings that it allows no request. One that was sent before may
    /// have been answered by then; one that was not is never sent.
    pub(super) async fn allowed_nothing(&self) {
        let mut settings = self.settings.clone();
        let known = settings.wait_for(|settings| *settings != Settings::default());
        let allows_some = known
            .await
            .map_or(true, |settings| settings.max_streams > 0);
        if allows_some {
            // Whatever becomes of the request comes another way.
            return std::future::pending().await;
        }
        sleep(NOT_ALLOWED_PATIENCE).await;
    }

    /// Closes it when the responses that are still coming over it have ended, or after a while. Uploads that go on without
    /// a response are cut off.
    pub(super) async fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        let ended = async {
            while self.streams() > 0 {
                sleep(CLOSING_CHECK).await;
            }
        };
        let _ = timeout(CLOSING_PATIENCE, ended).await;
        if let Some(carrier) = self.carrier.get() {
            carrier.abort();
        }
    }

    /// Requests that are on it.
    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Whether a further request would have to wait for another one to end.
    pub(super) fn is_full(&self) -> bool {
        let max = match self.settings.borrow().max_streams {
            // A destination that really allows so few has all requests wait on one connection.
            ..=STREAMS_AT_FIRST => STREAMS_ASSUMED,
            max => max.min(MOST_STREAMS),
        };
        self.streams() >= max
    }

    /// Whether WebSockets can be asked for (RFC 8441). Waits for the destination's settings, though not for long.
    pub(super) async fn allows_connect(&self) -> bool {
        let mut settings = self.settings.clone();
        let known = settings.wait_for(|settings| *settings != Settings::default());
        // A destination that allows but one stream and no CONNECT says what is assumed without its word.
        let _ = timeout(SETTINGS_PATIENCE, known).await;
        self.settings.borrow().connect
    }

    /// Since when there is no request on it.
    pub(super) fn idle_since(&self) -> Instant {
        *self.lock_idle_since()
    }

    pub(super) fn sender(&self) -> SendRequest<OutgoingBody> {
        self.send.clone()
    }

    pub(super) fn enter(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it carries, or has carried, another request than one that is on it.
    pub(super) fn is_reused(&self) -> bool {
        self.has_served.load(Ordering::Relaxed) || self.streams() > 1
    }

    /// A request is over. Returns whether it was the last one.
    pub(super) fn leave(&self) -> bool {
        self.has_served.store(true, Ordering::Relaxed);
        let last = self.streams.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            *self.lock_idle_since() = Instant::now();
        }
        last
    }

    fn lock_idle_since(&self) -> parking_lot::MutexGuard<'_, Instant> {
        self.idle_since.lock()
    }
}

/// Spawns the tasks of a connection on the current runtime.
#[derive(Clone, Debug)]
struct Tasks {
    /// Wakes the task that hands requests to the connection, which does not see by itself that the destination's settings
    /// have come.
    progress: Arc<AtomicWaker>,
    /// The first task, which is the one that reads and writes.
    carrier: Arc<OnceLock<AbortHandle>>,
    is_first: Arc<AtomicBool>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            progress: Arc::default(),
            carrier: Arc::default(),
            is_first: Arc::new(AtomicBool::new(true)),
        }
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        if !self.is_first.swap(false, Ordering::Relaxed) {
            tokio::spawn(task);
            return;
        }
        let progress = Arc::clone(&self.progress);
        let spawned = tokio::spawn(async move {
            let mut task = pin!(task);
            let mut left = POLLS_UNTIL_SETTINGS;
            poll_fn(|cx| {
                let polled = task.as_mut().poll(cx);
                if left > 0 {
                    left -= 1;
                    progress.wake();
                }
                polled
            })
            .await;
        });
        let _ = self.carrier.set(spawned.abort_handle());
    }
}
