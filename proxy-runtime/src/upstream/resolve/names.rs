//! What is remembered of names: their last addresses, and whether their look-ups hang.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::order::interleaved;
use super::{Found, Outcome, checked};

/// How long a look-up is waited for where there are addresses from an earlier one.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A look-up that takes so long hangs: nothing that answers needs so long.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// The wait after a look-up that hung, or told of one family of addresses only; it doubles with each further one. Also that after
/// addresses that may be another host's.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);

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
    /// The full name that has these addresses.
    full_name: Option<String>,
    /// Since when look-ups have told of one family only, and how many.
    in_part: Option<(Instant, u32)>,
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
    /// The generation of files with which it was looked up.
    generation: u64,
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
    generation: u64,
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

    /// What is to be done for who wants `name`, which is in lower case. What was found, or not, in another generation of files
    /// does not hold any more.
    pub(super) fn advice(&self, name: &str, now: Instant, generation: u64) -> Advice {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(name) else {
            return Advice::Ask(Kind::New, None);
        };
        entry.asked = now;
        let holds = entry.generation == generation;
        if let Some(fresh) = entry.fresh(now)
            && holds
        {
            return Advice::Fresh(Arc::clone(fresh));
        }
        let addresses = entry.kept(now, self.keep).cloned();
        let is_slow = |begun| now.duration_since(begun) > PATIENCE;
        let waits = holds && entry.not_before.is_some_and(|then| now < then);
        match (addresses, &entry.failing) {
            (Some(addresses), _) if waits || entry.begun.is_some_and(is_slow) => {
                Advice::Use(addresses)
            }
            (None, Some((_, error))) if waits => Advice::Fail(Arc::clone(error)),
            (addresses, _) => Advice::Ask(entry.kind(), addresses),
        }
    }

    /// Notes that a look-up begins.
    pub(super) fn begin(self: &Arc<Self>, name: Arc<str>, generation: u64) -> Running {
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
            generation,
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
            full_name: None,
            in_part: None,
            failing: None,
            begun: None,
            hung: 0,
            not_before: None,
            fresh_until: None,
            generation: 0,
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

    /// Adds the known addresses of the family that nobody has told of to those that were `found`, for as long as `keep`. Returns also
    /// the time after which the other family is asked for again.
    fn completed(
        &mut self,
        found: &[IpAddr],
        now: Instant,
        keep: Duration,
    ) -> (Arc<[IpAddr]>, Duration) {
        let failing = self.failing.as_ref().map_or(now, |(since, _)| *since);
        let (since, times) = self.in_part.unwrap_or((failing, 0));
        self.in_part = Some((since, times.saturating_add(1)));
        let is_kept = now.duration_since(since) < keep;
        let known = self.good.iter().flat_map(|good| good.iter());
        let told = found.first().map(IpAddr::is_ipv6);
        let others = known.filter(|address| is_kept && Some(address.is_ipv6()) != told);
        let all = found.iter().chain(others).copied().collect();
        (interleaved(all).into(), longer_wait(times))
    }

    /// Notes addresses that hold for a time.
    fn resolves(&mut self, found: &Arc<[IpAddr]>, lasts: Option<Duration>, now: Instant) {
        self.good = Some(Arc::clone(found));
        self.failing = None;
        self.not_before = None;
        self.fresh_until = lasts.map(|lasts| now + lasts);
    }

    /// Notes a failure that holds for a time.
    fn fails(&mut self, error: &Arc<io::Error>, lasts: Option<Duration>, now: Instant) {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        self.failing = Some((since, Arc::clone(error)));
        let hung = self.hung.checked_sub(1).map(longer_wait);
        self.not_before = hung.max(lasts).map(|wait| now + wait);
        self.fresh_until = None;
    }
}

/// The wait after it was so often waited before.
fn longer_wait(times: u32) -> Duration {
    let longer = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(times));
    longer.min(LONGEST_WAIT)
}

impl Running {
    /// Notes that it is its turn.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Notes the end. Returns what is to be used of it.
    pub(super) fn end(self, outcome: Outcome) -> Found {
        let now = Instant::now();
        let took = now.duration_since(self.started);
        let mut found = checked(outcome.found);
        let mut lasts = outcome.lasts;
        let keep = self.names.keep;
        let mut entries = self.names.lock();
        let Some(entry) = entries.get_mut(&self.name) else {
            return found;
        };
        entry.generation = self.generation;
        entry.hung = match took >= SLOW {
            true => entry.hung.saturating_add(1),
            false => 0,
        };
        let is_same = entry.full_name == outcome.full_name;
        if let Some(why) = outcome.unsure {
            lasts = lasts.map(|lasts| lasts.min(FIRST_WAIT));
            // Known addresses of another host are better than those.
            if found.is_ok() && !is_same && entry.kept(now, keep).is_some() {
                found = Err(Arc::new(why));
            }
        }
        match &mut found {
            Ok(addresses) => {
                if !is_same || !outcome.is_part {
                    entry.in_part = None;
                }
                if outcome.is_part {
                    let keep = if is_same { keep } else { Duration::ZERO };
                    let (completed, longest) = entry.completed(addresses, now, keep);
                    *addresses = completed;
                    lasts = lasts.map(|lasts| lasts.min(longest));
                }
                entry.full_name = outcome.full_name;
                entry.resolves(addresses, lasts, now);
            }
            Err(error) => {
                self.names.failures.fetch_add(1, Ordering::Relaxed);
                entry.fails(error, lasts, now);
            }
        }
        found
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
