//! How long answers take.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::observe::HistogramCounts;

/// How long answers took, from the pick of the destination to the head of its response. Accurate to a few per cent.
///
/// Serialised in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// Half of them were no slower.
    #[serde(rename = "p50_ms", serialize_with = "as_millis")]
    pub p50: Duration,
    /// 99 of 100 were no slower.
    #[serde(rename = "p99_ms", serialize_with = "as_millis")]
    pub p99: Duration,
}

impl Latency {
    /// `None` when nothing was counted.
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
