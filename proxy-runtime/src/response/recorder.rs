//! Recorder of the metrics of a request.

use std::sync::Arc;

use http::{Method, StatusCode, Version};
use proxy_model::{ClusterId, RouteId};
use tokio::time::Instant;

use crate::cluster::ClusterState;
use crate::error::{Cause, ForwardErrorKind};
use crate::exchange::{Count, RequestMetrics};
use crate::live::{ClusterLive, DestinationState, PassiveRule};
use crate::observe::{
    ClusterMetrics, ErrorCounters, Labels, ProxyMetrics, RouteMetrics, Sample, SplitGuard,
};
use crate::response::ExchangeInfo;
use crate::response::LayerAttempts;
use crate::response::OpenRecorder;

/// Records the metrics of one request, from its head to the end of its response.
///
/// Where layers are around a route, there is one for the request, which counts for the route, and one for each
/// attempt, which counts for its cluster and destination.
///
/// Dropped before the end was recorded, it counts the request as cancelled: a request is dropped early because its
/// client has disconnected.
pub(crate) struct ExchangeRecorder {
    request_metrics: Owned,
    count: Count,
    reply: Option<Cause>,
    /// The guard of the active request. `None` for an attempt, which is part of a counted request.
    _active: Option<SplitGuard>,
}

/// The metrics that the request is counted in.
struct Owned {
    proxy: Arc<ProxyMetrics>,
    /// The metrics of the route. `None` for a request without a route, and for an attempt, which does not count for
    /// the route.
    route: Option<(RouteId, Arc<RouteMetrics>)>,
    cluster: Option<(ClusterId, Arc<ClusterLive>)>,
    layers: Layers,
}

impl RequestMetrics for Owned {
    fn is_attempt(&self) -> bool {
        matches!(self.layers, Layers::Attempt { .. })
    }

    fn route(&self) -> Option<&RouteId> {
        match &self.layers {
            Layers::Attempt { of, .. } => Some(of.route()),
            Layers::None | Layers::Around { .. } => self.route.as_ref().map(|(id, _)| id),
        }
    }

    fn cluster(&self) -> Option<(&ClusterId, &ClusterMetrics)> {
        let (id, live) = self.cluster.as_ref()?;
        Some((id, live.metrics()))
    }

    fn destination(&self) -> Option<&DestinationState> {
        None
    }

    fn passive(&self) -> Option<&PassiveRule> {
        None
    }

    fn errors(&self) -> &ErrorCounters {
        match &self.cluster {
            Some((_, live)) => &live.metrics().errors,
            None => &self.proxy.errors,
        }
    }

    fn served(&self, labels: Labels, elapsed: Sample) {
        match &self.route {
            _ if self.is_attempt() => {}
            Some((_, metrics)) => metrics.served(labels, elapsed),
            None => self.proxy.unrouted.record(labels, elapsed),
        }
    }
}

/// The relation of a recorder to layers.
enum Layers {
    None,
    /// A recorder of a request that passes layers, and may end together with an attempt.
    Around {
        attempts: Arc<LayerAttempts>,
        attempt: Option<(OpenRecorder, Option<ForwardErrorKind>)>,
        /// True if its final error was counted with an attempt.
        is_counted: bool,
    },
    /// A recorder of a layer's attempt to get a response.
    Attempt {
        of: Arc<LayerAttempts>,
    },
}

impl ExchangeRecorder {
    pub(crate) fn open(
        proxy: &Arc<ProxyMetrics>,
        method: &Method,
        version: Version,
    ) -> OpenRecorder {
        let active = proxy.active_requests.enter();
        Self::with(proxy, method, version, Some(active), Layers::None)
    }

    /// Returns the time at which the request arrived.
    pub(crate) fn started(&self) -> Instant {
        self.count.started()
    }

    /// Creates the recorder of one attempt of a layer.
    pub(crate) fn of_attempt(
        of: &Arc<LayerAttempts>,
        proxy: &Arc<ProxyMetrics>,
        method: &Method,
        version: Version,
    ) -> OpenRecorder {
        of.begin();
        let attempt = Layers::Attempt { of: Arc::clone(of) };
        let mut recorder = Self::with(proxy, method, version, None, attempt);
        of.link_trace(&mut recorder.count);
        recorder
    }

    fn with(
        proxy: &Arc<ProxyMetrics>,
        method: &Method,
        version: Version,
        active: Option<SplitGuard>,
        layers: Layers,
    ) -> OpenRecorder {
        OpenRecorder::new(Self {
            request_metrics: Owned {
                proxy: Arc::clone(proxy),
                route: None,
                cluster: None,
                layers,
            },
            count: Count::new(method, version, Instant::now()),
            reply: None,
            _active: active,
        })
    }

    /// The counter of the request, which traces it.
    pub(crate) fn count(&mut self) -> &mut Count {
        &mut self.count
    }

    /// The request is one of this route.
    pub(crate) fn routed(&mut self, id: &RouteId, metrics: &Arc<RouteMetrics>) {
        self.request_metrics.route = Some((id.clone(), Arc::clone(metrics)));
    }

    /// Records that the request passes layers.
    pub(crate) fn layered(&mut self, attempts: &Arc<LayerAttempts>) {
        if let Some(trace) = self.count.trace() {
            attempts.note_trace(trace.link());
        }
        self.request_metrics.layers = Layers::Around {
            attempts: Arc::clone(attempts),
            attempt: None,
            is_counted: false,
        };
    }

    /// Attaches the recorder of an attempt, which failed with this error if there is one. Both end together.
    pub(crate) fn ends_with(&mut self, with: OpenRecorder, error: Option<ForwardErrorKind>) {
        if let Layers::Around { attempt, .. } = &mut self.request_metrics.layers {
            *attempt = Some((with, error));
        }
    }

    /// The error that it ends with is that of an attempt.
    pub(crate) fn failed_in_attempt(&mut self) {
        if let Layers::Around { is_counted, .. } = &mut self.request_metrics.layers {
            *is_counted = true;
        }
    }

    /// The request is for this cluster.
    pub(crate) fn assigned(&mut self, id: &ClusterId, state: &ClusterState) {
        self.request_metrics.cluster = Some((id.clone(), Arc::clone(state.live())));
    }

    /// Records the status that the client gets.
    pub(crate) fn responded(&mut self, status: StatusCode) {
        self.count.told(status);
    }

    /// A reply in place of a destination's response has this cause.
    #[cold]
    pub(crate) fn replied(&mut self, cause: Option<Cause>) {
        if let Some(cause) = cause {
            self.reply = Some(cause);
            self.request_metrics.errors().replied(cause);
            self.replied_in_attempt(cause);
        }
    }

    /// A reply of an attempt, which has counted it, has this cause.
    #[cold]
    pub(crate) fn replied_in_attempt(&mut self, cause: Cause) {
        if let Some(trace) = self.count.trace() {
            trace.replied(cause);
        }
    }

    /// Returns the information collected so far, for logs.
    pub(crate) fn info(&self, error: Option<ForwardErrorKind>) -> ExchangeInfo {
        let route = self.request_metrics.route().cloned();
        if let Layers::Around { attempts, .. } = &self.request_metrics.layers {
            let last = attempts.take_last().unwrap_or_default();
            return ExchangeInfo {
                route,
                error,
                reply: self.reply.or(last.reply),
                ..last
            };
        }
        let info = ExchangeInfo {
            route,
            cluster: self.request_metrics.cluster().map(|(id, _)| id.clone()),
            destination: None,
            upstream: None,
            error,
            reply: self.reply,
            time_to_head: None,
            added: None,
            first_byte: None,
            read_timeout: None,
        };
        // The information of a request with layers is that of its last attempt.
        if let Layers::Attempt { of, .. } = &self.request_metrics.layers {
            of.note(info.clone());
        }
        info
    }

    /// The response, or the tunnel, has ended.
    pub(crate) fn finish(&mut self, error: Option<ForwardErrorKind>) {
        // Dropping calls this again.
        if self.count.has_ended() {
            return;
        }
        if let Some(kind) = error
            && self.is_own(kind)
        {
            self.count.failed(&self.request_metrics, kind);
        }
        self.count
            .end(&self.request_metrics, error, Instant::now(), None);
        match &mut self.request_metrics.layers {
            Layers::Around { attempt, .. } => {
                if let Some((attempt, earlier)) = attempt.take() {
                    attempt.end(earlier.or(error));
                }
            }
            Layers::None | Layers::Attempt { .. } => {}
        }
    }

    /// Returns true if an error is counted here, false if an attempt has counted it.
    fn is_own(&self, kind: ForwardErrorKind) -> bool {
        match &self.request_metrics.layers {
            Layers::None | Layers::Attempt { .. } => true,
            Layers::Around {
                is_counted: true, ..
            } => false,
            Layers::Around { attempts, .. } => {
                let is_of_layer =
                    kind == ForwardErrorKind::Extension && !attempts.is_cut_by_filter();
                is_of_layer || attempts.is_empty()
            }
        }
    }
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        self.finish(Some(self.count.cancelled()));
    }
}
