//! The owners of addresses, so that a rule that several services share loses no more than it must.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Destination, desired, rule};
use crate::plan::cluster_state::{ClusterState, Owner, Subject, SubjectIndex};
use crate::resources::{SecurityProtocol, SecurityRuleProperties};
use crate::service::ServiceKey;

/// The owners of addresses.
#[derive(Debug)]
pub(super) struct Known<'w> {
    /// The addresses that only unchanged services have.
    retained: HashSet<String>,
    /// The addresses that unchanged services share with others: the protocols in lower case, and their ports.
    shared: HashMap<String, Ports>,
    /// The present and former addresses of services that may change, and of orphans.
    released: HashMap<String, Option<&'w ServiceKey>>,
    /// True if rules for an unknown address are kept.
    strangers_stay: bool,
    /// The ports that unchanged services use on nodes without a floating address: protocol in lower case, and
    /// port.
    node_ports: Ports,
    /// The node addresses, to which packets without a floating address are sent.
    nodes: BTreeSet<String>,
    /// The addresses of present and former machines in the cluster's pools.
    machines: HashSet<String>,
}

impl<'w> Known<'w> {
    pub(super) fn of(
        world: &'w ClusterState<'_>,
        destinations: &BTreeMap<SubjectIndex, Destination>,
    ) -> Self {
        let stays = |(index, subject): &(SubjectIndex, &Subject<'_>)| match destinations.get(index)
        {
            Some(destination) => *destination == Destination::Pending,
            None => subject.is_held() || subject.is_wanted(),
        };
        let subjects = || world.subjects.iter().enumerate();
        // Services whose new address is pending count as unchanged: their old addresses must stay open.
        let staying: HashSet<_> = subjects().filter(stays).map(|(index, _)| index).collect();
        let mut released = HashMap::new();
        for (index, subject) in subjects().filter(|(index, _)| !staying.contains(index)) {
            let addresses = world.addresses_of(index).into_iter().map(str::to_owned);
            released.extend(addresses.map(|address| (address, Some(subject.key()))));
        }
        let (retained, shared) = addresses_of_who_stays(world, &staying);
        let nodes = desired::node_addresses(world);
        // A caller may name an address that the snapshot does not have, such as that of a deleted load
        // balancer.
        if let Some(only) = &world.request.only
            && let Some(address) = &only.address
        {
            let key = world
                .subject(&only.key)
                .and_then(|index| world.subjects.get(index));
            released.insert(address.clone(), key.map(|subject| subject.key()));
        }
        if world.sweeps() {
            let ours = world.addresses().chain(nodes.iter().cloned());
            let ours = ours.chain(world.request.once_ours.iter().cloned());
            for address in ours {
                released.entry(address).or_insert(None);
            }
        } else if world.request.only.is_none() && !world.request.keeps_orphans {
            // The addresses of departed nodes, whatever the rules that lead there.
            for address in world.members().filter(|address| !nodes.contains(address)) {
                released.entry(address).or_insert(None);
            }
            let current: HashSet<_> = world.addresses().collect();
            let gone = world.request.once_ours.iter();
            for address in gone.filter(|once| !current.contains(*once) && !nodes.contains(*once)) {
                released.entry(address.clone()).or_insert(None);
            }
        }
        let machines = world.members().chain(nodes.iter().cloned());
        let machines = machines.chain(world.request.once_ours.iter().cloned());
        let strangers_stay = !(world.sweeps() && world.config.exclusive_security_group);
        Self {
            retained,
            shared,
            released,
            strangers_stay,
            node_ports: node_ports(world, &staying),
            machines: machines.collect(),
            nodes,
        }
    }

    /// Returns the node addresses that a rule must have for unchanged services: nodes come and go, and are
    /// members of their pools, too. Empty unless the rule leads to machines of the cluster now.
    pub(super) fn nodes_of_who_stays(
        &self,
        properties: &SecurityRuleProperties,
    ) -> impl Iterator<Item = &String> {
        let is_theirs = rule::destinations(properties).any(|to| self.machines.contains(to))
            && self.has_ports_of_who_stays(properties);
        self.nodes.iter().filter(move |_| is_theirs)
    }

    fn has_ports_of_who_stays(&self, properties: &SecurityRuleProperties) -> bool {
        is_about(properties, &self.node_ports)
    }

    /// Returns true if the rule leads to an address that an unchanged service shares. A rule that denies
    /// everything else keeps denying.
    fn is_shared(&self, properties: &SecurityRuleProperties, destination: &str) -> bool {
        self.shared.get(destination).is_some_and(|ports| {
            properties.protocol == Some(SecurityProtocol::Any) || is_about(properties, ports)
        })
    }

    /// Returns true if a destination stays in a rule although no service requests it there. A node stays in a
    /// requested rule while the rule's destinations are unknown.
    pub(super) fn is_retained(
        &self,
        properties: &SecurityRuleProperties,
        is_asked_for: bool,
        destination: &str,
    ) -> bool {
        let is_node = || self.nodes.contains(destination);
        self.retained.contains(destination)
            || self.is_shared(properties, destination)
            || (is_node() && (is_asked_for || self.has_ports_of_who_stays(properties)))
            || (self.strangers_stay && !self.released.contains_key(destination))
    }

    /// Returns true if every destination of a rule belonged to this cluster.
    pub(super) fn are_released(&self, properties: &SecurityRuleProperties) -> bool {
        let mut destinations = rule::destinations(properties).peekable();
        destinations.peek().is_some()
            && destinations.all(|destination| {
                self.released.contains_key(destination)
                    && !self.retained.contains(destination)
                    && !self.is_shared(properties, destination)
            })
    }

    /// Returns true if an address belongs to no service.
    pub(super) fn is_nobodys(&self, destination: &str) -> bool {
        self.released.get(destination).is_none_or(Option::is_none)
    }

    /// Returns the services whose addresses were there before and no longer are.
    pub(super) fn owners_of(
        &self,
        before: &HashSet<String>,
        after: &BTreeSet<String>,
    ) -> impl Iterator<Item = &'w ServiceKey> {
        before
            .iter()
            .filter(|destination| !after.contains(*destination))
            .filter_map(|destination| self.released.get(destination).copied().flatten())
    }
}

type Ports = HashSet<(String, String)>;

/// Returns true if a rule covers one of these protocols and ports.
fn is_about(properties: &SecurityRuleProperties, wanted: &Ports) -> bool {
    let protocol = properties.protocol.as_ref().map(|p| p.as_str());
    let protocol = protocol.unwrap_or_default().to_ascii_lowercase();
    let ports = properties.destination_port_range.iter();
    let mut ports = ports.chain(&properties.destination_port_ranges);
    ports.any(|port| wanted.contains(&(protocol.clone(), port.clone())))
}

/// Returns the addresses of unchanged services: those that no changing service uses, and the others with
/// their ports.
fn addresses_of_who_stays(
    world: &ClusterState<'_>,
    staying: &HashSet<SubjectIndex>,
) -> (HashSet<String>, HashMap<String, Ports>) {
    let mut retained = HashSet::new();
    let mut shared = HashMap::<_, Ports>::new();
    for index in staying {
        let own = world.frontends_of(*index).iter().map(|found| (found, true));
        let borrowed = world.borrowed_by(*index).iter();
        for ((balancer, frontend), is_own) in own.chain(borrowed.map(|found| (found, false))) {
            let Some(address) = world.address_of(frontend).map(str::to_owned) else {
                continue;
            };
            // The rules at the frontend show which other services share the address.
            let others_stay = world
                .rules_at(balancer, frontend)
                .all(|(owner, _)| match owner {
                    Owner::Subject(other) => staying.contains(&other),
                    Owner::Orphan | Owner::Foreign => true,
                });
            if is_own && others_stay {
                retained.insert(address);
                continue;
            }
            // On a shared address only the ports of this service stay open.
            let theirs = world.rules_at(balancer, frontend);
            let theirs = theirs.filter(|(owner, _)| *owner == Owner::Subject(*index));
            let ports = theirs.filter_map(|(_, rule)| {
                let protocol = rule.properties.protocol.as_ref()?.as_str();
                let port = rule.properties.frontend_port.to_string();
                Some((protocol.to_ascii_lowercase(), port))
            });
            shared.entry(address).or_default().extend(ports);
        }
    }
    (retained, shared)
}

/// Returns the protocols and ports at which load balancers reach nodes for unchanged services, named or not.
fn node_ports(world: &ClusterState<'_>, staying: &HashSet<SubjectIndex>) -> Ports {
    let balancers = world.snapshot.load_balancers.iter();
    let balancers = balancers.filter(|balancer| world.is_ours(balancer));
    let rules = balancers.flat_map(|balancer| &balancer.properties.load_balancing_rules);
    let theirs = rules.filter(|rule| {
        // With a floating address packets keep the frontend's address, so node ports are not reached.
        rule.properties.enable_floating_ip != Some(true)
            && match world.owner(&rule.name, true) {
                Owner::Subject(index) => staying.contains(&index),
                Owner::Orphan => !world.sweeps(),
                Owner::Foreign => false,
            }
    });
    let ports = theirs.filter_map(|rule| {
        let protocol = rule.properties.protocol.as_ref()?.as_str();
        let port = rule.properties.backend_port.to_string();
        Some((protocol.to_ascii_lowercase(), port))
    });
    ports.collect()
}
