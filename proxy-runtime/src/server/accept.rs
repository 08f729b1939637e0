//! Where clients come in.

use std::io;
use std::net::{self, SocketAddr};

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Acceptance, ClientSocket};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::portable::{Acceptance, ClientSocket};

/// The next of the clients whose connections the kernel has set up already.
///
/// # Errors
///
/// There is none, or it cannot be accepted.
pub(crate) fn accept_now(listener: &net::TcpListener) -> io::Result<(ClientSocket, SocketAddr)> {
    let (socket, remote) = listener.accept()?;
    socket.set_nonblocking(true)?;
    Ok((client_socket(socket)?, remote))
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

    /// A listening socket whose clients are waited for.
    ///
    /// Not the runtime's own, which would register each client's socket before anybody has to wait for it.
    #[derive(Debug)]
    pub(crate) struct Acceptance(AsyncFd<net::TcpListener>);

    impl Acceptance {
        /// Waits for the clients of a socket that does not block.
        ///
        /// # Errors
        ///
        /// The system does not let it be waited for.
        pub(crate) fn new(listener: net::TcpListener) -> io::Result<Self> {
            #[allow(
                deprecated,
                reason = "sound for what owns its descriptor, and its successor is unsafe to call"
            )]
            AsyncFd::with_interest(listener, Interest::READABLE).map(Self)
        }

        /// The next client. Cancel-safe.
        ///
        /// # Errors
        ///
        /// Those of accept(2).
        pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, SocketAddr)> {
            let accept = |listener: &net::TcpListener| {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let (socket, remote) = acceptfrom_with(listener, flags)?;
                let remote = remote.ok_or(io::ErrorKind::ConnectionAborted)?;
                Ok((ClientSocket::new(socket.into()), remote.try_into()?))
            };
            self.0.async_io(Interest::READABLE, accept).await
        }

        /// The socket, which nobody waits for any more.
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

    /// A listening socket whose clients are waited for.
    #[derive(Debug)]
    pub(crate) struct Acceptance(TcpListener);

    impl Acceptance {
        /// Waits for the clients of a socket that does not block.
        ///
        /// # Errors
        ///
        /// The system does not let it be waited for.
        pub(crate) fn new(listener: net::TcpListener) -> io::Result<Self> {
            TcpListener::from_std(listener).map(Self)
        }

        /// The next client. Cancel-safe.
        ///
        /// # Errors
        ///
        /// Those of accept(2).
        pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, SocketAddr)> {
            self.0.accept().await
        }

        /// The socket, which nobody waits for any more.
        pub(crate) fn into_listener(self) -> io::Result<net::TcpListener> {
            self.0.into_std()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn client_socket(socket: net::TcpStream) -> io::Result<ClientSocket> {
    ClientSocket::from_std(socket)
}
