//! The socket of the admin page.

use std::io;
use std::net::SocketAddr;

use program_kit::Failure;
use tokio::net::TcpListener;

/// The listening socket of the admin page.
pub(crate) struct AdminSocket {
    pub(crate) address: SocketAddr,
    pub(crate) socket: std::net::TcpListener,
    pub(crate) is_inherited: bool,
}

impl AdminSocket {
    /// Opens the socket, or takes it from `inherited`.
    pub(crate) async fn open(
        address: SocketAddr,
        inherited: &mut Vec<std::net::TcpListener>,
    ) -> Result<Self, Failure> {
        // An inherited socket keeps the connections that wait in its queue.
        let of_predecessor = inherited
            .iter()
            .position(|socket| socket.local_addr().is_ok_and(|of| of == address))
            .map(|place| inherited.swap_remove(place));
        let is_inherited = of_predecessor.is_some();
        let opened = match of_predecessor {
            Some(socket) => Ok(socket),
            None => TcpListener::bind(address)
                .await
                .and_then(TcpListener::into_std),
        };
        let found = opened.and_then(|socket| Ok((socket.local_addr()?, socket)));
        match found {
            Ok((address, socket)) => Ok(Self {
                address,
                socket,
                is_inherited,
            }),
            Err(error) => Err(admin_cannot_listen(address, &error)),
        }
    }

    /// Registers the socket with the runtime that will serve it.
    pub(crate) fn listener(self) -> Result<TcpListener, Failure> {
        let address = self.address;
        // Another program may have opened it, or made it blocking.
        let socket = self.socket.set_nonblocking(true).map(|()| self.socket);
        let listener = socket.and_then(TcpListener::from_std);
        listener.map_err(|error| admin_cannot_listen(address, &error))
    }
}

fn admin_cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there; choose another port in `Admin.Address`, or stop that program".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new(format!("the admin page cannot listen on {address}: {hint}"))
}
