//! Observability: counters, durations, and log targets.
//!
//! Counters are atomics of the proxy; counters that each request updates have a set per worker at
//! busy routes and destinations. Their handles are resolved when a generation of the configuration
//! is built, so that a request counts without a look-up. Counters live as long as their route,
//! cluster or destination; their series disappear together with it.

#[cfg(feature = "admin")]
mod chart;
mod counter;
mod failures;
mod histogram;
mod labels;
mod loop_counter;
mod metrics;
mod per_worker;
mod series;
#[cfg_attr(
    not(all(feature = "server", feature = "tls")),
    allow(dead_code, reason = "those of a server are listed with the others")
)]
pub(crate) mod targets;
mod traffic;
mod waits;

/// The pause between log lines with the same cause that a client can repeat.
pub(crate) const LOG_PAUSE: std::time::Duration = std::time::Duration::from_secs(10);

#[cfg(feature = "admin")]
pub(crate) use self::chart::{Chart, MOST as MOST_CHARTS, Point, STEP, Totals};
pub(crate) use self::counter::SplitEntry;
pub(crate) use self::counter::{GaugeGuard, SplitGuard};
pub(crate) use self::failures::{RECENT, RecentFailures, Turn};
#[cfg(test)]
pub(crate) use self::histogram::Histogram;
pub(crate) use self::histogram::HistogramCounts;
pub(crate) use self::histogram::Sample;
pub(crate) use self::labels::Labels;
pub(crate) use self::loop_counter::LoopCounter;
pub(crate) use self::metrics::{
    ClusterMetrics, DestinationMetrics, ErrorCounters, InFlightGuard, ProxyMetrics, RouteMetrics,
};
#[cfg(feature = "server")]
pub(crate) use self::per_worker::WorkerPlace;
pub(crate) use self::per_worker::{BUSY, OwnLine};
#[cfg(any(feature = "metrics", all(test, feature = "server")))]
pub(crate) use self::series::SeriesTable;
pub(crate) use self::traffic::{SECONDS, Traffic};
pub(crate) use self::waits::{ConnectPhase, ConnectTimes};
