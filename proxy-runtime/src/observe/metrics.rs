//! The metrics of the proxy, and of each route, cluster and destination.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use http::StatusCode;

use super::counter::{Counter, Gauge, SplitGauge};
use super::failures::RecentFailures;
use super::histogram::{Histogram, HistogramCounts, Sample};
use super::labels::Labels;
use super::per_worker::{OwnLine, PerWorker};
use super::series::SeriesTable;
use super::waits::{ConnectTimes, Waits};
use crate::error::{Cause, ForwardErrorKind};
#[cfg(feature = "admin")]
use crate::observe::Chart;
use crate::observe::LoopCounter;
use crate::observe::Traffic;

/// The metrics of the whole proxy.
#[derive(Debug, Default)]
pub(crate) struct ProxyMetrics {
    /// `http.server.active_requests`: requests whose response has not ended.
    pub(crate) active_requests: SplitGauge,
    /// `http.server.request.duration` of requests that no route matched.
    pub(crate) unrouted: SeriesTable,
    /// Errors of requests that reached no cluster.
    pub(crate) errors: ErrorCounters,
    /// `proxy.config.reload` with result `success`.
    pub(crate) reloads: Counter,
    /// `proxy.config.reload` with result `failure`.
    pub(crate) rejected_reloads: Counter,
    /// All requests of the last hour.
    #[cfg(feature = "admin")]
    pub(crate) chart: Chart,
}

/// The metrics of one route.
#[derive(Debug, Default)]
pub(crate) struct RouteMetrics {
    durations: SeriesTable,
    traffic: Traffic,
    loops: LoopCounter,
    #[cfg(feature = "admin")]
    pub(crate) chart: Chart,
}

impl RouteMetrics {
    /// Counts a request with its duration, from its head to the end of the response.
    pub(crate) fn served(&self, labels: Labels, elapsed: impl Into<Sample>) {
        self.durations.record(labels, elapsed);
    }

    /// Number of requests whose response has ended.
    pub(crate) fn requests(&self) -> u64 {
        self.durations.recorded()
    }

    /// Gives each worker its own counters.
    pub(crate) fn split(&self) {
        self.durations.split();
    }

    /// `http.server.request.duration`.
    #[cfg(any(feature = "metrics", all(test, feature = "server")))]
    pub(crate) fn durations(&self) -> &SeriesTable {
        &self.durations
    }

    /// The traffic of the last minute.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the counter of requests that have returned to this proxy.
    pub(crate) fn loops(&self) -> &LoopCounter {
        &self.loops
    }
}

/// The metrics of one cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterMetrics {
    /// `http.client.request.duration`: from the pick of a destination to the head of its response.
    pub(crate) requests: SeriesTable,
    /// Errors by kind, including those without a destination.
    pub(crate) errors: ErrorCounters,
    /// Failures that neither a destination nor a client caused.
    pub(crate) failures: RecentFailures,
    /// Requests that were sent later than they came.
    pub(crate) waits: Waits,
    /// Shared with the destinations, which come and go.
    pub(crate) connect_times: Arc<ConnectTimes>,
    #[cfg(feature = "admin")]
    pub(crate) chart: Chart,
}

/// The metrics of one destination.
#[derive(Debug, Default)]
pub(crate) struct DestinationMetrics {
    exchanges: PerWorker<Exchanges>,
    /// Errors by kind.
    pub(crate) errors: ErrorCounters,
    /// Failures that the destination caused.
    pub(crate) failures: RecentFailures,
    /// Number of connections that were opened.
    pub(crate) connects: Counter,
    /// Number of connections that could not be opened.
    pub(crate) connect_failures: Counter,
    /// `proxy.pool.connections`: open connections, in use or idle.
    pub(crate) open_connections: Gauge,
}

/// The counters that every request to a destination updates.
#[derive(Debug, Default)]
struct Exchanges {
    in_flight: AtomicU32,
    requests: Counter,
    /// Responses by the first digit of their status, 1 to 5; other statuses at index 0.
    responses: [Counter; 6],
    bytes_sent: Counter,
    bytes_received: Counter,
    /// Time from the pick to the head of the response.
    latency: Histogram,
}

/// A request in flight. Dropping it ends the count.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct InFlightGuard(Arc<OwnLine<Exchanges>>);

impl InFlightGuard {
    /// Like [`DestinationMetrics::requested`], on the worker of this request.
    #[inline]
    pub(crate) fn requested(&self) {
        self.0.requests.increment();
    }

    /// Like [`DestinationMetrics::sent`], on the worker of this request.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.bytes_sent.add(bytes);
    }

    /// Like [`DestinationMetrics::received`], on the worker of this request.
    #[inline]
    pub(crate) fn received(&self, bytes: u64) {
        self.0.bytes_received.add(bytes);
    }

    /// Like [`DestinationMetrics::responded`], on the worker of this request.
    #[inline]
    pub(crate) fn responded(&self, status: StatusCode, latency: impl Into<Sample>) {
        self.0.responded(status, latency.into());
    }
}

impl Exchanges {
    #[inline]
    fn responded(&self, status: StatusCode, latency: Sample) {
        let class = usize::from(status.as_u16() / 100);
        // HTTP does not define statuses from 600 on.
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
        // The request ends in this part, on whichever worker.
        InFlightGuard(Arc::clone(here))
    }

    /// Number of requests in flight over all workers.
    pub(crate) fn in_flight(&self) -> u32 {
        let parts = self.exchanges.iter();
        // No part is negative: a request ends in the part that it began in.
        parts
            .map(|part| part.in_flight.load(Ordering::Relaxed))
            .fold(0, u32::saturating_add)
    }

    /// Number of requests in flight of the calling worker.
    #[inline]
    pub(crate) fn in_flight_here(&self) -> u32 {
        // A part is not created for a read, so that idle destinations stay small.
        let here = self.exchanges.get();
        here.map_or(0, |here| here.in_flight.load(Ordering::Relaxed))
    }

    /// Counts a request that was assigned to the destination.
    #[inline]
    pub(crate) fn requested(&self) {
        self.exchanges.here().requests.increment();
    }

    /// Counts the head of a response; `latency` is the time since the pick.
    pub(crate) fn responded(&self, status: StatusCode, latency: impl Into<Sample>) {
        self.exchanges.here().responded(status, latency.into());
    }

    /// Number of requests that were assigned to the destination.
    pub(crate) fn requests(&self) -> u64 {
        self.sum(|part| &part.requests)
    }

    /// Responses by the first digit of their status, 1 to 5; other statuses at index 0.
    pub(crate) fn responses(&self) -> [u64; 6] {
        std::array::from_fn(|class| self.sum(|part| &part.responses[class]))
    }

    /// Bytes of request bodies sent to the destination.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.sum(|part| &part.bytes_sent)
    }

    /// Bytes of response bodies received from the destination.
    pub(crate) fn bytes_received(&self) -> u64 {
        self.sum(|part| &part.bytes_received)
    }

    fn sum(&self, counter: impl Fn(&Exchanges) -> &Counter) -> u64 {
        self.exchanges.iter().map(|part| counter(part).get()).sum()
    }

    /// Gives each worker its own counters.
    pub(crate) fn split(&self) {
        self.exchanges.split();
    }

    /// Time from the pick to the head of the response; `None` before the first pick.
    pub(crate) fn latency(&self) -> Option<HistogramCounts> {
        let parts = self.exchanges.iter().map(|part| part.latency.counts());
        parts.reduce(|mut sum, counts| {
            sum.merge(&counts);
            sum
        })
    }
}

/// Errors by kind and by cause. Allocated at the first error.
#[derive(Debug, Default)]
pub(crate) struct ErrorCounters(OnceLock<Box<ErrorTable>>);

#[derive(Debug)]
struct ErrorTable {
    kinds: [Counter; ForwardErrorKind::ALL.len()],
    causes: [Counter; Cause::ALL.len()],
}

impl Default for ErrorTable {
    fn default() -> Self {
        Self {
            kinds: std::array::from_fn(|_| Counter::default()),
            causes: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl ErrorCounters {
    /// Counts an error.
    pub(crate) fn increment(&self, kind: ForwardErrorKind) {
        let table = self.0.get_or_init(Box::default);
        table.kinds[kind.index()].increment();
        table.causes[kind.cause().index()].increment();
    }

    /// Counts a reply to a client that is no error of forwarding.
    #[cold]
    pub(crate) fn replied(&self, cause: Cause) {
        self.0.get_or_init(Box::default).causes[cause.index()].increment();
    }

    /// The causes that have occurred, with their numbers.
    pub(crate) fn causes(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        self.0.get().into_iter().flat_map(|table| {
            Cause::ALL
                .iter()
                .map(|cause| (*cause, table.causes[cause.index()].get()))
                .filter(|(_, count)| *count > 0)
        })
    }

    /// The kinds that have occurred, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ForwardErrorKind, u64)> + '_ {
        self.0.get().into_iter().flat_map(|table| {
            ForwardErrorKind::ALL
                .iter()
                .map(|kind| (*kind, table.kinds[kind.index()].get()))
                .filter(|(_, count)| *count > 0)
        })
    }

    /// Number of errors of all kinds.
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
        errors.increment(ForwardErrorKind::Request.because(Cause::ConnectionRefused));
        errors.replied(Cause::OverLimit);
        let causes: Vec<_> = errors.causes().collect();
        assert!(
            causes.contains(&(Cause::ConnectionRefused, 1)),
            "{causes:?}"
        );
        assert!(causes.contains(&(Cause::OverLimit, 1)), "{causes:?}");
        assert_eq!(
            errors.total(),
            ForwardErrorKind::ALL.len() as u64 + 2,
            "a reply is no error"
        );
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
