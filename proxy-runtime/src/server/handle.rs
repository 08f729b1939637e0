//! The handle of a running server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::metrics::ServerMetrics;
use super::worker::{Command, WorkerReport};
use crate::observe::targets;

/// A running server.
///
/// Dropping the handle stops the server: it closes its sockets and resets its connections without
/// waiting. [`shutdown`](Self::shutdown) stops it gracefully.
#[must_use = "a server stops when its handle is dropped"]
pub struct ServerHandle {
    addresses: Vec<SocketAddr>,
    metrics: Arc<ServerMetrics>,
    commands: watch::Sender<Command>,
    workers: Vec<RunningWorker>,
}

pub(crate) struct RunningWorker {
    pub(crate) report: oneshot::Receiver<WorkerReport>,
    pub(crate) thread: JoinHandle<()>,
}

/// The ends of the connections that were open when the server began to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Number of connections that ended after their last response, or were idle.
    pub drained: u64,
    /// Number of connections that were reset at the deadline, including tunnels.
    pub cut: u64,
}

impl ServerHandle {
    pub(crate) fn new(
        addresses: Vec<SocketAddr>,
        metrics: Arc<ServerMetrics>,
        commands: watch::Sender<Command>,
        workers: Vec<RunningWorker>,
    ) -> Self {
        Self {
            addresses,
            metrics,
            commands,
            workers,
        }
    }

    /// The bound addresses in the order of the listeners. Port 0 is replaced by the chosen port.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counters of the server.
    pub fn metrics(&self) -> &Arc<ServerMetrics> {
        &self.metrics
    }

    /// Stops the server gracefully: closes the listening sockets at once, so that another program
    /// can take the ports, and drains the connections.
    ///
    /// Requests in flight get their response. HTTP/1.1 responses have `Connection: close`, and idle
    /// connections are closed after [`Limits::closing_grace`](super::Limits::closing_grace); HTTP/2
    /// connections get GOAWAY. Tunnels continue. Connections that remain after `deadline` are reset
    /// and counted.
    ///
    /// Returns when all threads have ended. Not cancel safe: dropping the future resets the
    /// remaining connections at once.
    pub async fn shutdown(mut self, deadline: Duration) -> DrainReport {
        let now = Instant::now();
        // A duration of some years stands for never, and avoids an overflow.
        let deadline = now
            .checked_add(deadline)
            .unwrap_or_else(|| now + Duration::from_secs(365 * 86_400));
        self.commands.send_replace(Command::Drain(deadline));
        let connections = self.metrics.counts().active_connections;
        tracing::info!(target: targets::SERVER, connections, "draining");
        let mut sum = DrainReport::default();
        // The workers drain at the same time, so waiting for one after the other costs nothing.
        for worker in &mut self.workers {
            // A worker that panicked has no report; its connections ended with its runtime.
            let report = (&mut worker.report).await.unwrap_or_default();
            sum.drained += report.drained;
            sum.cut += report.cut;
        }
        self.join_threads();
        tracing::info!(target: targets::SERVER, drained = sum.drained, cut = sum.cut, "stopped");
        sum
    }

    /// Blocks until the server has ended, for programs that a signal ends. Only
    /// [`shutdown`](Self::shutdown) or a failure of all workers ends the server.
    pub fn join(mut self) {
        self.join_threads();
    }

    /// Joins the threads, which end soon: each drops its runtime before it reports.
    fn join_threads(&mut self) {
        for worker in self.workers.drain(..) {
            if worker.thread.join().is_err() {
                tracing::error!(target: targets::SERVER, "a worker panicked");
            }
        }
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle")
            .field("addresses", &self.addresses)
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}
