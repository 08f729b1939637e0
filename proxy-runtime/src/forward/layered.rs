//! A request that goes through layers, and the rest of its route inside of them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::debug;

use super::exchange_plan::ExchangePlan;
use super::pipeline::{self, Routed};
use super::plan;
use super::response as answer;
use super::service::ResponseFuture;
use super::upgrade::Upgrade;
use crate::BoxError;
use crate::error::{Cause, ForwardError, ForwardErrorKind};
use crate::exchange::body_limit;
use crate::filter::ReplyCause;
use crate::forward::RouteContext;
use crate::head::{ErrorBodies, HttpHead, ResponseNotes, put_in_place};
use crate::layer::{ProxyRequestBody, RouteFuture, RouteService};
use crate::observe::targets;
use crate::progress::{End, Stage, after};
use crate::response::ExchangeInfo;
use crate::response::ExchangeRecorder;
use crate::response::OpenRecorder;
use crate::response::ProxyBody;

/// Checks whether the layers of a route may be called.
///
/// # Errors
///
/// The route or the request is rejected.
pub(super) fn validate(
    context: &RouteContext,
    parts: &Parts,
    upgrade: Option<&Upgrade>,
    is_empty: bool,
) -> Result<(), ForwardError> {
    let route = context.route();
    plan::check_route(route, context.route_state(), parts.uri.path())?;
    let limit = body_limit(context.service().shared().max_request_body(), route);
    plan::validate(
        &HttpHead::new(parts),
        upgrade.map(Upgrade::wish),
        limit,
        is_empty,
    )?;
    Ok(())
}

/// The response of a route's layers to come.
pub(super) struct Layered {
    context: RouteContext,
    // Dropped when it is there, or when it is given up.
    answer: Option<RouteFuture>,
    recorder: Option<OpenRecorder>,
    /// The time at which the request times out. `None` for a route without a timeout.
    deadline: Option<Instant>,
    expiry: Option<Pin<Box<Sleep>>>,
}

impl Layered {
    /// Forwards a request that passed [`validate`] through the layers.
    pub(super) fn forward<B>(
        context: RouteContext,
        layers: &RouteService,
        mut parts: Parts,
        body: B,
        upgrade: Option<Box<Upgrade>>,
        mut recorder: OpenRecorder,
    ) -> ResponseFuture
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        recorder.layered(context.attempts());
        if let Some(upgrade) = upgrade {
            // It was taken out to see what the client wants.
            upgrade.into_client().put_into(&mut parts);
        }
        put_in_place(&mut parts.extensions, context.clone());
        let limit = body_limit(
            context.service().shared().max_request_body(),
            context.route(),
        );
        let body = ProxyRequestBody::of_client(body, limit);
        let answer = layers.answer(Request::from_parts(parts, body));
        let timeout = context.route().timeout();
        let deadline = timeout.map(|wait| after(context.started(), wait));
        ResponseFuture::layered(Self {
            context,
            answer: Some(answer),
            recorder: Some(recorder),
            deadline,
            expiry: None,
        })
    }

    /// Returns the response to a request that does not reach the layers.
    pub(super) fn reject(
        context: &RouteContext,
        error: &ForwardError,
        recorder: OpenRecorder,
    ) -> ResponseFuture {
        ResponseFuture::known(fail(context, error, recorder))
    }

    /// Ready when the time of the request is over.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        // Made where it is polled: there is a runtime then.
        let expiry = self
            .expiry
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        expiry.as_mut().poll(cx)
    }

    /// Ends the call of the layers, and returns the recorder of the request.
    fn end(&mut self) -> OpenRecorder {
        self.answer = None;
        let recorder = self.recorder.take();
        recorder.expect("a finished future is not polled")
    }

    /// The layers' response.
    fn pass_on(&self, response: &mut Response<ProxyBody>, mut recorder: OpenRecorder) {
        recorder.responded(response.status());
        let told = response.extensions().get::<ExchangeInfo>();
        let error = told.and_then(|info| info.error);
        if let Some(cause) = told.and_then(|info| info.reply) {
            recorder.replied_in_attempt(cause);
        }
        if told.is_none() {
            let said = response.extensions().get::<ReplyCause>();
            recorder.replied(Cause::of_reply(response.status(), said.map(|said| said.0)));
        }
        if error.is_some() {
            recorder.failed_in_attempt();
        }
        let info = recorder.info(error);
        match response.extensions_mut().get_mut::<ExchangeInfo>() {
            Some(of_attempt) => *of_attempt = info,
            None => {
                response.extensions_mut().insert(info);
            }
        }
        if let Some(recorder) = self.context.attempts().count_tunnel(recorder) {
            response.body_mut().recorder(recorder, error);
        }
    }
}

impl Future for Layered {
    type Output = Response<ProxyBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<ProxyBody>> {
        let this = self.get_mut();
        // Each move of a response costs as much as all the rest here.
        // A response that is there counts, even at the deadline.
        let error = match this.answer.as_mut().map(|answer| Pin::new(answer).poll(cx)) {
            Some(Poll::Ready(Ok(mut response))) => {
                let recorder = this.end();
                this.pass_on(&mut response, recorder);
                return Poll::Ready(response);
            }
            Some(Poll::Ready(Err(error))) => failed(error),
            Some(Poll::Pending) | None => {
                ready!(this.poll_expired(cx));
                End::Deadline.error(Stage::Done)
            }
        };
        let recorder = this.end();
        Poll::Ready(fail(&this.context, &error, recorder))
    }
}

/// The response to a request that the layers did not answer.
fn fail(
    context: &RouteContext,
    error: &ForwardError,
    recorder: OpenRecorder,
) -> Response<ProxyBody> {
    pipeline::fail(
        (context.route_state(), &context.errors()),
        error,
        ResponseNotes::default(),
        recorder,
    )
}

/// Returns the forwarding error for an error of a layer.
fn failed(error: BoxError) -> ForwardError {
    let error = match error.downcast::<ForwardError>() {
        Ok(said) => return *said,
        Err(error) => error,
    };
    let mut cause = error.source();
    let mut said = (
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    );
    if let Some(broken) = error.downcast_ref::<crate::response::BodyError>() {
        said = (broken.kind(), StatusCode::BAD_GATEWAY);
    }
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<ForwardError>() {
            said = (error.kind(), error.status());
            break;
        }
        if let Some(broken) = error.downcast_ref::<crate::response::BodyError>() {
            said = (broken.kind(), StatusCode::BAD_GATEWAY);
            break;
        }
        cause = error.source();
    }
    ForwardError::new(said.0, said.1).with_source(error)
}

/// Returns the innermost service of all layers: it forwards a request by the route in its extensions.
pub(crate) fn rest_of_route() -> RouteService {
    RouteService::from_fn(forward_rest)
}

fn forward_rest(request: Request<ProxyRequestBody>) -> RouteFuture {
    let (mut parts, body) = request.into_parts();
    let context = parts.extensions.get_mut::<RouteContext>();
    let Some(context) = context.and_then(RouteContext::take) else {
        debug!(target: targets::REQUEST, "a layer has lost the request's extensions");
        let answer = || async {
            answer::own(
                StatusCode::INTERNAL_SERVER_ERROR,
                None,
                &ErrorBodies::default(),
            )
        };
        return RouteFuture::unfailing(answer);
    };
    let mut head = HttpHead::new(&parts);
    let mut upgrade = None;
    if head.may_switch() {
        upgrade = Upgrade::take_from(&mut parts);
        head = HttpHead::new(&parts);
    }
    let classes = head.classes();
    let route = (context.index(), context.assigned());
    let asked = (body.is_end_stream(), upgrade);
    match ExchangePlan::of(context.service(), context.generation(), route, &head, asked) {
        Ok(plan) => {
            let origin = context.into_origin();
            RouteFuture::exchange(plan.begin(origin, parts, body))
        }
        Err(rejected) => RouteFuture::unfailing(move || async move {
            let (attempts, metrics) = (context.attempts(), context.service().shared().metrics());
            let recorder =
                ExchangeRecorder::of_attempt(attempts, metrics, &parts.method, parts.version);
            let head = HttpHead::of_classes(&parts, classes);
            let routed = Routed {
                generation: context.generation(),
                index: context.index(),
                head: &head,
                errors: &context.errors(),
            };
            routed.reject(rejected, ResponseNotes::default(), recorder)
        }),
    }
}
