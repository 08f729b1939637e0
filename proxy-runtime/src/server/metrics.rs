//! The counters of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::shed::Shed;

/// The counters of a server since it was bound. Cheap to read at any time, from any thread.
///
/// Each worker writes its own counters; [`counts`](Self::counts) adds them up.
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

    /// Sets the limit of [`held_bytes`](ServerCounts::held_bytes).
    pub(crate) fn limit_held(&self, bytes: u64) {
        self.held_limit.store(bytes, Relaxed);
    }

    #[cfg(any(feature = "admin", test))]
    fn last_shed(&self) -> Option<Shed> {
        let each = self.workers.iter();
        let each = each.filter_map(|worker| *worker.last_shed.lock());
        each.max_by_key(|shed| shed.at)
    }

    /// Returns true if connections were reset for lack of memory within the last 30 seconds.
    #[cfg(any(feature = "admin", test))]
    pub(crate) fn sheds(&self) -> bool {
        self.last_shed().is_some_and(|shed| shed.is_recent())
    }

    /// Returns a warning for five minutes after connections were reset for lack of memory.
    #[cfg(any(feature = "admin", test))]
    pub(crate) fn memory_problem(&self) -> Option<proxy_model::Problem> {
        let counts = self.counts();
        let shed = self.last_shed()?;
        shed.problem(counts.held_bytes_limit, counts.shed_connections)
    }

    pub(crate) fn worker(&self, index: usize) -> &Arc<WorkerMetrics> {
        &self.workers[index]
    }

    /// The sums over all workers.
    ///
    /// The counters are read one after another while the server runs, so they may be inconsistent
    /// by the events in between.
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
            proxy_header_failures: sum(|worker| &worker.proxy_header_failures),
            tls_handshake_failures: sum(|worker| &worker.tls_failures),
            requests: sum(|worker| &worker.requests),
            active_requests: sum(|worker| &worker.active_requests),
            rejected_requests: sum(|worker| &worker.rejected),
            malformed_requests: sum(|worker| &worker.malformed),
            header_timeouts: sum(|worker| &worker.header_timeouts),
            slow_clients: sum(|worker| &worker.slow_clients),
            panics: sum(|worker| &worker.panics),
        }
    }

    /// Number of requests begun per worker.
    #[doc(hidden)]
    pub fn requests_by_worker(&self) -> impl Iterator<Item = u64> + '_ {
        self.workers
            .iter()
            .map(|worker| worker.requests.load(Relaxed))
    }
}

/// The values of [`ServerMetrics`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCounts {
    /// Connections accepted since the start.
    pub accepted_connections: u64,
    /// Open connections, including upgraded ones.
    pub active_connections: u64,
    /// Failed attempts to accept, most often for lack of file descriptors.
    pub accept_errors: u64,
    /// Number of times that a worker stopped accepting because it had its share of the connections.
    pub connection_limit_reached: u64,
    /// Connections closed at once because their address was at the maximum of
    /// [`connections_per_address`](super::Limits::connections_per_address).
    pub connections_beyond_address_limit: u64,
    /// Connections without a complete request that were closed to make room for new ones.
    pub evicted_connections: u64,
    /// Connections reset because clients made a worker hold more than its share of
    /// [`memory_bytes`](super::Limits::memory_bytes).
    pub shed_connections: u64,
    /// Bytes in memory that wait for clients, or for a receiver of what clients sent.
    pub held_bytes: u64,
    /// The limit of `held_bytes` over all workers; 0 before the server is started.
    pub held_bytes_limit: u64,
    /// Connections that were closed because they did not begin with a header of the [PROXY
    /// protocol](super::ProxyProtocol) in time, or came from elsewhere than its senders.
    pub proxy_header_failures: u64,
    /// TLS handshakes that failed or timed out.
    pub tls_handshake_failures: u64,
    /// Requests begun since the start.
    pub requests: u64,
    /// Requests in progress.
    pub active_requests: u64,
    /// Valid requests that the server rejected: see [the rules](crate::server#rejected-requests).
    /// Bodies count if they exceeded one of the server's [`Limits`](super::Limits) before the
    /// response had begun; limits of routes and clusters do not count here.
    pub rejected_requests: u64,
    /// Connections closed because of an ambiguous or invalid request, an oversized head, or a
    /// flood.
    pub malformed_requests: u64,
    /// Connections closed because the head of a request timed out, or because an HTTP/2 client did
    /// not acknowledge the settings.
    pub header_timeouts: u64,
    /// Transfers ended because the client was slower than the
    /// [`data_rate`](super::Limits::data_rate).
    pub slow_clients: u64,
    /// Requests whose service panicked (500), or whose response body panicked (aborted).
    pub panics: u64,
}

/// The counters of one worker, on cache lines that no other worker writes to.
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
    /// The last reset for lack of memory.
    pub(crate) last_shed: Mutex<Option<Shed>>,
    pub(crate) proxy_header_failures: AtomicU64,
    pub(crate) tls_failures: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) active_requests: AtomicU64,
    pub(crate) rejected: AtomicU64,
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
