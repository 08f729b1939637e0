//! The route and the cluster of a request on the byte path.

use std::net::SocketAddr;

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Route, RouteIndex};
use proxy_model::matching::Lookup;
use tokio::time::Instant;

use super::Engine;
use super::downstream::Downstream;
use super::recorder::Recorder;
use crate::cluster::{ClusterState, Picked};
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::exchange::{ConnectContext, body_limit, pick};
use crate::filter::{FilterContext, Filters};
use crate::http1::{Framing, Method};
use crate::live::DestinationState;
use crate::progress::ClientReadLimit;
use crate::progress::{Deadlines, after};
use crate::response::ExchangeInfo;
use crate::server::DataRate;
use crate::server::connection::ClientReadTimeout;
use crate::state::{Generation, RouteState};
use crate::strict_path;
use crate::transform::{CompiledTransforms, sent_method};
use crate::upstream::{Lease, Protocols};

/// The route of a request that can be forwarded as bytes, with its cluster.
#[derive(Clone, Copy)]
pub(super) struct ResolvedRoute<'a> {
    pub(super) engine: &'a Engine,
    pub(super) route: &'a Route,
    pub(super) route_state: &'a RouteState,
    pub(super) plan: &'a CompiledTransforms,
    /// The method for the destination.
    pub(super) method: Method,
    pub(super) cluster: &'a Cluster,
    pub(super) state: &'a ClusterState,
}

impl<'a> ResolvedRoute<'a> {
    /// Returns the route of a request for the byte path; otherwise the index of the route, if there
    /// is one.
    #[inline]
    pub(super) fn of_request<D: Downstream>(
        down: &D,
        engine: &'a Engine,
        generation: &'a Generation,
    ) -> Result<Self, Option<RouteIndex>> {
        let head = down.head();
        let Lookup::Matched(index) = generation.find_route(&head) else {
            return Err(None);
        };
        let resolved =
            Self::of_route(engine, generation, index, &head, down.method()).ok_or(Some(index))?;
        if resolved.route_state.is_loop(&head, down.classes()) {
            return Err(Some(index));
        }
        let most = || resolved.allowed(down.state().worker.limits.body_bytes);
        match down.framing() {
            Framing::Length(length) if length > most() => Err(Some(index)),
            _ => Ok(resolved),
        }
    }

    /// Returns `None` if the request must take the typed path.
    #[inline]
    fn of_route<H: RequestHead>(
        engine: &'a Engine,
        generation: &'a Generation,
        index: RouteIndex,
        head: &H,
        method: Method,
    ) -> Option<Self> {
        let snapshot = generation.snapshot();
        let route = snapshot.route_at(index);
        let route_state = generation.route(index);
        let plan = route_state.plan()?;
        if route_state.rejection().is_some() || strict_path::check(route, head.path()).is_err() {
            return None;
        }
        let method = match plan.changes_method {
            false => method,
            true => changed_method(method, route, head)?,
        };
        let random = engine.service().shared().random();
        let cluster = route_state.choose(route, head, random).ok()?;
        let state = generation.cluster(cluster);
        state.speaks_http1().then_some(Self {
            engine,
            route,
            route_state,
            plan,
            method,
            cluster: snapshot.cluster_at(cluster),
            state,
        })
    }

    /// Starts recording a request that has just arrived.
    #[inline]
    pub(super) fn recorder<D: Downstream>(&self, down: &D, now: Instant) -> Recorder<'a> {
        let shared = self.engine.service().shared();
        Recorder::new(shared, self.route_state, self.state, down.count(now))
    }

    /// The limit of the request body in bytes: [`body_limit`], and at most the limit of the
    /// `server`.
    #[inline]
    pub(super) fn allowed(&self, server: Option<u64>) -> u64 {
        let most = body_limit(
            self.engine.service().shared().max_request_body(),
            self.route,
        );
        most.unwrap_or(u64::MAX).min(server.unwrap_or(u64::MAX))
    }

    /// The route's filters.
    #[inline]
    pub(super) fn filters(&self) -> Option<&'a Filters> {
        self.route_state.extensions()?.filters()
    }

    /// The context for filters.
    pub(super) fn filter_context(&self, connection: ConnectionInfo) -> FilterContext<'a> {
        FilterContext::new(self.route, self.cluster, connection)
    }

    #[inline]
    pub(super) fn destination(&self, picked: &Picked) -> &'a DestinationState {
        self.state.destination(picked.index)
    }

    /// The time by which the response must have begun: the route's `Timeout`.
    #[inline]
    pub(super) fn head_due(&self, recorder: &Recorder<'_>) -> Option<Instant> {
        let timeout = self.route.timeout();
        timeout.map(|wait| after(recorder.started(), wait))
    }

    /// The timeouts of an exchange whose response must have begun by `head`.
    #[inline]
    pub(super) fn deadlines(&self, head: Option<Instant>) -> Deadlines {
        Deadlines {
            head,
            activity: self.cluster.upstream().activity_timeout(),
        }
    }

    /// The client read timeout for a local reply, if there is no minimum data rate.
    #[cold]
    pub(super) fn read_timeout(&self, rate: Option<DataRate>) -> Option<ClientReadTimeout> {
        let timeout = self.cluster.upstream().activity_timeout();
        let limit = ClientReadLimit::new(timeout);
        rate.is_none().then(|| ClientReadTimeout::new(limit))
    }

    #[inline]
    pub(super) fn pick<H: RequestHead>(&self, head: &H) -> Result<Picked, ForwardError> {
        pick(self.state, self.cluster, head)
    }

    /// The parameters of a connection for a request.
    #[inline]
    pub(super) fn place<D: Downstream>(
        &self,
        down: &D,
        recorder: &Recorder<'_>,
    ) -> ConnectContext<'a> {
        let has_body = !matches!(down.framing(), Framing::None | Framing::Length(0));
        ConnectContext {
            cluster: self.cluster,
            state: self.state,
            pool: self.engine.service().pool(),
            switch: None,
            is_careful: has_body || !self.method.is_idempotent(),
            due: self.head_due(recorder),
        }
    }

    /// Returns an idle connection to a destination.
    #[inline]
    pub(super) fn ready(
        &self,
        place: &ConnectContext<'a>,
        picked: &Picked,
        now: Instant,
    ) -> Option<Lease> {
        let wanted = place.wanted_in(picked.index, Protocols::Http1);
        place.pool.ready(&wanted, now)
    }

    /// Passes the status of a destination's response to the access log.
    #[inline]
    pub(super) fn log<D: Downstream>(
        &self,
        down: &mut D,
        status: StatusCode,
        recorder: &Recorder<'_>,
        peer: SocketAddr,
    ) {
        if let Some(record) = down.record()
            && record.draft.is_some()
        {
            let info = self.info(recorder, Some(peer));
            record.answered(status, Some(info));
        }
    }

    /// Returns the information for logs.
    #[cold]
    pub(super) fn info(
        &self,
        recorder: &Recorder<'_>,
        upstream: Option<SocketAddr>,
    ) -> ExchangeInfo {
        ExchangeInfo {
            route: Some(self.route.id().clone()),
            cluster: Some(self.cluster.id().clone()),
            destination: recorder
                .destination()
                .map(|destination| destination.id().clone()),
            upstream,
            error: None,
            time_to_head: upstream.map(|_| recorder.waited()),
            read_timeout: None,
        }
    }
}

/// The method for the destination, of a route that changes methods. `None` if its response would have
/// another shape than a response to the client's method.
#[cold]
fn changed_method<H: RequestHead>(asked: Method, route: &Route, head: &H) -> Option<Method> {
    let Some(sent) = sent_method(route, head.method()) else {
        return Some(asked);
    };
    let sent = Method::of(sent);
    let has_own_shape = |method| matches!(method, Method::Head | Method::Connect | Method::Trace);
    (sent == asked || !(has_own_shape(asked) || has_own_shape(sent))).then_some(sent)
}
