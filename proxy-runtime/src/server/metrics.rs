//! What the server counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long it is worth a word that connections were reset for what they held.
#[cfg(any(feature = "admin", test))]
const RECENT: std::time::Duration = std::time::Duration::from_secs(30);

/// What a server has counted since it was bound. Cheap to read at any time, from any thread.
///
/// Each worker writes counters of its own; [`counts`](Self::counts) adds them up.
#[derive(Debug)]
pub struct ServerMetrics {
    workers: Box<[Arc<WorkerMetrics>]>,
    held_limit: AtomicU64,
}

impl ServerMetrics {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            held_limit: AtomicU64::new(0),
        }
    }

    /// Sets what [`held_bytes`](ServerCounts::held_bytes) may be.
    pub(crate) fn limit_held(&self, bytes: u64) {
        self.held_limit.store(bytes, Relaxed);
    }

    /// Returns whether connections were reset for what they held within the last 30 seconds.
    #[cfg(any(feature = "admin", test))]
    pub(crate) fn sheds(&self) -> bool {
        let is_recent = |at: Instant| at.elapsed() < RECENT;
        self.workers
            .iter()
            .any(|worker| worker.shed_at.lock().is_some_and(is_recent))
    }

    pub(crate) fn worker(&self, index: usize) -> &Arc<WorkerMetrics> {
        &self.workers[index]
    }

    /// The sums over all workers.
    ///
    /// The figures are read one after the other while the server goes on, so that they may disagree by what happened
    /// in between.
    pub fn counts(&self) -> ServerCounts {
        let sum = |field: fn(&WorkerMetrics) -> &AtomicU64| {
            self.workers
                .iter()
                .map(|worker| field(worker).load(Relaxed))
                .fold(0, u64::wrapping_add)
        };
        ServerCounts {
            accepted_connections: sum(|worker| &worker.accepted),
            active_connections: sum(|worker| &worker.active),
            accept_errors: sum(|worker| &worker.accept_errors),
            connection_limit_reached: sum(|worker| &worker.limit_reached),
            connections_beyond_address_limit: sum(|worker| &worker.address_limit),
            evicted_connections: sum(|worker| &worker.evicted),
            shed_connections: sum(|worker| &worker.shed),
            held_bytes: sum(|worker| &worker.held),
            held_bytes_limit: self.held_limit.load(Relaxed),
            tls_handshake_failures: sum(|worker| &worker.tls_failures),
            requests: sum(|worker| &worker.requests),
            active_requests: sum(|worker| &worker.active_requests),
            refused_requests: sum(|worker| &worker.refused),
            malformed_requests: sum(|worker| &worker.malformed),
            header_timeouts: sum(|worker| &worker.header_timeouts),
            slow_clients: sum(|worker| &worker.slow_clients),
            panics: sum(|worker| &worker.panics),
        }
    }

    /// Requests that each worker has begun, in the order of the workers.
    pub fn requests_by_worker(&self) -> impl Iterator<Item = u64> + '_ {
        self.workers
            .iter()
            .map(|worker| worker.requests.load(Relaxed))
    }
}

/// The figures of [`ServerMetrics`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCounts {
    /// Connections accepted since the start.
    pub accepted_connections: u64,
    /// Connections that are open, upgraded ones included.
    pub active_connections: u64,
    /// Attempts to accept that failed, most often for want of file descriptors.
    pub accept_errors: u64,
    /// Times that a worker stopped accepting because it had its share of the connections.
    pub connection_limit_reached: u64,
    /// Connections closed at once because their client had as many as
    /// [`connections_per_address`](super::Limits::connections_per_address) allows.
    pub connections_beyond_address_limit: u64,
    /// Connections without a whole request that were closed because a worker had its share of the connections and others came.
    pub evicted_connections: u64,
    /// Connections that were reset because clients made a worker hold more than its share of
    /// [`memory_bytes`](super::Limits::memory_bytes).
    pub shed_connections: u64,
    /// Bytes that wait in memory for clients, or for what they have sent to be taken.
    pub held_bytes: u64,
    /// How many they may be, all workers together; 0 before the server is started.
    pub held_bytes_limit: u64,
    /// TLS handshakes that failed or took too long.
    pub tls_handshake_failures: u64,
    /// Requests begun since the start.
    pub requests: u64,
    /// Requests that are being answered.
    pub active_requests: u64,
    /// Requests that the server refused itself although it could read them: see
    /// [the rules](crate::server#what-is-refused). Of bodies, those that exceeded one of the server's
    /// [`Limits`](super::Limits) before their response had begun; limits of routes and clusters are not the server's.
    pub refused_requests: u64,
    /// Connections ended because what came over them was no request with one meaning, too large a head, or a flood.
    pub malformed_requests: u64,
    /// Connections closed because a request's head did not arrive in time.
    /// On HTTP/2 also those whose client did not acknowledge the settings.
    pub header_timeouts: u64,
    /// Uploads and downloads ended because the client was slower than the [`data_rate`](super::Limits::data_rate).
    pub slow_clients: u64,
    /// Requests whose service panicked, which were answered with 500, or the body of whose response did, which broke off.
    pub panics: u64,
}

/// The counters of one worker: one writer, in a cache line that no other worker writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerMetrics {
    pub(crate) accepted: AtomicU64,
    pub(crate) active: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    pub(crate) limit_reached: AtomicU64,
    pub(crate) address_limit: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) shed: AtomicU64,
    pub(crate) held: AtomicU64,
    /// When a connection was last reset for what it held.
    pub(crate) shed_at: Mutex<Option<Instant>>,
    pub(crate) tls_failures: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) active_requests: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) header_timeouts: AtomicU64,
    pub(crate) slow_clients: AtomicU64,
    pub(crate) panics: AtomicU64,
}

impl WorkerMetrics {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn subtract(counter: &AtomicU64) {
        counter.fetch_sub(1, Relaxed);
    }
}
