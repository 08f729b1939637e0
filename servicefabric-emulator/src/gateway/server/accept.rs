use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Answers;
use super::activity::Activity;
use super::connection::{Connection, Peer};
use super::places::Places;
use super::seldom::Seldom;
use crate::gateway::security::Tls;

/// The maximum number of open connections. A further one replaces a connection whose client is idle or waits.
const MAX_CONNECTIONS: usize = 1_024;
/// The time that a client may be idle while another one wants its place.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time that a client may stop reading its response.
const STALL: Duration = Duration::from_secs(60);
/// The time that a client has for its TLS handshake. Default: 10 s.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time that connections get to end by themselves.
const DRAIN: Duration = Duration::from_secs(5);
/// The pause after a failed accept, for example because no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The limits of clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) patience: Duration,
    pub(super) stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: MAX_CONNECTIONS,
            patience: PATIENCE,
            stall: STALL,
        }
    }
}

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to accept connections.
    ///
    /// # Errors
    ///
    /// The error of a socket without a local address.
    pub(crate) fn start<A: Answers>(
        listener: TcpListener,
        tls: Option<Tls>,
        answers: Arc<A>,
    ) -> io::Result<Self> {
        Self::start_with(Limits::default(), listener, tls, answers)
    }

    /// Starts with other limits.
    pub(super) fn start_with<A: Answers>(
        limits: Limits,
        listener: TcpListener,
        tls: Option<Tls>,
        answers: Arc<A>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(limits, listener, tls, answers, stopped));
        Ok(Self {
            address,
            stop,
            task: Some(task),
        })
    }

    /// Returns the address on which the server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets calls in flight end (for at most five seconds), and returns when all connections
    /// are closed.
    ///
    /// If the future is dropped, the server stops at once.
    pub(crate) async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = &mut self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the server ended badly");
        }
        self.task = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn accept<A: Answers>(
    limits: Limits,
    listener: TcpListener,
    tls: Option<Tls>,
    answers: Arc<A>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut places = Places::new(limits.connections, limits.patience);
    let mut rejected = Seldom::default();
    // An accepted connection without a place yet. Further ones wait in the system's queue.
    let mut newcomer: Option<TcpStream> = None;
    loop {
        if let Some(stream) = newcomer.take_if(|_| places.has_room()) {
            let activity = Arc::new(Activity::new());
            let (tls, answers) = (tls.clone(), Arc::clone(&answers));
            let connection = Connection {
                activity: Arc::clone(&activity),
                stall: limits.stall,
                stopped: stopped.clone(),
            };
            places.take(activity, serve(stream, tls, answers, connection));
        }
        let again = newcomer.is_some().then(|| places.make_room());
        tokio::select! {
            () = until(&mut stopped) => break,
            () = places.freed() => {}
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {}
            accepted = listener.accept(), if newcomer.is_none() => match accepted {
                Ok((stream, _)) => newcomer = Some(stream),
                Err(error) => {
                    if rejected.tell() {
                        tracing::warn!(%error, "connections cannot be accepted");
                    }
                    // The system may be out of file handles, and a loop without a pause would be busy.
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // New clients are rejected at once, while open connections finish.
    drop((listener, newcomer));
    places.drain(DRAIN).await;
}

/// Waits until the value is true, or its sender was dropped. Cancel safe.
pub(crate) async fn until(stopped: &mut watch::Receiver<bool>) {
    // The borrow of the channel's value ends here, since it cannot be held across an await.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn serve<A: Answers>(
    stream: TcpStream,
    tls: Option<Tls>,
    answers: Arc<A>,
    connection: Connection,
) {
    // Responses are written whole, so waiting for more bytes would only delay them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return connection.serve(stream, Peer::default(), answers).await;
    };
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok((stream, peer))) => connection.serve(stream, peer, answers).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
        Err(_) => tracing::debug!("a client took too long for its handshake"),
    }
}
