//! The acceptor of connections, limited in total and for each address.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client_lines::ClientLines;
use super::connection::{AcceptedConnection, Transport};
use super::metrics::Metrics;

/// The wait after a connection could not be accepted, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limits of open connections, and of the time for their start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    pub(crate) all: usize,
    pub(crate) per_peer: usize,
    /// The time limit for agreeing on TLS and for the first bytes of a request.
    pub(crate) opening: Duration,
    /// The idle time after which TCP keep-alive probes are sent.
    pub(crate) keep_alive: Duration,
}

/// Performs the handshake on accepted sockets.
pub(crate) trait Upgrade: Clone + Send + 'static {
    fn upgrade(self, stream: TcpStream) -> impl Future<Output = io::Result<Transport>> + Send;
}

/// Connections without TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Upgrade for Plain {
    async fn upgrade(self, stream: TcpStream) -> io::Result<Transport> {
        Ok(Transport::Plain(stream))
    }
}

/// A place among the connections that may be open. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_peer: PeerPlace,
}

/// Number of connections of each address.
#[derive(Debug, Clone, Default)]
struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

#[derive(Debug)]
struct PeerPlace {
    peers: Peers,
    address: IpAddr,
}

impl Peers {
    /// A place for a connection of `address`, if it has fewer than `limit`.
    fn enter(&self, address: IpAddr, limit: usize) -> Option<PeerPlace> {
        let address = host_of(address);
        let mut open = self.0.lock();
        let count = open.entry(address).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        let peers = self.clone();
        Some(PeerPlace { peers, address })
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut open = self.peers.0.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// A host has a whole network of addresses in version 6.
pub(super) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

struct Acceptor<U> {
    listener: TcpListener,
    limits: ConnectionLimits,
    upgrade: U,
    metrics: Arc<Metrics>,
    lines: Arc<ClientLines>,
    places: Arc<Semaphore>,
    peers: Peers,
    /// Connections that have yet to agree on TLS.
    opening: JoinSet<Option<AcceptedConnection>>,
}

/// The connections that arrive, as long as there are places for them.
pub(crate) fn accept(
    listener: TcpListener,
    limits: ConnectionLimits,
    upgrade: impl Upgrade,
    metrics: Arc<Metrics>,
    lines: Arc<ClientLines>,
) -> impl Stream<Item = io::Result<AcceptedConnection>> {
    let acceptor = Acceptor {
        listener,
        limits,
        upgrade,
        metrics,
        lines,
        places: Arc::new(Semaphore::new(limits.all.min(Semaphore::MAX_PERMITS))),
        peers: Peers::default(),
        opening: JoinSet::new(),
    };
    stream::unfold(acceptor, |mut acceptor| async move {
        let accepted = acceptor.next().await?;
        Some((Ok(accepted), acceptor))
    })
}

impl<U: Upgrade> Acceptor<U> {
    /// Returns the next connection. `None` if there are no more, which does not happen.
    async fn next(&mut self) -> Option<AcceptedConnection> {
        loop {
            tokio::select! {
                Some(opened) = self.opening.join_next() => {
                    if let Ok(Some(accepted)) = opened {
                        return Some(accepted);
                    }
                }
                arrived = arrive(&self.listener, &self.places, &self.lines) => {
                    let (stream, peer, place) = arrived?;
                    self.open(stream, peer, place);
                }
            }
        }
    }

    fn open(&mut self, stream: TcpStream, peer: SocketAddr, of_all: OwnedSemaphorePermit) {
        let Some(of_peer) = self.peers.enter(peer.ip(), self.limits.per_peer) else {
            self.metrics.connection_turned_away();
            tracing::debug!(target: "xds::server", %peer, "this address has as many connections as it may have");
            return;
        };
        let place = Place {
            _of_all: of_all,
            _of_peer: of_peer,
        };
        // Responses are written whole; waiting for more to come only delays them.
        let _ = stream.set_nodelay(true);
        let keep_alive = TcpKeepalive::new()
            .with_time(self.limits.keep_alive)
            .with_interval(self.limits.keep_alive);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keep_alive);
        let until = Instant::now() + self.limits.opening;
        let upgrade = self.upgrade.clone();
        let lines = Arc::clone(&self.lines);
        self.opening.spawn(async move {
            let upgraded = tokio::time::timeout_at(until, upgrade.upgrade(stream)).await;
            match upgraded {
                Ok(Ok(transport)) => Some(AcceptedConnection::new(transport, peer, until, place)),
                Ok(Err(error)) => {
                    if let Some(left_out) = lines.handshake_failed.pass() {
                        tracing::info!(target: "xds::server", %peer, %error, left_out, "a client does not agree on TLS");
                    }
                    None
                }
                Err(_) => {
                    if let Some(left_out) = lines.handshake_slow.pass() {
                        tracing::info!(target: "xds::server", %peer, left_out, "a client takes too long to agree on TLS");
                    }
                    None
                }
            }
        });
    }
}

/// Returns the next connection when the limit allows one. Dropping the future loses no connection.
async fn arrive(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    lines: &ClientLines,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    loop {
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok()?;
        match listener.accept().await {
            Ok((stream, peer)) => return Some((stream, peer, place)),
            Err(error) => {
                if let Some(left_out) = lines.not_accepted.pass() {
                    tracing::warn!(target: "xds::server", %error, left_out, "the xDS server cannot accept a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_host_and_let_go_of() {
        let peers = Peers::default();
        let enter = |text: &str| peers.enter(text.parse().unwrap(), 2);
        let first = enter("127.0.0.1").unwrap();
        let second = enter("::ffff:127.0.0.1").unwrap();
        assert!(enter("127.0.0.1").is_none());
        let other = (enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap());
        assert!(enter("2001:db8:0:0:ffff::").is_none());
        assert!(enter("2001:db8:0:1::").is_some());
        drop(first);
        assert!(enter("127.0.0.1").is_some());
        drop((second, other));
        assert!(peers.0.lock().is_empty());
    }
}
