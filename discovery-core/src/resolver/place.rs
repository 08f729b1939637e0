//! The places of a name: addresses, or the servers of a service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proxy_model::config::DestinationConfig;
use proxy_model::{DestinationId, MAX_PRIORITY, MAX_WEIGHT};
use url::Url;

use super::lookup::SrvRecord;

/// One of the places that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Address(IpAddr),
    Server(SrvRecord),
}

/// Factor between the weight of a record and that of a destination. A record without weight has a small chance
/// beside others (RFC 2782).
const SCALE: u32 = 10;

/// Returns true if a name is that of a service, whose servers are found by SRV records: `_http._tcp.orders.example`.
pub(super) fn is_service(name: &str) -> bool {
    let mut labels = name.split('.');
    labels
        .next()
        .is_some_and(|label| label.len() > 1 && label.starts_with('_'))
        && labels
            .next()
            .is_some_and(|label| label.eq_ignore_ascii_case("_tcp"))
        && labels.next().is_some()
}

/// Returns the destinations of a name at its `places`.
pub(super) fn placed<'a>(
    id: &'a DestinationId,
    destination: &'a DestinationConfig,
    url: &'a Url,
    places: &'a [Place],
) -> impl Iterator<Item = (DestinationId, DestinationConfig)> + 'a {
    let priorities: BTreeSet<u16> = servers(places).map(|server| server.priority).collect();
    places.iter().map(move |place| match place {
        Place::Address(address) => {
            let id = DestinationId::new(format!("{id}[{address}]"));
            (id, at_address(destination, url, *address))
        }
        Place::Server(server) => {
            let id = DestinationId::new(format!("{id}[{}:{}]", server.target, server.port));
            let mut at = at_server(destination, url, server);
            let tier = priorities.range(..server.priority).count();
            let tier = u32::try_from(tier).unwrap_or(MAX_PRIORITY);
            at.priority = Some(
                at.priority
                    .unwrap_or(0)
                    .saturating_add(tier)
                    .min(MAX_PRIORITY),
            );
            at.weight = Some(weight(destination.weight.unwrap_or(1), server, places));
            (id, at)
        }
    })
}

fn servers(places: &[Place]) -> impl Iterator<Item = &SrvRecord> {
    places.iter().filter_map(|place| match place {
        Place::Server(server) => Some(server),
        Place::Address(_) => None,
    })
}

fn weight(own: u32, server: &SrvRecord, places: &[Place]) -> u32 {
    let mut peers = servers(places).filter(|other| other.priority == server.priority);
    let factor = match server.weight {
        0 => 1,
        _ if peers.all(|peer| peer.weight == server.weight) => 1,
        weight => u32::from(weight) * SCALE,
    };
    own.saturating_mul(factor).min(MAX_WEIGHT)
}

/// The destination at one of the addresses of its host.
fn at_address(destination: &DestinationConfig, url: &Url, ip: IpAddr) -> DestinationConfig {
    let mut at = destination.clone();
    at.address = with_ip(url.clone(), ip);
    at.health = destination.health.as_ref().map(|health| {
        Url::parse(health).map_or_else(|_| health.clone(), |health| with_ip(health, ip))
    });
    at.host.get_or_insert_with(|| authority(url));
    at
}

fn with_ip(mut url: Url, ip: IpAddr) -> String {
    // It fails only for URLs that cannot have a host; those keep what they have.
    let _ = url.set_ip_host(ip);
    url.into()
}

/// Host and port as written; the scheme's own port is not written.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The destination at one of the servers of its service. Its `Host` is the server's name, unless it has one.
fn at_server(destination: &DestinationConfig, url: &Url, server: &SrvRecord) -> DestinationConfig {
    let mut at = destination.clone();
    at.address = with_server(url.clone(), server);
    at.health = destination
        .health
        .as_ref()
        .map(|health| match Url::parse(health) {
            Ok(health) if health.host_str() == url.host_str() => with_server(health, server),
            _ => health.clone(),
        });
    at
}

fn with_server(mut url: Url, server: &SrvRecord) -> String {
    // What is no host was left out before.
    let _ = url.set_host(Some(&server.target));
    let _ = url.set_port(Some(server.port));
    url.into()
}
