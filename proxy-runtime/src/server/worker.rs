//! A worker: a thread with its own runtime, sockets, connections and service.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use log_sink::Seldom;
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use super::accept::{Acceptance, ClientSocket, accept_now, accept_waiting, concerns_one_client};
use super::connection::serve_cleartext;
use super::handler::{Handler, Served};
use super::listener::sends_at_once;
use super::metrics::WorkerMetrics;
use super::proxy_protocol::{self, ProxyProtocol};
use super::shared::{ConnectionPermit, WorkerShared};
#[cfg(feature = "tls")]
use super::tls::TlsServerConfig;
use crate::connection::{ConnectionInfo, ListenerRules};
use crate::observe::{LOG_PAUSE, targets};
use crate::upstream::RuntimeGroup;

/// Pause after an error that affects all connections, such as a lack of file descriptors: long
/// enough to cause no load, short enough to cause no outage.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A command to all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Serve,
    /// Accept no connections, and end with the last connection or at this time. The time is of the
    /// machine's clock, since each runtime may have its own.
    Drain(Instant),
}

impl Command {
    fn is_to_stop(&self) -> bool {
        *self != Self::Serve
    }
}

/// The share of a worker in its server, by which workers wait for each other. Dropping it reports
/// that the worker is done.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPart {
    /// Never sends: the channel closes with the last worker.
    own: watch::Sender<()>,
    all: watch::Receiver<()>,
    group: RuntimeGroup,
}

impl WorkerPart {
    /// The first share. Other workers get clones.
    pub(crate) fn new() -> Self {
        let (own, all) = watch::channel(());
        let group = RuntimeGroup::new();
        Self { own, all, group }
    }

    /// Enters the group of runtimes on the calling thread, which may then use the connections of
    /// the whole group.
    pub(crate) fn take_here(&self) {
        self.group.enter();
    }

    /// Ends this share, and waits for the end of all others. Cancel safe.
    async fn end(self) {
        let Self { own, mut all, .. } = self;
        drop(own);
        while all.changed().await.is_ok() {}
    }
}

/// The ends of a worker's connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerReport {
    pub(crate) drained: u64,
    pub(crate) cut: u64,
}

/// A listening socket with its protocol and rules.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: std::net::TcpListener,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsServerConfig>,
    pub(crate) rules: ListenerRules,
    pub(crate) proxy_protocol: Option<ProxyProtocol>,
}

/// Creates the runtime of a worker.
///
/// # Errors
///
/// Fails if the system lacks the resources.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
}

/// Serves until a command to stop, or until the sender is dropped. Remaining connections end with
/// the runtime.
///
/// A worker without connections waits for the others: if the connections to a destination are
/// limited, all workers share them, and another worker's request may use one that belongs to this
/// runtime.
pub(crate) async fn run<H>(
    sockets: Vec<Socket>,
    handler: H,
    shared: Arc<WorkerShared>,
    mut commands: watch::Receiver<Command>,
    part: WorkerPart,
) -> WorkerReport
where
    H: Handler,
{
    let service = Rc::new(Served::new(handler));
    // An idle worker would keep a replaced configuration alive.
    if service.handler.engine().is_some() {
        let service = Rc::clone(&service);
        tokio::task::spawn_local(async move {
            if let Some(engine) = service.handler.engine() {
                engine.keep_current().await;
            }
        });
    }
    let mut acceptors = Vec::new();
    for socket in sockets {
        let acceptor = Acceptor::new(&socket, service.clone(), shared.clone());
        let run = |listener| acceptor.run(listener, commands.clone());
        match Acceptance::new(socket.listener) {
            Ok(listener) => acceptors.push(tokio::task::spawn_local(run(listener))),
            Err(error) => tracing::error!(
                target: targets::SERVER,
                %error,
                "a worker cannot listen"
            ),
        }
    }
    let told = commands.wait_for(Command::is_to_stop).await;
    let is_told = told.is_ok();
    drop(told);
    for acceptor in acceptors {
        // A panic is already logged, and must not prevent the drain of the others.
        let _ = acceptor.await;
    }
    // The drain begins after all sockets are closed, so that clients that reconnect do not come
    // back here.
    shared.drain();
    let before = shared.active();
    // Without a command the sender was dropped: nothing is waited for.
    if is_told {
        let drained = async {
            shared.empty().await;
            part.end().await;
        };
        unless_cut(drained, &mut commands).await;
    }
    shared.cut();
    let cut = shared.active();
    WorkerReport {
        drained: before.saturating_sub(cut),
        cut,
    }
}

/// Waits for `drained`, the deadline, or the drop of the sender.
async fn unless_cut(drained: impl Future<Output = ()>, commands: &mut watch::Receiver<Command>) {
    let mut drained = std::pin::pin!(drained);
    loop {
        let deadline = match *commands.borrow_and_update() {
            Command::Drain(deadline) => deadline,
            Command::Serve => return,
        };
        tokio::select! {
            // A worker that has drained reports that, even at the deadline.
            biased;
            () = &mut drained => return,
            changed = commands.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = sleep_until(deadline.into()) => return,
        }
    }
}

/// Accepts the connections of one socket.
struct Acceptor<H> {
    #[cfg(feature = "tls")]
    tls: Option<TlsServerConfig>,
    rules: ListenerRules,
    proxy_protocol: Option<ProxyProtocol>,
    service: Rc<Served<H>>,
    shared: Arc<WorkerShared>,
    /// The local address of all clients, unless the socket listens on all addresses.
    local: Option<SocketAddr>,
    /// True if connections inherit `TCP_NODELAY`.
    sends_at_once: bool,
    /// True if the last attempt to accept failed.
    starved: bool,
    /// True if the failure was logged.
    starvation_logged: bool,
}

impl<H> Acceptor<H>
where
    H: Handler,
{
    fn new(socket: &Socket, service: Rc<Served<H>>, shared: Arc<WorkerShared>) -> Self {
        let local = socket.listener.local_addr().ok();
        Self {
            #[cfg(feature = "tls")]
            tls: socket.tls.clone(),
            rules: socket.rules,
            proxy_protocol: socket.proxy_protocol.clone(),
            service,
            shared,
            // A socket for all addresses has a different local address per connection.
            local: local.filter(|local| !local.ip().to_canonical().is_unspecified()),
            sends_at_once: sends_at_once(&socket.listener),
            starved: false,
            starvation_logged: false,
        }
    }

    /// Accepts until the worker stops. At the limit, new connections stay in the kernel's backlog.
    async fn run(mut self, listener: Acceptance, mut commands: watch::Receiver<Command>) {
        let shared = self.shared.clone();
        let mut stop = std::pin::pin!(commands.wait_for(Command::is_to_stop));
        loop {
            let accepted = shared.accept(|| listener.accept());
            let result = tokio::select! {
                // A stop is noticed even while clients keep coming.
                biased;
                _ = &mut stop => break,
                result = accepted => result,
            };
            match result {
                Ok((stream, remote)) => {
                    self.accepted_again();
                    self.serve(stream, remote);
                }
                Err(error) => self.failed(&error).await,
            }
        }
        // Clients that wait in the queue of the listener would be reset with it.
        self.take_the_rest(listener);
    }

    fn serve(&self, stream: ClientSocket, remote: SocketAddr) {
        // Closed at once if the client's address has too many connections. With the PROXY protocol the client is not
        // known yet.
        let client = self.proxy_protocol.is_none().then_some(remote);
        let Some(permit) = self.shared.enter_from(client) else {
            return;
        };
        if !self.sends_at_once {
            // The call fails only for a connection that is already closed.
            let _ = stream.set_nodelay(true);
        }
        let mut info = ConnectionInfo::new(canonical(remote));
        info.set_rules(self.rules);
        if let Some(local) = self.local.or_else(|| stream.local_addr().ok()) {
            info.local = Some(canonical(local));
        }
        self.spawn(stream, info, permit);
    }

    fn spawn(&self, stream: ClientSocket, info: ConnectionInfo, permit: ConnectionPermit) {
        if let Some(protocol) = &self.proxy_protocol {
            return self.spawn_proxied(stream, info, permit, protocol.clone());
        }
        let service = self.service.clone();
        let shared = self.shared.clone();
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let tls = tls.clone();
            tokio::task::spawn_local(super::connection::serve_tls(
                stream, tls, info, service, permit, shared,
            ));
            return;
        }
        tokio::task::spawn_local(serve_cleartext(stream, info, service, permit, shared));
    }

    /// Serves a connection behind its header of the PROXY protocol.
    fn spawn_proxied(
        &self,
        mut stream: ClientSocket,
        info: ConnectionInfo,
        mut permit: ConnectionPermit,
        protocol: ProxyProtocol,
    ) {
        let service = self.service.clone();
        let shared = self.shared.clone();
        let rules = self.rules;
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        tokio::task::spawn_local(async move {
            let receiving =
                proxy_protocol::receive(&mut stream, &protocol, info, &mut permit, &shared);
            let Some(mut info) = receiving.await else {
                return;
            };
            // Whom the header names may be a proxy itself.
            info.set_rules(rules);
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let serving =
                    super::connection::serve_tls(stream, tls, info, service, permit, shared);
                return serving.await;
            }
            serve_cleartext(stream, info, service, permit, shared).await;
        });
    }

    fn accepted_again(&mut self) {
        if std::mem::take(&mut self.starved) && std::mem::take(&mut self.starvation_logged) {
            tracing::info!(target: targets::SERVER, "connections are accepted again");
        }
    }

    async fn failed(&mut self, error: &io::Error) {
        // An error of a single connection needs no pause.
        if concerns_one_client(error) {
            return;
        }
        WorkerMetrics::add(&self.shared.metrics.accept_errors);
        // Clients decide how often the state changes.
        static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
        if !std::mem::replace(&mut self.starved, true)
            && let Some(left_out) = SELDOM.pass()
        {
            self.starvation_logged = true;
            tracing::warn!(
                target: targets::SERVER,
                %error,
                left_out,
                "connections cannot be accepted; trying again until they can"
            );
        }
        sleep(ACCEPT_RETRY).await;
    }

    /// Serves the connections in the kernel's queue while there is room, then closes the socket:
    /// the rest is reset with it.
    ///
    /// Does not wait for room: that would delay the end, and further clients would arrive at the
    /// open socket.
    fn take_the_rest(&self, listener: Acceptance) {
        let Ok(listener) = listener.into_listener() else {
            return;
        };
        let accepted = accept_waiting(
            || accept_now(&listener),
            || self.shared.has_room(),
            |(stream, remote)| self.serve(stream, remote),
        );
        if let Err(error) = accepted {
            WorkerMetrics::add(&self.shared.metrics.accept_errors);
            tracing::warn!(
                target: targets::SERVER,
                %error,
                "clients that still wait cannot be accepted; their connections are reset"
            );
        }
    }
}

/// Shows IPv4 clients of an IPv6 socket as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
