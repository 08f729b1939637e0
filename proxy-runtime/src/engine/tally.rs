//! Counts what becomes of a request.

use std::time::Duration;

use http::{Method, StatusCode, Version};
use tokio::time::Instant;
use tracing::debug;

use crate::forward::ForwardErrorKind;
use crate::observe::{InFlightGuard, Labels, Sample, SplitEntry, targets};
use crate::proxy::Shared;
use crate::state::{ClusterState, DestinationState, RouteState};

/// Counts what becomes of one request of a route, as [`Account`](crate::forward) does on the way over `http` types, out of
/// what the connection holds anyway.
///
/// Dropped before it was told the end, it counts the request as cancelled: its client has gone.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    route: &'a RouteState,
    cluster: &'a ClusterState,
    destination: Option<&'a DestinationState>,
    started: Instant,
    picked: Instant,
    /// With what the client is told, as far as that is known.
    labels: Labels,
    has_ended: bool,
    _active: SplitEntry<'a>,
}

impl<'a> Tally<'a> {
    #[inline]
    pub(super) fn new(
        shared: &'a Shared,
        route: &'a RouteState,
        cluster: &'a ClusterState,
        (method, version): (&Method, Version),
        started: Instant,
    ) -> Self {
        Self {
            route,
            cluster,
            destination: None,
            started,
            picked: started,
            // What YARP notes for a client that went away before there was anything else to tell it.
            labels: Labels::new(method, version, StatusCode::BAD_REQUEST),
            has_ended: false,
            _active: shared.metrics().active_requests.enter_here(),
        }
    }

    /// When the request came.
    #[inline]
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// The request goes to this destination.
    #[inline]
    pub(super) fn sent_to(&mut self, destination: &'a DestinationState) {
        destination.metrics().requested();
        self.destination = Some(destination);
    }

    /// The same, of a request that is in flight there.
    #[inline]
    pub(super) fn sent_over(&mut self, destination: &'a DestinationState, flight: &InFlightGuard) {
        flight.requested();
        self.destination = Some(destination);
    }

    /// Another destination is picked now.
    pub(super) fn picked_again(&mut self) {
        self.picked = Instant::now();
    }

    /// The destination's response has begun.
    #[inline]
    pub(super) fn answered(&mut self, status: StatusCode, now: Instant) {
        let elapsed = self.measure(status, now);
        if let Some(destination) = self.destination {
            destination.metrics().responded(status, elapsed);
        }
    }

    /// The same, of a request that is in flight there. Returns how long that took since the request came, if the first pick was
    /// then.
    #[inline]
    pub(super) fn answered_over(
        &mut self,
        flight: &InFlightGuard,
        status: StatusCode,
        now: Instant,
    ) -> Option<Sample> {
        let elapsed = self.measure(status, now);
        flight.responded(status, elapsed);
        (self.picked == self.started).then_some(elapsed)
    }

    /// Counts a response for the cluster; returns how long it was waited for.
    #[inline]
    fn measure(&mut self, status: StatusCode, now: Instant) -> Sample {
        let elapsed = Sample::from(now.saturating_duration_since(self.picked));
        self.labels = self.labels.with_status(status);
        self.cluster
            .live()
            .metrics()
            .requests
            .record(self.labels, elapsed);
        elapsed
    }

    /// Where it was sent.
    pub(super) fn destination(&self) -> Option<&'a DestinationState> {
        self.destination
    }

    /// From the pick until now.
    pub(super) fn waited(&self) -> Duration {
        self.picked.elapsed()
    }

    /// What the client is told instead.
    pub(super) fn refused(&mut self, status: StatusCode) {
        self.labels = self.labels.with_status(status);
    }

    /// Counts an error of a destination that does not end the request.
    pub(super) fn failed(&self, kind: ForwardErrorKind) {
        self.cluster.live().metrics().errors.increment(kind);
        if let Some(destination) = self.destination {
            destination.metrics().errors.increment(kind);
        }
    }

    /// The response has ended.
    #[inline]
    pub(super) fn end(mut self, error: Option<ForwardErrorKind>, now: Instant) {
        self.settle(error, now, None);
    }

    /// The response has ended well; how long that took since the request came may be known.
    #[inline]
    pub(super) fn end_well(mut self, now: Instant, elapsed: Option<Sample>) {
        self.settle(None, now, elapsed);
    }

    #[inline]
    fn settle(&mut self, error: Option<ForwardErrorKind>, now: Instant, known: Option<Sample>) {
        self.has_ended = true;
        if let Some(kind) = error {
            self.failed(kind);
        }
        let elapsed = || now.saturating_duration_since(self.started);
        let sample = known.unwrap_or_else(|| elapsed().into());
        self.route.metrics().served(self.labels, sample);
        debug!(
            target: targets::REQUEST,
            method = self.labels.method(),
            destination = self.destination.map(|destination| destination.id().as_str()),
            status = self.labels.status(),
            error = error.map(ForwardErrorKind::as_str),
            elapsed = ?elapsed(),
            "request ended",
        );
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.settle(
                Some(ForwardErrorKind::RequestCanceled),
                Instant::now(),
                None,
            );
        }
    }
}
