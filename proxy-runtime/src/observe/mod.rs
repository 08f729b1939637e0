//! What the proxy tells about itself: counters, durations, and the names under which it logs.
//!
//! Counters are the proxy's own atomics. The handles are found when a generation of the configuration is built, so that
//! a request counts without looking anything up. What is counted lives as long as the route, cluster or destination
//! that it belongs to; its series disappear together with it.

mod counter;
mod histogram;
mod labels;
mod metrics;
#[cfg(feature = "metrics")]
mod prometheus;
mod series;
pub mod targets;

pub(crate) use self::counter::{Counter, GaugeGuard};
#[cfg(test)]
pub(crate) use self::histogram::Histogram;
pub(crate) use self::histogram::HistogramCounts;
pub(crate) use self::labels::Labels;
pub(crate) use self::metrics::{
    ClusterMetrics, DestinationMetrics, ErrorCounters, ProxyMetrics, RouteMetrics,
};
#[cfg(feature = "metrics")]
pub use self::prometheus::ProxyCollector;
