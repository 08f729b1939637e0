//! Which addresses are whose, so that a rule that several services use loses no more than it must.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Destination, desired, rule};
use crate::plan::world::{SubjectIndex, World};
use crate::resources::SecurityRuleProperties;
use crate::service::ServiceKey;

/// Which addresses are whose.
#[derive(Debug)]
pub(super) struct Known<'w> {
    /// Addresses of services that stay as they are.
    retained: HashSet<String>,
    /// Addresses that are, or were, of services that may change, or of nobody any more.
    released: HashMap<String, Option<&'w ServiceKey>>,
    /// Whether an address that is not known stays.
    strangers_stay: bool,
}

impl<'w> Known<'w> {
    pub(super) fn of(
        world: &'w World<'_>,
        destinations: &BTreeMap<SubjectIndex, Destination>,
    ) -> Self {
        let mut retained = HashSet::new();
        let mut released = HashMap::new();
        let mut any_stays = false;
        for (index, subject) in world.subjects.iter().enumerate() {
            let stays = match destinations.get(&index) {
                Some(destination) => *destination == Destination::Pending,
                None => subject.is_held() || subject.is_wanted(),
            };
            let addresses = world.addresses_of(index).into_iter().map(str::to_owned);
            if stays {
                retained.extend(addresses);
                any_stays = true;
            } else {
                released.extend(addresses.map(|address| (address, Some(subject.key()))));
            }
        }
        // Whoever stays may have no floating address.
        if any_stays {
            retained.extend(desired::node_addresses(world));
        }
        if let Some(only) = &world.request.only
            && let Some(address) = &only.address
        {
            let key = world
                .subject(&only.key)
                .and_then(|index| world.subjects.get(index));
            released.insert(address.clone(), key.map(|subject| subject.key()));
        }
        let nodes = desired::node_addresses(world);
        if world.sweeps() {
            let ours = world.addresses().chain(nodes.iter().cloned());
            let ours = ours.chain(world.request.once_ours.iter().cloned());
            for address in ours {
                released.entry(address).or_insert(None);
            }
        } else if world.request.only.is_none() {
            // Nodes that have left, whoever's rules lead there.
            for address in world.members().filter(|address| !nodes.contains(address)) {
                released.entry(address).or_insert(None);
            }
        }
        let strangers_stay = !(world.sweeps() && world.config.exclusive_security_group);
        Self {
            retained,
            released,
            strangers_stay,
        }
    }

    /// Whether a destination stays in a rule although no service asks for it there.
    pub(super) fn is_retained(&self, destination: &str) -> bool {
        self.retained.contains(destination)
            || (self.strangers_stay && !self.released.contains_key(destination))
    }

    /// Whether everything that a rule leads to was this cluster's.
    pub(super) fn are_released(&self, properties: &SecurityRuleProperties) -> bool {
        let mut destinations = rule::destinations(properties).peekable();
        destinations.peek().is_some()
            && destinations.all(|destination| {
                self.released.contains_key(destination) && !self.retained.contains(destination)
            })
    }

    /// Whether an address is that of no service.
    pub(super) fn is_nobodys(&self, destination: &str) -> bool {
        self.released.get(destination).is_none_or(Option::is_none)
    }

    /// The services whose addresses were there and are not any more.
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
