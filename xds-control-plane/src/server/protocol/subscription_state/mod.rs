//! The subscription and resources of a client, name by name.

mod rejections;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::in_flight::InFlight;
use super::{Content, Scope};
use crate::server::node_view::{Resources, Served};
use crate::snapshot::{ResourceSet, Version};

/// The state of one client and one type.
///
/// With the wildcard, the client's resources are those of the last compared set, with exceptions. A
/// thousand subscribers of five thousand clusters therefore share one set.
#[derive(Debug, Default)]
pub(super) struct SubscriptionState {
    /// True if the protocol can report removed resources.
    says_removals: bool,
    wildcard: bool,
    /// Every subscribed name and, with the wildcard, exceptions.
    entries: BTreeMap<Arc<str>, Entry>,
    /// The last compared set. Without the wildcard, a name that has not changed since then equals the
    /// client's resource.
    compared: Option<Arc<ResourceSet>>,
    /// The version of all resources of the client.
    version: Version,
    /// Names that may need a response.
    asked: Vec<Arc<str>>,
    wildcard_asked: bool,
    /// Removed resources whose removal has not been sent yet.
    kept: BTreeSet<Arc<str>>,
    in_flight: InFlight,
    /// Rejected resources that have not been sent since.
    rejected: BTreeSet<Arc<str>>,
    /// Resources that were due last and that the client did not have before.
    new: Vec<Arc<str>>,
    /// Rejected resources that were never accepted.
    lacking: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    held: Held,
    explicit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Unknown, so the current state has to be sent.
    Unknown,
    At(Version),
    Absent,
}

impl SubscriptionState {
    /// Creates the state for the delta protocol, which reports removed resources.
    pub(super) fn saying_removals() -> Self {
        Self {
            says_removals: true,
            ..Self::default()
        }
    }

    pub(super) fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let explicit = self.entries.iter().filter(|(_, entry)| entry.explicit);
        explicit.map(|(name, _)| name)
    }

    /// Number of names with state if these are added.
    pub(super) fn len_with(&self, more: &[Arc<str>]) -> usize {
        let new = more.iter().filter(|name| !self.entries.contains_key(*name));
        self.entries.len() + new.count()
    }

    pub(super) fn is_subscribed(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.explicit)
    }

    /// Subscribes to a name. It gets a response even if nothing has changed, since the client may have lost
    /// it.
    pub(super) fn subscribe(&mut self, name: Arc<str>) {
        self.change(&name, Some(Held::Unknown), true);
        self.ask(name);
    }

    /// Subscribes to a name unless the client has reported its version.
    pub(super) fn subscribe_seeded(&mut self, name: Arc<str>) {
        match self.entries.get_mut(&name) {
            Some(entry) => entry.explicit = true,
            None => self.change(&name, Some(Held::Unknown), true),
        }
        self.ask(name);
    }

    /// Records a resource that the client has from an earlier stream.
    pub(super) fn seed(&mut self, name: &Arc<str>, version: Option<Version>) {
        let held = version.map_or(Held::Unknown, Held::At);
        self.change(name, Some(held), false);
    }

    /// Removes resources that were reported but not subscribed to.
    pub(super) fn drop_seeds(&mut self) {
        let seeds: Vec<_> = self.exceptions();
        for name in seeds {
            self.change(&name, None, false);
        }
    }

    /// Ends the subscription to a name. A client with the wildcard gets its current state once more.
    pub(super) fn unsubscribe(&mut self, name: &str) {
        let Some((name, entry)) = self.entries.get_key_value(name) else {
            return;
        };
        if !entry.explicit {
            return;
        }
        let name = Arc::clone(name);
        self.kept.remove(&name);
        if self.rejected.remove(&name) {
            self.retry_rejected();
        }
        if self.wildcard {
            self.change(&name, Some(Held::Unknown), false);
            self.ask(name);
        } else {
            self.change(&name, None, false);
        }
    }

    /// Subscribes to all resources.
    pub(super) fn subscribe_wildcard(&mut self) {
        if !self.wildcard {
            self.wildcard = true;
            self.compared = None;
            // The client may yet read these, of the time before.
            for name in self.in_flight.names() {
                if !self.entries.contains_key(&name) {
                    self.change(&name, Some(Held::Unknown), false);
                }
            }
        }
        self.wildcard_asked = true;
    }

    /// Ends the wildcard subscription; names stay.
    pub(super) fn unsubscribe_wildcard(&mut self) {
        if !self.wildcard {
            return;
        }
        for name in self.exceptions() {
            self.change(&name, None, false);
        }
        self.wildcard = false;
        self.wildcard_asked = false;
        self.compared = None;
        let rejected = self.rejected.len();
        self.rejected.retain(|name| self.entries.contains_key(name));
        if self.rejected.len() < rejected {
            self.retry_rejected();
        }
        self.kept.retain(|name| self.entries.contains_key(name));
        self.version = self
            .entries
            .iter()
            .fold(Version::default(), |version, (name, entry)| {
                match entry.held {
                    Held::At(held) => version.with(name, held),
                    Held::Unknown | Held::Absent => version,
                }
            });
    }

    /// Marks these resources as not held by the client, or as to be sent again. Names without a
    /// subscription are removed.
    pub(super) fn forget<'a>(&mut self, names: impl IntoIterator<Item = &'a Arc<str>>) {
        for name in names {
            if self.is_subscribed(name) {
                self.change(name, Some(Held::Unknown), true);
                self.ask(Arc::clone(name));
            }
        }
    }

    fn ask(&mut self, name: Arc<str>) {
        // A client may repeat a request many times before a response is possible.
        if self.asked.len() > 2 * self.entries.len() {
            self.asked.sort_unstable();
            self.asked.dedup();
            self.asked.retain(|name| self.entries.contains_key(name));
        }
        self.asked.push(name);
    }

    /// Returns the resources to send, and records them as sent. Removed resources in `keep` stay.
    pub(super) fn due(
        &mut self,
        served: &Served,
        keep: Option<&Resources>,
        scope: Scope,
    ) -> Content {
        let set = served.set();
        let scope = if self.wildcard_asked {
            Scope::All
        } else {
            scope
        };
        let names = self.candidates(served, scope);
        self.lacking.retain(|name| set.get(name).is_some());
        let mut content = Content::default();
        for name in names {
            let held = match self.entries.get(&name) {
                Some(entry) => entry.held,
                None if self.wildcard => match self.held_by_wildcard(&name) {
                    Some(version) => Held::At(version),
                    None => Held::Absent,
                },
                None => continue,
            };
            match (set.get(&name), held) {
                (Some(resource), Held::At(version)) if resource.version() == version => {
                    self.kept.remove(&name);
                }
                (Some(resource), _) => {
                    self.kept.remove(&name);
                    // It may not report the version of its earlier resources.
                    if held == Held::Absent {
                        self.new.push(Arc::clone(&name));
                    }
                    self.told(&name, Held::At(resource.version()), scope);
                    content.resources.push(Arc::clone(resource));
                }
                (None, Held::Absent) => {}
                (None, Held::At(version))
                    if keep.is_some_and(|retained| retained.contains_key(&name)) =>
                {
                    if !self.entries.contains_key(&name) {
                        self.except(&name, Held::At(version));
                    }
                    self.kept.insert(name);
                }
                (None, _) => {
                    self.kept.remove(&name);
                    self.told(&name, Held::Absent, scope);
                    content.removed.push(name);
                }
            }
        }
        self.compare_with(set, scope);
        content.version = self.version;
        content
    }

    /// Returns the names that could be due, each once and in order.
    fn candidates(&mut self, served: &Served, scope: Scope) -> Vec<Arc<str>> {
        let mut names = std::mem::take(&mut self.asked);
        if scope == Scope::All {
            names.extend(self.kept.iter().cloned());
            match (&self.compared, self.wildcard) {
                (Some(compared), true) => {
                    names.extend(served.changed_since(compared).iter().cloned());
                    names.extend(self.entries.keys().cloned());
                }
                (None, true) => {
                    names.extend(
                        served
                            .set()
                            .iter()
                            .map(|resource| Arc::clone(resource.name())),
                    );
                    names.extend(self.entries.keys().cloned());
                }
                (Some(compared), false) => names.extend(
                    served
                        .changed_since(compared)
                        .iter()
                        .filter_map(|name| self.entries.get_key_value(name))
                        .map(|(name, _)| Arc::clone(name)),
                ),
                (None, false) => names.extend(self.entries.keys().cloned()),
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn held_by_wildcard(&self, name: &str) -> Option<Version> {
        let compared = self.compared.as_ref()?;
        Some(compared.get(name)?.version())
    }

    /// Records the state that is sent to the client now.
    fn told(&mut self, name: &Arc<str>, held: Held, scope: Scope) {
        if self.entries.contains_key(name) || !self.wildcard {
            let explicit = self.is_subscribed(name);
            self.change(name, Some(held), explicit);
        } else if scope == Scope::Asked {
            self.except(name, held);
        } else {
            // The next compared set contains it.
            let before = self.held_by_wildcard(name);
            self.count(name, before, at(held));
        }
    }

    /// Makes an exception of a name that the wildcard covers.
    fn except(&mut self, name: &Arc<str>, held: Held) {
        let before = self.held_by_wildcard(name);
        self.count(name, before, at(held));
        let entry = Entry {
            held,
            explicit: false,
        };
        self.entries.insert(Arc::clone(name), entry);
    }

    /// Writes or deletes an entry, and updates the version of the whole.
    fn change(&mut self, name: &Arc<str>, held: Option<Held>, explicit: bool) {
        let before = match held {
            Some(held) => self
                .entries
                .insert(Arc::clone(name), Entry { held, explicit }),
            None => self.entries.remove(name),
        };
        let before = match before {
            Some(entry) => at(entry.held),
            None if self.wildcard => self.held_by_wildcard(name),
            None => None,
        };
        self.count(name, before, held.and_then(at));
    }

    fn count(&mut self, name: &str, before: Option<Version>, after: Option<Version>) {
        if let Some(before) = before {
            self.version = self.version.without(name, before);
        }
        if let Some(after) = after {
            self.version = self.version.with(name, after);
        }
    }

    fn compare_with(&mut self, set: &Arc<ResourceSet>, scope: Scope) {
        match (scope, self.wildcard) {
            (Scope::All, true) => {
                self.wildcard_asked = false;
                // A name that equals the set needs no exception.
                self.entries.retain(|name, entry| {
                    entry.explicit
                        || match (set.get(name), entry.held) {
                            (Some(resource), held) => held != Held::At(resource.version()),
                            (None, held) => held != Held::Absent,
                        }
                });
                self.compared = Some(Arc::clone(set));
            }
            (Scope::All, false) => self.compared = Some(Arc::clone(set)),
            (Scope::Asked, false) => {
                // Some entries are now newer than what the rest was compared with.
                if self
                    .compared
                    .as_ref()
                    .is_some_and(|compared| compared.version() != set.version())
                {
                    self.compared = None;
                }
            }
            (Scope::Asked, true) => {}
        }
    }

    /// Returns the exceptions: names that were not subscribed to.
    fn exceptions(&self) -> Vec<Arc<str>> {
        let exceptions = self.entries.iter().filter(|(_, entry)| !entry.explicit);
        exceptions.map(|(name, _)| Arc::clone(name)).collect()
    }
}

fn at(held: Held) -> Option<Version> {
    match held {
        Held::At(version) => Some(version),
        Held::Unknown | Held::Absent => None,
    }
}
