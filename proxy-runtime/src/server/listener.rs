//! Listening sockets: one per worker and address, so that the kernel distributes the connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, TcpKeepalive, Type};

use super::proxy_protocol::ProxyProtocol;
#[cfg(feature = "tls")]
use super::tls::TlsServerConfig;
use super::worker::Socket;
use crate::connection::ListenerRules;

/// An address to listen on, with its protocol.
#[derive(Clone, Debug)]
pub struct Listener {
    name: Option<String>,
    address: SocketAddr,
    #[cfg(feature = "tls")]
    tls: Option<TlsServerConfig>,
    rules: ListenerRules,
    proxy_protocol: Option<ProxyProtocol>,
}

impl Listener {
    /// Listens for cleartext: HTTP/1.1, and HTTP/2 with prior knowledge.
    ///
    /// Port 0 takes a free port, see [`Server::local_addrs`](super::Server::local_addrs). The IPv6
    /// address `[::]` includes IPv4, unless the server also listens on the same port of `0.0.0.0`.
    pub fn http(address: SocketAddr) -> Self {
        Self {
            name: None,
            address,
            #[cfg(feature = "tls")]
            tls: None,
            rules: ListenerRules::default(),
            proxy_protocol: None,
        }
    }

    /// Listens for TLS: HTTP/2 or HTTP/1.1, chosen by ALPN.
    #[cfg(feature = "tls")]
    pub fn https(address: SocketAddr, tls: TlsServerConfig) -> Self {
        Self {
            name: None,
            address,
            tls: Some(tls),
            rules: ListenerRules::default(),
            proxy_protocol: None,
        }
    }

    /// Sets the name on the admin page. Default: the address.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the rules for requests. Default: the rules that apply to all listeners.
    #[must_use]
    pub fn with_rules(mut self, rules: ListenerRules) -> Self {
        self.rules = rules;
        self
    }

    /// Requires the [PROXY protocol](ProxyProtocol) of all connections. Default: none is read.
    #[must_use]
    pub fn with_proxy_protocol(mut self, protocol: ProxyProtocol) -> Self {
        self.proxy_protocol = Some(protocol);
        self
    }

    /// The configured address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name; by default the address.
    #[cfg(feature = "admin")]
    pub(crate) fn name(&self) -> String {
        let address = || self.address.to_string();
        self.name.clone().unwrap_or_else(address)
    }

    /// The rules for requests.
    #[cfg(feature = "admin")]
    pub(crate) fn rules(&self) -> ListenerRules {
        self.rules
    }

    /// The TLS settings, if it uses TLS.
    #[cfg(all(feature = "admin", feature = "tls"))]
    pub(crate) fn tls(&self) -> Option<&TlsServerConfig> {
        self.tls.as_ref()
    }

    /// Wraps one socket of the listener.
    pub(crate) fn socket(&self, listener: TcpListener) -> Socket {
        Socket {
            listener,
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
            rules: self.rules,
            proxy_protocol: self.proxy_protocol.clone(),
        }
    }
}

/// An error that prevents listening on an address.
///
/// The message says how to correct it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// No listener was configured.
    #[error("there is no address to listen on")]
    NoAddress,
    /// The port is in use.
    #[error(
        "cannot listen on {address}: another program listens there; choose another port or stop that program"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The server listens on another address that includes this one.
    #[error(
        "cannot listen on {address}: the server listens on {other} already, which includes it; choose another port, \
         or leave one of them out"
    )]
    Overlap {
        /// The address.
        address: SocketAddr,
        /// The other address.
        other: SocketAddr,
    },
    /// The process lacks the permission for the port.
    #[error(
        "cannot listen on {address}: permission denied; choose a port from 1024 on, or give the program the right to \
         take a lower one (on Linux CAP_NET_BIND_SERVICE)"
    )]
    PermissionDenied {
        /// The address.
        address: SocketAddr,
    },
    /// The machine does not have the address.
    #[error(
        "cannot listen on {address}: this machine does not have that address; choose one of its own, or 0.0.0.0 or \
         [::] for all of them"
    )]
    NotAvailable {
        /// The address.
        address: SocketAddr,
    },
    /// Another error of the system.
    #[error("cannot listen on {address}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system error.
        source: io::Error,
    },
}

impl BindError {
    fn new(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { address },
            io::ErrorKind::AddrNotAvailable => Self::NotAvailable { address },
            _ => Self::Io { address, source },
        }
    }
}

/// The options of listening sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOptions {
    pub(crate) workers: usize,
    pub(crate) backlog: u32,
    /// True if another process that shares its port may listen on the same one.
    pub(crate) share_port: bool,
}

/// The sockets of one address: at least one per worker.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) address: SocketAddr,
    pub(crate) sockets: Vec<TcpListener>,
}

/// Binds `address` for every worker, unless there are inherited sockets. `all` are the addresses of
/// the server.
pub(crate) fn bind(
    address: SocketAddr,
    all: &[SocketAddr],
    options: SocketOptions,
    inherited: Vec<TcpListener>,
) -> Result<Bound, BindError> {
    let bound = if inherited.is_empty() {
        bind_all(address, all, options)
    } else {
        share_out(inherited, options.workers).map(|sockets| Bound { address, sockets })
    };
    bound.map_err(|source| BindError::new(address, source))
}

/// Removes and returns the sockets of an address.
pub(crate) fn take(address: SocketAddr, sockets: &mut Vec<TcpListener>) -> Vec<TcpListener> {
    let is_of = |socket: &mut TcpListener| socket.local_addr().is_ok_and(|of| of == address);
    sockets.extract_if(.., is_of).collect()
}

fn bind_all(address: SocketAddr, all: &[SocketAddr], options: SocketOptions) -> io::Result<Bound> {
    let only_v6 = !is_dual_stack(address, all);
    if SHARES_PORTS && !options.share_port && address.port() != 0 {
        // With SO_REUSEPORT a second instance of the same user would bind without an error and take half of the
        // connections. A socket without it sees the conflict.
        drop(open(address, only_v6, false, options.backlog)?);
    }
    let first = open(address, only_v6, SHARES_PORTS, options.backlog)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    while sockets.len() < options.workers {
        let next = if SHARES_PORTS {
            open(address, only_v6, true, options.backlog)?
        } else {
            sockets[0].try_clone()?
        };
        sockets.push(next);
    }
    Ok(Bound { address, sockets })
}

/// Provides at least one socket per worker. No inherited socket is dropped, since the kernel queues
/// clients at each.
fn share_out(mut sockets: Vec<TcpListener>, workers: usize) -> io::Result<Vec<TcpListener>> {
    let distinct = sockets.len();
    for socket in &sockets {
        // Another program may have made them blocking.
        socket.set_nonblocking(true)?;
    }
    for worker in distinct..workers {
        sockets.push(sockets[worker % distinct].try_clone()?);
    }
    Ok(sockets)
}

/// Keep-alive begins after a minute of silence; the system decides about the number of probes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));

/// True if each worker gets its own socket, over which the kernel distributes connections.
/// Elsewhere the option of the same name gives all connections to one socket, so the workers share
/// it.
const SHARES_PORTS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Checks that a server could listen on `address`, one of `all` its addresses, without listening: no
/// connection is lost to the socket.
///
/// # Errors
///
/// The error that a server that binds the address now would fail with.
pub fn probe(address: SocketAddr, all: &[SocketAddr]) -> Result<(), BindError> {
    let bound = bound(address, !is_dual_stack(address, all), false);
    bound
        .map(drop)
        .map_err(|source| BindError::new(address, source))
}

/// Returns true if a server that has `all` these addresses cannot listen on both: they are the same, or one includes
/// the other. Port 0 takes a free port.
pub fn overlap(one: SocketAddr, other: SocketAddr, all: &[SocketAddr]) -> bool {
    let is_any = |address: SocketAddr| address.ip().is_unspecified();
    one.port() == other.port()
        && one.port() != 0
        && match (one.is_ipv4(), other.is_ipv4()) {
            (true, true) | (false, false) => one == other || is_any(one) || is_any(other),
            (false, true) => is_dual_stack(one, all),
            (true, false) => is_dual_stack(other, all),
        }
}

fn open(
    address: SocketAddr,
    only_v6: bool,
    reuse_port: bool,
    backlog: u32,
) -> io::Result<TcpListener> {
    let socket = bound(address, only_v6, reuse_port)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

fn bound(address: SocketAddr, only_v6: bool, reuse_port: bool) -> io::Result<RawSocket> {
    let socket = RawSocket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    // On other systems the option allows stealing the address.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_reuse_port(reuse_port)?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = reuse_port;
    // Accepted connections inherit the option, which detects vanished clients while nothing is
    // sent.
    socket.set_tcp_keepalive(&KEEPALIVE)?;
    // Inherited as well. Set before `listen`, since a connection copies the value of that moment.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// True if connections inherit `TCP_NODELAY` from the listening socket, which another process may
/// have opened.
pub(crate) fn sends_at_once(listener: &TcpListener) -> bool {
    // Linux creates the socket of a connection as a copy of the listening one.
    cfg!(target_os = "linux") && SockRef::from(listener).tcp_nodelay().unwrap_or(false)
}

/// True if `[::]` should include IPv4: unless the server listens on the same port of `0.0.0.0`.
fn is_dual_stack(address: SocketAddr, all: &[SocketAddr]) -> bool {
    let is_any_v4 = |other: &SocketAddr| {
        other.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && other.port() == address.port()
    };
    address.is_ipv6()
        && address.ip().is_unspecified()
        && (address.port() == 0 || !all.iter().any(is_any_v4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(workers: usize) -> SocketOptions {
        SocketOptions {
            workers,
            backlog: 16,
            share_port: false,
        }
    }

    fn loopback(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn every_worker_gets_a_socket_on_the_same_free_port() {
        let bound = bind(loopback(0), &[], options(3), Vec::new()).unwrap();
        assert_ne!(bound.address.port(), 0);
        assert_eq!(bound.sockets.len(), 3);
        for socket in &bound.sockets {
            assert_eq!(socket.local_addr().unwrap(), bound.address);
        }
    }

    #[test]
    fn a_port_of_another_program_is_reported_with_what_to_do() {
        let other = TcpListener::bind(loopback(0)).unwrap();
        let address = other.local_addr().unwrap();
        let error = bind(address, &[], options(2), Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on {address}: another program listens there; choose another port or stop that program"
            )
        );
    }

    #[test]
    fn a_second_instance_does_not_share_the_port_by_accident() {
        let first = bind(loopback(0), &[], options(2), Vec::new()).unwrap();
        let error = bind(first.address, &[], options(2), Vec::new()).unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_second_instance_shares_the_port_when_told_to() {
        let first = bind(loopback(0), &[], options(1), Vec::new()).unwrap();
        let sharing = SocketOptions {
            share_port: true,
            ..options(1)
        };
        let second = bind(first.address, &[], sharing, Vec::new()).unwrap();
        assert_eq!(second.address, first.address);
    }

    #[test]
    fn inherited_sockets_are_used_whatever_the_number_of_workers() {
        let first = bind(loopback(0), &[], options(2), Vec::new()).unwrap();
        let address = first.address;
        for (workers, expected) in [(1, 2), (2, 2), (5, 5)] {
            let sockets = first
                .sockets
                .iter()
                .map(|socket| socket.try_clone().unwrap());
            let next = bind(address, &[], options(workers), sockets.collect()).unwrap();
            assert_eq!((next.address, next.sockets.len()), (address, expected));
        }
    }

    #[test]
    fn sockets_are_found_by_the_address_that_they_have() {
        let [one, two] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [first, second] = [&one, &two].map(|socket| socket.local_addr().unwrap());
        let mut sockets = vec![one.try_clone().unwrap(), two, one];
        assert_eq!(take(first, &mut sockets).len(), 2);
        assert_eq!(take(first, &mut sockets).len(), 0);
        assert_eq!(sockets.len(), 1);
        assert_eq!(take(second, &mut sockets).len(), 1);
        assert!(sockets.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn connections_are_probed() {
        let bound = bind(loopback(0), &[], options(1), Vec::new()).unwrap();
        let _client = std::net::TcpStream::connect(bound.address).unwrap();
        bound.sockets[0].set_nonblocking(false).unwrap();
        let (connection, _) = bound.sockets[0].accept().unwrap();
        let connection = SockRef::from(&connection);
        assert!(connection.keepalive().unwrap());
        assert_eq!(
            connection.tcp_keepalive_time().unwrap(),
            Duration::from_secs(60)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn connections_send_at_once() {
        let bound = bind(loopback(0), &[], options(1), Vec::new()).unwrap();
        let of_others = TcpListener::bind(loopback(0)).unwrap();
        for (listener, expected) in [(&bound.sockets[0], true), (&of_others, false)] {
            listener.set_nonblocking(false).unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert_eq!(sends_at_once(listener), expected);
            let (connection, _) = listener.accept().unwrap();
            assert_eq!(connection.nodelay().unwrap(), expected);
        }
    }

    #[test]
    fn an_address_of_another_machine_is_reported_with_what_to_do() {
        // TEST-NET-1 of RFC 5737 belongs to no machine.
        let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 0));
        let error = bind(address, &[], options(1), Vec::new()).unwrap_err();
        assert!(matches!(error, BindError::NotAvailable { .. }), "{error:?}");
    }

    #[test]
    fn addresses_that_include_each_other_overlap() {
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:0", "0.0.0.0:0", false),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::]:80", "0.0.0.0:80", false),
            ("[::1]:80", "127.0.0.1:80", false),
        ] {
            let [a, b] = [one, other].map(|text| text.parse().unwrap());
            assert_eq!(overlap(a, b, &[a, b]), expected, "{one} {other}");
            assert_eq!(overlap(b, a, &[a, b]), expected, "{other} {one}");
        }
    }

    /// The check agrees with the operating system.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_rejects_the_addresses_that_overlap() {
        let port = bind(loopback(0), &[], options(1), Vec::new())
            .unwrap()
            .address
            .port();
        let hosts = ["127.0.0.1", "0.0.0.0", "[::]", "[::1]", "127.0.0.2"];
        let hosts = hosts.map(|host| format!("{host}:{port}").parse::<SocketAddr>().unwrap());
        for one in hosts {
            for other in hosts {
                let all = [one, other];
                // A machine may have no IPv6.
                let Ok(_first) = bind(one, &all, options(1), Vec::new()) else {
                    continue;
                };
                let second = bind(other, &all, options(1), Vec::new());
                if let Err(BindError::NotAvailable { .. } | BindError::Io { .. }) = second {
                    continue;
                }
                assert_eq!(second.is_err(), overlap(one, other, &all), "{one} {other}");
            }
        }
    }

    #[test]
    fn the_unspecified_ipv6_address_takes_ipv4_unless_that_is_listened_on() {
        let v6: SocketAddr = "[::]:80".parse().unwrap();
        let v4: SocketAddr = "0.0.0.0:80".parse().unwrap();
        let other: SocketAddr = "0.0.0.0:81".parse().unwrap();
        assert!(is_dual_stack(v6, &[v6]));
        assert!(is_dual_stack(v6, &[v6, other]));
        assert!(!is_dual_stack(v6, &[v6, v4]));
        assert!(!is_dual_stack("[::1]:80".parse().unwrap(), &[]));
    }
}
