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
use super::open_account::OpenAccount;
use crate::layer::RouteContext;
use crate::observe::{Labels, RouteMetrics, SplitGuard, targets};
use crate::proxy::Shared;
use crate::state::{ClusterLive, DestinationState};

/// Counts what becomes of one request, from its head to the end of its response.
///
/// Where layers are around a route, there is one for the request, which counts for the route, and one for each attempt, which
/// counts for its cluster and destination.
///
/// Dropped before it was told the end, it counts the request as cancelled: whoever drops a request in the middle does so
/// because its client has gone.
pub(crate) struct Account {
    shared: Arc<Shared>,
    started: Instant,
    /// With what the client is told, as far as that is known.
    labels: Labels,
    /// None for an attempt, which does not count for the route.
    route: Option<(RouteId, Arc<RouteMetrics>)>,
    cluster: Option<(ClusterId, Arc<ClusterLive>)>,
    destination: Option<Arc<DestinationState>>,
    upstream: Option<SocketAddr>,
    time_to_head: Option<Duration>,
    has_ended: bool,
    /// None for an attempt, which is part of a request that is counted.
    _active: Option<SplitGuard>,
    layers: Layers,
}

/// What an account has to do with layers.
enum Layers {
    None,
    /// It is of a request that goes through layers, and may end together with an attempt.
    Around {
        context: RouteContext,
        attempt: Option<(OpenAccount, Option<ForwardErrorKind>)>,
        /// Whether the error that it ends with was counted with an attempt.
        is_counted: bool,
    },
    /// It is of an attempt of a layer to have a request answered.
    Attempt {
        of: RouteContext,
        is_tunnel: bool,
    },
}

impl Account {
    pub(crate) fn open(shared: &Arc<Shared>, method: &Method, version: Version) -> OpenAccount {
        let active = shared.metrics().active_requests.enter();
        Self::with(shared, method, version, Some(active), Layers::None)
    }

    /// When the request came.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Counts what becomes of one attempt of a layer.
    pub(crate) fn of_attempt(of: &RouteContext, method: &Method, version: Version) -> OpenAccount {
        of.attempts().begin();
        let shared = of.service().shared();
        let attempt = Layers::Attempt {
            of: of.clone(),
            is_tunnel: false,
        };
        Self::with(shared, method, version, None, attempt)
    }

    fn with(
        shared: &Arc<Shared>,
        method: &Method,
        version: Version,
        active: Option<SplitGuard>,
        layers: Layers,
    ) -> OpenAccount {
        OpenAccount::new(Self {
            _active: active,
            layers,
            shared: Arc::clone(shared),
            started: Instant::now(),
            // What YARP notes for a client that went away before there was anything else to tell it.
            labels: Labels::new(method, version, StatusCode::BAD_REQUEST),
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

    /// The request goes through layers.
    pub(crate) fn layered(&mut self, context: &RouteContext) {
        self.layers = Layers::Around {
            context: context.clone(),
            attempt: None,
            is_counted: false,
        };
    }

    /// It ends together with an attempt, which has had this error.
    pub(crate) fn ends_with(&mut self, with: OpenAccount, error: Option<ForwardErrorKind>) {
        if let Layers::Around { attempt, .. } = &mut self.layers {
            *attempt = Some((with, error));
        }
    }

    /// The error that it ends with is that of an attempt.
    pub(crate) fn failed_in_attempt(&mut self) {
        if let Layers::Around { is_counted, .. } = &mut self.layers {
            *is_counted = true;
        }
    }

    /// The response begins a tunnel.
    pub(crate) fn tunnels(&mut self) {
        if let Layers::Attempt { of, is_tunnel } = &mut self.layers {
            *is_tunnel = true;
            of.attempts().begin_tunnel();
        }
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

    /// The destination, which has this address, has begun its response so long after it was picked.
    pub(crate) fn answered(
        &mut self,
        status: StatusCode,
        elapsed: Duration,
        upstream: Option<SocketAddr>,
    ) {
        self.upstream = upstream;
        self.time_to_head = Some(elapsed);
        if let Some((_, live)) = &self.cluster {
            let labels = self.labels.with_status(status);
            live.metrics().requests.record(labels, elapsed);
        }
        if let Some(destination) = &self.destination {
            destination.metrics().responded(status, elapsed);
        }
    }

    /// What the client is told.
    pub(crate) fn responded(&mut self, status: StatusCode) {
        self.labels = self.labels.with_status(status);
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

    /// What is known so far, for logs.
    pub(crate) fn info(&self, error: Option<ForwardErrorKind>) -> ExchangeInfo {
        let route = self.route_id().cloned();
        if let Layers::Around { context, .. } = &self.layers {
            let last = context.attempts().take_last().unwrap_or_default();
            return ExchangeInfo {
                route,
                error,
                ..last
            };
        }
        let info = ExchangeInfo {
            route,
            cluster: self.cluster.as_ref().map(|(id, _)| id.clone()),
            destination: self.destination.as_ref().map(|d| d.id().clone()),
            upstream: self.upstream,
            error,
            time_to_head: self.time_to_head,
        };
        if let Layers::Attempt { of, .. } = &self.layers {
            of.attempts().note(info.clone());
        }
        info
    }

    /// The response, or the tunnel, has ended.
    pub(super) fn settle(&mut self, error: Option<ForwardErrorKind>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if let Some(kind) = error
            && self.is_own(kind)
        {
            self.failed(kind);
        }
        let what = match &mut self.layers {
            Layers::Attempt { of, is_tunnel } => {
                if *is_tunnel {
                    of.attempts().end_tunnel(error);
                }
                "attempt ended"
            }
            Layers::Around { attempt, .. } => {
                if let Some((attempt, earlier)) = attempt.take() {
                    attempt.end(earlier.or(error));
                }
                "request ended"
            }
            Layers::None => "request ended",
        };
        if !matches!(self.layers, Layers::Attempt { .. }) {
            let elapsed = self.started.elapsed();
            match &self.route {
                Some((_, metrics)) => metrics.served(self.labels, elapsed),
                None => self.shared.metrics().unrouted.record(self.labels, elapsed),
            }
        }
        debug!(
            target: targets::REQUEST,
            method = self.labels.method(),
            route = self.route_id().map(RouteId::as_str),
            cluster = self.cluster.as_ref().map(|(id, _)| id.as_str()),
            destination = self.destination.as_ref().map(|d| d.id().as_str()),
            status = self.labels.status(),
            error = error.map(ForwardErrorKind::as_str),
            elapsed = ?self.started.elapsed(),
            "{what}",
        );
    }

    fn route_id(&self) -> Option<&RouteId> {
        match &self.layers {
            Layers::Attempt { of, .. } => Some(of.route().id()),
            Layers::None | Layers::Around { .. } => self.route.as_ref().map(|(id, _)| id),
        }
    }

    /// Whether an error is to be counted here: that of an attempt was counted there.
    fn is_own(&self, kind: ForwardErrorKind) -> bool {
        match &self.layers {
            Layers::None | Layers::Attempt { .. } => true,
            Layers::Around {
                is_counted: true, ..
            } => false,
            Layers::Around { context, .. } => {
                kind == ForwardErrorKind::Extension || context.attempts().is_empty()
            }
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.settle(Some(ForwardErrorKind::RequestCanceled));
    }
}
