//! A request from its head to the head of its response.

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use proxy_model::RequestHead;
use proxy_model::compiled::{Route, RouteIndex};
use tracing::debug;

use super::exchange_plan::{ExchangePlan, Rejected, RequestOrigin};
use super::layered::{Layered, validate};
use super::plan::{self, Unrouted};
use super::recycled::{self, Kind};
use super::reply::reply;
use super::response::{self as answer, shown_response};
use super::service::ResponseFuture;
use super::upgrade::Upgrade;
use crate::BoxError;
use crate::connection::ConnectionInfo;
use crate::error::{Cause, ForwardError};
use crate::extensions::RouteExtensions;
use crate::forward::RouteContext;
use crate::head::{ErrorBodies, HeaderMutations, HttpHead, ResponseNotes, put_in_place};
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
    // Decided before the request is consumed.
    let tells_cause = service.shared().cause_header().is_some_and(|header| {
        let connection = request.extensions().get::<ConnectionInfo>();
        connection.is_some_and(|connection| header.is_for(*connection))
    });
    respond(service, request, found).telling(tells_cause)
}

fn respond<B>(
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
    let (FoundRoute { generation, index }, head, upgrade) = match found {
        Some(found) => (found, None, None),
        None => {
            let generation = shared.load_full();
            let upgrade = Upgrade::take_from(&mut parts);
            let head = HttpHead::new(&parts);
            let index = match plan::find_route(&generation, &head) {
                Ok(index) => index,
                Err(unrouted) => {
                    let errors = shared.errors(shared.error_form(&parts.headers));
                    return ResponseFuture::known(reject(&unrouted, &errors, open(&parts, None)));
                }
            };
            (FoundRoute { generation, index }, Some(head), upgrade)
        }
    };
    let route = generation.snapshot().route_at(index);
    let state = generation.route(index);
    let extensions = state.extensions();
    if let Some(layers) = extensions.and_then(RouteExtensions::layers) {
        let mut recorder = open(&parts, Some(route));
        recorder.routed(route.id(), state.metrics());
        let form = shared.error_form(&parts.headers);
        let context = RouteContext::new(service, &generation, (index, form), recorder.started());
        // Policies around layers reply in its words.
        let errors = shared.errors(form);
        if !errors.are_plain() {
            parts.extensions.insert(errors);
        }
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
    let head = head.unwrap_or_else(|| HttpHead::new(&parts));
    let classes = head.classes();
    let asked = (body.is_end_stream(), upgrade);
    let plan = ExchangePlan::of(service, &generation, (index, None), &head, asked);
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
    let mut recorder = open(&parts, Some(route));
    recorder.routed(route.id(), state.metrics());
    let errors = shared.errors(shared.error_form(&parts.headers));
    let routed = Routed {
        generation: &generation,
        index,
        head: &head,
        errors: &errors,
    };
    // Without policies the response is known at once, and no future is needed.
    if routed.policies().is_none() {
        let response = routed.reject(rejected, ResponseNotes::default(), recorder);
        recycled::release(Kind::Request, parts.headers, parts.extensions);
        return ResponseFuture::known(response);
    }
    // Policies are asked before, and may wait.
    ResponseFuture::awaited(move || async move {
        let head = HttpHead::of_classes(&parts, classes);
        let routed = Routed {
            generation: &generation,
            index,
            head: &head,
            errors: &errors,
        };
        let response = routed.respond(rejected, recorder).await;
        recycled::release(Kind::Request, parts.headers, parts.extensions);
        response
    })
}

/// A request that is rejected, and the route that takes it.
#[derive(Clone, Copy)]
pub(super) struct Routed<'a> {
    pub(super) generation: &'a Generation,
    pub(super) index: RouteIndex,
    pub(super) head: &'a HttpHead<'a>,
    /// The bodies of errors for the client.
    pub(super) errors: &'a ErrorBodies,
}

impl<'a> Routed<'a> {
    /// Rejects a request, once the route's policies let it pass.
    async fn respond(&self, rejected: Rejected, mut recorder: OpenRecorder) -> Response<ProxyBody> {
        let route = self.route();
        let mut edits = HeaderMutations::default();
        let Some(policies) = self.policies() else {
            return self.reject(rejected, ResponseNotes::default(), recorder);
        };
        // A route that rejects all its requests asks no policy about them.
        if let Err(error) = plan::check_route(route, self.state(), self.head.path()) {
            return fail(
                (self.state(), self.errors),
                &error,
                ResponseNotes::default(),
                recorder,
            );
        }
        let due = route.timeout().map(|wait| after(recorder.started(), wait));
        let judging = policy::judge_http(policies, route, self.head, &mut edits);
        // Boxed, so that the others have no room for it.
        let judged = Box::pin(within(due, judging)).await;
        let (notes, held) = (edits.take_notes(), edits.take_held());
        let mut response = match judged {
            Err(error) => fail((self.state(), self.errors), &error, notes, recorder),
            Ok(Some(reply)) => {
                recorder.replied(reply.cause());
                let response = reply.into_response(self.errors).map(ProxyBody::text);
                let response = shown_response(response, notes, self.state().inner_plan());
                finish(response, recorder, None)
            }
            Ok(None) => self.reject(rejected, notes, recorder),
        };
        if !held.is_empty() {
            response.body_mut().on_end(move |_| drop(held));
        }
        response
    }

    /// The response to a request that the exchange does not forward.
    #[cold]
    pub(super) fn reject(
        &self,
        rejected: Rejected,
        notes: ResponseNotes,
        mut recorder: OpenRecorder,
    ) -> Response<ProxyBody> {
        let Rejected { cluster, error } = rejected;
        // The error counts for the cluster that was chosen.
        if let Some(cluster) = cluster {
            let id = self.generation.snapshot().cluster_at(cluster).id();
            recorder.assigned(id, self.generation.cluster(cluster));
        }
        match error {
            Some(error) => fail((self.state(), self.errors), &error, notes, recorder),
            None => self.reply(notes, recorder),
        }
    }

    /// Answers a request of a route without a cluster.
    fn reply(&self, notes: ResponseNotes, recorder: OpenRecorder) -> Response<ProxyBody> {
        let route = self.route();
        if let Err(error) = plan::check_route(route, self.state(), self.head.path()) {
            return fail((self.state(), self.errors), &error, notes, recorder);
        }
        let response = match reply(route, self.head) {
            Ok(Some(response)) => response,
            // The route leads to no cluster.
            Ok(None) => answer::own(StatusCode::SERVICE_UNAVAILABLE, None, self.errors),
            Err(error) => return fail((self.state(), self.errors), &error, notes, recorder),
        };
        let response = shown_response(response, notes, self.state().inner_plan());
        finish(response, recorder, None)
    }

    fn route(&self) -> &'a Route {
        self.generation.snapshot().route_at(self.index)
    }

    fn state(&self) -> &'a RouteState {
        self.generation.route(self.index)
    }

    fn policies(&self) -> Option<&'a dyn RoutePolicies> {
        self.state().extensions()?.policies()
    }
}

/// The response to a request that no route takes.
fn reject(
    unrouted: &Unrouted,
    errors: &ErrorBodies,
    mut recorder: OpenRecorder,
) -> Response<ProxyBody> {
    recorder.replied(Some(Cause::NoRoute));
    let response = match unrouted {
        Unrouted::NotFound => answer::own(StatusCode::NOT_FOUND, None, errors),
        Unrouted::MethodNotAllowed(methods) => {
            // RFC 9110 section 15.5.6: a 405 names the methods that are allowed.
            let mut allowed: Vec<&str> = methods.iter().collect();
            allowed.sort_unstable();
            answer::own(
                StatusCode::METHOD_NOT_ALLOWED,
                Some(&allowed.join(", ")),
                errors,
            )
        }
    };
    finish(response, recorder, None)
}

/// The response to a request of a route that failed. `notes`: what was decided of the response with the request.
pub(super) fn fail(
    (route, errors): (&RouteState, &ErrorBodies),
    error: &ForwardError,
    notes: ResponseNotes,
    recorder: OpenRecorder,
) -> Response<ProxyBody> {
    let kind = error.kind().as_str();
    let reason = error as &dyn std::error::Error;
    // Clients decide how many requests fail; what makes them fail is told where it changes.
    debug!(target: targets::REQUEST, route = %route.id(), error = kind, reason, "the request failed");
    let response = answer::own_to(error, errors);
    let response = shown_response(response, notes, route.inner_plan());
    finish(response, recorder, Some(error))
}

/// Has a response tell what became of its request, and count it.
fn finish(
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
