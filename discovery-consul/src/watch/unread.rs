//! Services that could not be read, and whether enough is known to begin with. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::state::Services;

/// Number of consecutive failures from which on a service counts as unreadable for good.
const LASTING: u32 = 3;

/// The services whose last read has failed.
#[derive(Debug, Default)]
pub(super) struct UnreadServices(BTreeMap<Arc<str>, Unread>);

#[derive(Debug)]
struct Unread {
    reason: Arc<str>,
    attempts: u32,
}

impl UnreadServices {
    /// Records that a service could not be read. Returns the number of consecutive failures before
    /// this one.
    pub(super) fn failed(&mut self, name: &Arc<str>, reason: Arc<str>) -> u32 {
        let attempts = self.0.get(name).map_or(0, |unread| unread.attempts);
        let unread = Unread {
            reason,
            attempts: attempts.saturating_add(1),
        };
        self.0.insert(Arc::clone(name), unread);
        attempts
    }

    /// Records that a service can never be read. Nothing waits for it.
    pub(super) fn hopeless(&mut self, name: &Arc<str>, reason: Arc<str>) {
        let unread = Unread {
            reason,
            attempts: LASTING,
        };
        self.0.insert(Arc::clone(name), unread);
    }

    /// Records that a service was read. Returns true if it was unread before.
    pub(super) fn read(&mut self, name: &Arc<str>) -> bool {
        self.0.remove(name).is_some()
    }

    /// Returns true if a service failed only recently, so that the next read may succeed. Services that fail for
    /// long do not hold back others.
    pub(super) fn may_pass(&self) -> bool {
        self.0.values().any(|unread| unread.attempts < LASTING)
    }

    pub(super) fn reasons(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let unread = self.0.iter();
        unread
            .map(|(name, unread)| (Arc::clone(name), Arc::clone(&unread.reason)))
            .collect()
    }

    /// Returns the services without known state: they are listed, but no instance of them was ever read.
    pub(super) fn unknown(
        &self,
        said: &Services,
        is_listed: impl Fn(&str) -> bool,
    ) -> BTreeSet<Arc<str>> {
        let unread = self.0.keys();
        unread
            .filter(|name| !said.contains_key(*name) && is_listed(name))
            .cloned()
            .collect()
    }
}

/// The completion of the first read of everything, after which an absent service does not exist.
#[derive(Debug)]
pub(super) struct Completion {
    grace: Duration,
    /// The time from which on only services are missing that cannot be read.
    waits_since: Option<Instant>,
    is_complete: bool,
}

impl Completion {
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            grace,
            waits_since: None,
            is_complete: false,
        }
    }

    /// Records that every service was tried. Unreadable ones are waited for, but not forever: one of them
    /// may never respond.
    pub(super) fn tried(&mut self, has_unknown: bool, now: Instant) {
        if self.is_complete {
            return;
        }
        let since = *self.waits_since.get_or_insert(now);
        self.is_complete = !has_unknown || now >= since + self.grace;
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the end of the wait.
    pub(super) fn due(&self) -> Option<Instant> {
        let since = self.waits_since.filter(|_| !self.is_complete)?;
        Some(since + self.grace)
    }
}
