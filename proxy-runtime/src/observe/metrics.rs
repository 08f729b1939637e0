//! What is counted for the proxy, a route, a cluster and a destination.

use std::sync::OnceLock;
use std::time::Duration;

use http::StatusCode;

use super::counter::{Counter, Gauge};
use super::histogram::{Histogram, HistogramCounts};
use super::labels::Labels;
use super::series::SeriesTable;
use crate::forward::ForwardErrorKind;
use crate::status::Traffic;

/// Counts of the whole proxy.
#[derive(Debug, Default)]
pub(crate) struct ProxyMetrics {
    /// `http.server.active_requests`: requests whose response has not ended.
    pub(crate) active_requests: Gauge,
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
    requests: Counter,
    traffic: Traffic,
}

impl RouteMetrics {
    /// Counts a request that took `elapsed`, from its head to the end of the response.
    pub(crate) fn served(&self, labels: Labels, elapsed: Duration) {
        self.requests.increment();
        self.durations.record(labels, elapsed);
    }

    /// Requests whose response has ended.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// `http.server.request.duration`.
    #[cfg(feature = "metrics")]
    pub(crate) fn durations(&self) -> &SeriesTable {
        &self.durations
    }

    /// What it did in the last minute.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// Counts of one cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterMetrics {
    /// `http.client.request.duration`: from the pick of a destination to the head of its response.
    pub(crate) requests: SeriesTable,
    /// Errors by kind, with those for which no destination was picked.
    pub(crate) errors: ErrorCounters,
}

/// Counts of one destination.
#[derive(Debug, Default)]
pub(crate) struct DestinationMetrics {
    requests: Counter,
    /// Responses by the first digit of their status, 1 to 5; the rest is at 0.
    responses: [Counter; 6],
    /// Errors by kind.
    pub(crate) errors: ErrorCounters,
    /// From the pick to the head of the response. Made when the first one comes.
    latency: OnceLock<Box<Histogram>>,
    /// Bytes of request bodies sent to it.
    pub(crate) bytes_sent: Counter,
    /// Bytes of response bodies received from it.
    pub(crate) bytes_received: Counter,
    /// Connections that were opened.
    pub(crate) connects: Counter,
    /// Connections that could not be opened.
    pub(crate) connect_failures: Counter,
    /// `proxy.pool.connections`: connections that are open, used or idle.
    pub(crate) open_connections: Gauge,
}

impl DestinationMetrics {
    /// Counts a request that is sent to it.
    pub(crate) fn requested(&self) {
        self.requests.increment();
    }

    /// Counts the head of a response, which came `latency` after the pick.
    pub(crate) fn responded(&self, status: StatusCode, latency: Duration) {
        let class = usize::from(status.as_u16() / 100);
        self.responses[if class < 6 { class } else { 0 }].increment();
        self.latency.get_or_init(Box::default).record(latency);
    }

    /// Requests that were sent to it.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Responses by the first digit of their status, 1 to 5; the rest is at 0.
    pub(crate) fn responses(&self) -> [u64; 6] {
        std::array::from_fn(|class| self.responses[class].get())
    }

    /// From the pick to the head of the response; `None` before the first one.
    pub(crate) fn latency(&self) -> Option<HistogramCounts> {
        self.latency.get().map(|histogram| histogram.counts())
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
                .into_iter()
                .map(|kind| (kind, counters[kind.index()].get()))
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
    use super::*;

    #[test]
    fn errors_are_told_apart_by_kind() {
        let errors = ErrorCounters::default();
        assert_eq!(errors.iter().count(), 0);
        for kind in ForwardErrorKind::ALL {
            errors.increment(kind);
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
