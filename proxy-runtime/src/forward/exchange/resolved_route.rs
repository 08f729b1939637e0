//! The route and the cluster of a request.

use std::net::SocketAddr;

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, ClusterIndex, Destination, Route, RouteIndex, RouteTarget};
use proxy_model::matching::Lookup;
use tokio::time::Instant;

use super::downstream::{Downstream, Record};
use super::recorder::Recorder;
use crate::affinity::{Bond, NewKey};
use crate::cluster::{ClusterState, Picked};
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::exchange::{ConnectContext, body_limit, pick};
use crate::filter::{FilterContext, Filters};
use crate::forward::head_lines::in_http10;
use crate::http1::{ClassSet, Framing, Method};
use crate::live::DestinationState;
use crate::policy::RoutePolicies;
use crate::progress::{ClientReadLimit, ClientReadTimeout, DataRate, Deadlines, after};
use crate::proxy::ProxyService;
use crate::response::ExchangeInfo;
use crate::state::{Generation, RouteState};
use crate::strict_path;
use crate::transform::{CompiledTransforms, Invalid, sent_method};
use crate::upstream::{AnnouncedClient, Http1Connection, Lease, Protocols};

/// The route, cluster and method of a request, in the configuration that they were found in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) route: RouteIndex,
    pub(crate) cluster: ClusterIndex,
    /// The method for the destination.
    pub(crate) method: Method,
}

/// The route of a request that the exchange can forward, with its cluster.
#[derive(Clone, Copy)]
pub(crate) struct ResolvedRoute<'a> {
    pub(crate) service: &'a ProxyService,
    pub(crate) route: &'a Route,
    pub(crate) route_state: &'a RouteState,
    pub(crate) plan: &'a CompiledTransforms,
    /// The method for the destination.
    pub(crate) method: Method,
    pub(crate) cluster: &'a Cluster,
    pub(crate) state: &'a ClusterState,
}

impl<'a> ResolvedRoute<'a> {
    /// Returns the route of a request; otherwise the index of the route, if there is one.
    #[inline]
    pub(crate) fn of_request<D: Downstream>(
        down: &D,
        service: &'a ProxyService,
        generation: &'a Generation,
    ) -> Result<Self, Option<RouteIndex>> {
        let head = down.head();
        let Lookup::Matched(index) = generation.find_route(&head) else {
            return Err(None);
        };
        // Layers, for example, need a request in `http` types.
        if !generation.route(index).is_raw() {
            return Err(Some(index));
        }
        let asked = (down.method(), down.classes());
        let resolved = Self::of_route(service, generation, index, &head, asked);
        let resolved = resolved.ok_or(Some(index))?;
        match down.framing() {
            // The service rejects it, and reads nothing of the body.
            Framing::Length(length) if length > resolved.allowed(down.body_limit()) => {
                Err(Some(index))
            }
            _ => Ok(resolved),
        }
    }

    /// Returns the route with its cluster.
    ///
    /// Returns `None` if the request has to take the form of `http` types: the service forwards it, or rejects it.
    #[inline]
    fn of_route<H: RequestHead>(
        service: &'a ProxyService,
        generation: &'a Generation,
        index: RouteIndex,
        head: &H,
        (method, classes): (Method, ClassSet),
    ) -> Option<Self> {
        let snapshot = generation.snapshot();
        let route = snapshot.route_at(index);
        let route_state = generation.route(index);
        let plan = route_state.inner_plan();
        // Rejections are rare, so they take the slower way.
        if route_state.rejection().is_some() || strict_path::check(route, || head.path()).is_err() {
            return None;
        }
        let method = match plan.changes_method {
            false => method,
            true => changed_method(method, route, head)?,
        };
        let random = service.shared().random();
        let cluster = route_state.choose(route, snapshot, head, random).ok()?;
        let state = generation.cluster(cluster);
        (!route_state.is_loop(head, classes)).then(|| Self {
            service,
            route,
            route_state,
            plan,
            method,
            cluster: snapshot.cluster_at(cluster),
            state,
        })
    }

    /// The route that [was found](Self::of_route) before, in the same configuration.
    pub(crate) fn of_chosen(
        service: &'a ProxyService,
        generation: &'a Generation,
        chosen: Chosen,
    ) -> Self {
        let snapshot = generation.snapshot();
        let route_state = generation.route(chosen.route);
        Self {
            service,
            route: snapshot.route_at(chosen.route),
            route_state,
            plan: route_state.inner_plan(),
            method: chosen.method,
            cluster: snapshot.cluster_at(chosen.cluster),
            state: generation.cluster(chosen.cluster),
        }
    }

    /// Starts recording a request that has just arrived.
    #[inline]
    pub(crate) fn recorder<D: Downstream>(&self, down: &D, now: Instant) -> Recorder<'a> {
        let shared = self.service.shared();
        let mut count = down.count(now);
        if let Some(tracer) = shared.tracer() {
            // An attempt of a layer belongs to the trace of its request.
            match down.attempts() {
                Some(attempts) => attempts.link_trace(&mut count),
                None => {
                    let client = down.connection().remote;
                    count.begin_trace(tracer, &down.head(), client, Some(self.route));
                }
            }
        }
        Recorder::new(shared, self.route_state, self.state, count, down.attempts())
    }

    /// The limit of the request body in bytes: [`body_limit`], and at most the limit of the
    /// `server`.
    #[inline]
    pub(crate) fn allowed(&self, server: Option<u64>) -> u64 {
        let most = body_limit(self.service.shared().max_request_body(), self.route);
        most.unwrap_or(u64::MAX).min(server.unwrap_or(u64::MAX))
    }

    /// The route's filters.
    #[inline]
    pub(crate) fn filters(&self) -> Option<&'a Filters> {
        self.route_state.extensions()?.filters()
    }

    /// The route's policies, unless they are around its layers.
    pub(crate) fn policies(&self) -> Option<&'a dyn RoutePolicies> {
        self.route_state.extensions()?.policies()
    }

    /// Returns true if the route has policies or filters, or errors have a form that the client prefers.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        let extensions = self.route_state.extensions();
        extensions.is_some_and(|extensions| {
            extensions.policies().is_some() || extensions.filters().is_some()
        }) || self.negotiates_errors()
    }

    /// Returns true if errors have the form that the client prefers.
    #[inline]
    pub(crate) fn negotiates_errors(&self) -> bool {
        self.service.shared().negotiates_errors()
    }

    /// The context for filters.
    pub(crate) fn filter_context(&self, connection: ConnectionInfo) -> FilterContext<'a> {
        FilterContext::new(self.route, self.cluster, connection)
    }

    /// The configuration of a destination.
    #[inline]
    pub(crate) fn picked(&self, picked: &Picked) -> &'a Destination {
        &self.cluster.destinations()[picked.index.0 as usize]
    }

    #[inline]
    pub(crate) fn destination(&self, picked: &Picked) -> &'a DestinationState {
        self.state.destination(picked.index)
    }

    /// The time by which the response must have begun: the route's `Timeout`.
    #[inline]
    pub(crate) fn head_due<D: Downstream>(
        &self,
        down: &D,
        recorder: &Recorder<'_>,
    ) -> Option<Instant> {
        let timeout = self.route.timeout();
        // The attempts of layers share the time limit of their request.
        let arrived = || down.arrived().unwrap_or_else(|| recorder.started());
        timeout.map(|wait| after(arrived(), wait))
    }

    /// The timeouts of an exchange whose response must have begun by `head`.
    #[inline]
    pub(crate) fn deadlines(&self, head: Option<Instant>) -> Deadlines {
        Deadlines {
            head,
            includes_body: self.route.timeout_includes_body(),
            activity: self.cluster.upstream().activity_timeout(),
        }
    }

    /// The client read timeout for a local reply, if there is no minimum data rate.
    #[cold]
    pub(crate) fn read_timeout(&self, rate: Option<DataRate>) -> Option<ClientReadTimeout> {
        let timeout = self.cluster.upstream().activity_timeout();
        let limit = ClientReadLimit::new(timeout, 0);
        rate.is_none().then(|| ClientReadTimeout::new(limit))
    }

    #[inline]
    pub(crate) fn pick<H: RequestHead>(&self, head: &H) -> Result<Picked, ForwardError> {
        pick(self.state, self.cluster, head)
    }

    /// The parameters of a connection for a request.
    #[inline]
    pub(crate) fn place<D: Downstream>(
        &self,
        down: &D,
        picked: &Picked,
        recorder: &Recorder<'_>,
    ) -> ConnectContext<'a> {
        let has_body = !matches!(down.framing(), Framing::None | Framing::Length(0));
        ConnectContext {
            cluster: self.cluster,
            state: self.state,
            pool: self.service.pool(),
            switch: down.switch(),
            // A request that cannot be repeated is worth a system call to check its idle connection.
            is_careful: has_body || !self.method.is_idempotent(),
            is_bound: self.state.is_bound(self.cluster, picked.bond),
            due: self.head_due(down, recorder),
            announced: self
                .cluster
                .upstream()
                .sends_proxy_protocol()
                .then(|| AnnouncedClient::of(&down.connection())),
        }
    }

    /// Returns the header that gives the client an affinity key, if it needs one.
    #[inline]
    pub(crate) fn new_key(&self, picked: &Picked) -> Option<NewKey> {
        if picked.bond == Bond::None {
            return None;
        }
        // In a split, the key must lead back to the same cluster, too.
        let names_cluster = matches!(self.route.target(), RouteTarget::Weighted(_));
        let (index, bond) = (picked.index, picked.bond);
        self.state.new_key(self.cluster, index, bond, names_cluster)
    }

    /// Returns an idle connection to a destination.
    ///
    /// # Errors
    ///
    /// The proxy does not speak the version that the cluster requires.
    #[inline]
    pub(crate) fn ready(
        &self,
        place: &ConnectContext<'a>,
        picked: &Picked,
        now: Instant,
    ) -> Result<Option<Lease>, ForwardError> {
        let wanted = match self.state.speaks_http1() {
            // The usual case needs no choice of a version for each request.
            true => place.wanted_in(picked.index, Protocols::Http1),
            false => place.wanted(picked.index)?,
        };
        Ok(place.pool.ready(&wanted, now))
    }

    /// Converts a head for the protocol of a connection.
    ///
    /// # Errors
    ///
    /// The head makes no valid request.
    #[inline]
    pub(crate) fn prepare(
        &self,
        lease: &mut Lease,
        head: Result<Vec<u8>, Invalid>,
    ) -> Result<Vec<u8>, Invalid> {
        let mut head = head?;
        if self.state.speaks_http10() {
            in_http10(&mut head)?;
        }
        lease.prepare(&mut head)?;
        Ok(head)
    }

    /// Passes the status of a destination's response to the access log. `until`: the time by which the response must
    /// have ended.
    #[inline]
    pub(crate) fn log<D: Downstream>(
        &self,
        down: &mut D,
        status: StatusCode,
        recorder: &Recorder<'_>,
        (connection, until): (&Http1Connection, Option<Instant>),
        now: Instant,
    ) {
        // The clones are made only for a log that wants them.
        if let Some(record) = down.record()
            && record.wants_info()
        {
            let mut info = self.info(recorder, Some(connection.peer));
            let timeout = self.cluster.upstream().activity_timeout();
            let limit = ClientReadLimit::new(timeout, connection.behind());
            info.read_timeout = Some(limit.with_end(until));
            info.time_to_head = Some(now.saturating_duration_since(recorder.picked()));
            info.added = Some(recorder.waited());
            info.first_byte = Some(now.saturating_duration_since(recorder.started()));
            record.answered(status, info);
        }
    }

    /// Returns the information for logs.
    pub(crate) fn info(
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
            reply: None,
            time_to_head: None,
            added: None,
            first_byte: None,
            read_timeout: Some(ClientReadLimit::new(
                self.cluster.upstream().activity_timeout(),
                0,
            )),
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
    // Responses to these have no body, are a tunnel, or repeat the request.
    let has_own_shape = |method| matches!(method, Method::Head | Method::Connect | Method::Trace);
    (sent == asked || !(has_own_shape(asked) || has_own_shape(sent))).then_some(sent)
}
