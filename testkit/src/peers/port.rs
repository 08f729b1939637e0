use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Returns a port of `127.0.0.1` that is free, for programs that cannot choose a port and report it.
///
/// On Linux the port is below those that the kernel assigns, and no other caller gets it before this process has ended,
/// also none in another process. Elsewhere another program may take the port first; the test then fails with the output
/// of the program.
///
/// # Panics
///
/// Panics if no port can be bound.
#[track_caller]
pub fn free_port() -> u16 {
    #[cfg(target_os = "linux")]
    if let Some(port) = reserved::next() {
        return port;
    }
    match assigned() {
        Ok(port) => port,
        Err(error) => panic!("no free port on loopback: {error}"),
    }
}

/// A port that the kernel has assigned.
fn assigned() -> io::Result<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(bound.local_addr()?.port())
}

#[cfg(target_os = "linux")]
mod reserved {
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The first port that is tried. Many services have fixed ports below it.
    const FIRST: u32 = 12_000;

    /// Returns a port that this process keeps for itself. `None` if there is none.
    pub(super) fn next() -> Option<u16> {
        static TRIED: AtomicU32 = AtomicU32::new(0);
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let assigned: u32 = range.split_whitespace().next()?.parse().ok()?;
        let span = assigned.checked_sub(FIRST).filter(|span| *span > 0)?;
        // Processes that are started one after the other begin far apart.
        let begin = std::process::id().wrapping_mul(197);
        (0..span).find_map(|_| {
            let nth = TRIED.fetch_add(1, Ordering::Relaxed);
            let port = FIRST + begin.wrapping_add(nth) % span;
            let port = u16::try_from(port).ok()?;
            is_reserved(port).then_some(port)
        })
    }

    /// Reserves a port. Returns false if another caller has it, or a program uses it.
    fn is_reserved(port: u16) -> bool {
        // The kernel forgets the name when the process has ended.
        let name = SocketAddr::from_abstract_name(format!("testkit-port-{port}"));
        let Ok(mark) = name.and_then(|name| UnixDatagram::bind_addr(&name)) else {
            return false;
        };
        let _: &UnixDatagram = Box::leak(Box::new(mark));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    }
}
