//! The builder of a server, and the server before its start.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use tokio::sync::{oneshot, watch};

use super::access_log::AccessLogSink;
use super::addresses::Addresses;
use super::handle::{RunningWorker, ServerHandle};
use super::handler::Handler;
use super::limits::Limits;
use super::listener::{self, BindError, Bound, Listener, SocketOptions};
use super::memory::default_memory;
use super::metrics::ServerMetrics;
use super::open_files;
use super::shared::WorkerShared;
use super::worker::{self, Command, Socket, WorkerPart, WorkerReport};
use crate::error::{Cause, Dropping};
use crate::observe::{ProxyMetrics, WorkerPlace, targets};

/// Creates the server of a worker, on its thread.
type MakeWorker = Arc<dyn Fn() -> Box<dyn Worker> + Send + Sync>;

/// The server on a worker's thread.
trait Worker {
    fn run(
        self: Box<Self>,
        sockets: Vec<Socket>,
        shared: Arc<WorkerShared>,
        commands: watch::Receiver<Command>,
        part: WorkerPart,
    ) -> Pin<Box<dyn Future<Output = WorkerReport>>>;
}

impl<H: Handler> Worker for H {
    fn run(
        self: Box<Self>,
        sockets: Vec<Socket>,
        shared: Arc<WorkerShared>,
        commands: watch::Receiver<Command>,
        part: WorkerPart,
    ) -> Pin<Box<dyn Future<Output = WorkerReport>>> {
        Box::pin(worker::run(sockets, *self, shared, commands, part))
    }
}

/// Builds a [`Server`].
#[derive(Clone)]
#[must_use = "nothing is bound before `bind`"]
pub struct ServerBuilder {
    make_worker: MakeWorker,
    listeners: Vec<Listener>,
    workers: Option<NonZeroUsize>,
    limits: Limits,
    access_log: Option<Arc<dyn AccessLogSink>>,
    proxy: Option<Arc<ProxyMetrics>>,
    backlog: u32,
    share_ports: bool,
}

impl ServerBuilder {
    /// `make` is called once on each worker's thread, within its runtime.
    pub(super) fn new<H: Handler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self {
            make_worker: Arc::new(move || Box::new(make())),
            listeners: Vec::new(),
            workers: None,
            limits: Limits::default(),
            access_log: None,
            proxy: None,
            backlog: 1024,
            share_ports: false,
        }
    }

    /// Sets the metrics of the proxy that is served.
    pub(super) fn counting_for(mut self, proxy: Arc<ProxyMetrics>) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Adds a listener. At least one is required.
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Sets the number of workers. Default: the available parallelism of the process.
    pub fn with_workers(mut self, workers: NonZeroUsize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Sets the limits for clients.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the receiver of a record for each finished request. Default: none.
    pub fn with_access_log(mut self, sink: Arc<dyn AccessLogSink>) -> Self {
        self.access_log = Some(sink);
        self
    }

    /// Sets the backlog: the number of connections per socket that the kernel completes before they
    /// are accepted. The system limits it as well (`net.core.somaxconn`). Default: 1024.
    pub fn with_backlog(mut self, connections: u32) -> Self {
        self.backlog = connections;
        self
    }

    /// Sets whether another process may share the ports on Linux, for programs that start their
    /// successor before they drain. Both processes must share. Default: false, so a port in use is
    /// an error.
    pub fn with_shared_ports(mut self, share: bool) -> Self {
        self.share_ports = share;
        self
    }

    /// Binds all addresses. Clients can connect from now on; they are served once the server is
    /// [started](Server::start).
    ///
    /// # Errors
    ///
    /// Fails if there is no listener, or if an address cannot be bound. No address is bound then.
    pub fn bind(self) -> Result<Server, BindError> {
        self.bind_with(&mut Vec::new())
    }

    /// Like [`bind`](Self::bind), but takes the sockets of an address from `inherited` if it has
    /// any, such as those that another process has [passed](Server::listening_sockets). Sockets that
    /// are left there belong to no listener. An address with port 0 always gets a new socket.
    ///
    /// # Errors
    ///
    /// Fails as [`bind`](Self::bind) does.
    pub fn bind_with(self, inherited: &mut Vec<TcpListener>) -> Result<Server, BindError> {
        if self.listeners.is_empty() {
            return Err(BindError::NoAddress);
        }
        let workers = self
            .workers
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get);
        let options = SocketOptions {
            workers,
            backlog: self.backlog,
            share_port: self.share_ports,
        };
        let addresses: Vec<_> = self.listeners.iter().map(Listener::address).collect();
        // Before any address is bound, so that a mistake leaves nothing behind.
        for (index, address) in addresses.iter().enumerate() {
            let mut earlier = addresses[..index].iter();
            let overlaps = |other: &&SocketAddr| listener::overlap(*address, **other, &addresses);
            if let Some(other) = earlier.find(overlaps) {
                let (address, other) = (*address, *other);
                return Err(BindError::Overlap { address, other });
            }
        }
        let bound = addresses
            .iter()
            .map(|address| {
                let inherited = listener::take(*address, inherited);
                listener::bind(*address, &addresses, options, inherited)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Server {
            addresses: bound.iter().map(|bound| bound.address).collect(),
            sockets: by_worker(bound, &self.listeners, workers),
            listeners: self.listeners,
            metrics: Arc::new(ServerMetrics::new(workers)),
            make_worker: self.make_worker,
            limits: self.limits,
            access_log: self.access_log,
            proxy: self.proxy,
        })
    }
}

/// Distributes the sockets of all addresses over the workers. An address may have more sockets than
/// workers.
fn by_worker(bound: Vec<Bound>, listeners: &[Listener], workers: usize) -> Vec<Vec<Socket>> {
    let mut sockets: Vec<Vec<Socket>> = (0..workers).map(|_| Vec::new()).collect();
    for (bound, listener) in bound.into_iter().zip(listeners) {
        // Inherited sockets may be more than one per worker.
        for (index, socket) in bound.sockets.into_iter().enumerate() {
            sockets[index % workers].push(listener.socket(socket));
        }
    }
    sockets
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("listeners", &self.listeners)
            .field("workers", &self.workers)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A server that listens but does not serve yet.
#[must_use = "nothing is served before `start`"]
pub struct Server {
    #[cfg_attr(
        not(feature = "admin"),
        expect(dead_code, reason = "for the admin page")
    )]
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    sockets: Vec<Vec<Socket>>,
    metrics: Arc<ServerMetrics>,
    make_worker: MakeWorker,
    limits: Limits,
    access_log: Option<Arc<dyn AccessLogSink>>,
    proxy: Option<Arc<ProxyMetrics>>,
}

impl Server {
    /// The addresses that are listened on, in the order in which the listeners were given; port 0 has become the port
    /// that was free.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The listeners, in the order in which they were given.
    #[cfg(feature = "admin")]
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The limits for clients.
    #[cfg(feature = "admin")]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The counters of the server.
    #[cfg(feature = "admin")]
    pub(crate) fn metrics(&self) -> &Arc<ServerMetrics> {
        &self.metrics
    }

    /// Duplicates the sockets for a program that replaces this one (hot restart). How they get there is up to the
    /// program; Unix has `SCM_RIGHTS`.
    ///
    /// While either process has a socket, the kernel queues clients at it, and the process that accepts serves them.
    /// No client is rejected. A new socket on the same port cannot guarantee that: clients in the queue of a closing
    /// socket are reset. So drop the duplicates before the server stops without a successor.
    ///
    /// # Errors
    ///
    /// Fails if the process has no file descriptors left.
    pub fn listening_sockets(&self) -> io::Result<Vec<TcpListener>> {
        let sockets = self.sockets.iter().flatten();
        sockets.map(|socket| socket.listener.try_clone()).collect()
    }

    /// Starts the threads. Blocks for some milliseconds until all of them serve.
    ///
    /// # Errors
    ///
    /// Fails if a thread or a runtime cannot be created, or if the factory panics. Nothing serves
    /// then.
    pub fn start(self) -> io::Result<ServerHandle> {
        let connections = self
            .limits
            .connections
            .unwrap_or_else(open_files::default_connections);
        // Rounded up, so that the workers together reach the limit.
        let share = connections.div_ceil(self.sockets.len());
        let memory = self.limits.memory_bytes.unwrap_or_else(default_memory);
        self.metrics.limit_held(memory);
        let addresses = self.limits.connections_per_address;
        let addresses = addresses.map(|most| Arc::new(Addresses::new(most)));
        let (commands, told) = watch::channel(Command::Serve);
        let part = WorkerPart::new();
        let workers_in_all = self.sockets.len();
        let mut workers = Vec::with_capacity(workers_in_all);
        for (index, sockets) in self.sockets.into_iter().enumerate() {
            let shared = WorkerShared::new(
                self.limits.clone(),
                share,
                self.metrics.worker(index).clone(),
                self.access_log.clone(),
            );
            let shared = shared
                .with_addresses(addresses.clone())
                .with_proxy(self.proxy.clone())
                .with_memory(memory / workers_in_all as u64);
            let shared = Arc::new(shared);
            // An error drops `commands`, which ends those that have been started.
            workers.push(start_worker(
                index,
                sockets,
                shared,
                self.make_worker.clone(),
                told.clone(),
                part.clone(),
            )?);
        }
        tracing::info!(
            target: targets::SERVER,
            addresses = ?self.addresses,
            workers = workers.len(),
            connections,
            memory_bytes = memory,
            "serving"
        );
        Ok(ServerHandle::new(
            self.addresses,
            self.metrics,
            commands,
            workers,
        ))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .field("workers", &self.sockets.len())
            .finish_non_exhaustive()
    }
}

fn start_worker(
    index: usize,
    sockets: Vec<Socket>,
    shared: Arc<WorkerShared>,
    make: MakeWorker,
    commands: watch::Receiver<Command>,
    part: WorkerPart,
) -> io::Result<RunningWorker> {
    // The server starts once all workers run, or fails with the error of one.
    let (ready, is_ready) = mpsc::sync_channel(1);
    let (reporter, report) = oneshot::channel();
    let thread = thread::Builder::new()
        .name(format!("proxy-worker-{index}"))
        .spawn(move || {
            // Gives the thread its own part of split counters.
            let _place = WorkerPlace::take();
            part.take_here();
            let runtime = match worker::runtime() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let outcome = runtime.block_on(async move {
                let worker = make();
                // The receiver is gone if another worker failed; the command to stop follows.
                let _ = ready.send(Ok(()));
                worker.run(sockets, shared, commands, part).await
            });
            // Dropped before the report, so that all connections have ended when it arrives.
            let dropping = Dropping::because(Cause::DrainTimeout);
            drop(runtime);
            drop(dropping);
            // The receiver may be gone.
            let _ = reporter.send(outcome);
        })?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(RunningWorker { report, thread }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("a worker panicked while it started")),
    }
}
