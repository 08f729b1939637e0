//! Names, domains and addresses that only one service can have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use xds_types::pb::envoy::config::core::v3::address::Address as AnyAddress;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::VirtualHost;

use super::accepted::Accepted;
use super::encode;
use super::lost::{targets, without};
use super::outcome::Warning;
use super::services::Owner;
use crate::snapshot::Resource;

/// The owners of the names, domains and addresses that are served. Owners of the same rank keep them while they claim
/// them, so that a newcomer cannot take the place of one that serves.
#[derive(Debug, Default)]
pub(super) struct Holders {
    clusters: HashMap<String, Owner>,
    listeners: HashMap<String, Owner>,
    addresses: HashMap<String, Owner>,
    domains: HashMap<String, Owner>,
}

/// The names that owners held before and claim again, each with owner and rank.
type Reserved<'s> = HashMap<String, (usize, &'s Owner)>;

/// The served resources of all services. The first service to claim a name or domain gets it.
#[derive(Debug, Default)]
pub(super) struct Claims<'s> {
    reserved_clusters: Reserved<'s>,
    reserved_listeners: Reserved<'s>,
    reserved_addresses: Reserved<'s>,
    reserved_domains: Reserved<'s>,
    clusters: HashMap<&'s str, &'s Owner>,
    endpoints: HashMap<&'s str, &'s Owner>,
    listeners: HashMap<&'s str, &'s Owner>,
    addresses: HashMap<String, &'s Owner>,
    /// The owners by domain. Domains are in lower case, as Envoy compares them.
    domains: HashMap<String, &'s Owner>,
    pub(super) served: ServedResources,
    pub(super) warnings: Vec<Warning>,
}

/// The served resources.
#[derive(Debug, Default)]
pub(super) struct ServedResources {
    pub(super) clusters: Vec<Arc<Resource>>,
    pub(super) endpoints: Vec<Arc<Resource>>,
    /// The owners of the endpoints.
    pub(super) endpoint_owners: BTreeMap<Arc<str>, Owner>,
    pub(super) hosts: Vec<Bytes>,
    pub(super) listeners: Vec<Arc<Resource>>,
}

impl<'s> Claims<'s> {
    /// Reserves the names that a service held before and still claims. All services do so before the first one
    /// claims new names.
    pub(super) fn reserve(
        &mut self,
        owner: &'s Owner,
        rank: usize,
        accepted: &Accepted,
        before: &Holders,
    ) {
        let keep = |reserved: &mut Reserved<'s>, before: &HashMap<String, Owner>, key: String| {
            if before.get(&key) == Some(owner) {
                reserved.insert(key, (rank, owner));
            }
        };
        for resource in &accepted.clusters {
            let name = resource.name().to_string();
            keep(&mut self.reserved_clusters, &before.clusters, name);
        }
        let resources = accepted.resources();
        for domain in resources.virtual_hosts.iter().flat_map(|h| &h.domains) {
            let key = domain.to_ascii_lowercase();
            keep(&mut self.reserved_domains, &before.domains, key);
        }
        for listener in &resources.listeners {
            let name = listener.name.clone();
            keep(&mut self.reserved_listeners, &before.listeners, name);
            if let Some(address) = address_of(listener) {
                keep(&mut self.reserved_addresses, &before.addresses, address);
            }
        }
    }

    /// The owners of everything that was claimed.
    pub(super) fn holders(&self) -> Holders {
        let owned = |(key, owner): (&&str, &&Owner)| ((*key).to_owned(), (*owner).clone());
        let named = |(key, owner): (&String, &&Owner)| (key.clone(), (*owner).clone());
        Holders {
            clusters: self.clusters.iter().map(owned).collect(),
            listeners: self.listeners.iter().map(owned).collect(),
            addresses: self.addresses.iter().map(named).collect(),
            domains: self.domains.iter().map(named).collect(),
        }
    }

    /// Claims the resources of a service. Services with the better claim must come first.
    pub(super) fn claim(&mut self, owner: &'s Owner, rank: usize, accepted: &'s Accepted) {
        let mut lost = BTreeSet::new();
        for resource in &accepted.clusters {
            let name: &str = resource.name();
            let first = self.clusters.get(name).copied();
            if let Some(first) =
                first.or_else(|| held_by_another(&self.reserved_clusters, name, owner, rank))
            {
                let message = format!(
                    "the cluster {name} is that of {first}; the one of this service is not served, nor are the routes to it"
                );
                self.warnings
                    .push(Warning::new(owner.clone(), "name_taken", message));
                lost.insert(name);
                continue;
            }
            self.clusters.insert(name, owner);
            self.served.clusters.push(Arc::clone(resource));
        }
        for (name, endpoints) in &accepted.endpoints {
            if lost.contains(name.as_str()) || self.endpoints.contains_key(name.as_str()) {
                continue;
            }
            self.endpoints.insert(name, owner);
            let resource = &endpoints.resource;
            self.served
                .endpoint_owners
                .insert(Arc::clone(resource.name()), owner.clone());
            self.served.endpoints.push(Arc::clone(resource));
        }
        let messages = &accepted.resources().virtual_hosts;
        for (host, encoded) in messages.iter().zip(&accepted.hosts) {
            if !targets(host).any(|target| lost.contains(target)) {
                self.claim_host(owner, rank, host, encoded);
            } else if let Some(rest) = without(host, &lost) {
                let encoded = encode::virtual_host(&rest);
                self.claim_host(owner, rank, &rest, &encoded);
            }
        }
        let messages = &accepted.resources().listeners;
        for (listener, resource) in messages.iter().zip(&accepted.listeners) {
            self.claim_listener(owner, rank, listener, resource);
        }
    }

    fn claim_host(&mut self, owner: &'s Owner, rank: usize, host: &VirtualHost, encoded: &Bytes) {
        let mut own = Vec::new();
        for domain in &host.domains {
            let key = domain.to_ascii_lowercase();
            let first = self.domains.get(&key).copied();
            match first.or_else(|| held_by_another(&self.reserved_domains, &key, owner, rank)) {
                Some(first) => {
                    let message = format!(
                        "the domain {domain} is that of {first}; {} is served without it",
                        host.name
                    );
                    self.warnings
                        .push(Warning::new(owner.clone(), "domain_taken", message));
                }
                None => {
                    self.domains.insert(key, owner);
                    own.push(domain.clone());
                }
            }
        }
        if own.len() == host.domains.len() {
            self.served.hosts.push(encoded.clone());
        } else if !own.is_empty() {
            let rest = VirtualHost {
                domains: own,
                ..host.clone()
            };
            self.served.hosts.push(encode::virtual_host(&rest));
        }
    }

    fn claim_listener(
        &mut self,
        owner: &'s Owner,
        rank: usize,
        listener: &'s Listener,
        resource: &Arc<Resource>,
    ) {
        let address = address_of(listener);
        let name = listener.name.as_str();
        let named = self.listeners.get(name).copied();
        let at = |address: &String| {
            let first = self.addresses.get(address).copied();
            first.or_else(|| held_by_another(&self.reserved_addresses, address, owner, rank))
        };
        let taken = match (
            named.or_else(|| held_by_another(&self.reserved_listeners, name, owner, rank)),
            address.as_ref().and_then(at),
        ) {
            (Some(first), _) => Some((
                "name_taken",
                format!("the listener {} is that of {first}", listener.name),
            )),
            (None, Some(first)) => {
                let address = address.as_deref().unwrap_or_default();
                Some((
                    "address_taken",
                    format!(
                        "{address} is listened on by {first}; the listener {} is not served",
                        listener.name
                    ),
                ))
            }
            (None, None) => None,
        };
        if let Some((code, message)) = taken {
            self.warnings
                .push(Warning::new(owner.clone(), code, message));
            return;
        }
        self.listeners.insert(&listener.name, owner);
        if let Some(address) = address {
            self.addresses.insert(address, owner);
        }
        self.served.listeners.push(Arc::clone(resource));
    }
}

/// The other owner of this rank that held the key before and claims it again.
fn held_by_another<'s>(
    reserved: &Reserved<'s>,
    key: &str,
    owner: &Owner,
    rank: usize,
) -> Option<&'s Owner> {
    let (of_holder, holder) = reserved.get(key)?;
    (*of_holder == rank && *holder != owner).then_some(*holder)
}

/// Returns the address of a listener. Two listeners may not use the same address.
fn address_of(listener: &Listener) -> Option<String> {
    match listener.address.as_ref()?.address.as_ref()? {
        AnyAddress::SocketAddress(socket) => match socket.port_specifier {
            Some(PortSpecifier::PortValue(port)) if port != 0 => {
                let protocol = if socket.protocol == 0 { "tcp" } else { "udp" };
                Some(format!("{protocol}://{}:{port}", socket.address))
            }
            _ => None,
        },
        AnyAddress::Pipe(pipe) => Some(pipe.path.clone()),
        AnyAddress::EnvoyInternalAddress(_) => None,
    }
}
