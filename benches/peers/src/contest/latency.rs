//! Latencies of one round.

use crate::histogram::Histogram;

/// Latencies of one round, in microseconds.
///
/// Separate for each round: in one histogram of all rounds a single disturbed round determines the
/// 99th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// Number of requests.
    pub(crate) requests: u64,
}

impl Latency {
    /// `None` without samples.
    pub(super) fn of(histogram: &Histogram) -> Option<Self> {
        let micros = |share| Some(histogram.quantile(share)?.as_secs_f64() * 1e6);
        Some(Self {
            p50: micros(0.5)?,
            p90: micros(0.9)?,
            p99: micros(0.99)?,
            p999: micros(0.999)?,
            requests: histogram.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn quantiles_are_in_microseconds() {
        let mut histogram = Histogram::new();
        assert_eq!(Latency::of(&histogram), None);
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        let latency = Latency::of(&histogram).unwrap();
        assert_eq!(latency.requests, 1000);
        let found = [latency.p50, latency.p90, latency.p99, latency.p999];
        for (found, exact) in found.into_iter().zip([500.0, 900.0, 990.0, 999.0]) {
            let most = exact * (1.0 + Histogram::RESOLUTION);
            assert!((exact..=most).contains(&found), "{exact}: {found}");
        }
    }
}
