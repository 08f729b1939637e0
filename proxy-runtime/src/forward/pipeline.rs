//! A request from its head to the head of its response.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response, StatusCode, response};
use http_body::Body;
use proxy_model::compiled::{Route, RouteIndex};
use tokio::time::Instant;
use tracing::debug;

#[cfg(feature = "server")]
use super::direct::Direct;
use super::filtering::Filtering;
use super::handshake::Handshake;
use super::in_place::put_in_place;
use super::layered::{Layered, admit};
use super::plan::{self, Unrouted};
use super::response as answer;
use super::send::{Answered, Sending};
use super::service::ResponseFuture;
#[cfg(feature = "server")]
use super::spare::{self, Kind};
use super::upgrade::{Agreed, Upgrade};
use crate::BoxError;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::exchange::body_limit;
use crate::extensions::RouteExtensions;
use crate::filter::{FilterContext, Filters};
use crate::forward::RouteContext;
use crate::head::HeadEdits;
use crate::head::HttpHead;
use crate::observe::targets;
#[cfg(feature = "server")]
use crate::progress::UptakeLimit;
use crate::progress::{End, Stage};
use crate::proxy::FoundRoute;
use crate::proxy::ProxyService;
use crate::response::Account;
use crate::response::Download;
use crate::response::OpenAccount;
use crate::response::ProxyBody;
use crate::response::TrailerRules;
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
    let mut account = Account::open(shared.metrics(), &parts.method, parts.version);
    let is_read_here = found.is_some();
    let (FoundRoute { generation, index }, classes, upgrade) = match found {
        Some(found) => (found, None, None),
        None => {
            let generation = shared.load_full();
            let upgrade = Upgrade::take_from(&mut parts);
            let head = HttpHead::new(&parts);
            let index = match plan::find_route(&generation, &head) {
                Ok(index) => index,
                Err(unrouted) => return ResponseFuture::known(refuse(&unrouted, account)),
            };
            let classes = head.classes();
            (FoundRoute { generation, index }, Some(classes), upgrade)
        }
    };
    let route = generation.snapshot().route_at(index);
    let state = generation.route(index);
    account.routed(route.id(), state.metrics());
    let extensions = state.extensions();
    if let Some(layers) = extensions.and_then(RouteExtensions::layers) {
        let context = RouteContext::new(service, &generation, index, account.started());
        let is_empty = body.is_end_stream();
        // What has no body was checked as far as it can be where it was read.
        let admitted = match is_read_here && is_empty {
            true => plan::check_route(route, state, parts.uri.path()),
            false => admit(&context, &parts, upgrade.as_deref(), is_empty),
        };
        if let Err(error) = admitted {
            return Layered::refuse(&context, &error, account);
        }
        return Layered::forward(context, layers.service(), parts, body, upgrade, account);
    }
    let service = service.clone();
    let started = account.started();
    ResponseFuture::awaited(move || async move {
        let head = match classes {
            Some(classes) => HttpHead::of_classes(&parts, classes),
            None => HttpHead::new(&parts),
        };
        let routed = Routed {
            service: &service,
            generation: &generation,
            index,
            head: &head,
            started,
        };
        let response = routed.respond(body, upgrade, account).await;
        #[cfg(feature = "server")]
        spare::give_back(Kind::Request, parts.headers, parts.extensions);
        response
    })
}

/// A request and the route that takes it.
#[derive(Clone, Copy)]
pub(super) struct Routed<'a> {
    pub(super) service: &'a ProxyService,
    pub(super) generation: &'a Arc<Generation>,
    pub(super) index: RouteIndex,
    pub(super) head: &'a HttpHead<'a>,
    /// When the request began.
    pub(super) started: Instant,
}

/// What is said to a request.
enum Outcome {
    /// The response of a destination.
    Response(Response<ProxyBody>),
    /// A destination has agreed to speak another protocol.
    Switch(response::Parts, Box<Agreed>),
    /// The response of a filter.
    Reply(Box<Response<ProxyBody>>),
}

impl<'a> Routed<'a> {
    /// Forwards the request to where the route leads.
    pub(super) async fn respond<B>(
        &self,
        body: B,
        upgrade: Option<Box<Upgrade>>,
        mut account: OpenAccount,
    ) -> Response<ProxyBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let sending = match self.sending(upgrade.as_deref(), body.is_end_stream(), &mut account) {
            Ok(sending) => sending,
            Err(error) => return self.fail(&error, &mut Filtering::default(), account),
        };
        #[cfg(feature = "server")]
        if upgrade.is_none()
            && self.filters().is_none()
            && let Some(direct) = Direct::of(&sending, self.state().inner_plan())
        {
            let mut response = Response::new(ProxyBody::empty());
            return match direct.run(body, &mut account, &mut response).await {
                Ok(()) => {
                    tell(&mut response, account, None);
                    response
                }
                Err(error) => self.fail(&error, &mut Filtering::default(), account),
            };
        }
        // Boxed, so that the others have no room for it.
        Box::pin(self.respond_to_any(sending, body, upgrade, account)).await
    }

    /// Forwards a request of any kind to a destination of any kind.
    async fn respond_to_any<B>(
        &self,
        sending: Sending<'a>,
        body: B,
        upgrade: Option<Box<Upgrade>>,
        mut account: OpenAccount,
    ) -> Response<ProxyBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut filtering = Filtering::default();
        let run = self.run(sending, body, upgrade, &mut account, &mut filtering);
        match run.await {
            Ok(Outcome::Response(response)) => finish(response, account, None),
            Ok(Outcome::Switch(head, agreed)) => switch(head, *agreed, account),
            Ok(Outcome::Reply(response)) => {
                let response = filtering.shown(*response, self.route().transforms());
                finish(response, account, None)
            }
            Err(error) => self.fail(&error, &mut filtering, account),
        }
    }

    /// What is to be sent to which cluster, if no filter has a say and no switch is asked for.
    fn sending(
        &self,
        upgrade: Option<&Upgrade>,
        is_empty: bool,
        account: &mut Account,
    ) -> Result<Sending<'a>, ForwardError> {
        let route = self.route();
        let random = self.service.shared().random();
        let index = plan::find_cluster(route, self.state(), self.head, random)?;
        let cluster = self.generation.snapshot().cluster_at(index);
        let state = self.generation.cluster(index);
        account.assigned(cluster.id(), state.live());
        let body_limit = body_limit(self.service.shared().max_request_body(), route);
        let body_kind = plan::admit(self.head, upgrade.map(Upgrade::wish), body_limit, is_empty)?;
        Ok(Sending {
            head: self.head,
            route,
            cluster,
            state,
            pool: self.service.pool(),
            handshake: &Handshake::None,
            loop_guard: self.state().loop_guard(),
            body_kind,
            body_limit,
            started: self.started,
        })
    }

    async fn run<B>(
        &self,
        sending: Sending<'a>,
        body: B,
        upgrade: Option<Box<Upgrade>>,
        account: &mut Account,
        filtering: &mut Filtering<'a>,
    ) -> Result<Outcome, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut edits = HeadEdits::default();
        if let Some(filters) = self.filters() {
            let connection = self.head.connection();
            let context = FilterContext::new(sending.route, sending.cluster, connection);
            let reply = filtering.ask(filters, context, *self.head, &mut edits)?;
            if let Some(reply) = reply {
                return Ok(Outcome::Reply(Box::new(
                    reply.into_response().map(ProxyBody::text),
                )));
            }
        }
        let wish = upgrade.as_deref().map(Upgrade::wish);
        let upstream = sending.cluster.upstream();
        let handshake = Handshake::new(wish, self.head.headers(), upstream)?;
        let head = self.head.with_edits(&edits);
        let sending = Sending {
            head: &head,
            handshake: &handshake,
            ..sending
        };
        self.send(&sending, body, upgrade, account, filtering).await
    }

    /// Sends the request, and makes the client's response of what is answered.
    async fn send<B>(
        &self,
        sending: &Sending<'_>,
        body: B,
        upgrade: Option<Box<Upgrade>>,
        account: &mut Account,
        filtering: &mut Filtering<'a>,
    ) -> Result<Outcome, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let handshake = sending.handshake;
        let answered = sending.run(body, account).await?;
        let status = answered.response.status();
        account.answered(status, Instant::now(), answered.lease.peer());
        #[cfg(feature = "server")]
        account.limit_uptake(UptakeLimit::of(
            sending.cluster.upstream().activity_timeout(),
            &answered.progress,
            answered.response.body().behind(),
        ));
        if handshake.is_agreed(status) {
            return self.switched(answered, upgrade, handshake, filtering);
        }
        if status == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it, so nobody knows what follows.
            return Err(bad_gateway(ForwardErrorKind::Request));
        }
        #[cfg(feature = "http2")]
        if handshake.is_mistakable(status) {
            return Err(bad_gateway(ForwardErrorKind::ResponseHeaders));
        }
        if !answer::is_understood(answered.response.headers()) {
            return Err(End::Unsayable.error(Stage::Done));
        }
        self.answered(answered, filtering).await
    }

    /// The destination has answered with a response, of which the start of the body may have come as well.
    async fn answered(
        &self,
        answered: Answered,
        filtering: &mut Filtering<'_>,
    ) -> Result<Outcome, ForwardError> {
        let (mut head, incoming) = answered.response.into_parts();
        let promised = answer::promised_length(self.head.method_value(), &head);
        let trailers = TrailerRules::new(self.state().trailers(), head.status);
        let Answered {
            progress, lease, ..
        } = answered;
        let download = Download::new(incoming, progress, lease, promised, trailers);
        let mut download = Box::new(download);
        poll_fn(|cx| Poll::Ready(download.begin(cx))).await?;
        let edits = filtering.show(&head)?;
        answer::pass_on(&mut head, &edits, self.route().transforms());
        let body = ProxyBody::download(download);
        Ok(Outcome::Response(Response::from_parts(head, body)))
    }

    /// The destination has agreed to speak another protocol.
    fn switched(
        &self,
        mut answered: Answered,
        upgrade: Option<Box<Upgrade>>,
        handshake: &Handshake,
        filtering: &mut Filtering<'_>,
    ) -> Result<Outcome, ForwardError> {
        let Some(destination) = answered.lease.switch(&mut answered.response) else {
            // To be said before the client hears of a tunnel.
            return Err(bad_gateway(ForwardErrorKind::ResponseHeaders).with_source(NoTunnel));
        };
        let (mut head, _) = answered.response.into_parts();
        let client = handshake.agree(upgrade, &mut head.headers)?;
        let edits = filtering.show(&head)?;
        answer::pass_on(&mut head, &edits, self.route().transforms());
        handshake.announce(&mut head);
        Ok(Outcome::Switch(
            head,
            Box::new(Agreed {
                client,
                destination,
                lease: answered.lease,
                progress: answered.progress,
            }),
        ))
    }

    /// The response to a request that failed.
    fn fail(
        &self,
        error: &ForwardError,
        filtering: &mut Filtering<'_>,
        account: OpenAccount,
    ) -> Response<ProxyBody> {
        self.log(error);
        let response = answer::own_to(error);
        let response = filtering.shown(response, self.route().transforms());
        finish(response, account, Some(error))
    }

    fn log(&self, error: &ForwardError) {
        let route = self.route().id();
        let kind = error.kind().as_str();
        let reason = error as &dyn std::error::Error;
        // Clients decide how many requests fail; what makes them fail is told where it changes.
        debug!(target: targets::REQUEST, %route, error = kind, reason, "the request failed");
    }

    fn route(&self) -> &'a Route {
        self.generation.snapshot().route_at(self.index)
    }

    fn state(&self) -> &'a RouteState {
        self.generation.route(self.index)
    }

    fn filters(&self) -> Option<&'a Filters> {
        self.state().extensions().and_then(RouteExtensions::filters)
    }
}

/// The destination agreed, and there is no tunnel all the same.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the destination agreed to a tunnel with a 2xx other than 200, which none can be made of")]
struct NoTunnel;

fn bad_gateway(kind: ForwardErrorKind) -> ForwardError {
    ForwardError::new(kind, StatusCode::BAD_GATEWAY)
}

/// The response to a request that no route takes.
fn refuse(unrouted: &Unrouted, account: OpenAccount) -> Response<ProxyBody> {
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

/// The response that begins a tunnel. A task of its own carries the tunnel when the client has got the response; it ends
/// with the tunnel.
fn switch(head: response::Parts, agreed: Agreed, mut account: OpenAccount) -> Response<ProxyBody> {
    let mut response = Response::from_parts(head, ProxyBody::empty());
    account.responded(response.status());
    response.extensions_mut().insert(account.info(None));
    account.tunnels();
    tokio::spawn(agreed.carry(account));
    response
}

/// A response of the proxy's own.
pub(super) fn finish(
    mut response: Response<ProxyBody>,
    account: OpenAccount,
    error: Option<&ForwardError>,
) -> Response<ProxyBody> {
    tell(&mut response, account, error);
    response
}

/// Has a response tell what became of its request, and count it.
fn tell(
    response: &mut Response<ProxyBody>,
    mut account: OpenAccount,
    error: Option<&ForwardError>,
) {
    let kind = error.map(ForwardError::kind);
    account.responded(response.status());
    let info = account.info(kind);
    put_in_place(response.extensions_mut(), info);
    response.body_mut().account(account, kind);
}
