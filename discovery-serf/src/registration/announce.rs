//! The comparison of a node's tags with those of a registration.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::error::{RegistrationError, TagsTooLong};
use super::{CONTRACT, Registration};
use crate::Tags;
use crate::catalog::tags;
use crate::client::SerfClient;

/// The name and tags of an agent's own node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) tags: Tags,
}

/// The changes of tags to send to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) set: Tags,
    pub(super) delete: BTreeSet<String>,
}

/// The earlier registration of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Earlier {
    /// The names under which the node may announce the service.
    services: BTreeSet<String>,
    /// The keys of the tags that it may have from that.
    keys: BTreeSet<String>,
}

impl Earlier {
    /// Records the registration that is about to be sent.
    pub(super) fn add(&mut self, told: &Registration) {
        self.services.insert(told.service().trim().to_owned());
        let keys = told
            .tags
            .iter()
            .map(|(key, _)| String::from_utf8_lossy(key));
        self.keys.extend(keys.map(Cow::into_owned));
    }

    /// Removes all others, after the node has this registration.
    pub(super) fn only(&mut self, told: &Registration) {
        *self = Self::default();
        self.add(told);
    }

    fn is_of(&self, service: &str) -> bool {
        self.services.contains(service)
    }
}

impl Node {
    pub(super) async fn of(agent: &SerfClient) -> Result<Self, RegistrationError> {
        let stats = agent.stats().await?;
        let tags = stats.section("tags");
        Ok(Self {
            name: stats.get("agent", "name").unwrap_or_default().to_owned(),
            tags: tags.collect(),
        })
    }

    /// Returns the change from the node's tags to those of the registration.
    pub(super) fn change_to(
        &self,
        wanted: &Registration,
        earlier: &Earlier,
    ) -> Result<Change, RegistrationError> {
        if !wanted.takes_over
            && let Some(service) = self.service()
            && service != wanted.service().trim()
            && !earlier.is_of(&service)
        {
            return Err(RegistrationError::Occupied {
                node: self.name.clone(),
                service,
            });
        }
        let mut change = Change::default();
        let mut after = self.tags.clone();
        for key in self.announcing(&earlier.keys) {
            if wanted.tags.bytes(&key).is_none() {
                after.remove(&key);
                change.delete.insert(key);
            }
        }
        for (key, value) in wanted.tags.iter() {
            if after.insert(key, value).as_deref() != Some(value) {
                change.set.insert(key, value);
            }
        }
        TagsTooLong::check(&after)?;
        Ok(change)
    }

    /// Returns the change that withdraws an earlier registration from a node. It is empty if the node now announces
    /// another service.
    pub(super) fn change_from(&self, earlier: &Earlier) -> Change {
        let taken_over = self.service().is_some_and(|other| !earlier.is_of(&other));
        let delete = match taken_over {
            true => BTreeSet::new(),
            false => self.announcing(&earlier.keys),
        };
        Change {
            set: Tags::new(),
            delete,
        }
    }

    /// Returns true if the node has no tags of the service although they were set. Manual changes are
    /// another matter: a weight, or a service whose name alone was removed.
    pub(super) fn has_forgotten(&self) -> bool {
        let is_absent = |key| self.tags.bytes(key).is_none();
        is_absent(tags::SERVICE) && is_absent(tags::HTTP_PORT)
    }

    /// The service that it announces.
    fn service(&self) -> Option<String> {
        let service = self.tags.text(tags::SERVICE)?;
        let service = service.trim();
        (!service.is_empty()).then(|| service.to_owned())
    }

    /// Returns the keys of its tags that announce a service, or are in `others`.
    fn announcing(&self, others: &BTreeSet<String>) -> BTreeSet<String> {
        let of_contract = CONTRACT.into_iter().map(str::to_owned);
        let keys = of_contract.chain(others.iter().cloned());
        keys.filter(|key| self.tags.bytes(key).is_some()).collect()
    }
}

impl Change {
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.delete.is_empty()
    }

    pub(super) async fn tell(&self, agent: &SerfClient) -> Result<(), RegistrationError> {
        // Telling an agent what it knows already makes an event in the whole cluster.
        if self.is_empty() {
            return Ok(());
        }
        let delete: Vec<_> = self.delete.iter().map(String::as_str).collect();
        Ok(agent.set_tags(&self.set, &delete).await?)
    }
}
