//! A request that is forwarded as bytes: whether it can be, and what belongs to it.

use http::Method as HttpMethod;
use proxy_model::RequestHead;
use proxy_model::compiled::{BodyLimit, Cluster, Route};
use proxy_model::matching::Lookup;
use tokio::time::Instant;

use super::Engine;
use super::connect::{Link, Unconnected};
use super::filtering::Filtering;
use super::plan::HeadPlan;
use super::tally::Tally;
use crate::contain::contained_call;
use crate::forward::panicked;
use crate::forward::timeout::after;
use crate::http1::{Asked, Framing, Method, RawRequest, RequestView, Version};
use crate::server::http1::{Client, Transport};
use crate::state::{ClusterState, DestinationState, Generation, Picked, RouteState};

/// Begins with a request, if it can be forwarded as bytes: finds its route, and an idle connection to a destination, which
/// nearly always there is. All that looks at the head is done here, without waiting for anything.
#[inline]
pub(super) fn start<'a, T: Transport>(
    client: &Client<T>,
    request: &'a RawRequest,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Option<Started<'a>> {
    let is_plain = request.version() == Version::Http11
        && !request.expects_continue()
        && !matches!(request.method(), Method::Connect | Method::Trace)
        && request.upgrade().is_none()
        && !client.table.has_crumbs(client.input.filled());
    if !is_plain {
        return None;
    }
    let view = view_of(client, request);
    let run = choose(generation, client, request, &view, engine)?;
    let now = Instant::now();
    let tally = run.tally(&view, now);
    let (filtering, said) = match run.filters() {
        None => (Filtering::default(), Ok(())),
        Some(filters) => Filtering::ask(filters, &run, client, view),
    };
    // A program's own policy may panic, which ends one request and no more.
    let picked = || run.connect_now(client, &view, filtering.edits(), now);
    let connecting = said.and_then(|()| match contained_call(picked) {
        Ok(connecting) => connecting,
        Err(panic) => Err(Unconnected::Failed(panicked(&panic))),
    });
    Some(Started {
        run,
        tally,
        filtering,
        connecting,
    })
}

/// A request that has begun to be forwarded.
pub(super) struct Started<'a> {
    pub(super) run: Run<'a>,
    pub(super) tally: Tally<'a>,
    pub(super) filtering: Filtering,
    pub(super) connecting: Result<Link, Unconnected>,
}

/// The route and the cluster of a request that can be forwarded as bytes.
#[inline]
fn choose<'a, T: Transport>(
    generation: &'a Generation,
    client: &Client<T>,
    request: &'a RawRequest,
    view: &RequestView<'_>,
    engine: &'a Engine,
) -> Option<Run<'a>> {
    let snapshot = generation.snapshot();
    let Lookup::Matched(index) = snapshot.table().find(snapshot.routes(), view) else {
        return None;
    };
    let route = snapshot.route_at(index);
    let route_state = generation.route(index);
    let plan = route_state.plan()?;
    if route_state.refusal().is_some() {
        return None;
    }
    let random = engine.service().shared().random();
    let cluster = route_state.choose(route, view, random).ok()?;
    let run = Run {
        engine,
        request,
        route,
        route_state,
        plan,
        cluster: snapshot.cluster_at(cluster),
        state: generation.cluster(cluster),
    };
    let fits = match request.framing() {
        Framing::Length(length) => length <= run.allowed(client),
        _ => true,
    };
    (fits && run.state.speaks_http1()).then_some(run)
}

#[inline]
pub(super) fn view_of<'a, T: Transport>(
    client: &'a Client<T>,
    request: &'a RawRequest,
) -> RequestView<'a> {
    RequestView::new(
        client.input.filled(),
        request,
        &client.table,
        client.state.info.tls,
    )
}

/// A request that is forwarded, and what the configuration says of it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) engine: &'a Engine,
    pub(super) request: &'a RawRequest,
    pub(super) route: &'a Route,
    pub(super) route_state: &'a RouteState,
    pub(super) plan: &'a HeadPlan,
    pub(super) cluster: &'a Cluster,
    pub(super) state: &'a ClusterState,
}

impl<'a> Run<'a> {
    /// The most content that the request may have: the route says, else the proxy; and never more than the server allows.
    #[inline]
    pub(super) fn allowed<T: Transport>(&self, client: &Client<T>) -> u64 {
        let most = match self.route.body_limit() {
            BodyLimit::Server => self.engine.service().shared().max_request_body(),
            BodyLimit::Unlimited => None,
            BodyLimit::Bytes(limit) => Some(limit),
        };
        let server = client.state.worker.limits.body_bytes;
        most.unwrap_or(u64::MAX).min(server.unwrap_or(u64::MAX))
    }

    #[inline]
    pub(super) fn tally(&self, view: &RequestView<'_>, started: Instant) -> Tally<'a> {
        Tally::new(
            self.engine.service().shared(),
            self.route_state,
            self.state,
            &method(self.request.method(), view),
            started,
        )
    }

    #[inline]
    pub(super) fn asked(&self) -> Asked {
        Asked {
            method: self.request.method(),
            upgrade: false,
        }
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
}

/// The method, for the counters: those that they do not know are all the same to them.
#[inline]
fn method(method: Method, view: &RequestView<'_>) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::GET,
        Method::Head => HttpMethod::HEAD,
        Method::Post => HttpMethod::POST,
        Method::Put => HttpMethod::PUT,
        Method::Patch => HttpMethod::PATCH,
        Method::Delete => HttpMethod::DELETE,
        Method::Options => HttpMethod::OPTIONS,
        _ => HttpMethod::from_bytes(view.method().as_bytes()).unwrap_or_default(),
    }
}
