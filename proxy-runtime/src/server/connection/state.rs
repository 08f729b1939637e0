//! The state that the parts of one connection share: socket, service, bodies and driver.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::ConnectionInfo;
use crate::error::Cause;
use crate::head::AddressText;
use crate::http1::FieldValue;
use crate::server::access_log::Draft;
#[cfg(feature = "http2")]
use crate::server::http2::Backlog;
use crate::server::memory::{Holding, TLS_BUFFER};
use crate::server::metrics::WorkerMetrics;
use crate::server::shared::WorkerShared;
use crate::server::validation::RequestRejection;
#[cfg(feature = "http2")]
use crate::stream::recycled::Taking;

/// The shared state of one connection.
///
/// Only one thread uses it; the fields are atomic because services may require bodies and tunnels that are `Send`.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) worker: Arc<WorkerShared>,
    pub(crate) info: ConnectionInfo,
    /// The client's address, once a request needed it as text.
    remote_text: OnceLock<AddressText>,
    /// The time at which the client was accepted.
    pub(crate) accepted: Instant,
    /// Requests begun.
    pub(crate) requests: AtomicU64,
    /// Requests whose response has not ended.
    in_flight: AtomicU32,
    /// The client speaks HTTP/2; decided before the first request is read.
    #[cfg(feature = "http2")]
    http2: AtomicBool,
    /// The client has acknowledged the settings of HTTP/2.
    #[cfg(feature = "http2")]
    pub(crate) acknowledged: AtomicBool,
    /// Streams of HTTP/2 that are open, tunnels among them.
    #[cfg(feature = "http2")]
    streams: AtomicU32,
    /// Bytes read from the socket.
    read: AtomicU64,
    /// Bytes written to the socket.
    pub(crate) written: AtomicU64,
    /// The socket took no more at the last attempt to write.
    pub(crate) write_blocked: AtomicBool,
    /// Number of responses with data that the client has not acknowledged.
    pub(crate) unacknowledged: AtomicU32,
    /// Streams of HTTP/2 that have something for the client and no room in its windows.
    #[cfg(feature = "http2")]
    pub(crate) without_room: AtomicU32,
    /// Data of streams of HTTP/2 that the socket has not taken.
    #[cfg(feature = "http2")]
    pub(crate) backlog: Backlog,
    /// True if the connection ends after the requests in flight.
    retiring: AtomicBool,
    /// True if a part of a request was left unread, so that more of it may still arrive.
    pub(crate) unread: AtomicBool,
    /// The connection became a tunnel.
    pub(crate) tunnel: AtomicBool,
    /// Closing must be visible as an error.
    pub(crate) abort: AtomicBool,
    /// The memory that the connection holds, once it has held any.
    pub(crate) holding: ArcSwapOption<Holding>,
    /// True if the connection has held memory, so that it may have to end. Cheaper to read than `holding`.
    pub(crate) has_held: AtomicBool,
    /// The log's line for the tunnel that the connection became.
    tunnel_draft: Mutex<Option<Box<TunnelDraft>>>,
}

#[derive(Debug)]
struct TunnelDraft {
    draft: Box<Draft>,
    /// The bytes read and written before the tunnel, once it has begun.
    before: Option<(u64, u64)>,
}

impl ConnectionState {
    pub(crate) fn new(
        worker: Arc<WorkerShared>,
        info: ConnectionInfo,
        accepted: Instant,
    ) -> Arc<Self> {
        // A connection is created on the thread of its worker, whose reads the budget governs.
        worker.memory.claim_thread();
        worker.memory.tighten(&worker.metrics);
        Arc::new(Self {
            worker,
            info,
            remote_text: OnceLock::new(),
            accepted,
            requests: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            #[cfg(feature = "http2")]
            http2: AtomicBool::new(false),
            #[cfg(feature = "http2")]
            acknowledged: AtomicBool::new(false),
            #[cfg(feature = "http2")]
            streams: AtomicU32::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            unacknowledged: AtomicU32::new(0),
            #[cfg(feature = "http2")]
            without_room: AtomicU32::new(0),
            #[cfg(feature = "http2")]
            backlog: Backlog::default(),
            retiring: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            tunnel: AtomicBool::new(false),
            abort: AtomicBool::new(false),
            holding: ArcSwapOption::empty(),
            has_held: AtomicBool::new(false),
            tunnel_draft: Mutex::new(None),
        })
    }

    /// Checks that a request for this host evades no certificate that the host requires.
    #[inline]
    pub(crate) fn validate(&self, authority: &[u8]) -> Result<(), RequestRejection> {
        match self.info.identity {
            None => Ok(()),
            Some(identity) if identity.covers(authority) => Ok(()),
            Some(_) => Err(RequestRejection::new(
                StatusCode::MISDIRECTED_REQUEST,
                "the host requires other client certificates than the name of the connection",
            )),
        }
    }

    /// Returns the client's address without port, for header fields to destinations.
    #[inline]
    pub(crate) fn remote_value(&self) -> Option<FieldValue<'_>> {
        let remote = self.info.remote?;
        let text = self
            .remote_text
            .get_or_init(|| AddressText::new(remote.ip()));
        Some(FieldValue::checked(text.as_bytes()))
    }

    /// Counts a request that is rejected with this status before a proxy has it.
    #[cold]
    pub(crate) fn count_rejection(&self, status: StatusCode) {
        if let Some(proxy) = &self.worker.proxy {
            proxy.errors.replied(Cause::of_rejection(status));
        }
    }

    pub(crate) fn metrics(&self) -> &WorkerMetrics {
        &self.worker.metrics
    }

    pub(crate) fn is_http1(&self) -> bool {
        #[cfg(feature = "http2")]
        return !self.http2.load(Relaxed);
        #[cfg(not(feature = "http2"))]
        true
    }

    /// Notes that the client speaks HTTP/2.
    #[cfg(feature = "http2")]
    pub(crate) fn set_http2(&self) {
        self.http2.store(true, Relaxed);
    }

    /// Notes bytes that came from the client.
    pub(crate) fn received(&self, bytes: usize) {
        add(&self.read, bytes as u64);
    }

    /// Notes bytes that the client's socket took.
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.written, bytes as u64);
    }

    /// Returns true if an HTTP/2 client has sent its preface and a SETTINGS frame, which together have at least
    /// this many bytes (RFC 9113 section 3.4).
    #[cfg(feature = "http2")]
    pub(crate) fn is_opened(&self) -> bool {
        self.read.load(Relaxed) >= 24 + 9
    }

    /// Bytes read from the socket.
    #[cfg(feature = "http2")]
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Bytes that may wait between the connection and its socket.
    pub(crate) fn behind_socket(&self) -> u64 {
        match self.info.tls && self.write_blocked.load(Relaxed) {
            true => TLS_BUFFER,
            false => 0,
        }
    }

    /// Notes a request; returns how many there have been.
    pub(crate) fn begin_request(&self) -> u64 {
        // What was left of a stream of HTTP/2 may still come after others have begun.
        if self.is_http1() {
            self.unread.store(false, Relaxed);
        }
        self.in_flight.fetch_add(1, Relaxed);
        add(&self.requests, 1)
    }

    pub(crate) fn end_request(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// Returns true if a request is being served, or a response has not been sent completely.
    #[cfg(feature = "http2")]
    pub(crate) fn is_busy(&self) -> bool {
        self.streams.load(Relaxed) > 0
            || self.in_flight.load(Relaxed) > 0
            || self.write_blocked.load(Relaxed)
    }

    /// Returns true if several responses are in progress.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn is_shared_by_responses(&self) -> bool {
        self.in_flight.load(Relaxed) > 1
    }

    /// Returns the amount that the client takes of a response.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn taking(&self) -> Taking {
        match (self.backlog.held(), self.is_shared_by_responses()) {
            (1.., is_shared) if self.backlog.is_full(is_shared) => Taking::Nothing,
            (1.., true) if self.write_blocked.load(Relaxed) => Taking::Little,
            (_, true) => Taking::Much,
            (_, false) => Taking::All,
        }
    }

    /// Counts a stream of HTTP/2 until the returned value is dropped.
    #[cfg(feature = "http2")]
    pub(crate) fn enter_stream(self: &Arc<Self>) -> OpenStream {
        self.streams.fetch_add(1, Relaxed);
        OpenStream(self.clone())
    }

    /// Lets the connection end after the requests that are in flight.
    pub(crate) fn retire(&self) {
        self.retiring.store(true, Relaxed);
    }

    pub(crate) fn is_retiring(&self) -> bool {
        self.retiring.load(Relaxed)
    }

    /// Keeps the log's line until the tunnel has ended.
    pub(crate) fn log_with_tunnel(&self, draft: Box<Draft>) {
        let before = None;
        *self.lock_tunnel_draft() = Some(Box::new(TunnelDraft { draft, before }));
    }

    /// Records that a tunnel has begun. The last `unread` bytes read from the client belong to it.
    pub(crate) fn begin_tunnel(&self, unread: usize) {
        if let Some(tunnel) = &mut *self.lock_tunnel_draft() {
            let read = self.read.load(Relaxed).saturating_sub(unread as u64);
            tunnel.before = Some((read, self.written.load(Relaxed)));
        }
    }

    /// The socket is closed: nothing more can happen to a tunnel.
    pub(crate) fn end_tunnel(&self) {
        let Some(log) = &self.worker.access_log else {
            return;
        };
        let Some(tunnel) = self.lock_tunnel_draft().take() else {
            return;
        };
        let (read, written) = (self.read.load(Relaxed), self.written.load(Relaxed));
        let passed = tunnel
            .before
            .map(|before| (read - before.0, written - before.1));
        tunnel.draft.finish_tunnel(log.as_ref(), passed);
    }

    fn lock_tunnel_draft(&self) -> parking_lot::MutexGuard<'_, Option<Box<TunnelDraft>>> {
        self.tunnel_draft.lock()
    }

    /// Returns true if bytes may still arrive that will not be read: they would turn a close into a reset, which
    /// would discard the response.
    pub(crate) fn should_linger(&self) -> bool {
        !self.tunnel.load(Relaxed) && self.unread.load(Relaxed)
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        if let Some(holding) = self.holding.swap(None) {
            self.worker.memory.leave(&holding, &self.worker.metrics);
        }
    }
}

/// Adds to a counter that only the owner of the socket changes, so that load and store suffice. Returns the sum.
#[inline]
fn add(counter: &AtomicU64, count: u64) -> u64 {
    let sum = counter.load(Relaxed) + count;
    counter.store(sum, Relaxed);
    sum
}

/// A stream of HTTP/2 that counts.
#[cfg(feature = "http2")]
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<ConnectionState>);

#[cfg(feature = "http2")]
impl OpenStream {
    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.0
    }
}

#[cfg(feature = "http2")]
impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}
