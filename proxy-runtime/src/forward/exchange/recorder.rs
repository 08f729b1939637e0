//! The recorder of one exchange.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::{ClusterId, RouteId};
use tokio::time::Instant;

use crate::cluster::ClusterState;
use crate::error::{Cause, ForwardErrorKind};
use crate::exchange::{Count, Ledger, RequestMetrics};
use crate::live::{DestinationState, PassiveRule};
use crate::observe::{ClusterMetrics, ErrorCounters, InFlightGuard, Labels, Sample, SplitEntry};
use crate::proxy::Shared;
use crate::response::LayerAttempts;
use crate::state::RouteState;
use crate::trace::RequestTrace;

/// Counts the events of one request, or of one attempt of a layer. It borrows the state of route and
/// cluster, so that it needs no reference counts.
///
/// If dropped before the end, it counts the request as cancelled: the client has disconnected.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    request_metrics: Borrowed<'a>,
    count: Count,
}

/// The counters that are updated.
#[derive(Debug)]
struct Borrowed<'a> {
    /// `None` after the end, and for an attempt: the caller of the layers counts its request.
    active: Option<SplitEntry<'a>>,
    route: &'a RouteState,
    cluster: &'a ClusterState,
    destination: Option<&'a DestinationState>,
}

impl RequestMetrics for Borrowed<'_> {
    #[inline]
    fn is_attempt(&self) -> bool {
        self.active.is_none()
    }

    fn route(&self) -> Option<&RouteId> {
        Some(self.route.id())
    }

    #[inline]
    fn cluster(&self) -> Option<(&ClusterId, &ClusterMetrics)> {
        Some((self.cluster.id(), self.cluster.live().metrics()))
    }

    fn destination(&self) -> Option<&DestinationState> {
        self.destination
    }

    #[inline]
    fn passive(&self) -> Option<&PassiveRule> {
        self.cluster.passive().map(|rule| &**rule)
    }

    fn errors(&self) -> &ErrorCounters {
        &self.cluster.live().metrics().errors
    }

    #[inline]
    fn served(&self, labels: Labels, elapsed: Sample) {
        if !self.is_attempt() {
            self.route.metrics().served(labels, elapsed);
        }
    }
}

impl<'a> Recorder<'a> {
    #[inline]
    pub(crate) fn new(
        shared: &'a Shared,
        route: &'a RouteState,
        cluster: &'a ClusterState,
        count: Count,
        attempts: Option<&LayerAttempts>,
    ) -> Self {
        if let Some(attempts) = attempts {
            attempts.begin();
        }
        Self {
            request_metrics: Borrowed {
                active: attempts
                    .is_none()
                    .then(|| shared.metrics().active_requests.enter_here()),
                route,
                cluster,
                destination: None,
            },
            count,
        }
    }

    /// The time when the request arrived.
    #[inline]
    pub(crate) fn started(&self) -> Instant {
        self.count.started()
    }

    /// Records that the request is sent to this destination.
    #[inline]
    pub(crate) fn sent_to(&mut self, destination: &'a DestinationState) {
        destination.metrics().requested();
        self.count.sent_to(destination);
        self.request_metrics.destination = Some(destination);
    }

    /// Records it for a request in flight there.
    #[inline]
    pub(crate) fn sent_over(&mut self, destination: &'a DestinationState, flight: &InFlightGuard) {
        flight.requested();
        self.count.sent_to(destination);
        self.request_metrics.destination = Some(destination);
    }

    /// Records the head of a destination's response.
    #[inline]
    pub(crate) fn answered(&mut self, status: StatusCode, now: Instant) {
        let elapsed = self.count.answered(&self.request_metrics, status, now);
        if let Some(destination) = self.request_metrics.destination {
            destination.metrics().responded(status, elapsed);
        }
    }

    /// Records it for a request in flight there. Returns the latency since the request arrived, if
    /// the first pick was at that time.
    #[inline]
    pub(crate) fn answered_over(
        &mut self,
        flight: &InFlightGuard,
        status: StatusCode,
        now: Instant,
    ) -> Option<Sample> {
        let elapsed = self.count.answered(&self.request_metrics, status, now);
        flight.responded(status, elapsed);
        // The duration of the exchange as well, if the destination was picked at its start.
        (self.count.picked() == self.count.started()).then_some(elapsed)
    }

    /// The spans of the request, if it is traced.
    #[inline]
    pub(crate) fn trace(&mut self) -> Option<&mut RequestTrace> {
        self.count.trace()
    }

    /// The destination of the request.
    pub(crate) fn destination(&self) -> Option<&'a DestinationState> {
        self.request_metrics.destination
    }

    /// The time when the destination was picked.
    pub(crate) fn picked(&self) -> Instant {
        self.count.picked()
    }

    /// Records that a connection is ready now, for which the request has waited.
    #[cold]
    pub(crate) fn ready(&mut self) {
        self.count.ready_at(Instant::now());
    }

    /// The time from the head of the request to a connection for it.
    pub(crate) fn waited(&self) -> Duration {
        self.count.waited()
    }

    /// Records the status of a local reply.
    pub(crate) fn rejected(&mut self, status: StatusCode) {
        self.count.told(status);
    }

    /// Counts the cause of a reply of a filter.
    pub(crate) fn replied(&mut self, cause: Cause) {
        self.request_metrics.errors().replied(cause);
        if let Some(trace) = self.count.trace() {
            trace.replied(cause);
        }
    }

    /// Records the successful end of the response while the upload continues.
    #[cold]
    pub(crate) fn end_early(&mut self, now: Instant) {
        self.finish(None, now, None);
        // The request is no longer active, though its upload goes on.
        self.request_metrics.active = None;
    }

    /// Records the end of the response.
    #[inline]
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>, now: Instant) {
        self.finish(error, now, None);
    }

    /// Records the successful end of the response, after `elapsed` if that is known.
    #[inline]
    pub(crate) fn end_well(mut self, now: Instant, elapsed: Option<Sample>) {
        self.finish(None, now, elapsed);
    }

    #[inline]
    fn finish(&mut self, error: Option<ForwardErrorKind>, now: Instant, elapsed: Option<Sample>) {
        // An early end was counted already.
        if self.count.has_ended() {
            return;
        }
        if let Some(kind) = error {
            self.count.failed(&self.request_metrics, kind);
        }
        self.count.end(&self.request_metrics, error, now, elapsed);
    }
}

impl<'a> Ledger<'a> for Recorder<'a> {
    fn failed(&mut self, kind: ForwardErrorKind) {
        self.count.attempt_failed(&self.request_metrics, kind);
    }

    fn moved_to(&mut self, destination: &'a Arc<DestinationState>) {
        // The latency counts from the pick of this destination, without the time that the failed one took.
        self.count.picked_at(Instant::now());
        self.sent_to(destination);
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.count.has_ended() {
            self.finish(Some(self.count.cancelled()), Instant::now(), None);
        }
    }
}
