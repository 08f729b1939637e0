//! The counters of a request and its response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Version};
use proxy_model::compiled::Route;
use proxy_model::{ClusterId, RequestHead, RouteId};
use tokio::time::Instant;
use tracing::debug;

use crate::error::{Cause, ForwardErrorKind, Side};
use crate::live::{DestinationState, PassiveRule};
use crate::observe::{ClusterMetrics, ErrorCounters, Labels, Sample, targets};
use crate::trace::{RequestTrace, TraceLink, Tracer};

/// The places where a request is counted, as far as it has got.
pub(crate) trait RequestMetrics {
    /// True for a part of a request that is counted elsewhere: an attempt of a layer.
    #[inline]
    fn is_attempt(&self) -> bool {
        false
    }

    fn route(&self) -> Option<&RouteId>;

    fn cluster(&self) -> Option<(&ClusterId, &ClusterMetrics)>;

    fn destination(&self) -> Option<&DestinationState>;

    /// The passive check of its cluster, if it is enabled.
    fn passive(&self) -> Option<&PassiveRule>;

    /// The errors of its cluster, or those of the proxy if it has none.
    fn errors(&self) -> &ErrorCounters;

    /// Counts it with the requests that were served, which took that time, unless it is an attempt.
    fn served(&self, labels: Labels, elapsed: Sample);
}

/// Counts the result of one request, from its head to the end of its response.
#[derive(Debug)]
pub(crate) struct Count {
    started: Instant,
    /// The time of the pick of its destination.
    picked: Instant,
    /// The time that the request has waited for a connection.
    waited: ShortTime,
    /// The labels of the response that the client gets, as far as they are known.
    labels: Labels,
    /// A destination has begun its response.
    is_answered: bool,
    has_ended: bool,
    /// The spans of the request, if it is traced.
    trace: Option<Box<RequestTrace>>,
}

/// A time of up to 32 s in two bytes, for which each connection has room: of two microseconds each below 65 ms, else
/// of a millisecond each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ShortTime(u16);

impl ShortTime {
    const MILLIS: u16 = 0x8000;

    /// The nearest shorter time, and never none.
    fn of(time: Duration) -> Self {
        let short = u16::try_from(time.as_micros() / 2).unwrap_or(u16::MAX);
        if short < Self::MILLIS {
            // 0 stands for a request that has not waited.
            return Self(short.max(1));
        }
        let millis = u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
        Self(Self::MILLIS | millis.min(Self::MILLIS - 1))
    }

    fn duration(self) -> Duration {
        match self.0 < Self::MILLIS {
            true => Duration::from_micros(u64::from(self.0) * 2),
            false => Duration::from_millis((self.0 & !Self::MILLIS).into()),
        }
    }
}

impl Count {
    #[inline]
    pub(crate) fn new(method: &Method, version: Version, started: Instant) -> Self {
        Self {
            started,
            picked: started,
            waited: ShortTime::default(),
            // What YARP notes for a client that went away before there was anything else to tell it.
            labels: Labels::new(method, version, StatusCode::BAD_REQUEST),
            is_answered: false,
            has_ended: false,
            trace: None,
        }
    }

    /// Begins the spans of a request that takes this route, if it has one.
    #[cold]
    pub(crate) fn begin_trace(
        &mut self,
        tracer: &Arc<dyn Tracer>,
        head: &impl RequestHead,
        client: Option<SocketAddr>,
        route: Option<&Route>,
    ) {
        self.trace = RequestTrace::begin(tracer, head, (self.labels, client), self.started);
        if let (Some(trace), Some(route)) = (&mut self.trace, route) {
            trace.routed(route);
        }
    }

    /// Begins the spans of an attempt of a layer.
    #[cold]
    pub(crate) fn link_trace(&mut self, link: &TraceLink) {
        self.trace = Some(RequestTrace::of_attempt(link, self.labels));
    }

    /// The spans of the request, if it is traced.
    #[inline]
    pub(crate) fn trace(&mut self) -> Option<&mut RequestTrace> {
        self.trace.as_deref_mut()
    }

    /// Notes the destination that the request goes to.
    #[inline]
    pub(crate) fn sent_to(&mut self, destination: &DestinationState) {
        if let Some(trace) = &mut self.trace {
            trace.sent_to(destination);
        }
    }

    /// The arrival of the request.
    #[inline]
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The time of the pick.
    #[inline]
    pub(crate) fn picked(&self) -> Instant {
        self.picked
    }

    /// A destination was picked now. Until this is called, it is one that was picked when the request came.
    pub(crate) fn picked_at(&mut self, now: Instant) {
        self.picked = now;
    }

    /// A connection is ready now. Until this is called, it was ready when the request came.
    #[cold]
    pub(crate) fn ready_at(&mut self, now: Instant) {
        self.waited = ShortTime::of(now.saturating_duration_since(self.started));
        if let Some(trace) = &mut self.trace {
            trace.waited(now.saturating_duration_since(self.started));
        }
    }

    /// The time from the head of the request to a connection for it.
    pub(crate) fn waited(&self) -> Duration {
        self.waited.duration()
    }

    /// The destination has begun its response, for which it is counted by the caller. Returns how long that took.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        request_metrics: &impl RequestMetrics,
        status: StatusCode,
        now: Instant,
    ) -> Sample {
        let elapsed = Sample::from(now.saturating_duration_since(self.picked));
        self.labels = self.labels.with_status(status);
        self.is_answered = true;
        if let Some(trace) = &mut self.trace {
            trace.answered(status);
        }
        if let Some((_, metrics)) = request_metrics.cluster() {
            metrics.requests.record(self.labels, elapsed);
            // Most requests find an idle connection, and are not recorded here: a scrape adds them.
            if self.waited != ShortTime::default() {
                let first_byte = now.saturating_duration_since(self.started);
                metrics.waits.record(self.waited(), elapsed, first_byte);
            }
        }
        elapsed
    }

    /// Notes the status that the client gets.
    pub(crate) fn told(&mut self, status: StatusCode) {
        if let Some(trace) = &mut self.trace {
            trace.told(status);
        }
        self.labels = self.labels.with_status(status);
    }

    /// Counts an error, which need not end the request.
    pub(crate) fn failed(&self, request_metrics: &impl RequestMetrics, kind: ForwardErrorKind) {
        request_metrics.errors().increment(kind);
        let destination = request_metrics.destination().map(DestinationState::metrics);
        if let Some(destination) = destination {
            destination.errors.increment(kind);
        }
        // The failures decide about the health of destination and cluster, about which a client's error says nothing.
        match (kind.side(), destination) {
            (Side::Destination, Some(destination)) => destination.failures.count(kind),
            (Side::Destination | Side::Proxy, _) => {
                if let Some((_, cluster)) = request_metrics.cluster() {
                    cluster.failures.count(kind);
                }
            }
            (Side::Client, _) => {}
        }
    }

    /// Counts the end of an attempt, after which the request goes to another destination.
    pub(crate) fn attempt_failed(
        &mut self,
        request_metrics: &impl RequestMetrics,
        kind: ForwardErrorKind,
    ) {
        self.failed(request_metrics, kind);
        if let Some(trace) = &mut self.trace {
            trace.attempt_failed(kind);
        }
        self.judge(request_metrics, Some(kind), Instant::now());
    }

    /// Has the passive check judge the destination, if it is enabled.
    #[inline]
    fn judge(
        &self,
        request_metrics: &impl RequestMetrics,
        error: Option<ForwardErrorKind>,
        now: Instant,
    ) {
        if let Some(rule) = request_metrics.passive()
            && let Some(destination) = request_metrics.destination()
        {
            // Before a response, the labels have the status for the client, not one of the destination.
            let status = self
                .is_answered
                .then(|| self.labels.status_code())
                .flatten();
            rule.report(destination, error, status, now);
        }
    }

    /// The error of a request that is dropped before its end.
    pub(crate) fn cancelled(&self) -> ForwardErrorKind {
        let kind = match self.is_answered {
            true => ForwardErrorKind::ResponseBodyCanceled,
            false => ForwardErrorKind::RequestCanceled,
        };
        kind.because(Cause::of_drop())
    }

    /// True if its end was counted.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The response has ended, with an error that is [counted](Self::failed) by the caller, after
    /// `elapsed` since the request came if that is known.
    #[inline]
    pub(crate) fn end(
        &mut self,
        request_metrics: &impl RequestMetrics,
        error: Option<ForwardErrorKind>,
        now: Instant,
        elapsed: Option<Sample>,
    ) {
        self.has_ended = true;
        self.judge(request_metrics, error, now);
        let took = || now.saturating_duration_since(self.started);
        request_metrics.served(self.labels, elapsed.unwrap_or_else(|| took().into()));
        if let Some(trace) = self.trace.take() {
            trace.end(error, now);
        }
        debug!(
            target: targets::REQUEST,
            method = self.labels.method(),
            route = request_metrics.route().map(RouteId::as_str),
            cluster = request_metrics.cluster().map(|(id, _)| id.as_str()),
            destination = request_metrics.destination().map(|destination| destination.id().as_str()),
            status = self.labels.status(),
            error = error.map(ForwardErrorKind::as_str),
            elapsed = ?took(),
            "{} ended",
            if request_metrics.is_attempt() { "attempt" } else { "request" },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_keeps_what_matters() {
        for (micros, kept) in [
            (0, 2),
            (1, 2),
            (7, 6),
            (1_000, 1_000),
            (65_535, 65_534),
            (65_536, 65_000),
            (1_234_567, 1_234_000),
            (60_000_000, 32_767_000),
        ] {
            let time = ShortTime::of(Duration::from_micros(micros));
            assert_eq!(time.duration(), Duration::from_micros(kept), "{micros}");
        }
    }
}
