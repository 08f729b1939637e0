//! A counter of forwarding loops.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts the requests of a route that have returned to this proxy.
#[derive(Debug, Default)]
pub(crate) struct LoopCounter {
    count: AtomicU64,
    /// Milliseconds after [`began`] of the last loop.
    last: AtomicU64,
}

impl LoopCounter {
    /// Counts a loop.
    #[cold]
    pub(crate) fn record(&self) {
        let now = began().elapsed().as_millis();
        self.last
            .store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of loops, and the time since the last one.
    pub(crate) fn seen(&self) -> Option<(u64, Duration)> {
        let count = self.count.load(Ordering::Relaxed);
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        (count > 0).then(|| (count, began().elapsed().saturating_sub(last)))
    }
}

fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_counted() {
        let tally = LoopCounter::default();
        assert_eq!(tally.seen(), None);
        tally.record();
        tally.record();
        let (count, age) = tally.seen().unwrap();
        assert_eq!(count, 2);
        assert!(age < Duration::from_secs(60), "{age:?}");
    }
}
