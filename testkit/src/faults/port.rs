use std::io;
use std::net::{SocketAddr, TcpStream};

use tokio::net::{TcpListener, TcpSocket};

use crate::listen::V4;

/// A port of `127.0.0.1` that refuses every connection, and that no other program can take.
///
/// A closed port could be given to another test at any moment; this one stays bound, without
/// listening.
#[derive(Debug)]
pub struct RefusingPort {
    addr: SocketAddr,
    _bound: TcpSocket,
}

impl RefusingPort {
    /// Reserves a port.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, or if no port can be bound.
    #[track_caller]
    pub fn new() -> Self {
        let bound = || -> io::Result<Self> {
            let socket = TcpSocket::new_v4()?;
            socket.bind(V4)?;
            Ok(Self {
                addr: socket.local_addr()?,
                _bound: socket,
            })
        };
        expect_port(bound())
    }

    /// The address that refuses connections.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Default for RefusingPort {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

/// A port of `127.0.0.1` that does not respond: a connection is neither accepted nor refused, like
/// behind a firewall that drops packets. For connect timeouts.
///
/// It listens with a full queue, and Linux drops further connections. Other systems may refuse them
/// instead.
#[derive(Debug)]
pub struct UnansweredPort {
    addr: SocketAddr,
    _listener: TcpListener,
    _queued: TcpStream,
}

impl UnansweredPort {
    /// Listens and fills the queue.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, or if no port can be bound.
    #[track_caller]
    pub fn new() -> Self {
        let bound = || -> io::Result<Self> {
            let socket = TcpSocket::new_v4()?;
            socket.bind(V4)?;
            // A queue for 0 connections holds one.
            let listener = socket.listen(0)?;
            let addr = listener.local_addr()?;
            // The kernel completes this at once, without `accept`, so the call does not block.
            let queued = TcpStream::connect(addr)?;
            Ok(Self {
                addr,
                _listener: listener,
                _queued: queued,
            })
        };
        expect_port(bound())
    }

    /// The address that does not respond.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Default for UnansweredPort {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

#[track_caller]
fn expect_port<T>(bound: io::Result<T>) -> T {
    match bound {
        Ok(port) => port,
        Err(error) => panic!("cannot take a port on loopback: {error}"),
    }
}
