//! By what a program ends a server that was started, or waits for its end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::metrics::ServerMetrics;
use super::worker::{Command, WorkerReport};
use crate::observe::targets;

/// A server at work.
///
/// Dropping it stops the server: it closes its sockets and cuts its connections, without waiting for either.
/// [`shutdown`](Self::shutdown) ends it properly.
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

/// How the connections ended that were there when a server was told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Connections that ended after their last response, or were idle.
    pub drained: u64,
    /// Connections that were reset at the deadline, tunnels among them.
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

    /// The addresses that are listened on, in the order in which the listeners were given; port 0 has become the port
    /// that was free.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What the server counts.
    pub fn metrics(&self) -> &Arc<ServerMetrics> {
        &self.metrics
    }

    /// Ends the server: it stops listening at once, so that another program may take the port, and lets its connections
    /// come to their end.
    ///
    /// Requests in flight are answered. On HTTP/1.1 the response says `Connection: close`, and a connection without a
    /// request is closed after [`Limits::closing_grace`](super::Limits::closing_grace); HTTP/2 sends GOAWAY. Tunnels are
    /// left alone. What is left after `deadline` is reset and counted.
    ///
    /// Returns when all threads have ended. Dropped before, it cuts what is left at once.
    pub async fn shutdown(mut self, deadline: Duration) -> DrainReport {
        let now = Instant::now();
        // Some years are as good as never, and do not overflow.
        let deadline = now
            .checked_add(deadline)
            .unwrap_or_else(|| now + Duration::from_secs(365 * 86_400));
        self.commands.send_replace(Command::Drain(deadline));
        let connections = self.metrics.counts().active_connections;
        tracing::info!(target: targets::SERVER, connections, "draining");
        let mut sum = DrainReport::default();
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

    /// Blocks the thread until the server has ended, which without [`shutdown`](Self::shutdown) it does not: for
    /// programs that have nothing else to do, and are ended by a signal.
    pub fn join(mut self) {
        self.join_threads();
    }

    /// The threads drop their runtimes before they report, so that they are about to end.
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
