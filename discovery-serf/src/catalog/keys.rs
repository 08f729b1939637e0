//! Ids of the instances of a service.

use std::collections::HashMap;
use std::net::SocketAddr;

use proxy_model::DestinationId;

use super::collected_problems::CollectedProblems;
use super::shown::shown;
use super::{ServiceInstance, tags};
use crate::member::Member;

/// A member that can be a destination.
pub(super) struct Entry<'m> {
    pub(super) member: &'m Member,
    pub(super) instance: ServiceInstance,
}

impl Entry<'_> {
    fn socket(&self) -> SocketAddr {
        self.instance.socket
    }
}

/// Sorts entries by address, and by their order in `entries` where addresses are equal, which is that of
/// the nodes' names. Returns the members whose address another entry has already, each with the node that
/// has it.
pub(super) fn without_same_address<'m>(
    entries: Vec<Entry<'m>>,
    collected: &mut CollectedProblems,
) -> (Vec<Entry<'m>>, Vec<(&'m Member, &'m Member)>) {
    let mut sorted = entries;
    sorted.sort_by_key(Entry::socket);
    let mut kept: Vec<Entry<'m>> = Vec::with_capacity(sorted.len());
    let mut doubles = Vec::new();
    for entry in sorted {
        let last = kept.last().filter(|last| last.socket() == entry.socket());
        let Some(last) = last else {
            kept.push(entry);
            continue;
        };
        let message = format!(
            "the address {} is already that of the node `{}`, which is the destination",
            entry.socket(),
            shown(last.member.name.as_bytes()),
        );
        collected.address(entry.member, "duplicate_address", &message);
        doubles.push((entry.member, last.member));
    }
    (kept, doubles)
}

/// Makes the keys unique, ignoring case as in all ids. The first entry keeps its key, and the others get
/// their address added.
pub(super) fn make_unique(entries: &mut [Entry<'_>], collected: &mut CollectedProblems) {
    let mut taken: HashMap<DestinationId, usize> = HashMap::with_capacity(entries.len());
    let mut doubles = Vec::new();
    for (position, entry) in entries.iter().enumerate() {
        let id = DestinationId::from(entry.instance.key.as_str());
        match taken.get(&id) {
            Some(&first) => doubles.push((position, first)),
            None => {
                taken.insert(id, position);
            }
        }
    }
    for (position, first) in doubles {
        let first = shown(entries[first].member.name.as_bytes());
        let Entry { member, instance } = &mut entries[position];
        let mut key = format!("{}@{}", instance.key, instance.socket);
        // Another instance may use this as its `instance` too. Each time the key is longer, so this ends.
        while taken.contains_key(&DestinationId::from(key.as_str())) {
            key = format!("{key}@{}", instance.socket);
        }
        let message = format!(
            "`instance` is `{}`, as on the node `{first}`; here the destination is called `{}`",
            shown(instance.key.as_bytes()),
            shown(key.as_bytes()),
        );
        collected.tag(member, tags::INSTANCE, "duplicate_instance", &message);
        taken.insert(DestinationId::from(key.as_str()), position);
        instance.key = key;
    }
}
