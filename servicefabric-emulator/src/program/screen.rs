use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use program_kit::{Failure, print};
use servicefabric_emulator::cluster::{NodeStatusFilter, PageRequest};
use servicefabric_emulator::gateway::Emulator;

use super::cli::Serve;

/// Prints what runs and what to try. The last line appears when everything else is running.
pub(super) fn show(emulator: &Emulator, options: &Serve) -> Result<(), Failure> {
    if emulator.address().ip().is_unspecified() && !secured(options) {
        tracing::warn!(
            "every client that reaches this machine may change the cluster, stop nodes and move \
             time: no certificate and no token is required"
        );
    }
    let text = text(emulator, options).expect("a string takes all text");
    print(&text)
}

/// Returns the URL of the gateway on this machine. The wildcard address, which cannot be connected to, is
/// replaced.
fn endpoint(emulator: &Emulator) -> String {
    let listens = emulator.address();
    let reached = reached(listens);
    emulator
        .endpoint()
        .replace(&listens.to_string(), &reached.to_string())
}

fn reached(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port())
}

fn text(emulator: &Emulator, options: &Serve) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let endpoint = endpoint(emulator);
    let (counts, first) = emulator.with_cluster(|cluster| {
        let page = PageRequest::default();
        let nodes = cluster.nodes(NodeStatusFilter::All, &page).items.len();
        let applications = cluster.applications(None, &page).items;
        let services: usize = applications
            .iter()
            .map(|application| application.services.len())
            .sum();
        let first = applications.iter().find_map(|application| {
            let service = application.services.first()?;
            Some((application.name.id(), service.id()))
        });
        let counts = format!(
            "cluster `{}`: {nodes} nodes, {} applications, {services} services",
            cluster.name(),
            applications.len()
        );
        (counts, first)
    });
    writeln!(text, "servicefabric-emulator {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(text, "{counts}")?;
    writeln!(text)?;
    writeln!(text, "Try:")?;
    if secured(options) {
        writeln!(
            text,
            "  clients need a certificate or a token, as the options say"
        )?;
    }
    writeln!(text, "  curl '{endpoint}/Nodes?api-version=6.0'")?;
    writeln!(text, "  sfctl cluster select --endpoint {endpoint}")?;
    if let Some((application, service)) = first {
        writeln!(text, "  sfctl service list --application-id {application}")?;
        writeln!(text, "  sfctl partition list --service-id {service}")?;
        writeln!(
            text,
            "  curl '{endpoint}/Services/{service}/$/ResolvePartition?api-version=6.0'"
        )?;
        writeln!(
            text,
            "  curl -X POST '{endpoint}/emulator/services/{service}/$/scale' -d '{{\"Count\":2}}'"
        )?;
    }
    writeln!(
        text,
        "  curl '{endpoint}/emulator'     # the emulator's own calls: time, faults, crashes"
    )?;
    if !options.services {
        writeln!(text)?;
        writeln!(
            text,
            "Nothing listens at the addresses of replicas; --services puts HTTP servers there."
        )?;
    }
    writeln!(text)?;
    writeln!(text, "Ctrl-C stops it.")?;
    writeln!(text, "ready at {endpoint}")?;
    Ok(text)
}

fn secured(options: &Serve) -> bool {
    let security = &options.security;
    security.client_ca.is_some()
        || security.reader_ca.is_some()
        || !security.bearer.is_empty()
        || !security.reader_bearer.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_reached_at_the_loopback() {
        for (listens, expected) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.5:1", "10.0.0.5:1"),
        ] {
            let listens = listens.parse().expect("an address");
            assert_eq!(reached(listens).to_string(), expected);
        }
    }
}
