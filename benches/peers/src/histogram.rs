//! Latencies in buckets whose width grows with the value.

use std::time::Duration;

/// Binary logarithm of the buckets per power of two: values have a precision of 1/64, 1.6 %.
const PRECISION: u32 = 6;
const PER_POWER: usize = 1 << PRECISION;

/// Nanoseconds up to 2^41, over half an hour; longer values fall into the last bucket.
const POWERS: usize = 41 - PRECISION as usize;

/// A histogram of latencies. Recording costs an index; memory is fixed, about 18 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Histogram {
    /// Maximum relative error of a quantile, always upwards.
    pub(crate) const RESOLUTION: f64 = 1.0 / PER_POWER as f64;

    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; (POWERS + 1) * PER_POWER],
            total: 0,
            longest: Duration::ZERO,
        }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let last = self.counts.len() - 1;
        self.counts[index(nanos).min(last)] += 1;
        self.total += 1;
        self.longest = self.longest.max(latency);
    }

    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// The latency that a `share` (0 to 1) of all values did not exceed, within the precision and
    /// never above the maximum. `None` without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        if self.total == 0 {
            return None;
        }
        // At least one, so that the quantile 0 is the minimum.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "counts of a measurement are far below 2^52, and the share is not negative"
        )]
        let rank = ((share * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_nanos(highest(found)).min(self.longest))
    }
}

/// The bucket of a value. Below 2 × [`PER_POWER`] each value has its own.
fn index(nanos: u64) -> usize {
    let power = (u64::BITS - nanos.leading_zeros()).saturating_sub(PRECISION + 1);
    let within = usize::try_from(nanos >> power).expect("at most 2 × PER_POWER is left");
    power as usize * PER_POWER + within
}

/// The highest value of a bucket.
fn highest(index: usize) -> u64 {
    let power = (index / PER_POWER).saturating_sub(1);
    let within = (index - power * PER_POWER) as u64;
    ((within + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_lies_in_a_bucket_that_is_no_wider_than_promised() {
        let mut before = None;
        for nanos in (0..4096).chain((12..41).flat_map(|power| {
            let value = 1_u64 << power;
            [value - 1, value, value + 1, value + value / 3]
        })) {
            let at = index(nanos);
            let upper = highest(at);
            assert!(upper >= nanos, "{nanos}: bucket {at} ends at {upper}");
            assert!(
                upper - nanos <= nanos / PER_POWER as u64,
                "{nanos}: bucket {at} ends at {upper}"
            );
            if nanos < 4096 {
                assert!(before.is_none_or(|before| at == before || at == before + 1));
                before = Some(at);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut histogram = Histogram::new();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (share, micros) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let exact = Duration::from_micros(micros);
            let found = histogram.quantile(share).expect("it is not empty");
            assert!(
                found >= exact && found <= exact + exact / 50,
                "{share}: {found:?}"
            );
        }
    }

    #[test]
    fn nothing_has_no_quantile_and_one_value_is_all_of_them() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        histogram.record(Duration::from_nanos(12_345_678));
        assert_eq!(histogram.quantile(0.0), histogram.quantile(1.0));
        assert_eq!(
            histogram.quantile(1.0),
            Some(Duration::from_nanos(12_345_678))
        );
    }

    #[test]
    fn what_is_too_long_for_the_buckets_is_still_counted() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(1 << 40));
        histogram.record(Duration::from_millis(1));
        assert_eq!(histogram.len(), 2);
        assert!(histogram.quantile(0.5).expect("there are two") < Duration::from_millis(2));
        assert!(histogram.quantile(1.0).expect("there are two") > Duration::from_secs(1000));
    }
}
