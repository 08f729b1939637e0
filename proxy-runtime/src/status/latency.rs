//! Response times.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::observe::HistogramCounts;

/// Times from the pick of a destination to the head of its response. Accurate to a few per cent.
///
/// Serialised in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// The median.
    #[serde(rename = "p50_ms", serialize_with = "as_millis")]
    pub p50: Duration,
    /// The 99th percentile.
    #[serde(rename = "p99_ms", serialize_with = "as_millis")]
    pub p99: Duration,
}

impl Latency {
    /// `None` without samples.
    pub(super) fn of(counts: &HistogramCounts) -> Option<Self> {
        Some(Self {
            p50: counts.quantile(0.5)?,
            p99: counts.quantile(0.99)?,
        })
    }
}

fn as_millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e3)
}
