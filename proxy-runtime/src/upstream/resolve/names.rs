//! The state of names: their last known good addresses and failures.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use discovery_core::Backoff;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::order::interleaved;
use super::{Found, LookupOutcome, checked};

/// Time that a caller waits for a look-up if there are earlier addresses.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Time after which a look-up counts as hanging: no working server takes that long.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// The pause after a look-up that hung, or found one address family only; it doubles with each
/// further one. Also the validity of addresses that may belong to another host.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Time without a request after which a name is not reported as unresolved: it may resolve by now.
const RECENT: Duration = Duration::from_secs(300);

/// Number of names above which unused ones are forgotten.
const MANY: usize = 4096;

/// The state of each name that was looked up.
#[derive(Debug)]
pub(in crate::upstream) struct Names {
    entries: Mutex<HashMap<Arc<str>, NameEntry>>,
    /// Time for which addresses are used while their name fails.
    keep: Duration,
    failures: AtomicU64,
    stale: AtomicU64,
}

#[derive(Debug)]
struct NameEntry {
    /// The result of the last successful look-up.
    good: Option<Arc<[IpAddr]>>,
    /// The absolute name that has these addresses.
    full_name: Option<String>,
    /// The start and number of consecutive look-ups with one family only.
    in_part: Option<(Instant, u32)>,
    /// The start and reason of consecutive failures.
    failing: Option<(Instant, Arc<io::Error>)>,
    /// The start of the look-up in flight.
    begun: Option<Instant>,
    /// Number of consecutive look-ups that hung.
    hung: u32,
    /// The earliest time of the next look-up after a failure.
    not_before: Option<Instant>,
    /// The end of the validity of the addresses.
    fresh_until: Option<Instant>,
    /// The generation of the configuration files at the look-up.
    generation: u64,
    asked: Instant,
}

/// The action for a caller that needs a name.
#[derive(Debug)]
pub(super) enum Advice {
    /// Look it up, as this kind of name. If that fails or takes longer than [`PATIENCE`], use the
    /// addresses.
    Ask(NameKind, Option<Arc<[IpAddr]>>),
    /// Use these addresses: they are valid.
    Fresh(Arc<[IpAddr]>),
    /// Use these addresses: a look-up takes too long, or has failed recently.
    Use(Arc<[IpAddr]>),
    /// Fail: there are no addresses, and a look-up took too long or failed recently.
    Fail(Arc<io::Error>),
}

/// The kind of a name, which decides about the permits of its look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    /// The last look-up found addresses in time.
    Known,
    /// Not looked up yet, or the name has no addresses.
    New,
    /// The last look-up hung.
    Hanging,
}

/// A name that does not resolve.
#[derive(Clone, Debug)]
pub(crate) struct Unresolved {
    /// The name, in lower case.
    pub(crate) name: Arc<str>,
    /// Time since the first failure.
    pub(crate) since: Duration,
    /// The reason of the last failure.
    pub(crate) error: Arc<io::Error>,
    /// True if addresses of an earlier look-up are used.
    pub(crate) has_addresses: bool,
}

/// Counters of look-ups.
#[cfg(any(feature = "metrics", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameCounts {
    /// Number of failed look-ups.
    pub(crate) failures: u64,
    /// Number of times that addresses of an earlier look-up were used.
    pub(crate) stale: u64,
}

/// A look-up in flight. Dropping it ends it without a result.
pub(super) struct Running {
    names: Arc<Names>,
    name: Arc<str>,
    generation: u64,
    begun: Instant,
    /// The time when it received its permit.
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

    /// Returns the action for `name`, which must be in lower case. Results of another generation of
    /// the configuration files are outdated.
    pub(super) fn advice(&self, name: &str, now: Instant, generation: u64) -> Advice {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(name) else {
            return Advice::Ask(NameKind::New, None);
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
            // Older addresses serve while a look-up pauses or takes long.
            (Some(addresses), _) if waits || entry.begun.is_some_and(is_slow) => {
                Advice::Use(addresses)
            }
            (None, Some((_, error))) if waits => Advice::Fail(Arc::clone(error)),
            (addresses, _) => Advice::Ask(entry.kind(), addresses),
        }
    }

    /// Records the start of a look-up.
    pub(super) fn begin(self: &Arc<Self>, name: Arc<str>, generation: u64) -> Running {
        let now = Instant::now();
        let mut entries = self.lock();
        // Bounds the map: names of removed destinations would stay forever.
        if entries.len() >= MANY && !entries.contains_key(&name) {
            entries.retain(|_, entry| now.duration_since(entry.asked) <= self.keep);
        }
        let entry = entries
            .entry(Arc::clone(&name))
            .or_insert_with(|| NameEntry::new(now));
        // A second look-up counts from the start of the first.
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

    /// Counts a use of addresses from an earlier look-up.
    pub(super) fn used_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters.
    #[cfg(any(feature = "metrics", test))]
    pub(in crate::upstream) fn counts(&self) -> NameCounts {
        NameCounts {
            failures: self.failures.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
        }
    }

    /// The names that do not resolve, among those requested in the last five minutes.
    pub(in crate::upstream) fn unresolved(&self) -> Vec<Unresolved> {
        let now = Instant::now();
        let entries = self.lock();
        let recent = |entry: &NameEntry| now.duration_since(entry.asked) <= RECENT;
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, NameEntry>> {
        self.entries.lock()
    }
}

impl NameEntry {
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

    /// The addresses, if the name has failed for less than `keep`.
    fn kept(&self, now: Instant, keep: Duration) -> Option<&Arc<[IpAddr]>> {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        let good = self.good.as_ref();
        good.filter(|_| now.duration_since(since) < keep)
    }

    /// The addresses, if they are valid.
    fn fresh(&self, now: Instant) -> Option<&Arc<[IpAddr]>> {
        let is_fresh = self.fresh_until.is_some_and(|then| now < then);
        self.good.as_ref().filter(|_| is_fresh)
    }

    fn kind(&self) -> NameKind {
        match (self.hung, &self.failing, &self.good) {
            (0, None, Some(_)) => NameKind::Known,
            (0, ..) => NameKind::New,
            _ => NameKind::Hanging,
        }
    }

    /// Adds known addresses of the missing family to `found`, for at most `keep`. Also returns the
    /// time after which that family is queried again.
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
        // Only the family that `found` lacks is added.
        let told = found.first().map(IpAddr::is_ipv6);
        let others = known.filter(|address| is_kept && Some(address.is_ipv6()) != told);
        let all = found.iter().chain(others).copied().collect();
        (interleaved(all).into(), longer_wait(times))
    }

    /// Records addresses that are valid for a time.
    fn resolves(&mut self, found: &Arc<[IpAddr]>, lasts: Option<Duration>, now: Instant) {
        self.good = Some(Arc::clone(found));
        self.failing = None;
        self.not_before = None;
        self.fresh_until = lasts.map(|lasts| now + lasts);
    }

    /// Records a failure that is valid for a time.
    fn fails(&mut self, error: &Arc<io::Error>, lasts: Option<Duration>, now: Instant) {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        self.failing = Some((since, Arc::clone(error)));
        let hung = self.hung.checked_sub(1).map(longer_wait);
        self.not_before = hung.max(lasts).map(|wait| now + wait);
        self.fresh_until = None;
    }
}

/// The pause after `times` earlier pauses.
fn longer_wait(times: u32) -> Duration {
    Backoff::new(FIRST_WAIT, LONGEST_WAIT).limit(times.saturating_add(1))
}

impl Running {
    /// Records that it has received its permit.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Records the end. Returns the result to use.
    pub(super) fn end(self, outcome: LookupOutcome) -> Found {
        let now = Instant::now();
        let took = now.duration_since(self.started);
        let mut found = checked(outcome.found);
        let mut lasts = outcome.lasts;
        let keep = self.names.keep;
        let mut entries = self.names.lock();
        let Some(entry) = entries.get_mut(&self.name) else {
            // The name was forgotten meanwhile.
            return found;
        };
        // Files that have changed since the start make the result outdated.
        entry.generation = self.generation;
        entry.hung = match took >= SLOW {
            true => entry.hung.saturating_add(1),
            false => 0,
        };
        let is_same = entry.full_name == outcome.full_name;
        if let Some(why) = outcome.unsure {
            lasts = lasts.map(|lasts| lasts.min(FIRST_WAIT));
            // Known addresses of another absolute name are more reliable.
            if found.is_ok() && !is_same && entry.kept(now, keep).is_some() {
                found = Err(Arc::new(why));
            }
        }
        match &mut found {
            Ok(addresses) => {
                // A complete result, or another name, ends the series of partial ones.
                if !is_same || !outcome.is_part {
                    entry.in_part = None;
                }
                if outcome.is_part {
                    // Addresses of another absolute name must not be mixed in.
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
        // Another look-up of the name may have begun since.
        if let Some(entry) = self.names.lock().get_mut(&self.name)
            && entry.begun == Some(self.begun)
        {
            entry.begun = None;
        }
    }
}
