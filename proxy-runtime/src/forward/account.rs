//! Counts what becomes of a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Version};
use proxy_model::{ClusterId, RouteId};
use tokio::time::Instant;
use tracing::debug;

use super::error::ForwardErrorKind;
use super::info::ExchangeInfo;
use crate::observe::{GaugeGuard, Labels, RouteMetrics, targets};
use crate::proxy::Shared;
use crate::state::{ClusterLive, DestinationState};

/// Counts what becomes of one request, from its head to the end of its response.
///
/// Dropped before it was told the end, it counts the request as cancelled: whoever drops a request in the middle does so
/// because its client has gone.
pub(crate) struct Account {
    shared: Arc<Shared>,
    started: Instant,
    method: Method,
    version: Version,
    status: StatusCode,
    route: Option<(RouteId, Arc<RouteMetrics>)>,
    cluster: Option<(ClusterId, Arc<ClusterLive>)>,
    destination: Option<Arc<DestinationState>>,
    upstream: Option<SocketAddr>,
    time_to_head: Option<Duration>,
    has_ended: bool,
    _active: GaugeGuard,
}

impl Account {
    pub(crate) fn new(shared: &Arc<Shared>, method: Method, version: Version) -> Box<Self> {
        Box::new(Self {
            _active: shared.metrics().active_requests.enter(),
            shared: Arc::clone(shared),
            started: Instant::now(),
            method,
            version,
            // What YARP notes for a client that went away before there was anything else to tell it.
            status: StatusCode::BAD_REQUEST,
            route: None,
            cluster: None,
            destination: None,
            upstream: None,
            time_to_head: None,
            has_ended: false,
        })
    }

    /// The request is one of this route.
    pub(crate) fn routed(&mut self, id: &RouteId, metrics: &Arc<RouteMetrics>) {
        self.route = Some((id.clone(), Arc::clone(metrics)));
    }

    /// The request is for this cluster.
    pub(crate) fn assigned(&mut self, id: &ClusterId, live: &Arc<ClusterLive>) {
        self.cluster = Some((id.clone(), Arc::clone(live)));
    }

    /// The request goes to this destination.
    pub(crate) fn sent_to(&mut self, destination: &Arc<DestinationState>) {
        destination.metrics().requested();
        self.destination = Some(Arc::clone(destination));
    }

    /// The destination's response has begun. It was picked then, and has this address.
    pub(crate) fn answered(
        &mut self,
        status: StatusCode,
        picked_at: Instant,
        upstream: Option<SocketAddr>,
    ) {
        let elapsed = picked_at.elapsed();
        self.upstream = upstream;
        self.time_to_head = Some(elapsed);
        if let Some((_, live)) = &self.cluster {
            let labels = Labels::new(&self.method, self.version, status);
            live.metrics().requests.record(labels, elapsed);
        }
        if let Some(destination) = &self.destination {
            destination.metrics().responded(status, elapsed);
        }
    }

    /// What the client is told.
    pub(crate) fn responded(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// Counts an error of a destination that does not end the request.
    pub(crate) fn failed(&self, kind: ForwardErrorKind) {
        match &self.cluster {
            Some((_, live)) => live.metrics().errors.increment(kind),
            None => self.shared.metrics().errors.increment(kind),
        }
        if let Some(destination) = &self.destination {
            destination.metrics().errors.increment(kind);
        }
    }

    /// The response, or the tunnel, has ended.
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>) {
        self.settle(error);
    }

    /// What is known so far, for logs.
    pub(crate) fn info(&self, error: Option<ForwardErrorKind>) -> ExchangeInfo {
        ExchangeInfo {
            route: self.route.as_ref().map(|(id, _)| id.clone()),
            cluster: self.cluster.as_ref().map(|(id, _)| id.clone()),
            destination: self.destination.as_ref().map(|d| d.id().clone()),
            upstream: self.upstream,
            error,
            time_to_head: self.time_to_head,
        }
    }

    fn settle(&mut self, error: Option<ForwardErrorKind>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let elapsed = self.started.elapsed();
        if let Some(kind) = error {
            self.failed(kind);
        }
        let labels = Labels::new(&self.method, self.version, self.status);
        match &self.route {
            Some((_, metrics)) => metrics.served(labels, elapsed),
            None => self.shared.metrics().unrouted.record(labels, elapsed),
        }
        debug!(
            target: targets::REQUEST,
            method = %self.method,
            route = self.route.as_ref().map(|(id, _)| id.as_str()),
            cluster = self.cluster.as_ref().map(|(id, _)| id.as_str()),
            destination = self.destination.as_ref().map(|d| d.id().as_str()),
            status = self.status.as_u16(),
            error = error.map(ForwardErrorKind::as_str),
            ?elapsed,
            "request ended",
        );
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.settle(Some(ForwardErrorKind::RequestCanceled));
    }
}
