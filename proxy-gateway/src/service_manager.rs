//! The service manager that starts the program, such as systemd: listening sockets that it passes, and
//! messages to it.
//!
//! Sockets use the protocol of `sd_listen_fds(3)`, messages that of `sd_notify(3)`. Without a service manager
//! there are no sockets, and messages are dropped.

use std::net::SocketAddr;

use listenfd::ListenFd;

use crate::settings::Settings;
use program_kit::Failure;

/// The log target.
const TARGET: &str = "proxy::service_manager";

/// A message to the service manager.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// The program serves.
    Ready,
    /// The program drains.
    Stopping,
}

/// Adds the sockets that the service manager passes. An address that already has sockets keeps those.
///
/// # Errors
///
/// A passed socket does not listen for TCP connections, or no listener of the settings has its address: its
/// clients would wait forever.
pub(crate) fn add_sockets(
    settings: &Settings,
    sockets: &mut Vec<std::net::TcpListener>,
) -> Result<(), Failure> {
    let mut passed = ListenFd::from_env();
    for index in 0..passed.len() {
        let socket = passed
            .take_tcp_listener(index)
            .and_then(|socket| socket.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
            .and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = socket.map_err(|error| unusable(&error))?;
        if !has_listener(settings, address) {
            return Err(unwanted(address));
        }
        if !has_socket(sockets, address) {
            tracing::info!(target: TARGET, %address, "listening on a socket of the service manager");
            sockets.push(socket);
        }
    }
    Ok(())
}

fn has_listener(settings: &Settings, address: SocketAddr) -> bool {
    let mut listeners = settings.listeners.iter().map(|listener| listener.address);
    let admin = settings.admin.as_ref();
    listeners.any(|listener| listener == address)
        || admin.is_some_and(|admin| admin.address == address)
}

fn has_socket(sockets: &[std::net::TcpListener], address: SocketAddr) -> bool {
    let mut addresses = sockets.iter().filter_map(|socket| socket.local_addr().ok());
    addresses.any(|found| found == address)
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::new(format!(
        "a socket of the service manager cannot be used: {error}; `ListenStream=` has to name an IP address and a port"
    ))
}

fn unwanted(address: SocketAddr) -> Failure {
    Failure::new(format!(
        "the service manager passes a socket for {address}, which neither `Listeners` nor `Admin` has; write the address \
         there exactly so"
    ))
}

/// Sends a message to the service manager, if there is one that expects it. A failure is logged, and the
/// program continues.
pub(crate) fn notify(message: Message) {
    #[cfg(unix)]
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = unix::send(&place, message)
    {
        tracing::warn!(target: TARGET, %error, ?message, "the service manager could not be notified");
    }
    #[cfg(not(unix))]
    tracing::trace!(target: TARGET, ?message, "there is no service manager to notify");
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::io;
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt;
    #[cfg(target_os = "linux")]
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::Message;

    pub(super) fn send(place: &OsStr, message: Message) -> io::Result<()> {
        let text: &[u8] = match message {
            Message::Ready => b"READY=1",
            Message::Stopping => b"STOPPING=1",
        };
        let socket = UnixDatagram::unbound()?;
        // The service manager may be slow, and requests must not wait for it.
        socket.set_nonblocking(true)?;
        socket.send_to_addr(text, &address(place)?).map(|_| ())
    }

    /// Parses a path, or a name of Linux's abstract namespace after an `@`.
    fn address(place: &OsStr) -> io::Result<SocketAddr> {
        #[cfg(target_os = "linux")]
        if let Some(name) = place.as_bytes().strip_prefix(b"@") {
            return <SocketAddr as SocketAddrExt>::from_abstract_name(name);
        }
        SocketAddr::from_pathname(place)
    }
}
