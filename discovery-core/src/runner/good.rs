//! The last good form of a service, and how old its parts are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problem;
use proxy_model::config::ProxyConfig;

use crate::discovery::{DiscoveredService, Labels, ServiceContent};
use crate::endpoints::add_unread;
use crate::moment::Moment;

/// The last good form of a service.
#[derive(Clone, Debug)]
pub(crate) struct Good {
    pub(crate) fragment: Arc<ProxyConfig>,
    /// The labels that it was made of, if it was made of labels.
    pub(crate) labels: Option<Arc<Labels>>,
    /// When the source last confirmed its rules: its routes and the settings of its clusters.
    pub(crate) at: Moment,
    /// When the source last confirmed its destinations, those aside that are `unread`.
    pub(crate) read_at: Moment,
    /// The beginnings of the ids of destinations that the source cannot look at, with when it last could.
    pub(crate) unread: BTreeMap<Arc<str>, Moment>,
}

impl Good {
    /// What the source says now.
    pub(super) fn now(
        service: &DiscoveredService,
        fragment: &Arc<ProxyConfig>,
        before: Option<&Self>,
    ) -> Self {
        let now = Moment::now();
        Self {
            fragment: Arc::clone(fragment),
            labels: labels_of(service, before),
            at: now,
            read_at: now,
            unread: unread_since(&service.unread, before),
        }
    }

    /// The same rules with the destinations of now, of which the source cannot look at some.
    pub(super) fn follow(&mut self, fragment: Arc<ProxyConfig>, unread: &[Arc<str>]) {
        self.unread = unread_since(unread, Some(self));
        self.fragment = fragment;
        self.read_at = Moment::now();
    }

    /// When the source last confirmed all of its destinations.
    pub(crate) fn destinations_at(&self) -> Moment {
        let unread = self.unread.values().copied();
        let all = unread.chain([self.read_at]);
        all.max_by_key(Moment::age).unwrap_or(self.read_at)
    }

    /// When the source last looked at the destinations whose ids begin so.
    fn seen_at(&self, beginning: &str) -> Moment {
        self.unread.get(beginning).copied().unwrap_or(self.read_at)
    }

    /// Those of the beginnings whose destinations were seen within `grace`.
    pub(super) fn recent(&self, unread: &[Arc<str>], grace: Duration) -> Vec<Arc<str>> {
        let is_recent = |beginning: &&Arc<str>| self.seen_at(beginning).age() <= grace;
        unread.iter().filter(is_recent).cloned().collect()
    }

    /// Adds what served last of the destinations that the source could not look at, as far as that is not too old, and
    /// says so.
    pub(super) fn add_unread_to(&self, service: &mut DiscoveredService, grace: Duration) {
        if service.unread.is_empty() {
            return;
        }
        let recent = self.recent(&service.unread, grace);
        let added = match &mut service.content {
            ServiceContent::Config(config) => {
                add_unread(Arc::make_mut(config), &self.fragment, &recent)
            }
            // The last good rules get them when they are made again.
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

/// When the source last looked at each of these parts: those that it could not look at before are as old as they were.
fn unread_since(unread: &[Arc<str>], before: Option<&Good>) -> BTreeMap<Arc<str>, Moment> {
    let since = |beginning: &Arc<str>| {
        let seen = before.map(|before| before.seen_at(beginning));
        (Arc::clone(beginning), seen.unwrap_or_else(Moment::now))
    };
    unread.iter().map(since).collect()
}

/// A time so roughly that it does not change from round to round.
fn minutes(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => "less than a minute".to_owned(),
        1 => "a minute".to_owned(),
        minutes @ 2..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}
