//! Listening sockets that one process passes to another (hot restart).

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listening sockets that a program passes to its successor.
///
/// While either process has a socket, the kernel queues clients at it, and the process that accepts
/// serves them. No client is rejected. A new socket on the same port cannot guarantee that: clients
/// in the queue of a closing socket are reset. The transfer between the processes is up to the
/// program; Unix has `SCM_RIGHTS`.
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
    /// Fails if it has no address, or cannot be made non-blocking.
    pub fn add(&mut self, socket: TcpListener) -> io::Result<()> {
        // Inherited sockets may be blocking.
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.sockets.push((address, socket));
        Ok(())
    }

    /// Removes and returns the sockets of an address.
    pub fn take(&mut self, address: SocketAddr) -> Vec<TcpListener> {
        let all = std::mem::take(&mut self.sockets);
        let (taken, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _)| *of == address);
        self.sockets = left;
        taken.into_iter().map(|(_, socket)| socket).collect()
    }

    /// All sockets.
    pub fn iter(&self) -> impl Iterator<Item = &TcpListener> {
        self.sockets.iter().map(|(_, socket)| socket)
    }

    /// Number of sockets.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// True if there are no sockets.
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
