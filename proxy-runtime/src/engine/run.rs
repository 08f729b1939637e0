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
use crate::forward::timeout::after;
use crate::forward::{ExchangeInfo, ForwardError, ForwardErrorKind, no_connection};
use crate::http1::{Asked, FieldClass, Framing, Method, RawRequest, RequestView, Version};
use crate::server::Outcome;
use crate::server::edge::Refusal;
use crate::server::http1::{Client, Transport};
use crate::state::{ClusterState, Generation, Picked};
use crate::stream::{poll_write_all, spare as buffers};
use crate::upstream::{Lease, Protocols, Wanted};

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
    let is_plain = request.version() == Version::Http11
        && !request.expects_continue()
        && !matches!(request.method(), Method::Connect | Method::Trace)
        && request.upgrade().is_none();
    if !is_plain {
        return Lane::Typed;
    }
    let generation = engine.current();
    let view = view_of(client, request);
    let Some((route, cluster)) = choose(&generation, client, request, &view, engine) else {
        return Lane::Typed;
    };
    let run = Run {
        engine,
        generation: &generation,
        request,
        route,
        cluster,
    };
    let started = Instant::now();
    let mut tally = run.tally(&view, started);
    let picked = run.pick(&view);
    // Nearly always there is a connection, and all that looks at the head is done with it here.
    let ready = picked.as_ref().and_then(|picked| {
        let lease = run.ready(picked)?;
        Some((lease, run.write_head(client, &view, picked)))
    });
    let head_due = run.timeout().map(|wait| after(tally.started(), wait));
    let (picked, mut lease, head) = match (picked, ready) {
        (Some(picked), Some((lease, head))) => {
            tally.sent_to(run.state().destination(picked.index), tally.started());
            (picked, lease, head)
        }
        (picked, _) => match Box::pin(run.connect(picked, client, &mut tally, head_due)).await {
            Ok((picked, lease)) => {
                let view = view_of(client, run.request);
                let head = run.write_head(client, &view, &picked);
                (picked, lease, head)
            }
            Err(error) => {
                let has_body = !Body::new(run.request.framing()).has_ended();
                client.input.consume(run.request.head_length());
                let refusal = (error.kind(), error.status());
                return Box::pin(run.refuse(client, tally, refusal, has_body)).await;
            }
        },
    };
    let mut flow = match run.begin(client, head, &tally, head_due) {
        Ok(flow) => flow,
        Err(refusal) => return Box::pin(run.refuse(client, tally, refusal, true)).await,
    };
    let failure = loop {
        let Some(connection) = lease.raw() else {
            // It speaks HTTP/2, though its cluster does not.
            break Some(Failure::UNSPOKEN);
        };
        let is_reused = connection.is_reused();
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
            Err(Failure::Unsent) if is_reused => {
                drop(lease);
                match Box::pin(run.acquire(&picked, true, head_due)).await {
                    Ok(fresh) => lease = fresh,
                    Err(error) => {
                        let has_more = flow.upload.stage() != Stage::Done;
                        let refusal = (error.kind(), error.status());
                        return Box::pin(run.refuse(client, tally, refusal, has_more)).await;
                    }
                }
                flow.again(run.asked());
            }
            Err(failed) => break Some(failed),
        }
    };
    let is_reusable = failure.is_none()
        && flow.is_reusable()
        && lease
            .raw()
            .is_some_and(|connection| connection.input.is_empty());
    if is_reusable {
        lease.give_back();
    } else {
        drop(lease);
    }
    let ended = run.settle(client, &picked, flow);
    drop(picked);
    match failure {
        None => {
            tally.end(None);
            Lane::Served { keep: ended.keep }
        }
        Some(failure) => Box::pin(run.fail(client, tally, failure, ended)).await,
    }
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
        picked: &Picked,
        mut flow: Box<Flow>,
    ) -> Ended {
        let (sent, received) = (flow.upload.sent, flow.download.received);
        let metrics = self.state().destination(picked.index).metrics();
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
                client.state.abort.store(true, Relaxed);
                kind
            }
            Failure::Gone(kind) => kind,
        };
        client.output.clear();
        tally.end(Some(kind));
        Lane::Gone
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
            method(self.request.method(), view),
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
        head: Result<Vec<u8>, Invalid>,
        tally: &Tally<'_>,
        head_due: Option<Instant>,
    ) -> Result<Box<Flow>, (ForwardErrorKind, StatusCode)> {
        let body = Body::new(self.request.framing());
        let is_grpc = !body.has_ended() && is_grpc(client);
        client.input.consume(self.request.head_length());
        let head =
            head.map_err(|_| (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY))?;
        let patience = Patience {
            head_due,
            activity: self.cluster().upstream().activity_timeout(),
            last: tally.started(),
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
            Broken::Client(status) => (ForwardErrorKind::RequestBodyClient, status),
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

    /// A connection to the picked destination, or to another one if none can be opened there.
    async fn connect<T: Transport>(
        &self,
        picked: Option<Picked>,
        client: &Client<T>,
        tally: &mut Tally<'a>,
        due: Option<Instant>,
    ) -> Result<(Picked, Lease), ForwardError> {
        let Some(picked) = picked else {
            return Err(ForwardError::new(
                ForwardErrorKind::NoAvailableDestinations,
                StatusCode::SERVICE_UNAVAILABLE,
            ));
        };
        tally.sent_to(self.state().destination(picked.index), tally.started());
        let error = match self.acquire(&picked, false, due).await {
            Ok(lease) => return Ok((picked, lease)),
            Err(error) => error,
        };
        if !error.is_unsent() {
            return Err(error);
        }
        // The first one stays in flight meanwhile, so that policies that look at the load prefer another.
        let other = (0..PICKS)
            .map_while(|_| self.pick(&view_of(client, self.request)))
            .find(|other| other.index != picked.index);
        let Some(other) = other else {
            return Err(error);
        };
        tally.failed(error.kind());
        tally.sent_to(self.state().destination(other.index), Instant::now());
        let lease = self.acquire(&other, false, due).await?;
        Ok((other, lease))
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

    /// An idle connection to the picked destination.
    #[inline]
    fn ready(&self, picked: &Picked) -> Option<Lease> {
        self.engine.service().pool().ready(&self.wanted(picked))
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
    fn cluster(&self) -> &'a Cluster {
        self.generation.snapshot().cluster_at(self.cluster)
    }

    fn timeout(&self) -> Option<std::time::Duration> {
        self.generation.snapshot().route_at(self.route).timeout()
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
