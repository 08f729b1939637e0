//! A request from its head to the head of its response.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, response};
use http_body::Body;
use proxy_model::compiled::{BodyLimit, Route, RouteIndex};
use tokio::time::Instant;
use tracing::debug;

use super::account::Account;
use super::body::ProxyBody;
use super::download::Download;
use super::error::{ForwardError, ForwardErrorKind};
use super::handshake::Handshake;
use super::head::HttpHead;
use super::plan::{self, Unrouted};
use super::response::{self as answer, TrailerRules};
use super::send::{Answered, Sending};
use super::upgrade::{Agreed, Upgrade};
use crate::BoxError;
use crate::observe::targets;
use crate::proxy::ProxyService;
use crate::state::Generation;
use crate::transform::apply_to_own_response;

/// Forwards one request. Whatever goes wrong becomes a response.
pub(super) async fn forward<B>(service: &ProxyService, request: Request<B>) -> Response<ProxyBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let shared = service.shared();
    let (mut parts, body) = request.into_parts();
    let mut account = Account::new(shared, parts.method.clone(), parts.version);
    let generation = shared.load_full();
    let upgrade = Upgrade::take_from(&mut parts);
    let head = HttpHead::new(&parts);
    let route = match plan::find_route(&generation, &head) {
        Ok(route) => route,
        Err(unrouted) => return refuse(&unrouted, account),
    };
    let routed = Routed {
        service,
        generation: &generation,
        index: route,
        head,
    };
    match routed.run(body, upgrade, &mut account).await {
        Ok(Outcome::Response(head, download)) => respond(head, *download, account),
        Ok(Outcome::Switch(head, agreed)) => switch(head, *agreed, account),
        Err(error) => routed.fail(&error, account),
    }
}

/// A request and the route that takes it.
#[derive(Clone, Copy)]
struct Routed<'a> {
    service: &'a ProxyService,
    generation: &'a Arc<Generation>,
    index: RouteIndex,
    head: HttpHead<'a>,
}

/// What a destination has answered.
enum Outcome {
    Response(response::Parts, Box<Download>),
    Switch(response::Parts, Box<Agreed>),
}

impl Routed<'_> {
    async fn run<B>(
        &self,
        body: B,
        upgrade: Option<Upgrade>,
        account: &mut Account,
    ) -> Result<Outcome, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let started = Instant::now();
        let route = self.route();
        let route_state = self.generation.route(self.index);
        account.routed(route.id(), route_state.metrics());
        let random = self.service.shared().random();
        let index = plan::find_cluster(route, route_state, &self.head, random)?;
        let cluster = self.generation.snapshot().cluster_at(index);
        let state = self.generation.cluster(index);
        account.assigned(cluster.id(), state.live());
        let wish = upgrade.as_ref().map(Upgrade::wish);
        let body_limit = self.body_limit();
        let framing = plan::admit(&self.head, wish, body_limit, body.is_end_stream())?;
        let handshake = Handshake::new(wish, self.head.headers(), cluster.upstream())?;
        let sending = Sending {
            head: self.head,
            route,
            cluster,
            state,
            pool: self.service.pool(),
            handshake: &handshake,
            framing,
            body_limit,
            started,
        };
        let answered = sending.run(body, account).await?;
        let status = answered.response.status();
        account.answered(status, answered.picked_at, answered.lease.peer());
        if handshake.is_agreed(status) {
            return self.switched(answered, upgrade, &handshake);
        }
        if status == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it, so nobody knows what follows.
            return Err(bad_gateway(ForwardErrorKind::Request));
        }
        if !answer::is_understood(answered.response.headers()) {
            return Err(bad_gateway(ForwardErrorKind::ResponseHeaders));
        }
        self.answered(answered).await
    }

    /// The destination has answered with a response, of which the start of the body may have come as well.
    async fn answered(&self, answered: Answered) -> Result<Outcome, ForwardError> {
        let (mut head, incoming) = answered.response.into_parts();
        let promised = answer::promised_length(self.head.method_value(), &head);
        let trailers = TrailerRules::new(self.generation, self.index, head.status);
        let Answered {
            exchange, lease, ..
        } = answered;
        let mut download = Download::new(incoming, exchange, lease, promised, trailers);
        download.begin().await?;
        answer::pass_on(&mut head, self.route().transforms());
        Ok(Outcome::Response(head, Box::new(download)))
    }

    /// The destination has agreed to speak another protocol.
    fn switched(
        &self,
        mut answered: Answered,
        upgrade: Option<Upgrade>,
        handshake: &Handshake,
    ) -> Result<Outcome, ForwardError> {
        let Some(destination) = answered.lease.switch(&mut answered.response) else {
            return Err(bad_gateway(ForwardErrorKind::Request));
        };
        let (mut head, _) = answered.response.into_parts();
        let client = handshake.agree(upgrade, &mut head.headers)?;
        answer::pass_on(&mut head, self.route().transforms());
        handshake.announce(&mut head);
        Ok(Outcome::Switch(
            head,
            Box::new(Agreed {
                client,
                destination,
                lease: answered.lease,
                exchange: answered.exchange,
            }),
        ))
    }

    /// The response to a request that could not be forwarded.
    fn fail(&self, error: &ForwardError, account: Box<Account>) -> Response<ProxyBody> {
        self.log(error);
        let status = error.status();
        let mut response = answer::own(status, None);
        apply_to_own_response(self.route().transforms(), status, response.headers_mut());
        finish(response, account, Some(error))
    }

    fn log(&self, error: &ForwardError) {
        let route = self.route().id();
        let kind = error.kind().as_str();
        let reason = error as &dyn std::error::Error;
        // Clients decide how many requests fail; what makes them fail is told where it changes.
        debug!(target: targets::REQUEST, %route, error = kind, reason, "the request failed");
    }

    /// The largest body that the request may have: the route says, else the proxy.
    fn body_limit(&self) -> Option<u64> {
        match self.route().body_limit() {
            BodyLimit::Server => self.service.shared().max_request_body(),
            BodyLimit::Unlimited => None,
            BodyLimit::Bytes(limit) => Some(limit),
        }
    }

    fn route(&self) -> &Route {
        self.generation.snapshot().route_at(self.index)
    }
}

fn bad_gateway(kind: ForwardErrorKind) -> ForwardError {
    ForwardError::new(kind, StatusCode::BAD_GATEWAY)
}

/// The response to a request that no route takes.
fn refuse(unrouted: &Unrouted, account: Box<Account>) -> Response<ProxyBody> {
    let response = match unrouted {
        Unrouted::NotFound => answer::own(StatusCode::NOT_FOUND, None),
        Unrouted::MethodNotAllowed(methods) => {
            let mut allowed: Vec<&str> = methods.iter().collect();
            allowed.sort_unstable();
            answer::own(StatusCode::METHOD_NOT_ALLOWED, Some(&allowed.join(", ")))
        }
    };
    finish(response, account, None)
}

/// The response of a destination.
fn respond(
    head: response::Parts,
    download: Download,
    mut account: Box<Account>,
) -> Response<ProxyBody> {
    let mut response = Response::from_parts(head, ProxyBody::download(download));
    account.responded(response.status());
    response.extensions_mut().insert(account.info(None));
    response.body_mut().account(account, None);
    response
}

/// The response that begins a tunnel. A task of its own carries the tunnel when the client has got the response; it ends
/// with the tunnel.
fn switch(head: response::Parts, agreed: Agreed, mut account: Box<Account>) -> Response<ProxyBody> {
    let mut response = Response::from_parts(head, ProxyBody::empty());
    account.responded(response.status());
    response.extensions_mut().insert(account.info(None));
    tokio::spawn(agreed.carry(account));
    response
}

/// A response of the proxy's own.
fn finish(
    mut response: Response<ProxyBody>,
    mut account: Box<Account>,
    error: Option<&ForwardError>,
) -> Response<ProxyBody> {
    let kind = error.map(ForwardError::kind);
    account.responded(response.status());
    response.extensions_mut().insert(account.info(kind));
    response.body_mut().account(account, kind);
    response
}
