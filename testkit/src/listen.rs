//! Listening on loopback.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// `127.0.0.1` with a port chosen by the kernel.
pub(crate) const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// `[::1]` with a port chosen by the kernel.
pub(crate) const V6: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// Enough for tests that open thousands of connections at once; the kernel may cap it (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

/// Listens on `address`.
///
/// # Panics
///
/// Panics without a tokio runtime, or if the address cannot be bound: no test can continue without
/// its peer.
#[track_caller]
pub(crate) fn listen(address: SocketAddr) -> (TcpListener, SocketAddr) {
    let listening = socket_for(address)
        .and_then(|socket| {
            // A stopped origin may be restarted on its port while old connections are in TIME_WAIT.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        })
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    match listening {
        Ok(listening) => listening,
        Err(error) => panic!("cannot listen on {address}: {error}"),
    }
}

pub(crate) fn socket_for(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}
