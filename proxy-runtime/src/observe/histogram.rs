//! Histograms of durations, with buckets of roughly equal ratio.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets per power of ten.
const STEPS: usize = 10;
/// Powers of ten, from 10 µs.
const DECADES: usize = 7;
/// Upper bounds: those of every decade, and 100 s.
const BOUNDS_LEN: usize = STEPS * DECADES + 1;
/// One bucket per bound, and one for longer durations.
const BUCKETS: usize = BOUNDS_LEN + 1;

/// The inclusive upper bounds of the buckets in nanoseconds.
///
/// The steps within a power of ten include the bounds that OpenTelemetry recommends for HTTP (5 ms,
/// 10 ms, 25 ms, 50 ms, 75 ms, … 10 s), so these are exported exactly, not by interpolation.
const BOUNDS: [u64; BOUNDS_LEN] = bounds();

const fn bounds() -> [u64; BOUNDS_LEN] {
    // Hundredths of the power of ten.
    let steps: [u64; STEPS] = [100, 125, 150, 200, 250, 300, 400, 500, 600, 750];
    let mut bounds = [0; BOUNDS_LEN];
    let mut unit = 100; // A hundredth of 10 µs.
    let mut decade = 0;
    while decade < DECADES {
        let mut step = 0;
        while step < STEPS {
            bounds[decade * STEPS + step] = steps[step] * unit;
            step += 1;
        }
        unit *= 10;
        decade += 1;
    }
    bounds[BOUNDS_LEN - 1] = 100 * unit;
    bounds
}

/// Exported bounds: those of OpenTelemetry, and finer ones below, since a proxy is fast. Each is
/// one of [`BOUNDS`].
#[cfg(feature = "metrics")]
const EXPOSED: [u64; 20] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
];

/// A histogram of durations that many threads update.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// The sum of all durations in nanoseconds. Wraps after 584 years.
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum: AtomicU64::new(0),
        }
    }
}

/// The first bucket for numbers with a given number of bits.
const FIRST: [u8; 65] = first_buckets();

const fn first_buckets() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits < first.len() {
        let least = 1 << (bits - 1);
        let mut bucket = 0;
        while bucket < BOUNDS_LEN && BOUNDS[bucket] < least {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
}

/// The bucket of a duration. At most five bounds lie between two powers of two, so the loop is
/// short.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let mut bucket = usize::from(FIRST[(u64::BITS - nanos.leading_zeros()) as usize]);
    while BOUNDS.get(bucket).is_some_and(|bound| *bound < nanos) {
        bucket += 1;
    }
    bucket
}

/// A duration with its bucket, which is the same in every histogram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    nanos: u64,
    bucket: usize,
}

impl From<Duration> for Sample {
    #[inline]
    fn from(duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(nanos);
        Self { nanos, bucket }
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub(crate) fn record(&self, sample: impl Into<Sample>) {
        let Sample { nanos, bucket } = sample.into();
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The current counts. Durations that are recorded during the call may or may not be included.
    pub(crate) fn counts(&self) -> HistogramCounts {
        HistogramCounts {
            buckets: std::array::from_fn(|i| self.buckets[i].load(Ordering::Relaxed)),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A snapshot of a [`Histogram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HistogramCounts {
    buckets: [u64; BUCKETS],
    sum: u64,
}

impl Default for HistogramCounts {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            sum: 0,
        }
    }
}

impl HistogramCounts {
    /// Creates counts of `count` durations of zero.
    #[cfg(feature = "metrics")]
    pub(crate) fn zeros(count: u64) -> Self {
        let mut zeros = Self::default();
        zeros.buckets[bucket_of(0)] = count;
        zeros
    }

    /// Number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all durations.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// The exported buckets: the upper bound in seconds, and the number of durations above the
    /// previous bound.
    #[cfg(feature = "metrics")]
    pub(crate) fn exposed(&self) -> Vec<(f64, u64)> {
        let mut exposed = Vec::with_capacity(EXPOSED.len() + 1);
        let mut from = 0;
        for bound in EXPOSED {
            let to = BOUNDS.partition_point(|b| *b <= bound);
            let seconds = Duration::from_nanos(bound).as_secs_f64();
            exposed.push((seconds, self.buckets[from..to].iter().sum()));
            from = to;
        }
        // Prometheus requires a bucket without a bound.
        exposed.push((f64::INFINITY, self.buckets[from..].iter().sum()));
        exposed
    }

    /// The durations recorded after `earlier`, a snapshot of the same histogram.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            buckets: std::array::from_fn(|i| self.buckets[i].saturating_sub(earlier.buckets[i])),
            // The sum may have wrapped around in between.
            sum: self.sum.wrapping_sub(earlier.sum),
        }
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The duration that a share of `quantile` (0 to 1) of all durations does not exceed,
    /// interpolated within its bucket. `None` if the histogram is empty.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = quantile.clamp(0.0, 1.0) * count as f64;
        let mut below = 0_u64;
        for (i, &in_bucket) in self.buckets.iter().enumerate() {
            if in_bucket > 0 && (below + in_bucket) as f64 >= rank {
                let lower = if i == 0 { 0 } else { BOUNDS[i - 1] };
                // The last bucket has no upper bound.
                let upper = BOUNDS.get(i).copied().unwrap_or(lower);
                let part = ((rank - below as f64) / in_bucket as f64).clamp(0.0, 1.0);
                return Some(Duration::from_nanos(
                    lower + ((upper - lower) as f64 * part) as u64,
                ));
            }
            below += in_bucket;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_ascend_and_hold_those_of_opentelemetry() {
        assert!(BOUNDS.is_sorted());
        assert_eq!(BOUNDS[0], 10_000);
        assert_eq!(BOUNDS[BOUNDS_LEN - 1], 100_000_000_000);
        for millis in [
            5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000,
        ] {
            assert!(BOUNDS.contains(&(millis * 1_000_000)), "{millis} ms");
        }
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn what_is_exposed_is_exact() {
        assert!(EXPOSED.iter().all(|bound| BOUNDS.contains(bound)));
        let histogram = Histogram::default();
        for micros in [50, 51, 5_000, 10_000_000, 10_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let exposed = histogram.counts().exposed();
        let filled: Vec<_> = exposed
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(
            filled,
            [
                (0.000_05, 1),
                (0.000_1, 1),
                (0.005, 1),
                (10.0, 1),
                (f64::INFINITY, 1)
            ]
        );
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_millis(5));
        histogram.record(Duration::from_nanos(5_000_001));
        histogram.record(Duration::MAX);
        let counts = histogram.counts();
        let five = BOUNDS.iter().position(|b| *b == 5_000_000).unwrap();
        assert_eq!(counts.buckets[five], 1);
        assert_eq!(counts.buckets[five + 1], 1);
        assert_eq!(counts.buckets[BUCKETS - 1], 1);
        assert_eq!(counts.count(), 3);
    }

    #[test]
    fn every_bucket_is_found() {
        let around = |number: u64| [number - 1, number, number.saturating_add(1)];
        let powers = (1..64).map(|bits| 1 << bits);
        let numbers = BOUNDS.into_iter().chain(powers).flat_map(around);
        for nanos in numbers.chain([0, 1, u64::MAX]) {
            let expected = BOUNDS.partition_point(|bound| *bound < nanos);
            assert_eq!(bucket_of(nanos), expected, "{nanos}");
        }
    }

    #[test]
    fn quantiles_are_close_to_the_truth() {
        let histogram = Histogram::default();
        for millis in 1..=1_000 {
            histogram.record(Duration::from_millis(millis));
        }
        let counts = histogram.counts();
        for (quantile, truth) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
            let found = counts.quantile(quantile).unwrap().as_secs_f64() * 1e3;
            assert!(
                (found / truth - 1.0).abs() < 0.05,
                "p{quantile}: {found} ms instead of {truth} ms"
            );
        }
        assert_eq!(HistogramCounts::default().quantile(0.5), None);
    }

    #[test]
    fn a_difference_holds_what_came_between() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_secs(9));
        let earlier = histogram.counts();
        histogram.record(Duration::from_millis(2));
        let between = histogram.counts().since(&earlier);
        assert_eq!(between.count(), 1);
        assert_eq!(between.sum(), Duration::from_millis(2));
        let mut all = earlier;
        all.merge(&between);
        assert_eq!(all, histogram.counts());
    }
}
