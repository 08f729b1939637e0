//! Histograms by labels, in a table of fixed size.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::counter::Counter;
#[cfg(any(feature = "metrics", test))]
use super::histogram::HistogramCounts;
use super::histogram::{Histogram, Sample};
use super::labels::Labels;
use super::per_worker::{OwnLine, PerWorker};

/// Maximum of label combinations per route or cluster. A client or destination that varies methods
/// and statuses fills the table; further combinations share one histogram, so memory is bounded.
const SLOTS: usize = 64;

/// Durations by method, protocol and status.
///
/// Allocated at the first request, so that 100,000 idle routes cost little. All workers agree on
/// the slot of a combination, which is written once. Each worker has its own histograms once the
/// route is busy.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    keys: OnceLock<Box<Keys>>,
    slots: PerWorker<Slots>,
}

/// Packed labels; 0 is free. A key never changes once it is set.
#[derive(Debug)]
struct Keys([AtomicU32; SLOTS]);

#[derive(Debug)]
struct Slots {
    /// Number of all recorded requests.
    recorded: Counter,
    histograms: [SeriesSlot; SLOTS],
    overflow: SeriesSlot,
}

type SeriesSlot = OnceLock<Box<OwnLine<Histogram>>>;

impl SeriesTable {
    /// Counts one request.
    #[inline]
    pub(crate) fn record(&self, labels: Labels, elapsed: impl Into<Sample>) {
        let keys = self.keys.get_or_init(Box::default);
        let slots = self.slots.here();
        slots.recorded.increment();
        let series = match keys.find_or_claim(labels) {
            Some(slot) => &slots.histograms[slot],
            None => &slots.overflow,
        };
        series.get_or_init(Box::default).record(elapsed);
    }

    /// Number of recorded requests.
    pub(crate) fn recorded(&self) -> u64 {
        self.slots.iter().map(|slots| slots.recorded.get()).sum()
    }

    /// Gives each worker its own histograms.
    pub(crate) fn split(&self) {
        self.slots.split();
    }

    /// Calls `each` with every series. Requests beyond the table come last, together, without
    /// labels.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn for_each(&self, mut each: impl FnMut(Option<Labels>, &HistogramCounts)) {
        let Some(keys) = self.keys.get() else { return };
        for (slot, key) in keys.0.iter().enumerate() {
            if let Some(counts) = self.sum(|slots| &slots.histograms[slot]) {
                let labels = Labels::from_bits(key.load(Ordering::Relaxed));
                each(Some(labels), &counts);
            }
        }
        if let Some(counts) = self.sum(|slots| &slots.overflow) {
            each(None, &counts);
        }
    }

    /// The sum over all workers of a slot; `None` if it is unused.
    #[cfg(any(feature = "metrics", test))]
    fn sum(&self, slot: impl Fn(&Slots) -> &SeriesSlot) -> Option<HistogramCounts> {
        let counted = self.slots.iter().filter_map(|slots| slot(slots).get());
        counted
            .map(|histogram| histogram.counts())
            .reduce(|mut sum, counts| {
                sum.merge(&counts);
                sum
            })
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; SLOTS])
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            recorded: Counter::default(),
            histograms: [const { OnceLock::new() }; SLOTS],
            overflow: OnceLock::new(),
        }
    }
}

impl Keys {
    /// The slot of `labels`; claims a free one if they have none. `None` if all slots are taken.
    #[inline]
    fn find_or_claim(&self, labels: Labels) -> Option<usize> {
        let wanted = labels.bits();
        // Fibonacci hashing spreads labels, which differ in few bits, over the table.
        let start = (wanted.wrapping_mul(0x9e37_79b9) >> 26) as usize;
        for step in 0..SLOTS {
            let slot = (start + step) % SLOTS;
            let key = &self.0[slot];
            let found = key.load(Ordering::Relaxed);
            if found == wanted {
                return Some(slot);
            }
            if found == 0 {
                // Relaxed is enough: the key itself is all that is published.
                match key.compare_exchange(0, wanted, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Some(slot),
                    // Another thread took the slot, perhaps for the same labels.
                    Err(taken) if taken == wanted => return Some(slot),
                    Err(_) => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Method, StatusCode, Version};

    use super::*;

    fn labels(status: u16) -> Labels {
        Labels::new(
            &Method::GET,
            Version::HTTP_11,
            StatusCode::from_u16(status).unwrap(),
        )
    }

    #[test]
    fn each_combination_has_its_own_series() {
        let table = SeriesTable::default();
        for status in [200, 404, 200] {
            table.record(labels(status), Duration::from_millis(1));
        }
        let mut found = Vec::new();
        table.for_each(|labels, counts| found.push((labels.unwrap().status(), counts.count())));
        found.sort_unstable();
        assert_eq!(found, [(200, 2), (404, 1)]);
    }

    #[test]
    fn a_full_table_counts_the_rest_together() {
        let table = SeriesTable::default();
        for status in 100..999 {
            table.record(labels(status), Duration::from_millis(1));
        }
        let mut named = 0;
        let mut rest = 0;
        table.for_each(|labels, counts| match labels {
            Some(_) => named += counts.count(),
            None => rest += counts.count(),
        });
        assert_eq!((named, rest), (64, 899 - 64));
    }

    #[test]
    fn threads_that_meet_at_one_slot_lose_nothing() {
        let table = SeriesTable::default();
        table.split();
        std::thread::scope(|scope| {
            for is_worker in [true, true, false, false] {
                let table = &table;
                scope.spawn(move || {
                    #[cfg(feature = "server")]
                    let _place = is_worker.then(super::super::WorkerPlace::take);
                    #[cfg(not(feature = "server"))]
                    let _ = is_worker;
                    for i in 0..4_000 {
                        table.record(labels(200 + i % 80), Duration::from_micros(50));
                    }
                });
            }
        });
        let mut total = 0;
        let mut seen = Vec::new();
        table.for_each(|labels, counts| {
            total += counts.count();
            seen.push(labels.map(Labels::bits));
        });
        assert_eq!((total, table.recorded()), (16_000, 16_000));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 65, "64 series, each once, and the rest");
    }
}
