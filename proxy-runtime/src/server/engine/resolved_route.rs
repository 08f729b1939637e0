//! Where a request on the raw lane goes, whatever version of HTTP its client speaks.

use std::net::SocketAddr;

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Route, RouteIndex};
use proxy_model::matching::Lookup;
use tokio::time::Instant;

use super::Engine;
use super::downstream::Downstream;
use super::tally::Tally;
use crate::cluster::{ClusterState, Picked};
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::exchange::{Place, body_limit, pick};
use crate::filter::{FilterContext, Filters};
use crate::http1::{Framing, Method};
use crate::live::DestinationState;
use crate::progress::UptakeLimit;
use crate::progress::{Deadlines, after};
use crate::response::ExchangeInfo;
use crate::server::DataRate;
use crate::server::connection::Uptake;
use crate::state::{Generation, RouteState};
use crate::strict_path;
use crate::transform::{HeadPlan, sent_method};
use crate::upstream::{Lease, Protocols};

/// The route that takes a request and can do so on bytes, and what the configuration says of it and of its cluster.
#[derive(Clone, Copy)]
pub(super) struct ResolvedRoute<'a> {
    pub(super) engine: &'a Engine,
    pub(super) route: &'a Route,
    pub(super) route_state: &'a RouteState,
    pub(super) plan: &'a HeadPlan,
    /// The method that destinations are sent.
    pub(super) method: Method,
    pub(super) cluster: &'a Cluster,
    pub(super) state: &'a ClusterState,
}

impl<'a> ResolvedRoute<'a> {
    /// The route of a request, if the request can be forwarded by the raw lane; else its index, if it was found.
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

    /// `None` if the requests of the route are for the typed lane, or this one is.
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
        if route_state.refusal().is_some() || strict_path::check(route, head.path()).is_err() {
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

    /// Begins to count a request, which came just now.
    #[inline]
    pub(super) fn tally<D: Downstream>(&self, down: &D, now: Instant) -> Tally<'a> {
        let shared = self.engine.service().shared();
        Tally::new(shared, self.route_state, self.state, down.count(now))
    }

    /// The most content that a request may have: [`body_limit`], and never more than the `server` allows.
    #[inline]
    pub(super) fn allowed(&self, server: Option<u64>) -> u64 {
        let most = body_limit(
            self.engine.service().shared().max_request_body(),
            self.route,
        );
        most.unwrap_or(u64::MAX).min(server.unwrap_or(u64::MAX))
    }

    /// The filters of the route.
    #[inline]
    pub(super) fn filters(&self) -> Option<&'a Filters> {
        self.route_state.extensions()?.filters()
    }

    /// What filters are told beside a head.
    pub(super) fn filter_context(&self, connection: ConnectionInfo) -> FilterContext<'a> {
        FilterContext::new(self.route, self.cluster, connection)
    }

    #[inline]
    pub(super) fn destination(&self, picked: &Picked) -> &'a DestinationState {
        self.state.destination(picked.index)
    }

    /// When the response must have begun.
    #[inline]
    pub(super) fn head_due(&self, tally: &Tally<'_>) -> Option<Instant> {
        let timeout = self.route.timeout();
        timeout.map(|wait| after(tally.started(), wait))
    }

    /// How long its exchange may take, whose response must have begun by `head`.
    #[inline]
    pub(super) fn deadlines(&self, head: Option<Instant>) -> Deadlines {
        Deadlines {
            head,
            activity: self.cluster.upstream().activity_timeout(),
        }
    }

    /// The clock of a client that does not take what the proxy says itself, where no rate is asked of it.
    #[cold]
    pub(super) fn uptake(&self, rate: Option<DataRate>) -> Option<Uptake> {
        let timeout = self.cluster.upstream().activity_timeout();
        let limit = UptakeLimit::new(timeout);
        rate.is_none().then(|| Uptake::new(limit))
    }

    #[inline]
    pub(super) fn pick<H: RequestHead>(&self, head: &H) -> Result<Picked, ForwardError> {
        pick(self.state, self.cluster, head)
    }

    /// What it takes to get a connection for a request.
    #[inline]
    pub(super) fn place<D: Downstream>(&self, down: &D, tally: &Tally<'_>) -> Place<'a> {
        let has_body = !matches!(down.framing(), Framing::None | Framing::Length(0));
        Place {
            cluster: self.cluster,
            state: self.state,
            pool: self.engine.service().pool(),
            switch: None,
            is_careful: has_body || !self.method.is_idempotent(),
            due: self.head_due(tally),
        }
    }

    /// An idle connection to a destination.
    #[inline]
    pub(super) fn ready(&self, place: &Place<'a>, picked: &Picked, now: Instant) -> Option<Lease> {
        let wanted = place.wanted_in(picked.index, Protocols::Http1);
        place.pool.ready(&wanted, now)
    }

    /// Tells the access log what a destination has answered.
    #[inline]
    pub(super) fn log<D: Downstream>(
        &self,
        down: &mut D,
        status: StatusCode,
        tally: &Tally<'_>,
        peer: SocketAddr,
    ) {
        if let Some(record) = down.record()
            && record.draft.is_some()
        {
            let info = self.info(tally, Some(peer));
            record.answered(status, Some(info));
        }
    }

    /// What there is to say of a request, for logs.
    #[cold]
    pub(super) fn info(&self, tally: &Tally<'_>, upstream: Option<SocketAddr>) -> ExchangeInfo {
        ExchangeInfo {
            route: Some(self.route.id().clone()),
            cluster: Some(self.cluster.id().clone()),
            destination: tally
                .destination()
                .map(|destination| destination.id().clone()),
            upstream,
            error: None,
            time_to_head: upstream.map(|_| tally.waited()),
            uptake: None,
        }
    }
}

/// The method that a destination is sent by a route that changes methods. `None` if its response would have another shape than one to
/// the client's method has.
#[cold]
fn changed_method<H: RequestHead>(asked: Method, route: &Route, head: &H) -> Option<Method> {
    let Some(sent) = sent_method(route, head.method()) else {
        return Some(asked);
    };
    let sent = Method::of(sent);
    let has_own_shape = |method| matches!(method, Method::Head | Method::Connect | Method::Trace);
    (sent == asked || !(has_own_shape(asked) || has_own_shape(sent))).then_some(sent)
}
