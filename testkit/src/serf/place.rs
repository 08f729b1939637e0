use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of ports to try before giving up.
const ATTEMPTS: usize = 20;

/// The addresses of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Gossip, over TCP and UDP.
    pub(super) gossip: SocketAddr,
    /// RPC, over TCP.
    pub(super) rpc: SocketAddr,
}

impl Place {
    /// Chooses two ports of `ip` that were free a moment ago: an agent cannot report ports that it
    /// chose itself.
    #[track_caller]
    pub(super) fn free_on(ip: IpAddr) -> Self {
        let found = (0..ATTEMPTS).find_map(|_| try_free_on(ip).ok());
        found.unwrap_or_else(|| panic!("no free ports on {ip}: {:?}", try_free_on(ip)))
    }
}

fn try_free_on(ip: IpAddr) -> io::Result<Place> {
    let gossip = TcpListener::bind((ip, 0))?;
    let rpc = TcpListener::bind((ip, 0))?;
    let place = Place {
        gossip: gossip.local_addr()?,
        rpc: rpc.local_addr()?,
    };
    UdpSocket::bind(place.gossip)?;
    Ok(place)
}

/// A rarely used loopback address, so that a free port stays free: outgoing connections of other
/// tests use ports of `127.0.0.1`.
pub(crate) fn own_loopback() -> IpAddr {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    // Only Linux has all of 127.0.0.0/8 without configuration.
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST.into();
    }
    let nth = STARTED.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let octet = |number: u32| u8::try_from(number % 254 + 1).expect("it is at most 254");
    Ipv4Addr::new(127, octet(process / 254), octet(process), octet(nth)).into()
}
