//! A request from its head to the head of its response.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use proxy_model::RequestHead;
use proxy_model::compiled::{ClusterIndex, Route, RouteIndex};
use tokio::time::Instant;
use tracing::debug;

use super::exchange_plan::{ExchangePlan, Rejected, RequestOrigin};
use super::filtering::AppliedFilters;
use super::handshake::Handshake;
use super::layered::{Layered, validate};
use super::plan::{self, Unrouted};
use super::recycled::{self, Kind};
use super::reply::reply;
use super::response as answer;
use super::send::Sending;
use super::service::ResponseFuture;
use super::upgrade::{Agreed, Upgrade};
use crate::BoxError;
use crate::error::{Cause, ForwardError};
use crate::exchange::body_limit;
use crate::extensions::RouteExtensions;
use crate::filter::{FilterContext, Filters};
use crate::forward::RouteContext;
use crate::head::HeaderMutations;
use crate::head::{HttpHead, put_in_place};
use crate::layer::ProxyRequestBody;
use crate::observe::targets;
use crate::policy::{self, RoutePolicies};
use crate::progress::{after, within};
use crate::proxy::FoundRoute;
use crate::proxy::ProxyService;
use crate::response::ExchangeRecorder;
use crate::response::OpenRecorder;
use crate::response::ProxyBody;
use crate::state::{Generation, RouteState};

/// Forwards one request. Whatever goes wrong becomes a response.
pub(super) fn forward<B>(
    service: &ProxyService,
    request: Request<B>,
    found: Option<FoundRoute>,
) -> ResponseFuture
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let shared = service.shared();
    let (mut parts, body) = request.into_parts();
    let open = |parts: &Parts, route: Option<&Route>| {
        let mut recorder = ExchangeRecorder::open(shared.metrics(), &parts.method, parts.version);
        if let Some(tracer) = shared.tracer() {
            let head = HttpHead::new(parts);
            let client = head.connection().remote;
            recorder.count().begin_trace(tracer, &head, client, route);
        }
        recorder
    };
    let is_read_here = found.is_some();
    let (FoundRoute { generation, index }, classes, upgrade) = match found {
        Some(found) => (found, None, None),
        None => {
            let generation = shared.load_full();
            let upgrade = Upgrade::take_from(&mut parts);
            let head = HttpHead::new(&parts);
            let index = match plan::find_route(&generation, &head) {
                Ok(index) => index,
                Err(unrouted) => {
                    return ResponseFuture::known(reject(&unrouted, open(&parts, None)));
                }
            };
            let classes = head.classes();
            (FoundRoute { generation, index }, Some(classes), upgrade)
        }
    };
    let route = generation.snapshot().route_at(index);
    let state = generation.route(index);
    let extensions = state.extensions();
    if let Some(layers) = extensions.and_then(RouteExtensions::layers) {
        let mut recorder = open(&parts, Some(route));
        recorder.routed(route.id(), state.metrics());
        let context = RouteContext::new(service, &generation, index, recorder.started());
        let is_empty = body.is_end_stream();
        // What has no body was checked as far as it can be where it was read.
        let valid = match is_read_here && is_empty {
            true => plan::check_route(route, state, parts.uri.path()),
            false => validate(&context, &parts, upgrade.as_deref(), is_empty),
        };
        if let Err(error) = valid {
            return Layered::reject(&context, &error, recorder);
        }
        return Layered::forward(context, layers.service(), parts, body, upgrade, recorder);
    }
    let head = match classes {
        Some(classes) => HttpHead::of_classes(&parts, classes),
        None => HttpHead::new(&parts),
    };
    let classes = head.classes();
    let is_empty = body.is_end_stream();
    let rest = 'rest: {
        if let Some(upgrade) = upgrade {
            break 'rest Rest::Switch(upgrade, is_empty);
        }
        let plan = ExchangePlan::of(service, &generation, (index, None), &head, is_empty);
        let rejected = match plan {
            Ok(plan) => {
                let origin = RequestOrigin {
                    service: service.clone(),
                    generation,
                    attempts: None,
                    arrived: None,
                };
                let body = ProxyRequestBody::new(body);
                return ResponseFuture::exchange(plan.begin(origin, parts, body));
            }
            Err(rejected) => rejected,
        };
        // Policies are asked before, and may wait.
        if extensions.is_some_and(|extensions| extensions.policies().is_some()) {
            break 'rest Rest::Reject(rejected);
        }
        let mut recorder = open(&parts, Some(route));
        recorder.routed(route.id(), state.metrics());
        let routed = Routed {
            service,
            generation: &generation,
            index,
            assigned: None,
            head: &head,
            started: recorder.started(),
        };
        let response = routed.reject(rejected, &mut AppliedFilters::default(), recorder);
        recycled::release(Kind::Request, parts.headers, parts.extensions);
        return ResponseFuture::known(response);
    };
    let mut recorder = open(&parts, Some(route));
    recorder.routed(route.id(), state.metrics());
    let service = service.clone();
    let started = recorder.started();
    ResponseFuture::awaited(move || async move {
        let head = HttpHead::of_classes(&parts, classes);
        let routed = Routed {
            service: &service,
            generation: &generation,
            index,
            assigned: None,
            head: &head,
            started,
        };
        let response = routed.respond(rest, recorder).await;
        recycled::release(Kind::Request, parts.headers, parts.extensions);
        response
    })
}

/// A request and the route that takes it.
#[derive(Clone, Copy)]
pub(super) struct Routed<'a> {
    pub(super) service: &'a ProxyService,
    pub(super) generation: &'a Arc<Generation>,
    pub(super) index: RouteIndex,
    /// The cluster that a layer has assigned, in place of the route's.
    pub(super) assigned: Option<ClusterIndex>,
    pub(super) head: &'a HttpHead<'a>,
    /// When the request began.
    pub(super) started: Instant,
}

/// The decision of filters and of the configuration about a request: forward it, with which handshake, or reply.
enum RequestDecision {
    Forward(Handshake),
    /// The response of a filter.
    Reply(Box<Response<ProxyBody>>),
}

/// What is left to do with a request that the exchange does not forward.
pub(super) enum Rest {
    /// It wishes for another protocol. True: it is known to have no body.
    Switch(Box<Upgrade>, bool),
    Reject(Rejected),
}

impl<'a> Routed<'a> {
    /// Responds to a request that the exchange does not forward, once the route's policies let it pass.
    pub(super) async fn respond(
        &self,
        rest: Rest,
        mut recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let route = self.route();
        let mut changes = (AppliedFilters::default(), HeaderMutations::default());
        let Some(policies) = self.policies() else {
            return self.go_on(rest, changes, recorder).await;
        };
        let (filtering, edits) = &mut changes;
        if let Err(error) = plan::check_route(route, self.state(), self.head.path()) {
            return self.fail(&error, filtering, recorder);
        }
        let due = route.timeout().map(|wait| after(self.started, wait));
        let judging = policy::judge_http(policies, route, self.head, edits);
        // Boxed, so that the others have no room for it.
        let judged = Box::pin(within(due, judging)).await;
        filtering.note(edits.take_notes());
        let held = edits.take_held();
        let mut response = match judged {
            Err(error) => self.fail(&error, filtering, recorder),
            Ok(Some(reply)) => {
                recorder.replied(Cause::of_reply(reply.status()));
                let response = reply.into_response().map(ProxyBody::text);
                finish(
                    filtering.shown(response, route.transforms()),
                    recorder,
                    None,
                )
            }
            Ok(None) => self.go_on(rest, changes, recorder).await,
        };
        if !held.is_empty() {
            response.body_mut().on_end(move |_| drop(held));
        }
        response
    }

    async fn go_on(
        &self,
        rest: Rest,
        (mut filtering, edits): (AppliedFilters<'a>, HeaderMutations),
        mut recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let (upgrade, is_empty) = match rest {
            Rest::Reject(rejected) => return self.reject(rejected, &mut filtering, recorder),
            Rest::Switch(upgrade, is_empty) => (upgrade, is_empty),
        };
        if self.route().target().is_reply() {
            return self.reply(&mut filtering, recorder);
        }
        let sending = match self.sending(&upgrade, is_empty, &mut recorder) {
            Ok(sending) => sending,
            Err(error) => return self.fail(&error, &mut filtering, recorder),
        };
        // Boxed, so that others have no room for it.
        Box::pin(self.respond_filtered(sending, upgrade, (filtering, edits), recorder)).await
    }

    /// The response to a request that the exchange does not forward.
    #[cold]
    pub(super) fn reject(
        &self,
        rejected: Rejected,
        filtering: &mut AppliedFilters<'_>,
        mut recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let Rejected { cluster, error } = rejected;
        if let Some(cluster) = cluster {
            let id = self.generation.snapshot().cluster_at(cluster).id();
            recorder.assigned(id, self.generation.cluster(cluster));
        }
        match error {
            Some(error) => self.fail(&error, filtering, recorder),
            None => self.reply(filtering, recorder),
        }
    }

    /// Answers a request of a route without a cluster.
    fn reply(
        &self,
        filtering: &mut AppliedFilters<'_>,
        recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let route = self.route();
        if let Err(error) = plan::check_route(route, self.state(), self.head.path()) {
            return self.fail(&error, filtering, recorder);
        }
        let unavailable = || answer::own(StatusCode::SERVICE_UNAVAILABLE, None);
        let response = reply(route, self.head).unwrap_or_else(unavailable);
        let response = filtering.shown(response, route.transforms());
        finish(response, recorder, None)
    }

    /// Shows the request to the filters, and forwards it.
    async fn respond_filtered(
        &self,
        sending: Sending<'a>,
        upgrade: Box<Upgrade>,
        (mut filtering, mut edits): (AppliedFilters<'a>, HeaderMutations),
        mut recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let asked = self.ask(&sending, &upgrade, &mut filtering, &mut edits);
        let handshake = match asked {
            Ok(RequestDecision::Forward(handshake)) => handshake,
            Ok(RequestDecision::Reply(response)) => {
                recorder.replied(Cause::of_reply(response.status()));
                let response = filtering.shown(*response, self.route().transforms());
                return finish(response, recorder, None);
            }
            Err(error) => return self.fail(&error, &mut filtering, recorder),
        };
        if let Some(trace) = recorder.count().trace() {
            trace.write(&mut edits);
        }
        let head = self.head.with_edits(&edits);
        let sending = Sending {
            head: &head,
            handshake: &handshake,
            ..sending
        };
        let mut response = Response::new(ProxyBody::empty());
        let ended = self.exchange(
            &sending,
            upgrade,
            &mut recorder,
            &mut filtering,
            &mut response,
        );
        match ended.await {
            Ok(None) => finish(response, recorder, None),
            Ok(Some(agreed)) => switch(response, *agreed, recorder),
            Err(error) => self.fail(&error, &mut filtering, recorder),
        }
    }

    /// What is to be sent to which cluster, if no filter has a say and no switch is asked for.
    fn sending(
        &self,
        upgrade: &Upgrade,
        is_empty: bool,
        recorder: &mut ExchangeRecorder,
    ) -> Result<Sending<'a>, ForwardError> {
        let route = self.route();
        let random = self.service.shared().random();
        let snapshot = self.generation.snapshot();
        let index = plan::find_cluster(
            route,
            self.state(),
            (snapshot, self.assigned),
            self.head,
            random,
        )?;
        let cluster = snapshot.cluster_at(index);
        let state = self.generation.cluster(index);
        recorder.assigned(cluster.id(), state);
        let body_limit = body_limit(self.service.shared().max_request_body(), route);
        plan::validate(self.head, Some(upgrade.wish()), body_limit, is_empty)?;
        Ok(Sending {
            head: self.head,
            route,
            cluster,
            state,
            pool: self.service.pool(),
            handshake: &Handshake::None,
            loop_guard: self.state().loop_guard(),
            started: self.started,
        })
    }

    /// Asks the filters, and for the handshake of the protocol that the client wishes for.
    fn ask(
        &self,
        sending: &Sending<'a>,
        upgrade: &Upgrade,
        filtering: &mut AppliedFilters<'a>,
        edits: &mut HeaderMutations,
    ) -> Result<RequestDecision, ForwardError> {
        if let Some(filters) = self.filters() {
            let connection = self.head.connection();
            let context = FilterContext::new(sending.route, sending.cluster, connection);
            if let Some(reply) = filtering.ask(filters, context, *self.head, edits)? {
                let response = reply.into_response().map(ProxyBody::text);
                return Ok(RequestDecision::Reply(Box::new(response)));
            }
        }
        let upstream = sending.cluster.upstream();
        Handshake::new(Some(upgrade.wish()), self.head.headers(), upstream)
            .map(RequestDecision::Forward)
    }

    /// The response to a request that failed.
    fn fail(
        &self,
        error: &ForwardError,
        filtering: &mut AppliedFilters<'_>,
        recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        self.log(error);
        let response = answer::own_to(error);
        let response = filtering.shown(response, self.route().transforms());
        finish(response, recorder, Some(error))
    }

    fn log(&self, error: &ForwardError) {
        let route = self.route().id();
        let kind = error.kind().as_str();
        let reason = error as &dyn std::error::Error;
        // Clients decide how many requests fail; what makes them fail is told where it changes.
        debug!(target: targets::REQUEST, %route, error = kind, reason, "the request failed");
    }

    pub(super) fn route(&self) -> &'a Route {
        self.generation.snapshot().route_at(self.index)
    }

    pub(super) fn state(&self) -> &'a RouteState {
        self.generation.route(self.index)
    }

    fn policies(&self) -> Option<&'a dyn RoutePolicies> {
        self.state().extensions()?.policies()
    }

    fn filters(&self) -> Option<&'a Filters> {
        self.state().extensions().and_then(RouteExtensions::filters)
    }
}

/// The response to a request that no route takes.
fn reject(unrouted: &Unrouted, mut recorder: OpenRecorder) -> Response<ProxyBody> {
    recorder.replied(Some(Cause::NoRoute));
    let response = match unrouted {
        Unrouted::NotFound => answer::own(StatusCode::NOT_FOUND, None),
        Unrouted::MethodNotAllowed(methods) => {
            let mut allowed: Vec<&str> = methods.iter().collect();
            allowed.sort_unstable();
            answer::own(StatusCode::METHOD_NOT_ALLOWED, Some(&allowed.join(", ")))
        }
    };
    finish(response, recorder, None)
}

/// The response that begins a tunnel. A task of its own carries the tunnel when the client has got the
/// response; it ends with the tunnel.
fn switch(
    mut response: Response<ProxyBody>,
    agreed: Agreed,
    mut recorder: OpenRecorder,
) -> Response<ProxyBody> {
    recorder.responded(response.status());
    response.extensions_mut().insert(recorder.info(None));
    recorder.tunnels();
    tokio::spawn(agreed.carry(recorder));
    response
}

/// Has a response tell what became of its request, and count it.
pub(super) fn finish(
    mut response: Response<ProxyBody>,
    mut recorder: OpenRecorder,
    error: Option<&ForwardError>,
) -> Response<ProxyBody> {
    let kind = error.map(ForwardError::kind);
    recorder.responded(response.status());
    let info = recorder.info(kind);
    put_in_place(response.extensions_mut(), info);
    response.body_mut().recorder(recorder, kind);
    response
}
