//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Parser;

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
const CLUSTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 19080);

/// A demo of service discovery: an emulated Service Fabric cluster in this process, whose services are
/// discovered, routed and balanced, and change over a minute.
#[derive(Debug, Parser)]
#[command(name = "demo", version)]
pub(crate) struct Options {
    /// Address of the proxy
    #[arg(long, value_name = "IP:PORT", default_value_t = LISTEN)]
    pub(crate) listen: SocketAddr,
    /// Address of the admin page
    #[arg(long, value_name = "IP:PORT", default_value_t = ADMIN)]
    pub(crate) admin: SocketAddr,
    /// Address of the emulated cluster's REST gateway
    #[arg(long, value_name = "IP:PORT", default_value_t = CLUSTER)]
    pub(crate) cluster: SocketAddr,
    /// Play the story once and stop, instead of repeating it
    #[arg(long)]
    pub(crate) once: bool,
    /// Play the story this many times faster
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) speed: u32,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
