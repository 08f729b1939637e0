//! A request that goes through layers, and the rest of its route inside of them.

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use proxy_model::compiled::Route;
use tokio::time::timeout_at;
use tower_service::Service;
use tracing::debug;

use super::account::Account;
use super::body::ProxyBody;
use super::error::{ForwardError, ForwardErrorKind};
use super::head::HttpHead;
use super::info::ExchangeInfo;
use super::pipeline::{Routed, body_limit, finish};
use super::plan;
use super::response as answer;
use super::service::ResponseFuture;
use super::timeout::after;
use super::upgrade::Upgrade;
use crate::BoxError;
use crate::layer::{ProxyRequestBody, RouteContext, RouteFuture, RouteService};
use crate::observe::targets;
use crate::transform::apply_to_own_response;

/// A request and the layers of its route.
pub(super) struct Layered {
    context: RouteContext,
    service: RouteService,
}

impl Layered {
    pub(super) fn new(context: RouteContext, service: RouteService) -> Self {
        Self { context, service }
    }

    /// Has the request answered by the layers.
    pub(super) fn forward<B>(
        mut self,
        mut parts: Parts,
        body: B,
        upgrade: Option<Upgrade>,
        mut account: Box<Account>,
    ) -> ResponseFuture
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if let Err(error) = self.admit(&parts, upgrade.as_ref(), body.is_end_stream()) {
            return ResponseFuture::known(self.fail(&error, account));
        }
        account.layered(&self.context);
        if let Some(upgrade) = upgrade {
            // It was taken out to see what the client wants.
            upgrade.into_client().put_into(&mut parts);
        }
        parts.extensions.insert(self.context.clone());
        let limit = body_limit(self.context.service(), self.route());
        let body = ProxyRequestBody::of_client(body, limit);
        let answer = self.service.call(Request::from_parts(parts, body));
        ResponseFuture::awaited(async move {
            match self.answer(answer).await {
                Ok(response) => self.pass_on(response, account),
                Err(error) => self.fail(&error, account),
            }
        })
    }

    /// Whether the layers are to be asked at all.
    fn admit(
        &self,
        parts: &Parts,
        upgrade: Option<&Upgrade>,
        is_empty: bool,
    ) -> Result<(), ForwardError> {
        let route = self.route();
        let generation = self.context.generation();
        plan::check_refusal(route, generation.route(self.context.index()))?;
        let limit = body_limit(self.context.service(), route);
        let wish = upgrade.map(Upgrade::wish);
        plan::admit(&HttpHead::new(parts), wish, limit, is_empty)?;
        Ok(())
    }

    async fn answer(&self, answer: RouteFuture) -> Result<Response<ProxyBody>, ForwardError> {
        let answered = match self.route().timeout() {
            None => answer.await,
            Some(wait) => {
                let deadline = after(self.context.started(), wait);
                timeout_at(deadline, answer).await.map_err(|_| {
                    ForwardError::new(
                        ForwardErrorKind::RequestTimedOut,
                        StatusCode::GATEWAY_TIMEOUT,
                    )
                })?
            }
        };
        answered.map_err(failed)
    }

    /// The layers' response.
    fn pass_on(
        &self,
        mut response: Response<ProxyBody>,
        mut account: Box<Account>,
    ) -> Response<ProxyBody> {
        account.responded(response.status());
        let told = response.extensions().get::<ExchangeInfo>();
        let error = told.and_then(ExchangeInfo::error);
        if error.is_some() {
            account.failed_in_attempt();
        }
        let info = account.info(error);
        match response.extensions_mut().get_mut::<ExchangeInfo>() {
            Some(of_attempt) => *of_attempt = info,
            None => {
                response.extensions_mut().insert(info);
            }
        }
        if let Some(account) = self.context.attempts().count_tunnel(account) {
            response.body_mut().account(account, error);
        }
        response
    }

    /// The response to a request that the layers did not answer.
    fn fail(&self, error: &ForwardError, account: Box<Account>) -> Response<ProxyBody> {
        let route = self.route();
        let kind = error.kind().as_str();
        let reason = error as &dyn std::error::Error;
        debug!(target: targets::REQUEST, route = %route.id(), error = kind, reason, "the request failed");
        let mut response = answer::own(error.status(), None);
        apply_to_own_response(route.transforms(), error.status(), response.headers_mut());
        finish(response, account, Some(error))
    }

    fn route(&self) -> &Route {
        self.context.route()
    }
}

/// What an error of a layer means.
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
    if let Some(broken) = error.downcast_ref::<super::BodyError>() {
        said = (broken.kind(), StatusCode::BAD_GATEWAY);
    }
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<ForwardError>() {
            said = (error.kind(), error.status());
            break;
        }
        if let Some(broken) = error.downcast_ref::<super::BodyError>() {
            said = (broken.kind(), StatusCode::BAD_GATEWAY);
            break;
        }
        cause = error.source();
    }
    ForwardError::new(said.0, said.1).with_source(error)
}

/// What is inside of all layers: the rest of the route that a request has with it.
pub(crate) fn rest_of_route() -> RouteService {
    RouteService::from_fn(forward_rest)
}

async fn forward_rest(request: Request<ProxyRequestBody>) -> Response<ProxyBody> {
    let (mut parts, body) = request.into_parts();
    let Some(context) = parts.extensions.remove::<RouteContext>() else {
        debug!(target: targets::REQUEST, "a layer has lost the request's extensions");
        return answer::own(StatusCode::INTERNAL_SERVER_ERROR, None);
    };
    let mut account = Account::of_attempt(&context, parts.method.clone(), parts.version);
    let state = context.generation().route(context.index());
    account.routed(context.route().id(), state.metrics());
    let upgrade = Upgrade::take_from(&mut parts);
    let routed = Routed {
        service: context.service(),
        generation: context.generation(),
        index: context.index(),
        head: HttpHead::new(&parts),
        started: context.started(),
    };
    routed.respond(body, upgrade, account).await
}
