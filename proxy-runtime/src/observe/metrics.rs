//! What is counted for the proxy, a route, a cluster and a destination.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use http::StatusCode;

use super::counter::{Counter, Gauge, SplitGauge};
use super::failures::RecentFailures;
use super::histogram::{Histogram, HistogramCounts, Sample};
use super::labels::Labels;
use super::per_worker::{OwnLine, PerWorker};
use super::series::SeriesTable;
use crate::error::ForwardErrorKind;
use crate::observe::LoopTally;
use crate::observe::Traffic;

/// Counts of the whole proxy.
#[derive(Debug, Default)]
pub(crate) struct ProxyMetrics {
    /// `http.server.active_requests`: requests whose response has not ended.
    pub(crate) active_requests: SplitGauge,
    /// `http.server.request.duration` of requests that no route matched.
    pub(crate) unrouted: SeriesTable,
    /// Errors of requests that never got as far as a cluster.
    pub(crate) errors: ErrorCounters,
    /// `proxy.config.reload` with result `success`.
    pub(crate) reloads: Counter,
    /// `proxy.config.reload` with result `failure`.
    pub(crate) refused_reloads: Counter,
}

/// Counts of one route.
#[derive(Debug, Default)]
pub(crate) struct RouteMetrics {
    durations: SeriesTable,
    traffic: Traffic,
    loops: LoopTally,
}

impl RouteMetrics {
    /// Counts a request that took `elapsed`, from its head to the end of the response.
    pub(crate) fn served(&self, labels: Labels, elapsed: impl Into<Sample>) {
        self.durations.record(labels, elapsed);
    }

    /// Requests whose response has ended.
    pub(crate) fn requests(&self) -> u64 {
        self.durations.recorded()
    }

    /// Has each worker count for itself.
    pub(crate) fn split(&self) {
        self.durations.split();
    }

    /// `http.server.request.duration`.
    #[cfg(any(feature = "metrics", all(test, feature = "server")))]
    pub(crate) fn durations(&self) -> &SeriesTable {
        &self.durations
    }

    /// What it did in the last minute.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Requests that came back to the proxy.
    pub(crate) fn loops(&self) -> &LoopTally {
        &self.loops
    }
}

/// Counts of one cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterMetrics {
    /// `http.client.request.duration`: from the pick of a destination to the head of its response.
    pub(crate) requests: SeriesTable,
    /// Errors by kind, with those for which no destination was picked.
    pub(crate) errors: ErrorCounters,
    /// Requests that failed through no destination's fault and no client's.
    pub(crate) failures: RecentFailures,
}

/// Counts of one destination.
#[derive(Debug, Default)]
pub(crate) struct DestinationMetrics {
    exchanges: PerWorker<Exchanges>,
    /// Errors by kind.
    pub(crate) errors: ErrorCounters,
    /// Requests that failed through its fault.
    pub(crate) failures: RecentFailures,
    /// Connections that were opened.
    pub(crate) connects: Counter,
    /// Connections that could not be opened.
    pub(crate) connect_failures: Counter,
    /// `proxy.pool.connections`: connections that are open, used or idle.
    pub(crate) open_connections: Gauge,
}

/// What each request to a destination is counted in.
#[derive(Debug, Default)]
struct Exchanges {
    in_flight: AtomicU32,
    requests: Counter,
    /// Responses by the first digit of their status, 1 to 5; the rest is at 0.
    responses: [Counter; 6],
    bytes_sent: Counter,
    bytes_received: Counter,
    /// From the pick to the head of the response.
    latency: Histogram,
}

/// A request in flight; dropped, it is no more.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct InFlightGuard(Arc<OwnLine<Exchanges>>);

#[cfg(feature = "server")]
impl InFlightGuard {
    /// As [`DestinationMetrics::requested`], for this request.
    #[inline]
    pub(crate) fn requested(&self) {
        self.0.requests.increment();
    }

    /// As [`DestinationMetrics::sent`], for this request.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.bytes_sent.add(bytes);
    }

    /// As [`DestinationMetrics::received`], for this request.
    #[inline]
    pub(crate) fn received(&self, bytes: u64) {
        self.0.bytes_received.add(bytes);
    }

    /// As [`DestinationMetrics::responded`], for this request.
    #[inline]
    pub(crate) fn responded(&self, status: StatusCode, latency: impl Into<Sample>) {
        self.0.responded(status, latency.into());
    }
}

impl Exchanges {
    #[inline]
    fn responded(&self, status: StatusCode, latency: Sample) {
        let class = usize::from(status.as_u16() / 100);
        self.responses[if class < 6 { class } else { 0 }].increment();
        self.latency.record(latency);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl DestinationMetrics {
    /// Counts a request as in flight until the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> InFlightGuard {
        let here = self.exchanges.here();
        here.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(Arc::clone(here))
    }

    /// Requests in flight that all workers know of.
    pub(crate) fn in_flight(&self) -> u32 {
        let parts = self.exchanges.iter();
        parts
            .map(|part| part.in_flight.load(Ordering::Relaxed))
            .fold(0, u32::saturating_add)
    }

    /// Those that came by the calling worker.
    #[inline]
    pub(crate) fn in_flight_here(&self) -> u32 {
        let here = self.exchanges.get();
        here.map_or(0, |here| here.in_flight.load(Ordering::Relaxed))
    }

    /// Counts a request for which it was picked.
    #[inline]
    pub(crate) fn requested(&self) {
        self.exchanges.here().requests.increment();
    }

    /// Counts bytes of request bodies.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        self.exchanges.here().bytes_sent.add(bytes);
    }

    /// Counts bytes of response bodies.
    #[inline]
    pub(crate) fn received(&self, bytes: u64) {
        self.exchanges.here().bytes_received.add(bytes);
    }

    /// Counts the head of a response, which came `latency` after the pick.
    pub(crate) fn responded(&self, status: StatusCode, latency: impl Into<Sample>) {
        self.exchanges.here().responded(status, latency.into());
    }

    /// Requests for which it was picked.
    pub(crate) fn requests(&self) -> u64 {
        self.sum(|part| &part.requests)
    }

    /// Responses by the first digit of their status, 1 to 5; the rest is at 0.
    pub(crate) fn responses(&self) -> [u64; 6] {
        std::array::from_fn(|class| self.sum(|part| &part.responses[class]))
    }

    /// Bytes of request bodies sent to it.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.sum(|part| &part.bytes_sent)
    }

    /// Bytes of response bodies received from it.
    pub(crate) fn bytes_received(&self) -> u64 {
        self.sum(|part| &part.bytes_received)
    }

    fn sum(&self, counter: impl Fn(&Exchanges) -> &Counter) -> u64 {
        self.exchanges.iter().map(|part| counter(part).get()).sum()
    }

    /// Has each worker count for itself.
    pub(crate) fn split(&self) {
        self.exchanges.split();
    }

    /// From the pick to the head of the response; `None` before the first pick.
    pub(crate) fn latency(&self) -> Option<HistogramCounts> {
        let parts = self.exchanges.iter().map(|part| part.latency.counts());
        parts.reduce(|mut sum, counts| {
            sum.merge(&counts);
            sum
        })
    }
}

/// Errors by kind. Made when the first one comes.
#[derive(Debug, Default)]
pub(crate) struct ErrorCounters(OnceLock<Box<[Counter; ForwardErrorKind::ALL.len()]>>);

impl ErrorCounters {
    /// Counts one.
    pub(crate) fn increment(&self, kind: ForwardErrorKind) {
        self.0.get_or_init(Box::default)[kind.index()].increment();
    }

    /// The kinds that came, with how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ForwardErrorKind, u64)> + '_ {
        self.0.get().into_iter().flat_map(|counters| {
            ForwardErrorKind::ALL
                .iter()
                .map(|kind| (*kind, counters[kind.index()].get()))
                .filter(|(_, count)| *count > 0)
        })
    }

    /// All together.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn errors_are_told_apart_by_kind() {
        let errors = ErrorCounters::default();
        assert_eq!(errors.iter().count(), 0);
        for kind in ForwardErrorKind::ALL {
            errors.increment(*kind);
        }
        errors.increment(ForwardErrorKind::RequestTimedOut);
        let found: Vec<_> = errors.iter().filter(|(_, count)| *count == 2).collect();
        assert_eq!(found, [(ForwardErrorKind::RequestTimedOut, 2)]);
        assert_eq!(errors.total(), ForwardErrorKind::ALL.len() as u64 + 1);
    }

    #[test]
    fn responses_are_counted_by_class() {
        let metrics = DestinationMetrics::default();
        for status in [100, 200, 204, 301, 404, 503, 700, 999] {
            let status = StatusCode::from_u16(status).unwrap();
            metrics.responded(status, Duration::from_millis(1));
        }
        assert_eq!(metrics.responses(), [2, 1, 2, 1, 1, 1]);
        assert_eq!(metrics.latency().unwrap().count(), 8);
    }
}
