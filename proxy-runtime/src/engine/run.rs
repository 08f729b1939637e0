//! From a request's head to the end of its response.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use http::{Method as HttpMethod, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::{BodyLimit, Cluster, ClusterIndex, RouteIndex};
use proxy_model::matching::Lookup;
use tokio::time::{Instant, timeout_at};

use super::answer::write_own;
use super::body::Body;
use super::exchange::{Exchange, Failure, Flow, Patience};
use super::outgoing::{Invalid, Outgoing};
use super::plan::HeadPlan;
use super::spare;
use super::tally::Tally;
use super::upload::{Broken, Stage};
use super::{Engine, Lane};
use crate::contain::contained_call;
use crate::forward::timeout::after;
use crate::forward::{ExchangeInfo, ForwardError, ForwardErrorKind, no_connection};
use crate::http1::{Asked, FieldClass, Framing, Method, RawRequest, RequestView, Version};
use crate::server::Outcome;
use crate::server::edge::Refusal;
use crate::server::http1::{Client, Transport};
use crate::server::metrics::WorkerMetrics;
use crate::state::{ClusterState, DestinationState, Generation, Picked};
use crate::stream::{poll_write_all, spare as buffers};
use crate::upstream::{Http1Connection, Lease, Protocols, Wanted};

/// How often a destination other than the one that failed is asked for.
const PICKS: usize = 4;

/// Forwards the request at the front of the client's input.
///
/// Cancel-safe: dropped, the request is cancelled at the destination, and the client's connection is of no further use.
pub(crate) async fn forward<T: Transport>(
    client: &mut Client<T>,
    request: &RawRequest,
    engine: &Engine,
) -> Lane {
    let generation = engine.current();
    // A program's own policy may panic, which ends one request and no more: over `http` types that is seen to.
    let Ok(Some((run, mut tally, connecting))) =
        contained_call(|| start(client, request, engine, &generation))
    else {
        return Lane::Typed;
    };
    let (mut link, since) = match connecting {
        Ok(link) => (link, tally.started()),
        // Boxed, since it is seldom needed.
        unconnected => match Box::pin(run.connect(unconnected, client, &mut tally)).await {
            Ok(link) => (link, Instant::now()),
            Err(Unconnected::Gone) => {
                tally.end(Some(ForwardErrorKind::RequestCanceled));
                return Lane::Gone;
            }
            Err(unconnected) => {
                let has_more = run.skip_request(client);
                let refusal = unconnected.refusal();
                return Box::pin(run.refuse(client, tally, refusal, has_more)).await;
            }
        },
    };
    tally.sent_to(run.destination(&link.picked));
    let mut flow = match run.begin(client, &mut link, since, run.head_due(&tally)) {
        Ok(flow) => flow,
        Err(refusal) => {
            // Nothing was sent over it.
            link.lease.give_back();
            drop(link.picked);
            return Box::pin(run.refuse(client, tally, refusal, true)).await;
        }
    };
    let failure = loop {
        let Some(connection) = link.lease.raw() else {
            // It speaks HTTP/2, though its cluster does not.
            break Some(Failure::UNSPOKEN);
        };
        // TLS takes bytes before it knows whether it can send them.
        let may_retry = connection.is_reused() && !connection.io.is_tls();
        let peer = connection.peer;
        let mut exchange = Exchange {
            client: &mut *client,
            flow: &mut flow,
            plan: run.plan(),
            io: &mut connection.io,
            input: &mut connection.input,
        };
        match poll_fn(|cx| exchange.poll_head(cx)).await {
            Ok(status) => {
                tally.answered(status, Instant::now());
                run.log(exchange.client, status, &tally, peer);
                break poll_fn(|cx| exchange.poll_body(cx)).await.err();
            }
            Err(Failure::Unsent) if may_retry => {
                let reconnecting = run.reconnect(link, flow.patience.head_due);
                // What is to come of the body is the upload's to read.
                let is_watched = !flow.upload.needs_more();
                match Box::pin(client.unless_gone(is_watched, reconnecting)).await {
                    Some(Ok(fresh)) => link = fresh,
                    None => {
                        tally.end(Some(ForwardErrorKind::RequestCanceled));
                        return Lane::Gone;
                    }
                    Some(Err(error)) => {
                        let has_more = flow.upload.stage() != Stage::Done;
                        let refusal = (error.kind(), error.status());
                        return Box::pin(run.refuse(client, tally, refusal, has_more)).await;
                    }
                }
                flow.again(run.asked());
                flow.patience.last = Instant::now();
            }
            Err(failed) => break Some(failed),
        }
    };
    let ended = run.settle(client, link, flow, failure.is_none());
    match failure {
        None => {
            tally.end(None);
            Lane::Served { keep: ended.keep }
        }
        Some(failure) => Box::pin(run.fail(client, tally, failure, ended)).await,
    }
}

/// Begins with a request, if it can be forwarded as bytes: finds its route, and an idle connection to a destination, which
/// nearly always there is. All that looks at the head is done here, without waiting for anything.
#[inline]
fn start<'a, T: Transport>(
    client: &Client<T>,
    request: &'a RawRequest,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Option<(Run<'a>, Tally<'a>, Result<Link, Unconnected>)> {
    let is_plain = request.version() == Version::Http11
        && !request.expects_continue()
        && !matches!(request.method(), Method::Connect | Method::Trace)
        && request.upgrade().is_none();
    if !is_plain {
        return None;
    }
    let view = view_of(client, request);
    let (route, cluster) = choose(generation, client, request, &view, engine)?;
    let run = Run {
        engine,
        generation,
        request,
        route,
        cluster,
    };
    let tally = run.tally(&view, Instant::now());
    let connecting = run.connect_now(client, &view);
    Some((run, tally, connecting))
}

/// The route and the cluster of a request that can be forwarded as bytes.
#[inline]
fn choose<T: Transport>(
    generation: &Generation,
    client: &Client<T>,
    request: &RawRequest,
    view: &RequestView<'_>,
    engine: &Engine,
) -> Option<(RouteIndex, ClusterIndex)> {
    let snapshot = generation.snapshot();
    let Lookup::Matched(index) = snapshot.table().find(snapshot.routes(), view) else {
        return None;
    };
    let state = generation.route(index);
    state.plan()?;
    if state.refusal().is_some() {
        return None;
    }
    let random = engine.service().shared().random();
    let cluster = state.choose(snapshot.route_at(index), view, random).ok()?;
    let fits = match request.framing() {
        Framing::Length(length) => length <= allowed(generation, index, client, engine),
        _ => true,
    };
    (fits && generation.cluster(cluster).speaks_http1()).then_some((index, cluster))
}

/// The most content that a request may have: the route says, else the proxy; and never more than the server allows.
#[inline]
fn allowed<T: Transport>(
    generation: &Generation,
    route: RouteIndex,
    client: &Client<T>,
    engine: &Engine,
) -> u64 {
    let most = match generation.snapshot().route_at(route).body_limit() {
        BodyLimit::Server => engine.service().shared().max_request_body(),
        BodyLimit::Unlimited => None,
        BodyLimit::Bytes(limit) => Some(limit),
    };
    let server = client.state.worker.limits.body_bytes;
    most.unwrap_or(u64::MAX).min(server.unwrap_or(u64::MAX))
}

#[inline]
fn view_of<'a, T: Transport>(client: &'a Client<T>, request: &'a RawRequest) -> RequestView<'a> {
    RequestView::new(
        client.input.filled(),
        request,
        &client.table,
        client.state.info.tls,
    )
}

/// A destination and a connection to it.
struct Link {
    picked: Picked,
    lease: Lease,
    /// The request's head for it, until it is sent.
    head: Result<Vec<u8>, Invalid>,
}

/// Why there is no connection.
enum Unconnected {
    /// None is open to what was picked, if anything was.
    Picked(Option<Picked>),
    Failed(ForwardError),
    /// The client has gone meanwhile.
    Gone,
}

impl Unconnected {
    fn refusal(&self) -> (ForwardErrorKind, StatusCode) {
        match self {
            Self::Picked(_) | Self::Gone => (
                ForwardErrorKind::NoAvailableDestinations,
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            Self::Failed(error) => (error.kind(), error.status()),
        }
    }
}

/// How an exchange left the client's connection.
#[derive(Clone, Copy)]
struct Ended {
    /// The next request may follow.
    keep: bool,
    /// The request was not read to its end.
    has_more: bool,
}

/// A request that is forwarded.
#[derive(Clone, Copy)]
struct Run<'a> {
    engine: &'a Engine,
    generation: &'a Generation,
    request: &'a RawRequest,
    route: RouteIndex,
    cluster: ClusterIndex,
}

impl<'a> Run<'a> {
    /// Counts what went through, and puts away what the next request can use.
    #[inline]
    fn settle<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut link: Link,
        mut flow: Box<Flow>,
        is_complete: bool,
    ) -> Ended {
        let is_clean = |connection: &mut Http1Connection| connection.input.is_empty();
        if is_complete && flow.is_reusable() && link.lease.raw().is_some_and(is_clean) {
            link.lease.give_back();
        }
        let (sent, received) = (flow.upload.sent, flow.download.received);
        let metrics = self.destination(&link.picked).metrics();
        if sent > 0 {
            metrics.bytes_sent.add(sent);
        }
        metrics.bytes_received.add(received);
        if let Some(exchange) = &mut client.exchange {
            exchange.received = sent;
            exchange.sent = received;
            if flow.download.is_done() {
                exchange.outcome = Outcome::Complete;
            }
        }
        let has_more = !flow.has_read_request();
        if has_more {
            client.state.unread.store(true, Relaxed);
        }
        let keep = !flow.is_last && !has_more;
        buffers::give_back(std::mem::take(&mut flow.upload.outgoing));
        spare::give_back(flow);
        Ended { keep, has_more }
    }

    /// Ends an exchange that did not come to its end.
    #[cold]
    async fn fail<T: Transport>(
        &self,
        client: &mut Client<T>,
        tally: Tally<'_>,
        failure: Failure,
        ended: Ended,
    ) -> Lane {
        let kind = match failure {
            Failure::Unsent => {
                let refusal = (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);
                return self.refuse(client, tally, refusal, ended.has_more).await;
            }
            Failure::Unanswered(kind, status) => {
                let refusal = (kind, status);
                return self.refuse(client, tally, refusal, ended.has_more).await;
            }
            Failure::Cut(kind) => {
                if let Some(exchange) = &mut client.exchange {
                    exchange.outcome = Outcome::Failed;
                    if let Some(draft) = &mut exchange.draft {
                        draft.failed(Some(kind));
                    }
                }
                kind
            }
            Failure::Gone(kind) => kind,
        };
        client.output.clear();
        tally.end(Some(kind));
        Lane::Gone
    }

    /// Consumes a request that is not sent, as far as it has come. Returns whether there is more of it.
    #[cold]
    fn skip_request<T: Transport>(&self, client: &mut Client<T>) -> bool {
        client.input.consume(self.request.head_length());
        let mut body = Body::new(self.request.framing());
        let limits = client.state.worker.limits.head();
        let followed = body.follow(client.input.filled(), &limits, &mut client.table);
        match followed {
            Ok(part) if body.has_ended() => {
                client.input.consume(part.bytes + part.trailers);
                false
            }
            Ok(_) | Err(_) => true,
        }
    }

    #[inline]
    fn log<T: Transport>(
        &self,
        client: &mut Client<T>,
        status: StatusCode,
        tally: &Tally<'_>,
        peer: SocketAddr,
    ) {
        if let Some(exchange) = &mut client.exchange
            && exchange.draft.is_some()
        {
            let info = self.info(tally, Some(peer));
            exchange.answered(status, Some(info));
        }
    }

    #[inline]
    fn tally(&self, view: &RequestView<'_>, started: Instant) -> Tally<'a> {
        Tally::new(
            self.engine.service().shared(),
            self.generation.route(self.route),
            self.state(),
            &method(self.request.method(), view),
            started,
        )
    }

    /// Makes the head for the destination.
    #[inline]
    fn write_head<T: Transport>(
        &self,
        client: &Client<T>,
        view: &RequestView<'_>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid> {
        let mut head = buffers::take(buffers::SMALL);
        let outgoing = Outgoing {
            buffer: client.input.filled(),
            request: self.request,
            table: &client.table,
            view,
            route: self.generation.snapshot().route_at(self.route),
            plan: self.plan(),
            destination: &self.cluster().destinations()[picked.index.0 as usize],
            remote: client.state.remote_value(),
        };
        outgoing.write(&mut head).map(|()| head)
    }

    /// Consumes the client's head, and looks at what came of the body.
    #[inline]
    fn begin<T: Transport>(
        &self,
        client: &mut Client<T>,
        link: &mut Link,
        since: Instant,
        head_due: Option<Instant>,
    ) -> Result<Box<Flow>, (ForwardErrorKind, StatusCode)> {
        let body = Body::new(self.request.framing());
        let is_grpc = !body.has_ended() && is_grpc(client);
        client.input.consume(self.request.head_length());
        let head = std::mem::replace(&mut link.head, Err(Invalid))
            .map_err(|Invalid| (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY))?;
        let patience = Patience {
            head_due,
            activity: self.cluster().upstream().activity_timeout(),
            last: since,
        };
        let mut flow = spare::take();
        flow.begin(head, body, self.asked(), patience);
        flow.is_last = !self.request.is_persistent();
        if flow.upload.needs_more() {
            self.begin_upload(client, &mut flow, is_grpc)?;
        }
        Ok(flow)
    }

    fn begin_upload<T: Transport>(
        &self,
        client: &mut Client<T>,
        flow: &mut Flow,
        is_grpc: bool,
    ) -> Result<(), (ForwardErrorKind, StatusCode)> {
        flow.upload
            .allow(allowed(self.generation, self.route, client, self.engine));
        let limits = &client.state.worker.limits;
        flow.limits = limits.head();
        let begun = flow
            .upload
            .begin(&client.input, &flow.limits, &mut client.table);
        begun.map_err(|broken| match broken {
            Broken::Client {
                status,
                is_malformed,
            } => {
                if is_malformed {
                    WorkerMetrics::add(&client.state.metrics().malformed);
                }
                (ForwardErrorKind::RequestBodyClient, status)
            }
            Broken::Destination { .. } => (
                ForwardErrorKind::RequestBodyDestination,
                StatusCode::BAD_GATEWAY,
            ),
        })?;
        if flow.upload.needs_more()
            && !is_grpc
            && let Some(rate) = limits.data_rate
        {
            flow.upload.pace(rate);
        }
        Ok(())
    }

    /// An idle connection to a destination, and the head for it.
    #[inline]
    fn connect_now<T: Transport>(
        &self,
        client: &Client<T>,
        view: &RequestView<'_>,
    ) -> Result<Link, Unconnected> {
        let Some(picked) = self.pick(view) else {
            return Err(Unconnected::Picked(None));
        };
        match self.engine.service().pool().ready(&self.wanted(&picked)) {
            Some(lease) => Ok(Link {
                head: self.write_head(client, view, &picked),
                picked,
                lease,
            }),
            None => Err(Unconnected::Picked(Some(picked))),
        }
    }

    /// A connection to the picked destination, or to another one if none can be opened there.
    async fn connect<T: Transport>(
        &self,
        connecting: Result<Link, Unconnected>,
        client: &mut Client<T>,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let due = self.head_due(tally);
        let picked = match connecting {
            Err(Unconnected::Picked(Some(picked))) => picked,
            ended => return ended,
        };
        let acquiring = self.acquire(&picked, false, due);
        let error = match client.unless_gone(true, acquiring).await {
            Some(Ok(lease)) => return Ok(self.link(client, picked, lease)),
            Some(Err(error)) => error,
            None => return Err(Unconnected::Gone),
        };
        tally.sent_to(self.destination(&picked));
        if !error.is_unsent() {
            return Err(Unconnected::Failed(error));
        }
        // The first one stays in flight meanwhile, so that policies that look at the load prefer another.
        let other = (0..PICKS)
            .map_while(|_| contained_call(|| self.pick(&view_of(client, self.request))).ok()?)
            .find(|other| other.index != picked.index);
        let Some(other) = other else {
            return Err(Unconnected::Failed(error));
        };
        tally.failed(error.kind());
        tally.picked_again();
        let acquiring = self.acquire(&other, false, due);
        match client.unless_gone(true, acquiring).await {
            Some(Ok(lease)) => Ok(self.link(client, other, lease)),
            Some(Err(error)) => {
                tally.sent_to(self.destination(&other));
                Err(Unconnected::Failed(error))
            }
            None => Err(Unconnected::Gone),
        }
    }

    /// Another connection to the same destination, since the first one was closed before anything was sent. The first one
    /// is given up before the other is waited for: it may hold the only place that there is.
    async fn reconnect(&self, link: Link, due: Option<Instant>) -> Result<Link, ForwardError> {
        let Link {
            picked,
            lease,
            head,
        } = link;
        drop(lease);
        let lease = self.acquire(&picked, true, due).await?;
        Ok(Link {
            picked,
            lease,
            head,
        })
    }

    fn link<T: Transport>(&self, client: &Client<T>, picked: Picked, lease: Lease) -> Link {
        let view = view_of(client, self.request);
        Link {
            head: self.write_head(client, &view, &picked),
            picked,
            lease,
        }
    }

    async fn acquire(
        &self,
        picked: &Picked,
        fresh: bool,
        due: Option<Instant>,
    ) -> Result<Lease, ForwardError> {
        let mut wanted = self.wanted(picked);
        wanted.fresh = fresh;
        let acquiring = self.engine.service().pool().acquire(wanted);
        let acquired = match due {
            None => acquiring.await,
            Some(due) => timeout_at(due, acquiring).await.map_err(|_| {
                ForwardError::new(
                    ForwardErrorKind::RequestTimedOut,
                    StatusCode::GATEWAY_TIMEOUT,
                )
            })?,
        };
        acquired.map_err(no_connection)
    }

    #[inline]
    fn wanted<'w>(&self, picked: &'w Picked) -> Wanted<'w>
    where
        'a: 'w,
    {
        Wanted {
            destination: picked.in_flight.destination(),
            upstream: self.cluster().upstream(),
            client: self.state().client(),
            protocols: Protocols::Http1,
            fresh: false,
        }
    }

    #[inline]
    fn pick(&self, view: &RequestView<'_>) -> Option<Picked> {
        self.state().pick(self.cluster(), view)
    }

    /// Answers for a destination that did not.
    #[cold]
    async fn refuse<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut tally: Tally<'_>,
        (kind, status): (ForwardErrorKind, StatusCode),
        has_more: bool,
    ) -> Lane {
        let is_last = has_more || !self.request.is_persistent() || client.is_closing();
        let is_head = self.request.method() == Method::Head;
        let sent = write_own(status, is_head, is_last, self.plan(), &mut client.output);
        client.state.unread.store(has_more, Relaxed);
        tally.refused(status);
        if let Some(exchange) = &mut client.exchange
            && exchange.draft.is_some()
        {
            let info = self.info(&tally, None).with_error(kind);
            exchange.answered(status, Some(info));
        }
        if let (Some(exchange), ForwardErrorKind::RequestBodyClient, 408 | 413) =
            (&mut client.exchange, kind, status.as_u16())
        {
            exchange.refused(Refusal::new(status, "the request's body was refused"));
        }
        let mut written = 0;
        let wrote = poll_fn(|cx| {
            let slices = [&*client.output, &[]];
            match poll_write_all(&mut client.io, cx, slices, &mut written) {
                Poll::Pending => client
                    .clock
                    .poll_slow_reader(cx, &client.state)
                    .map(|()| false),
                Poll::Ready(result) => Poll::Ready(result.is_ok()),
            }
        });
        let wrote = pin!(wrote).await;
        client.output.clear();
        tally.end(Some(kind));
        if !wrote {
            return Lane::Gone;
        }
        if let Some(exchange) = &mut client.exchange {
            exchange.sent = sent;
            exchange.outcome = Outcome::Complete;
        }
        Lane::Served { keep: !is_last }
    }

    /// What there is to say of it, for logs.
    #[cold]
    fn info(&self, tally: &Tally<'_>, upstream: Option<SocketAddr>) -> ExchangeInfo {
        ExchangeInfo {
            route: Some(self.generation.snapshot().route_at(self.route).id().clone()),
            cluster: Some(self.cluster().id().clone()),
            destination: tally
                .destination()
                .map(|destination| destination.id().clone()),
            upstream,
            error: None,
            time_to_head: upstream.map(|_| tally.waited()),
        }
    }

    #[inline]
    fn asked(&self) -> Asked {
        Asked {
            method: self.request.method(),
            upgrade: false,
        }
    }

    #[inline]
    fn plan(&self) -> &'a HeadPlan {
        let plan = self.generation.route(self.route).plan();
        plan.expect("the route was chosen for having one")
    }

    #[inline]
    fn state(&self) -> &'a ClusterState {
        self.generation.cluster(self.cluster)
    }

    #[inline]
    fn destination(&self, picked: &Picked) -> &'a DestinationState {
        self.state().destination(picked.index)
    }

    #[inline]
    fn cluster(&self) -> &'a Cluster {
        self.generation.snapshot().cluster_at(self.cluster)
    }

    /// When the response must have begun.
    #[inline]
    fn head_due(&self, tally: &Tally<'_>) -> Option<Instant> {
        let timeout = self.generation.snapshot().route_at(self.route).timeout();
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

/// gRPC streams may be silent for as long as they like.
#[cold]
fn is_grpc<T: Transport>(client: &Client<T>) -> bool {
    let buffer = client.input.filled();
    let mut fields = client.table.fields().iter();
    fields.any(|field| {
        field.class() == FieldClass::Content
            && field
                .name()
                .get(buffer)
                .eq_ignore_ascii_case(b"content-type")
            && field.value().get(buffer).starts_with(b"application/grpc")
    })
}
