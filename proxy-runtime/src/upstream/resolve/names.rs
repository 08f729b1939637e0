//! What is remembered of names: their last addresses, and whether their look-ups hang.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::Found;

/// How long a look-up is waited for where there are addresses from an earlier one.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A look-up that takes so long hangs: nothing that answers needs so long.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// The wait after a look-up that hung; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A name that nobody has asked for in this time is not said to be unresolved: it may resolve by now.
const RECENT: Duration = Duration::from_secs(300);

/// Names that are remembered before those are forgotten that nobody asks for any more.
const MANY: usize = 4096;

/// What is known of each name that was looked up.
#[derive(Debug)]
pub(in crate::upstream) struct Names {
    entries: Mutex<HashMap<Arc<str>, Entry>>,
    /// How long addresses are used while their name does not resolve.
    keep: Duration,
    failures: AtomicU64,
    stale: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    /// What the last look-up found that did not fail.
    good: Option<Arc<[IpAddr]>>,
    /// Since when look-ups have failed, and why.
    failing: Option<(Instant, Arc<io::Error>)>,
    /// When the look-up began that is under way.
    begun: Option<Instant>,
    /// Look-ups one after the other that hung.
    hung: u32,
    /// When it may be looked up again after a failure.
    not_before: Option<Instant>,
    /// Until when its addresses hold.
    fresh_until: Option<Instant>,
    asked: Instant,
}

/// What is to be done for who wants a name.
#[derive(Debug)]
pub(super) enum Advice {
    /// Look it up, as one of these names. If that fails or takes longer than [`PATIENCE`], these addresses are used.
    Ask(Kind, Option<Arc<[IpAddr]>>),
    /// Use these addresses: they hold still.
    Fresh(Arc<[IpAddr]>),
    /// Use these addresses: looking it up takes too long, or failed a moment ago.
    Use(Arc<[IpAddr]>),
    /// Give up: it has no addresses, and looking it up took too long or failed a moment ago.
    Fail(Arc<io::Error>),
}

/// Names that share threads for their look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last look-up found addresses in time.
    Known,
    /// Nothing is known, or that there are none.
    New,
    /// The last look-up hung.
    Hanging,
}

/// A name that does not resolve.
#[derive(Clone, Debug)]
pub(crate) struct Unresolved {
    /// The name, in lower case.
    pub(crate) name: Arc<str>,
    /// For how long.
    pub(crate) since: Duration,
    /// Why.
    pub(crate) error: Arc<io::Error>,
    /// Whether addresses of an earlier look-up are used.
    pub(crate) has_addresses: bool,
}

/// What is counted of look-ups.
#[cfg(any(feature = "metrics", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameCounts {
    /// Look-ups that failed.
    pub(crate) failures: u64,
    /// Times that addresses of an earlier look-up were used.
    pub(crate) stale: u64,
}

/// A look-up that is under way; dropped without an end, it is none.
pub(super) struct Running {
    names: Arc<Names>,
    name: Arc<str>,
    begun: Instant,
    /// When it was its turn.
    started: Instant,
}

impl Names {
    pub(super) fn new(keep: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            keep,
            failures: AtomicU64::new(0),
            stale: AtomicU64::new(0),
        }
    }

    /// What is to be done for who wants `name`, which is in lower case.
    pub(super) fn advice(&self, name: &str) -> Advice {
        let now = Instant::now();
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(name) else {
            return Advice::Ask(Kind::New, None);
        };
        entry.asked = now;
        if let Some(fresh) = entry.fresh(now) {
            return Advice::Fresh(Arc::clone(fresh));
        }
        let addresses = entry.kept(now, self.keep).cloned();
        let is_slow = |begun| now.duration_since(begun) > PATIENCE;
        let waits = entry.not_before.is_some_and(|then| now < then);
        match (addresses, &entry.failing) {
            (Some(addresses), _) if waits || entry.begun.is_some_and(is_slow) => {
                Advice::Use(addresses)
            }
            (None, Some((_, error))) if waits => Advice::Fail(Arc::clone(error)),
            (addresses, _) => Advice::Ask(entry.kind(), addresses),
        }
    }

    /// Notes that a look-up begins.
    pub(super) fn begin(self: &Arc<Self>, name: Arc<str>) -> Running {
        let now = Instant::now();
        let mut entries = self.lock();
        if entries.len() >= MANY && !entries.contains_key(&name) {
            entries.retain(|_, entry| now.duration_since(entry.asked) <= self.keep);
        }
        let entry = entries
            .entry(Arc::clone(&name))
            .or_insert_with(|| Entry::new(now));
        entry.begun.get_or_insert(now);
        drop(entries);
        Running {
            names: Arc::clone(self),
            name,
            begun: now,
            started: now,
        }
    }

    /// Counts an answer that is older than its name's last look-up.
    pub(super) fn used_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    #[cfg(any(feature = "metrics", test))]
    pub(in crate::upstream) fn counts(&self) -> NameCounts {
        NameCounts {
            failures: self.failures.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
        }
    }

    /// The names that do not resolve, of those that were asked for in the last five minutes.
    pub(in crate::upstream) fn unresolved(&self) -> Vec<Unresolved> {
        let now = Instant::now();
        let entries = self.lock();
        let recent = |entry: &Entry| now.duration_since(entry.asked) <= RECENT;
        let recent = entries.iter().filter(|(_, entry)| recent(entry));
        let failing = recent.filter_map(|(name, entry)| {
            let (since, error) = entry.failing.as_ref()?;
            Some(Unresolved {
                name: Arc::clone(name),
                since: now.duration_since(*since),
                error: Arc::clone(error),
                has_addresses: entry.kept(now, self.keep).is_some(),
            })
        });
        failing.collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        self.entries.lock()
    }
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self {
            good: None,
            failing: None,
            begun: None,
            hung: 0,
            not_before: None,
            fresh_until: None,
            asked: now,
        }
    }

    /// Its addresses, if it does not resolve for less than `keep`.
    fn kept(&self, now: Instant, keep: Duration) -> Option<&Arc<[IpAddr]>> {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        let good = self.good.as_ref();
        good.filter(|_| now.duration_since(since) < keep)
    }

    /// Its addresses, if they hold still.
    fn fresh(&self, now: Instant) -> Option<&Arc<[IpAddr]>> {
        let is_fresh = self.fresh_until.is_some_and(|then| now < then);
        self.good.as_ref().filter(|_| is_fresh)
    }

    fn kind(&self) -> Kind {
        match (self.hung, &self.failing, &self.good) {
            (0, None, Some(_)) => Kind::Known,
            (0, ..) => Kind::New,
            _ => Kind::Hanging,
        }
    }
}

impl Running {
    /// Notes that it is its turn.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Notes what was found, and how long that holds.
    pub(super) fn end(self, found: &Found, lasts: Option<Duration>) {
        let now = Instant::now();
        let took = now.duration_since(self.started);
        let mut entries = self.names.lock();
        let Some(entry) = entries.get_mut(&self.name) else {
            return;
        };
        entry.hung = match took >= SLOW {
            true => entry.hung.saturating_add(1),
            false => 0,
        };
        match found {
            Ok(addresses) => {
                entry.good = Some(Arc::clone(addresses));
                entry.failing = None;
                entry.not_before = None;
                entry.fresh_until = lasts.map(|lasts| now + lasts);
            }
            Err(error) => {
                self.names.failures.fetch_add(1, Ordering::Relaxed);
                let since = entry.failing.as_ref().map_or(now, |(since, _)| *since);
                entry.failing = Some((since, Arc::clone(error)));
                let wait = entry.hung.checked_sub(1).map(|times| {
                    let longer = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(times));
                    now + longer.min(LONGEST_WAIT)
                });
                let said = lasts.map(|lasts| now + lasts);
                entry.not_before = wait.max(said);
                entry.fresh_until = None;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(entry) = self.names.lock().get_mut(&self.name)
            && entry.begun == Some(self.begun)
        {
            entry.begun = None;
        }
    }
}
