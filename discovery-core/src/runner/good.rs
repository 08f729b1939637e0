//! The last known good form of a service, and the ages of its parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problem;
use proxy_model::config::ProxyConfig;

use crate::discovery::{DiscoveredService, Labels, ServiceContent};
use crate::endpoints::{add_unread, has_any};
use crate::timestamp::Timestamp;

/// The last known good form of a service.
#[derive(Clone, Debug)]
pub(crate) struct Good {
    pub(crate) fragment: Arc<ProxyConfig>,
    /// The labels that it was made of, if it was made of labels.
    pub(crate) labels: Option<Arc<Labels>>,
    /// The time at which the source last confirmed the rules: routes and cluster settings.
    pub(crate) at: Timestamp,
    /// The time at which the source last confirmed the destinations, except those in `unread`.
    pub(crate) read_at: Timestamp,
    /// The id prefixes of unreadable destinations, with the times at which they were last read.
    pub(crate) unread: BTreeMap<Arc<str>, Timestamp>,
}

impl Good {
    /// Returns the form that the source describes now.
    pub(super) fn now(
        service: &DiscoveredService,
        fragment: &Arc<ProxyConfig>,
        before: Option<&Self>,
    ) -> Self {
        let now = Timestamp::now();
        Self {
            fragment: Arc::clone(fragment),
            labels: labels_of(service, before),
            at: now,
            read_at: now,
            unread: unread_since(&service.unread, before),
        }
    }

    /// Keeps the rules, and replaces the destinations by the current ones, some of which are unreadable.
    pub(super) fn follow(&mut self, fragment: Arc<ProxyConfig>, unread: &[Arc<str>]) {
        self.unread = unread_since(unread, Some(self));
        self.fragment = fragment;
        self.read_at = Timestamp::now();
    }

    /// Returns the time at which the source last confirmed all destinations that serve. Unreadable ones that were too
    /// old are not among them any more.
    pub(crate) fn destinations_at(&self) -> Timestamp {
        let in_use = self.unread.iter();
        let in_use = in_use.filter(|(beginning, _)| has_any(&self.fragment, beginning));
        let all = in_use.map(|(_, seen)| *seen).chain([self.read_at]);
        all.max_by_key(Timestamp::age).unwrap_or(self.read_at)
    }

    /// Returns the time at which the source last confirmed the destinations. `None` if there are clusters, and no
    /// destination serves in any.
    pub(super) fn serving_destinations_at(&self) -> Option<Timestamp> {
        let mut clusters = self.fragment.clusters.values();
        let has_any = clusters.len() == 0 || clusters.any(|of| !of.destinations.is_empty());
        has_any.then(|| self.destinations_at())
    }

    /// Returns the time at which the destinations with this id prefix were last read.
    fn seen_at(&self, beginning: &str) -> Timestamp {
        self.unread.get(beginning).copied().unwrap_or(self.read_at)
    }

    /// Returns the prefixes whose destinations were read within `grace`.
    pub(super) fn recent(&self, unread: &[Arc<str>], grace: Duration) -> Vec<Arc<str>> {
        let is_recent = |beginning: &&Arc<str>| self.seen_at(beginning).age() <= grace;
        unread.iter().filter(is_recent).cloned().collect()
    }

    /// Adds the unreadable destinations that served last and are not too old, with a warning, and one about
    /// those that are too old.
    pub(super) fn add_unread_to(&self, service: &mut DiscoveredService, grace: Duration) {
        if service.unread.is_empty() {
            return;
        }
        let recent = self.recent(&service.unread, grace);
        let added = match &mut service.content {
            ServiceContent::Config(config) => {
                add_unread(Arc::make_mut(config), &self.fragment, &recent)
            }
            // The last known good rules get them when they are made again.
            _ => 0,
        };
        let oldest = |beginnings: &mut dyn Iterator<Item = &Arc<str>>| {
            let ages = beginnings.map(|beginning| self.seen_at(beginning).age());
            minutes(ages.max().unwrap_or_default())
        };
        if added > 0 {
            let age = oldest(&mut recent.iter());
            let message = format!(
                "{added} destinations are those of {age} ago: the source cannot look at them now"
            );
            let problem = Problem::warning("", "destinations_not_read", message);
            service.problems.push(problem);
        }
        let mut old = service.unread.iter().filter(|of| !recent.contains(of));
        let parts = old.clone().count();
        if parts > 0 {
            let age = oldest(&mut old);
            let message = format!(
                "the destinations of {parts} parts of the service are not used any more: the source has not looked at them \
                 for {age}"
            );
            let problem = Problem::warning("", "destinations_too_old", message);
            service.problems.push(problem);
        }
    }
}

/// The labels that a service is made of, shared with its form `before` if they are the same.
fn labels_of(service: &DiscoveredService, before: Option<&Good>) -> Option<Arc<Labels>> {
    match (&service.rebuild, &service.content) {
        (Some(rebuild), _) => Some(Arc::clone(&rebuild.labels)),
        (None, ServiceContent::Labelled(described)) => {
            let known = before.and_then(|good| good.labels.as_ref());
            let known = known.filter(|known| ***known == described.labels);
            Some(known.map_or_else(|| Arc::new(described.labels.clone()), Arc::clone))
        }
        (None, _) => None,
    }
}

/// Returns the times at which these parts were last read. Parts that were unreadable before keep their times.
fn unread_since(unread: &[Arc<str>], before: Option<&Good>) -> BTreeMap<Arc<str>, Timestamp> {
    let since = |beginning: &Arc<str>| {
        let seen = before.map(|before| before.seen_at(beginning));
        (Arc::clone(beginning), seen.unwrap_or_else(Timestamp::now))
    };
    unread.iter().map(since).collect()
}

/// Returns the age as a text so rough that it does not change from cycle to cycle.
fn minutes(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => "less than a minute".to_owned(),
        1 => "a minute".to_owned(),
        minutes @ 2..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}
