//! State of the world (SotW) for clusters and listeners: a response contains all resources that the client
//! subscribes to, and missing ones are removed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::nack::nacked;
use super::{Content, WILDCARD};
use crate::server::node_view::{Resources, Served};
use crate::snapshot::{Resource, ResourceSet, Version};

#[derive(Debug, Default)]
pub(super) struct Full {
    wildcard: bool,
    explicit: BTreeSet<Arc<str>>,
    /// True if the client has named anything, after which no names mean no resources.
    has_named: bool,
    /// True if the client waits for a response.
    asked: bool,
    /// True if the client has rejected the last response.
    is_rejected: bool,
    /// The last accepted resources.
    accepted: Option<SentSet>,
    /// The version that a reconnecting client reports.
    claim: Option<Version>,
    /// True if the client reported resources that differ from the served ones in an unknown way.
    has_unknown: bool,
    told: Option<SentSet>,
}

/// The resources that were sent to the client.
#[derive(Debug, Clone)]
struct SentSet {
    version: Version,
    set: Arc<ResourceSet>,
    /// Removed resources that are sent as if they were not removed.
    kept: Resources,
}

/// The resources to send, and the names of the new or changed ones.
#[derive(Debug)]
pub(super) struct FullContent {
    pub(super) content: Content,
    pub(super) changed: Vec<Arc<str>>,
}

impl SentSet {
    fn get(&self, name: &str) -> Option<&Arc<Resource>> {
        self.kept.get(name).or_else(|| self.set.get(name))
    }
}

impl Full {
    pub(super) fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    pub(super) fn names(&self) -> &BTreeSet<Arc<str>> {
        &self.explicit
    }

    /// Subscribes to exactly these names. `claim` is the version that the client reports at the start.
    pub(super) fn want(&mut self, names: Vec<Arc<str>>, claim: Option<Version>) {
        let wildcard_before = self.wildcard;
        self.wildcard =
            (names.is_empty() && !self.has_named) || names.iter().any(|name| &**name == WILDCARD);
        self.has_named |= !names.is_empty();
        let explicit: BTreeSet<_> = names
            .into_iter()
            .filter(|name| &**name != WILDCARD)
            .collect();
        let grows = (self.wildcard && !wildcard_before) || !explicit.is_subset(&self.explicit);
        self.explicit = explicit;
        self.asked |= grows;
        self.claim = claim.filter(|_| self.wildcard && self.explicit.is_empty());
        if !self.wants_anything() {
            self.asked = false;
            self.told = None;
        } else if let Some(told) = &mut self.told {
            // A client drops unsubscribed resources by itself.
            let (wildcard, explicit) = (self.wildcard, &self.explicit);
            told.kept
                .retain(|name, _| wildcard || explicit.contains(name));
            let version = selection(wildcard, explicit, &told.set, &told.kept);
            let lighter = std::mem::replace(&mut told.version, version) != version;
            self.asked |= self.is_rejected && lighter;
        }
    }

    /// Records that the client has accepted the last response, which had `version`.
    pub(super) fn acknowledged(&mut self, version: Version) {
        self.is_rejected = false;
        let accepted = self.told.as_ref().filter(|told| told.version == version);
        if let Some(accepted) = accepted {
            self.accepted = Some(accepted.clone());
        }
    }

    /// Records that the client has rejected the last response, which had `version`, with its message. If the client
    /// has unsubscribed from a part of it since, or the response kept resources that the client may not have, the
    /// rest is another response, and may be accepted.
    pub(super) fn rejected(&mut self, version: Version, message: &str) {
        self.is_rejected = true;
        let told = self.told.as_ref().filter(|told| told.version == version);
        let names = told.into_iter().flat_map(|told| {
            let told = self.selected(&told.set).chain(told.kept.values());
            told.map(|resource| resource.name())
        });
        if let Some(nacked) = nacked(message, names) {
            self.accepted = self.accepted_but(&nacked);
        }
        let accepted = self.accepted.as_ref();
        if let Some(told) = &mut self.told {
            let kept = told.kept.len();
            told.kept
                .retain(|name, _| accepted.is_some_and(|accepted| accepted.get(name).is_some()));
            self.asked |= told.version != version || told.kept.len() < kept;
        }
    }

    /// Returns the resources to send: all, if anything has changed or the client waits. Removed resources
    /// in `retained` stay, if the client may have them.
    pub(super) fn due(
        &mut self,
        served: &Served,
        retained: Option<&Resources>,
        answers_only: bool,
    ) -> Option<FullContent> {
        if !self.wants_anything() || (answers_only && !self.asked) {
            return None;
        }
        let kept = self.kept(served.set(), retained);
        let version = selection(self.wildcard, &self.explicit, served.set(), &kept);
        let claim = self.claim.take();
        let same = match &self.told {
            Some(told) => told.version == version && !self.asked,
            None => claim == Some(version) || claim == Some(served.version()),
        };
        self.asked = false;
        self.has_unknown |= claim.is_some() && !same;
        if same {
            // A client with the set without the retained resources knows already that they are removed.
            let holds_kept = self.told.is_some() || claim == Some(version);
            let kept = if holds_kept { kept } else { Resources::new() };
            self.tell(served.set(), kept);
            if claim.is_some() {
                self.accepted.clone_from(&self.told);
            }
            return None;
        }
        let changed = match &self.told {
            Some(told) => {
                let changed = served.changed_since(&told.set);
                let there = changed
                    .iter()
                    .filter(|name| self.wants(name) && served.set().get(name).is_some());
                there.cloned().collect()
            }
            None => self
                .selected(served.set())
                .map(|resource| Arc::clone(resource.name()))
                .collect(),
        };
        let resources = self
            .selected(served.set())
            .chain(kept.values())
            .cloned()
            .collect();
        self.tell(served.set(), kept);
        self.is_rejected = false;
        Some(FullContent {
            content: Content {
                version,
                resources,
                removed: Vec::new(),
            },
            changed,
        })
    }

    /// Returns the served resources that the client has rejected and therefore lacks.
    pub(super) fn lacking(&self, served: &Served) -> BTreeSet<Arc<str>> {
        if !self.is_rejected || (self.has_unknown && self.accepted.is_none()) {
            return BTreeSet::new();
        }
        let has = |name: &str| {
            let accepted = self.accepted.as_ref();
            accepted.is_some_and(|accepted| accepted.get(name).is_some())
        };
        self.selected(served.set())
            .map(|resource| resource.name())
            .filter(|name| !has(name))
            .cloned()
            .collect()
    }

    /// Returns the client's resources after it accepted all of the last response except the nacked ones,
    /// which it keeps in their earlier form.
    fn accepted_but(&self, nacked: &BTreeSet<Arc<str>>) -> Option<SentSet> {
        let told = self.told.as_ref()?;
        let before = |name: &Arc<str>| self.accepted.as_ref()?.get(name).cloned();
        let taken = (self.selected(&told.set).chain(told.kept.values()))
            .filter(|resource| !nacked.contains(resource.name()))
            .cloned();
        let set: ResourceSet = taken.chain(nacked.iter().filter_map(before)).collect();
        Some(SentSet {
            version: set.version(),
            set: Arc::new(set),
            kept: Resources::new(),
        })
    }

    fn wants_anything(&self) -> bool {
        self.wildcard || !self.explicit.is_empty()
    }

    fn wants(&self, name: &str) -> bool {
        self.wildcard || self.explicit.contains(name)
    }

    fn tell(&mut self, set: &Arc<ResourceSet>, kept: Resources) {
        self.told = Some(SentSet {
            version: selection(self.wildcard, &self.explicit, set, &kept),
            set: Arc::clone(set),
            kept,
        });
    }

    /// Returns the retained resources that the client may have: all of them, if the client's resources are
    /// unknown.
    fn kept(&self, set: &ResourceSet, retained: Option<&Resources>) -> Resources {
        let retained = retained.into_iter().flatten();
        retained
            .filter(|(name, _)| self.wants(name) && set.get(name).is_none())
            .filter_map(|(name, resource)| {
                let held = match (&self.told, &self.accepted) {
                    (None, _) => Some(resource),
                    // It lacks the rejected resources, of which this may have been the cause.
                    (Some(told), accepted) if self.is_rejected => {
                        told.get(name).and(accepted.as_ref()?.get(name))
                    }
                    (Some(told), _) => told.get(name),
                };
                held.map(|held| (Arc::clone(name), Arc::clone(held)))
            })
            .collect()
    }

    fn selected<'a>(&'a self, set: &'a ResourceSet) -> impl Iterator<Item = &'a Arc<Resource>> {
        let all = self.wildcard.then(|| set.iter()).into_iter().flatten();
        let named = (!self.wildcard)
            .then(|| self.explicit.iter().filter_map(|name| set.get(name)))
            .into_iter()
            .flatten();
        all.chain(named)
    }
}

/// Returns the version of the resources that a client with this subscription has.
fn selection(
    wildcard: bool,
    explicit: &BTreeSet<Arc<str>>,
    set: &ResourceSet,
    kept: &Resources,
) -> Version {
    let base = if wildcard {
        set.version()
    } else {
        explicit
            .iter()
            .filter_map(|name| set.get(name))
            .fold(Version::default(), |version, resource| {
                version.with(resource.name(), resource.version())
            })
    };
    kept.values().fold(base, |version, resource| {
        version.with(resource.name(), resource.version())
    })
}
