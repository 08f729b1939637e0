//! Accepting connections.

use std::io;
use std::net::{self, SocketAddr};

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Acceptance, ClientSocket};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::portable::{Acceptance, ClientSocket};

/// Accepts a client that the kernel has already connected.
///
/// # Errors
///
/// Fails with `WouldBlock` if there is none, or with an error of accept(2).
pub(crate) fn accept_now(listener: &net::TcpListener) -> io::Result<(ClientSocket, SocketAddr)> {
    let (socket, remote) = listener.accept()?;
    socket.set_nonblocking(true)?;
    Ok((client_socket(socket)?, remote))
}

/// More than a backlog can hold.
const MOST_WAITING: usize = 65_536;

/// Passes all clients that the kernel has already connected to `serve`, while there is room.
///
/// # Errors
///
/// Fails if no client can be accepted at all. The remaining clients are reset when the socket
/// closes.
pub(crate) fn accept_waiting<C>(
    mut accept: impl FnMut() -> io::Result<C>,
    has_room: impl Fn() -> bool,
    mut serve: impl FnMut(C),
) -> io::Result<()> {
    // Bounded, since new clients may arrive as fast as others are accepted.
    for _ in 0..MOST_WAITING {
        if !has_room() {
            break;
        }
        match accept() {
            Ok(client) => serve(client),
            Err(error) if concerns_one_client(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if the error concerns a single connection or call: accept(2) reports errors of a connection
/// late. The next call may succeed.
pub(crate) fn concerns_one_client(error: &io::Error) -> bool {
    // Each of these ends with the connection of one client; the listener is not affected.
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::{self, SocketAddr};

    use rustix::net::{SocketFlags, acceptfrom_with};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The socket of a client.
    pub(crate) type ClientSocket = crate::stream::LateSocket;

    /// A listening socket in the runtime.
    ///
    /// Not tokio's own type, which would register each client's socket before it has to wait.
    #[derive(Debug)]
    pub(crate) struct Acceptance(AsyncFd<net::TcpListener>);

    impl Acceptance {
        /// Registers a non-blocking socket.
        ///
        /// # Errors
        ///
        /// Fails if the registration fails.
        pub(crate) fn new(listener: net::TcpListener) -> io::Result<Self> {
            #[allow(
                deprecated,
                reason = "sound for what owns its descriptor, and its successor is unsafe to call"
            )]
            AsyncFd::with_interest(listener, Interest::READABLE).map(Self)
        }

        /// Waits for the next client. Cancel safe.
        ///
        /// # Errors
        ///
        /// Fails with the errors of accept(2).
        pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, SocketAddr)> {
            let accept = |listener: &net::TcpListener| {
                // Set by `accept4`, without further system calls.
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let (socket, remote) = acceptfrom_with(listener, flags)?;
                // A connection without an address is already gone.
                let remote = remote.ok_or(io::ErrorKind::ConnectionAborted)?;
                Ok((ClientSocket::new(socket.into()), remote.try_into()?))
            };
            self.0.async_io(Interest::READABLE, accept).await
        }

        /// Returns the socket, removed from the runtime.
        pub(crate) fn into_listener(self) -> io::Result<net::TcpListener> {
            Ok(self.0.into_inner())
        }
    }
}

#[cfg(target_os = "linux")]
fn client_socket(socket: net::TcpStream) -> io::Result<ClientSocket> {
    Ok(ClientSocket::new(socket))
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::net::{self, SocketAddr};

    use tokio::net::TcpListener;

    /// The socket of a client.
    pub(crate) type ClientSocket = tokio::net::TcpStream;

    /// A listening socket in the runtime.
    #[derive(Debug)]
    pub(crate) struct Acceptance(TcpListener);

    impl Acceptance {
        /// Registers a non-blocking socket.
        ///
        /// # Errors
        ///
        /// Fails if the registration fails.
        pub(crate) fn new(listener: net::TcpListener) -> io::Result<Self> {
            TcpListener::from_std(listener).map(Self)
        }

        /// Waits for the next client. Cancel safe.
        ///
        /// # Errors
        ///
        /// Fails with the errors of accept(2).
        pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, SocketAddr)> {
            self.0.accept().await
        }

        /// Returns the socket, removed from the runtime.
        pub(crate) fn into_listener(self) -> io::Result<net::TcpListener> {
            self.0.into_std()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn client_socket(socket: net::TcpStream) -> io::Result<ClientSocket> {
    ClientSocket::from_std(socket)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const TOO_MANY_OPEN_FILES: i32 = 24;

    /// Serves these clients and errors with room for `room` clients. Returns the served clients,
    /// the result, and the rest.
    fn served(waiting: Vec<io::Result<u8>>, room: usize) -> (Vec<u8>, io::Result<()>, usize) {
        let mut waiting = waiting.into_iter();
        let served = RefCell::new(Vec::new());
        let result = accept_waiting(
            || {
                let next = waiting.next();
                next.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
            },
            || served.borrow().len() < room,
            |client| served.borrow_mut().push(client),
        );
        (served.into_inner(), result, waiting.len())
    }

    #[test]
    fn one_client_that_cannot_be_accepted_does_not_concern_those_behind() {
        let waiting = vec![
            Ok(1),
            Err(io::ErrorKind::ConnectionAborted.into()),
            Err(io::ErrorKind::Interrupted.into()),
            Ok(2),
            Err(io::ErrorKind::ConnectionReset.into()),
            Ok(3),
        ];
        let (served, result, left) = served(waiting, 100);
        assert_eq!((served, left), (vec![1, 2, 3], 0));
        result.unwrap();
    }

    #[test]
    fn nobody_is_accepted_for_whom_the_process_has_no_room() {
        let (clients, result, left) = served((0..9).map(Ok).collect(), 4);
        assert_eq!((clients, left), (vec![0, 1, 2, 3], 5));
        result.unwrap();
        let starved = Err(io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES));
        let (clients, result, left) = served(vec![Ok(1), starved, Ok(2)], 100);
        assert_eq!((clients, left), (vec![1], 1));
        assert_eq!(
            result.unwrap_err().raw_os_error(),
            Some(TOO_MANY_OPEN_FILES)
        );
    }

    #[test]
    fn it_ends_whatever_the_system_says() {
        let aborted = || Err(io::ErrorKind::ConnectionAborted.into());
        accept_waiting(aborted, || true, |()| {}).unwrap();
        let mut clients = 0;
        accept_waiting(|| Ok(()), || true, |()| clients += 1).unwrap();
        assert_eq!(clients, MOST_WAITING);
    }
}
