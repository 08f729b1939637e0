//! Listening sockets that go from one process to the next.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Sockets that listen already: what a program hands to the one that takes its place.
///
/// As long as one of the two has a socket, the kernel goes on queueing clients there, and whichever of them accepts serves
/// them. So nobody is refused, which a new socket on the same port cannot promise: what a closing socket has queued is
/// reset. How the sockets get from one process to the other is up to them; on Unix `SCM_RIGHTS` does it.
///
/// ```
/// use proxy_runtime::server::ListeningSockets;
///
/// let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let address = socket.local_addr()?;
/// let mut sockets = ListeningSockets::default();
/// sockets.add(socket)?;
/// assert_eq!(sockets.take(address).len(), 1);
/// assert!(sockets.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ListeningSockets {
    sockets: Vec<(SocketAddr, TcpListener)>,
}

impl ListeningSockets {
    /// Adds a socket.
    ///
    /// # Errors
    ///
    /// It has no address, or cannot be made non-blocking.
    pub fn add(&mut self, socket: TcpListener) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.sockets.push((address, socket));
        Ok(())
    }

    /// Takes out the sockets of an address.
    pub fn take(&mut self, address: SocketAddr) -> Vec<TcpListener> {
        let all = std::mem::take(&mut self.sockets);
        let (taken, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _)| *of == address);
        self.sockets = left;
        taken.into_iter().map(|(_, socket)| socket).collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &TcpListener> {
        self.sockets.iter().map(|(_, socket)| socket)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_by_the_address_that_they_have() {
        let mut sockets = ListeningSockets::default();
        let [one, two] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [first, second] = [&one, &two].map(|socket| socket.local_addr().unwrap());
        sockets.add(one.try_clone().unwrap()).unwrap();
        sockets.add(two).unwrap();
        sockets.add(one).unwrap();
        assert_eq!(sockets.take(first).len(), 2);
        assert_eq!(sockets.take(first).len(), 0);
        assert_eq!((sockets.len(), sockets.iter().count()), (1, 1));
        assert_eq!(sockets.take(second).len(), 1);
        assert!(sockets.is_empty());
    }
}
