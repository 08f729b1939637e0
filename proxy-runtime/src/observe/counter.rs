//! Counters and gauges that many threads update.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::per_worker::{OwnLine, PerWorker};

/// A number that only increases, from the start of the process.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    /// Adds `amount`.
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The current value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The current number of things. Clones share one value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge(Arc<AtomicI64>);

impl Gauge {
    /// Counts one thing for as long as the guard lives.
    pub(crate) fn enter(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(self.clone())
    }

    /// The current value.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One thing that a [`Gauge`] counts. Dropping it ends the count.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct GaugeGuard(Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A [`Gauge`] with a part per worker. A single part has no meaning: one thread may add what
/// another thread subtracts.
#[derive(Debug)]
pub(crate) struct SplitGauge(PerWorker<AtomicI64>);

impl Default for SplitGauge {
    fn default() -> Self {
        let parts = PerWorker::default();
        parts.split();
        Self(parts)
    }
}

impl SplitGauge {
    /// Counts one thing for as long as the guard lives.
    pub(crate) fn enter(&self) -> SplitGuard {
        let part = self.0.here();
        part.fetch_add(1, Ordering::Relaxed);
        SplitGuard(Arc::clone(part))
    }

    /// Like [`enter`](Self::enter), with a guard that borrows the gauge.
    #[inline]
    pub(crate) fn enter_here(&self) -> SplitEntry<'_> {
        let part = self.0.here();
        part.fetch_add(1, Ordering::Relaxed);
        SplitEntry(part)
    }

    /// The current value, over all workers.
    pub(crate) fn get(&self) -> i64 {
        let parts = self.0.iter().map(|part| part.load(Ordering::Relaxed));
        // Parts are read one after another: an end may be seen without its beginning.
        parts.fold(0, i64::wrapping_add).max(0)
    }
}

/// One counted unit of a [`SplitGauge`]. Dropping it subtracts it.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct SplitGuard(Arc<OwnLine<AtomicI64>>);

impl Drop for SplitGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A [`SplitGuard`] that borrows the gauge.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct SplitEntry<'a>(&'a AtomicI64);

impl Drop for SplitEntry<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_counts_the_guards_that_live() {
        let gauge = Gauge::default();
        let first = gauge.enter();
        let clone = gauge.clone();
        let second = clone.enter();
        assert_eq!(gauge.get(), 2);
        drop(first);
        assert_eq!(gauge.get(), 1);
        drop(second);
        assert_eq!(gauge.get(), 0);
    }
}
