//! The places of a name: addresses, or the servers of a service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proxy_model::config::DestinationConfig;
use proxy_model::{DestinationId, MAX_PRIORITY, MAX_WEIGHT};
use url::Url;

use super::lookup::SrvRecord;
use crate::discovery::Destinations;

/// One of the places that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Address(IpAddr),
    Server(SrvRecord),
}

/// The weight of a destination of weight 1 in a cluster where records have shares: fractions of 1 have a weight too.
const SCALE: f64 = 100.0;

/// A destination at one of the places of its name.
pub(super) struct Placed {
    id: DestinationId,
    destination: DestinationConfig,
    /// The share of requests within the servers of its priority; 1 is the mean. `None`: all have equal shares.
    share: Option<f64>,
}

/// Returns true if a name is that of a service, whose servers are found by SRV records: `_http._tcp.orders.example`.
pub fn is_service(name: &str) -> bool {
    let mut labels = name.split('.');
    labels
        .next()
        .is_some_and(|label| label.len() > 1 && label.starts_with('_'))
        && labels
            .next()
            .is_some_and(|label| label.eq_ignore_ascii_case("_tcp"))
        && labels.next().is_some()
}

/// Returns a destination that has no name to look up.
pub(super) fn unplaced(id: &DestinationId, destination: &DestinationConfig) -> Placed {
    Placed {
        id: id.clone(),
        destination: destination.clone(),
        share: None,
    }
}

/// Returns the destinations of a name at its `places`.
pub(super) fn placed<'a>(
    id: &'a DestinationId,
    destination: &'a DestinationConfig,
    url: &'a Url,
    places: &'a [Place],
) -> impl Iterator<Item = Placed> + 'a {
    let priorities: BTreeSet<u16> = servers(places).map(|server| server.priority).collect();
    places.iter().map(move |place| match place {
        Place::Address(address) => Placed {
            id: DestinationId::new(format!("{id}[{address}]")),
            destination: at_address(destination, url, *address),
            share: None,
        },
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
            Placed {
                id,
                destination: at,
                share: share(server, places),
            }
        }
    })
}

fn servers(places: &[Place]) -> impl Iterator<Item = &SrvRecord> {
    places.iter().filter_map(|place| match place {
        Place::Server(server) => Some(server),
        Place::Address(_) => None,
    })
}

/// Returns the weight of a server in the mean weights of its priority. `None` if all weights are the same.
fn share(server: &SrvRecord, places: &[Place]) -> Option<f64> {
    let peers = servers(places).filter(|other| other.priority == server.priority);
    let weights: Vec<f64> = peers.map(|peer| f64::from(peer.weight)).collect();
    let own = f64::from(server.weight);
    if weights.iter().all(|weight| *weight == own) {
        return None;
    }
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    Some(own / mean)
}

/// Returns the destinations of a cluster with weights that are the shares of records multiplied with `Weight`.
///
/// The servers of a service have together what as many addresses of a host would have, whatever the weights of
/// records are: beside other destinations, a change of one weight changes that server's share alone.
pub(super) fn weighed(placed: Vec<Placed>) -> Destinations {
    let own = |placed: &Placed| f64::from(placed.destination.weight.unwrap_or(1));
    let weight = |placed: &Placed| own(placed) * placed.share.unwrap_or(1.0);
    let greatest = placed.iter().map(weight).fold(1.0, f64::max);
    let scale = match placed.iter().any(|placed| placed.share.is_some()) {
        true => SCALE.min(f64::from(MAX_WEIGHT) / greatest),
        // Whole numbers as they are written.
        false => return placed.into_iter().map(|p| (p.id, p.destination)).collect(),
    };
    let all = placed.into_iter().map(|mut placed| {
        // A record without weight has a small chance beside others (RFC 2782).
        let least = if own(&placed) > 0.0 { 1.0 } else { 0.0 };
        let weight = (weight(&placed) * scale).round().max(least);
        placed.destination.weight = Some(weight as u32);
        (placed.id, placed.destination)
    });
    all.collect()
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
