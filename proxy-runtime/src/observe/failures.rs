//! Recent failures, which decide if a destination or a cluster counts as failing.

use std::array;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::{Cause, ForwardErrorKind};

/// Number of seconds for which a failure counts.
pub(crate) const RECENT: usize = 30;
/// The time without a failure after which a destination that has responded since counts as working
/// again.
const QUIET: Duration = Duration::from_secs(10);
/// Maximum characters of a cause, parts of which come from destinations.
const MOST_OF_CAUSE: usize = 240;

/// The recent failures of a destination or a cluster, with their cause. Needs one word of memory
/// until the first failure.
#[derive(Debug, Default)]
pub(crate) struct RecentFailures(OnceLock<Box<FailureRecord>>);

/// A change between working and failing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The destination or cluster begins to fail.
    Fails,
    /// The end of the failure.
    Works {
        /// The time since its first failed request.
        after: Duration,
        /// Number of requests that failed meanwhile.
        failed: u64,
    },
}

#[derive(Debug)]
struct FailureRecord {
    began: Instant,
    /// The failures of one second each in the low half, and the number of that second in the high
    /// half.
    seconds: [AtomicU64; RECENT],
    /// Number of all failures.
    total: AtomicU64,
    /// The index of the latest cause.
    cause: AtomicU8,
    /// The index of the latest kind.
    #[cfg(test)]
    kind: AtomicU8,
    /// The error of the latest connection attempt; `None` if it succeeded.
    unconnected: Mutex<Option<Arc<str>>>,
    seen: Mutex<LastLook>,
}

/// The state at the last call of [`RecentFailures::look`].
#[derive(Debug)]
struct LastLook {
    failures: u64,
    /// Number of responses when the last failure was seen.
    answers: u64,
    failed_at: Instant,
    /// The beginning, and the number of failures before it.
    failing_since: Option<(Instant, u64)>,
}

impl RecentFailures {
    /// Counts a failure.
    #[cold]
    pub(crate) fn count(&self, kind: ForwardErrorKind) {
        let record = self.record();
        let now = record.second();
        let slot = &record.seconds[now as usize % RECENT];
        let counted = |slot: u64| match unpack(slot) {
            (second, count) if second == now => Some(pack(now, count.saturating_add(1))),
            // The slot is from an earlier turn of the ring.
            _ => Some(pack(now, 1)),
        };
        // The closure never returns `None`, so the update cannot fail.
        let _ = slot.fetch_update(Relaxed, Relaxed, counted);
        #[cfg(test)]
        record.kind.store(kind.index() as u8, Relaxed);
        let index = u8::try_from(kind.cause().index()).unwrap_or(u8::MAX);
        record.cause.store(index, Relaxed);
        record.total.fetch_add(1, Relaxed);
    }

    /// Records the error of a connection attempt.
    #[cold]
    pub(crate) fn connect_failed(&self, cause: &str) {
        let cause: String = cause.chars().take(MOST_OF_CAUSE).collect();
        *self.record().unconnected.lock() = Some(cause.into());
    }

    /// Records a successful connection attempt.
    pub(crate) fn connected(&self) {
        // Before the first failure there is nothing to clear, and nothing is allocated.
        if let Some(record) = self.0.get() {
            *record.unconnected.lock() = None;
        }
    }

    /// Returns the failures of the last [`RECENT`] seconds.
    pub(crate) fn recent(&self) -> u64 {
        let Some(record) = self.0.get() else {
            return 0;
        };
        let now = record.second();
        let counts = record.seconds.iter().map(|slot| unpack(slot.load(Relaxed)));
        let recent = counts.filter(|(second, _)| now.saturating_sub(*second) < RECENT as u32);
        recent.map(|(_, count)| u64::from(count)).sum()
    }

    /// Returns the kind of the latest failure, if there is any.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn kind(&self) -> Option<ForwardErrorKind> {
        let record = self.0.get()?;
        let index = usize::from(record.kind.load(Relaxed));
        ForwardErrorKind::ALL.get(index).copied()
    }

    /// Returns the number of all failures.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn total(&self) -> u64 {
        self.0.get().map_or(0, |record| record.total.load(Relaxed))
    }

    /// Returns the cause of the latest failure.
    pub(crate) fn cause(&self) -> Option<Cause> {
        let index = usize::from(self.0.get()?.cause.load(Relaxed));
        Cause::ALL.get(index).copied()
    }

    /// Returns the cause of the latest failure in words: the error of the latest connection attempt, if that was it.
    pub(crate) fn detail(&self) -> Option<Arc<str>> {
        let cause = self.cause()?;
        let unconnected = self.0.get()?.unconnected.lock().clone();
        let unconnected = unconnected.filter(|_| cause.is_of_connection());
        Some(unconnected.unwrap_or_else(|| cause.meaning().into()))
    }

    /// Returns the change since the last call, if there is any. `answers` is the number of
    /// responses so far. To be called about once a second.
    pub(crate) fn look(&self, answers: impl Fn() -> u64) -> Option<Turn> {
        let record = self.0.get()?;
        let failures = record.total.load(Relaxed);
        let now = Instant::now();
        let mut seen = record.seen.lock();
        if failures != seen.failures {
            let before = std::mem::replace(&mut seen.failures, failures);
            seen.answers = answers();
            seen.failed_at = now;
            // A failure while already failing is no change.
            if seen.failing_since.is_some() {
                return None;
            }
            seen.failing_since = Some((now, before));
            return Some(Turn::Fails);
        }
        let (since, before) = seen.failing_since?;
        // Silence alone proves nothing: a response since the last failure does.
        let is_quiet = now.saturating_duration_since(seen.failed_at) >= QUIET;
        if !is_quiet || answers() <= seen.answers {
            return None;
        }
        seen.failing_since = None;
        Some(Turn::Works {
            after: now.saturating_duration_since(since),
            failed: failures - before,
        })
    }

    fn record(&self) -> &FailureRecord {
        self.0.get_or_init(|| {
            let began = Instant::now();
            Box::new(FailureRecord {
                began,
                seconds: array::from_fn(|_| AtomicU64::new(0)),
                total: AtomicU64::new(0),
                cause: AtomicU8::new(u8::MAX),
                #[cfg(test)]
                kind: AtomicU8::new(u8::MAX),
                unconnected: Mutex::new(None),
                seen: Mutex::new(LastLook {
                    failures: 0,
                    answers: 0,
                    failed_at: began,
                    failing_since: None,
                }),
            })
        })
    }
}

impl FailureRecord {
    /// Number of the current second.
    fn second(&self) -> u32 {
        let now = Instant::now().saturating_duration_since(self.began);
        u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
    }
}

const fn pack(second: u32, count: u32) -> u64 {
    (second as u64) << 32 | count as u64
}

const fn unpack(slot: u64) -> (u32, u32) {
    ((slot >> 32) as u32, slot as u32)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_for_a_while() {
        let failures = RecentFailures::default();
        assert_eq!((failures.recent(), failures.cause()), (0, None));
        for _ in 0..RECENT + 5 {
            failures.count(ForwardErrorKind::Request);
            failures.count(ForwardErrorKind::RequestTimedOut);
            advance(SECOND).await;
        }
        assert_eq!(failures.recent(), 2 * (RECENT as u64 - 1));
        advance(SECOND * (RECENT as u32 - 2)).await;
        assert_eq!(failures.recent(), 2);
        advance(SECOND).await;
        assert_eq!(failures.recent(), 0);
        // The same slot again, one cycle later.
        failures.count(ForwardErrorKind::Request);
        assert_eq!(failures.recent(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cause_is_that_of_the_connection_if_there_is_none() {
        let failures = RecentFailures::default();
        failures.connect_failed("refused");
        assert_eq!(failures.detail(), None, "no request has failed");
        let refused = ForwardErrorKind::Request.because(Cause::ConnectionRefused);
        failures.count(refused);
        assert_eq!(failures.cause(), Some(Cause::ConnectionRefused));
        assert_eq!(failures.detail().as_deref(), Some("refused"));
        failures.count(ForwardErrorKind::ResponseBodyDestination);
        let cut = Cause::ResetWhileResponding;
        assert_eq!(failures.cause(), Some(cut));
        assert_eq!(failures.detail().as_deref(), Some(cut.meaning()));
        // The connection was there before it broke.
        failures.count(ForwardErrorKind::Request);
        let closed = Cause::ResetBeforeResponse;
        assert_eq!(failures.detail().as_deref(), Some(closed.meaning()));
        failures.connect_failed(&"ü".repeat(MOST_OF_CAUSE + 1));
        failures.count(refused);
        let detail = failures.detail().unwrap();
        assert_eq!(detail.chars().count(), MOST_OF_CAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn it_works_again_when_it_has_answered_and_nothing_fails() {
        let failures = RecentFailures::default();
        let look = |answers| failures.look(|| answers);
        assert_eq!(look(7), None);
        failures.count(ForwardErrorKind::Request);
        assert_eq!(look(7), Some(Turn::Fails));
        failures.count(ForwardErrorKind::Request);
        assert_eq!(look(9), None, "this is known");
        advance(QUIET * 2).await;
        assert_eq!(look(9), None, "nothing has answered since");
        let (after, failed) = (QUIET * 2, 2);
        assert_eq!(look(10), Some(Turn::Works { after, failed }));
        assert_eq!(look(11), None);
        failures.count(ForwardErrorKind::Request);
        assert_eq!(look(11), Some(Turn::Fails));
        advance(QUIET - SECOND).await;
        assert_eq!(look(12), None, "not for long enough");
        advance(SECOND).await;
        let (after, failed) = (QUIET, 1);
        assert_eq!(
            look(12),
            Some(Turn::Works { after, failed }),
            "of this failure alone"
        );
    }
}
