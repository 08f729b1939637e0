//! From the pick of a destination to the head of its response.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, Response, StatusCode};
use http_body::Body;
use proxy_model::compiled::{Cluster, Destination, Route};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::account::Account;
use super::again::Failure;
use super::continuation::{Continuation, Gate};
use super::error::{ForwardError, ForwardErrorKind};
use super::exchange::{Exchange, Stage};
use super::handshake::Handshake;
use super::head::HttpHead;
use super::headers;
use super::request::{Framing, OutgoingHead};
use super::timeout::{Expired, Patience, after};
use super::upload::{RequestBody, UploadLimits};
use crate::BoxError;
use crate::contain::{Panicked, contained_call};
use crate::observe::targets;
use crate::state::{ClusterState, DestinationState, InFlight, Picked};
use crate::upstream::{
    ConnectError, ExchangeError, IncomingBody, Lease, Protocols, UpstreamPool, Wanted, protocol,
};

/// How often a destination other than the one that failed is asked for. Policies that pick by chance or by load find one
/// soon; `FirstAlphabetical` wants no other.
const PICKS: usize = 4;

/// A request on its way to a destination.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) head: &'a HttpHead<'a>,
    pub(super) route: &'a Route,
    pub(super) cluster: &'a Cluster,
    pub(super) state: &'a ClusterState,
    pub(super) pool: &'a UpstreamPool,
    pub(super) handshake: &'a Handshake,
    pub(super) framing: Framing,
    /// The largest body, in bytes.
    pub(super) body_limit: Option<u64>,
    /// When the request began.
    pub(super) started: Instant,
}

/// A response whose head has come.
pub(super) struct Answered {
    pub(super) response: Response<IncomingBody>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) lease: Lease,
    pub(super) picked_at: Instant,
}

/// A picked destination, and the head that was made for it.
pub(super) struct Prepared<H> {
    pub(super) picked: Picked,
    pub(super) picked_at: Instant,
    /// When there was a connection.
    pub(super) connected_at: Instant,
    pub(super) head: H,
    protocols: Protocols,
}

impl Sending<'_> {
    /// Sends the request and waits for the head of the response.
    ///
    /// Cancel-safe: dropped, the request is cancelled at the destination.
    pub(super) async fn run<B>(
        &self,
        body: B,
        account: &mut Account,
    ) -> Result<Answered, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let deadline = self.route.timeout().map(|wait| after(self.started, wait));
        let version = self.cluster.upstream().version();
        let make = |destination: &Destination| {
            let head = OutgoingHead::new(self.head, self.route, destination)?;
            Ok(head.in_version(version))
        };
        let (prepared, mut lease) = self.connect(account, deadline, &make).await?;
        let Prepared {
            picked,
            picked_at,
            connected_at,
            head,
            protocols,
        } = prepared;
        let destination = Arc::clone(self.state.destination(picked.index));
        let exchange = Arc::new(Exchange::new(
            InFlight::new(Arc::clone(&destination), picked.in_flight),
            self.cluster.upstream().activity_timeout(),
            connected_at,
        ));
        let is_http2 = lease.is_http2();
        let continuation = self.continuation(is_http2);
        let head = self.handshake.ask(head);
        // A request without a body can be made again if the destination says that it has not looked at it.
        // Any request can be made again if the new connection turns out to be one of the other version.
        let may_change = protocols == Protocols::Either;
        let is_spare = is_http2 && (may_change || self.framing == Framing::Empty);
        let spare = is_spare.then(|| Box::new(head.clone()));
        let body = self.body(body, &exchange, continuation.as_ref());
        let mut request = head.into_request(body, self.framing, is_http2)?;
        if let Some(continuation) = &continuation {
            request.extensions_mut().insert(Arc::clone(continuation));
        }
        let response = match wait(&mut lease, request, &exchange, deadline).await {
            Ok(response) => response,
            Err(failure) => {
                if let Some(error) = exchange.upload.failure() {
                    return Err(error);
                }
                let again = failure.again(spare, self.framing)?;
                let repeated = async {
                    // The new connection may need its place.
                    drop(lease);
                    let acquired = self.acquire(&destination, protocols, true);
                    let mut lease = within(deadline, acquired).await?;
                    let request = again.into_request(is_http2, lease.is_http2())?;
                    let answered = wait(&mut lease, request, &exchange, deadline).await;
                    answered
                        .map(|response| (response, lease))
                        .map_err(|failure| failure.error)
                };
                let response;
                (response, lease) = Box::pin(repeated).await?;
                response
            }
        };
        Ok(Answered {
            response,
            exchange,
            lease,
            picked_at,
        })
    }

    /// Picks a destination and gets hold of a connection to it, for which `make` makes the head.
    pub(super) async fn connect<H>(
        &self,
        account: &mut Account,
        deadline: Option<Instant>,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Lease), ForwardError> {
        let (prepared, idle) = self.connect_now(account, make)?;
        match idle {
            Some(lease) => Ok((prepared, lease)),
            // Boxed, as is what follows a failure: most requests need none of it, and would carry the room for it about.
            None => Box::pin(self.connect_anew(prepared, account, deadline, make)).await,
        }
    }

    /// Picks a destination, and a connection to it if one is there already.
    pub(super) fn connect_now<H>(
        &self,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Option<Lease>), ForwardError> {
        let prepared = self.pick_and_prepare(account, make)?;
        let idle = self.idle_connection(&prepared);
        Ok((prepared, idle))
    }

    /// Gets hold of a connection where none was there.
    pub(super) async fn connect_anew<H>(
        &self,
        prepared: Prepared<H>,
        account: &mut Account,
        deadline: Option<Instant>,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Lease), ForwardError> {
        let (prepared, lease) = within(deadline, self.open(prepared, account, make)).await?;
        let connected_at = Instant::now();
        let prepared = Prepared {
            connected_at,
            ..prepared
        };
        Ok((prepared, lease))
    }

    /// Picks a destination, and makes the head for it.
    fn pick_and_prepare<H>(
        &self,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<Prepared<H>, ForwardError> {
        let picked = contained_call(|| self.pick())
            .map_err(|panic| panicked(&panic))?
            .ok_or_else(|| {
                ForwardError::new(
                    ForwardErrorKind::NoAvailableDestinations,
                    StatusCode::SERVICE_UNAVAILABLE,
                )
            })?;
        account.sent_to(self.state.destination(picked.index));
        self.prepare(picked, make)
    }

    /// A connection that is there already.
    fn idle_connection<H>(&self, prepared: &Prepared<H>) -> Option<Lease> {
        // For a switch there is more to ask of a connection.
        if self.handshake.protocols().is_some() {
            return None;
        }
        let destination = self.state.destination(prepared.picked.index);
        let wanted = self.wanted(destination, prepared.protocols, false);
        self.pool.ready(&wanted, prepared.picked_at)
    }

    /// Gets hold of a connection to the destination, or to another one if none can be opened there.
    async fn open<H>(
        &self,
        prepared: Prepared<H>,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Lease), ForwardError> {
        let error = match self.acquire_for(&prepared).await {
            Ok(lease) => return Ok((prepared, lease)),
            Err(error) => error,
        };
        if !error.is_unsent() {
            return Err(error);
        }
        // The first one stays in flight meanwhile, so that policies that look at the load prefer another.
        let Some(other) = self.pick_other(&prepared.picked) else {
            return Err(error);
        };
        account.failed(error.kind());
        account.sent_to(self.state.destination(other.index));
        let other = self.prepare(other, make)?;
        let lease = self.acquire_for(&other).await?;
        Ok((other, lease))
    }

    fn prepare<H>(
        &self,
        picked: Picked,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<Prepared<H>, ForwardError> {
        let picked_at = Instant::now();
        let destination = self.destination(&picked);
        let upstream = self.cluster.upstream();
        let protocols = match self.handshake.protocols() {
            Some(protocols) => Ok(protocols),
            None => protocol::for_request(destination.address().scheme(), upstream),
        };
        let protocols = protocols.map_err(|reason| {
            ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
                .with_source(reason)
        })?;
        Ok(Prepared {
            head: make(destination)?,
            picked,
            picked_at,
            connected_at: picked_at,
            protocols,
        })
    }

    async fn acquire_for<H>(&self, prepared: &Prepared<H>) -> Result<Lease, ForwardError> {
        let destination = self.state.destination(prepared.picked.index);
        self.acquire(destination, prepared.protocols, false).await
    }

    pub(super) async fn acquire(
        &self,
        destination: &Arc<DestinationState>,
        protocols: Protocols,
        fresh: bool,
    ) -> Result<Lease, ForwardError> {
        let wanted = self.wanted(destination, protocols, fresh);
        let lease = self.pool.acquire(wanted).await.map_err(no_connection)?;
        if self.handshake.protocols().is_some() {
            lease.prepare_connect().await.map_err(no_connection)?;
        }
        Ok(lease)
    }

    fn wanted<'d>(
        &'d self,
        destination: &'d Arc<DestinationState>,
        protocols: Protocols,
        fresh: bool,
    ) -> Wanted<'d> {
        Wanted {
            destination,
            upstream: self.cluster.upstream(),
            client: self.state.client(),
            protocols,
            fresh,
        }
    }

    fn pick(&self) -> Option<Picked> {
        self.state.pick(self.cluster, self.head)
    }

    fn pick_other(&self, failed: &Picked) -> Option<Picked> {
        (0..PICKS)
            .map_while(|_| contained_call(|| self.pick()).ok()?)
            .find(|picked| picked.index != failed.index)
    }

    fn destination(&self, picked: &Picked) -> &Destination {
        &self.cluster.destinations()[picked.index.0 as usize]
    }

    /// Whether the destination has to ask for the body first. HTTP/2 has no interim responses here, and needs none: a
    /// destination that does not want the body resets the stream.
    fn continuation(&self, is_http2: bool) -> Option<Arc<Continuation>> {
        let asks = self.framing != Framing::Empty
            && !is_http2
            && headers::has_token(self.head.headers(), &EXPECT, "100-continue");
        asks.then(Arc::default)
    }

    pub(super) fn body<B>(
        &self,
        body: B,
        exchange: &Arc<Exchange>,
        continuation: Option<&Arc<Continuation>>,
    ) -> RequestBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let promised = match self.framing {
            Framing::Empty => return RequestBody::empty(),
            Framing::Length(length) => Some(length),
            Framing::Stream => None,
        };
        let allowed = self.body_limit;
        let limits = UploadLimits {
            promised,
            allowed,
            gate: continuation.map(|asked| Gate::new(asked, self.pool.options().continue_timeout)),
        };
        RequestBody::new(body, exchange, limits)
    }
}

/// Sends a request and waits for the head of its response, for no longer than the exchange may be idle, nor beyond
/// `deadline`.
async fn wait(
    lease: &mut Lease,
    request: Request<RequestBody>,
    exchange: &Exchange,
    deadline: Option<Instant>,
) -> Result<Response<IncomingBody>, Failure> {
    let mut sending = pin!(lease.send(request));
    let mut patience = pin!(Patience::new(&exchange.activity, deadline));
    let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
        Poll::Ready(sent) => Poll::Ready(Ok(sent)),
        Poll::Pending => {
            if sending.take_news() {
                exchange.activity.touch();
            }
            patience.as_mut().poll_expired(cx).map(Err)
        }
    });
    match sent.await {
        Err(Expired::Idle) => Err(exchange.upload.timed_out().into()),
        Err(Expired::Deadline) => Err(too_late().into()),
        Ok(Ok(response)) => {
            exchange.activity.touch();
            Ok(response)
        }
        Ok(Err(failed)) => Err(Failure {
            unprocessed: failed.error.is_unprocessed(),
            error: broken(failed.error, exchange),
            unsent: failed.unsent,
        }),
    }
}

/// Gives `work` up at the route's deadline.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, ForwardError>>,
) -> Result<T, ForwardError> {
    let Some(deadline) = deadline else {
        return work.await;
    };
    let mut expired = pin!(sleep_until(deadline));
    tokio::select! {
        biased;
        done = work => done,
        () = expired.as_mut() => Err(too_late()),
    }
}

/// The route's deadline has come.
pub(super) fn too_late() -> ForwardError {
    ForwardError::new(
        ForwardErrorKind::RequestTimedOut,
        StatusCode::GATEWAY_TIMEOUT,
    )
}

/// Why a request that was sent has no response.
pub(super) fn broken(error: ExchangeError, exchange: &Exchange) -> ForwardError {
    if let Some(failure) = exchange.upload.failure() {
        return failure.with_source(error);
    }
    let kind = match exchange.upload.stage() {
        // What came back was no response, whatever else was going on.
        _ if error.is_malformed_response() => ForwardErrorKind::Request,
        Stage::Client | Stage::Destination => ForwardErrorKind::RequestBodyDestination,
        Stage::Done | Stage::Continue => ForwardErrorKind::Request,
    };
    ForwardError::new(kind, StatusCode::BAD_GATEWAY).with_source(error)
}

/// What it means for a request that the program's own policy panicked: it ends this one and no more.
pub(crate) fn panicked(panic: &Panicked) -> ForwardError {
    debug!(target: targets::REQUEST, panic = panic.0, "a load balancing policy panicked");
    ForwardError::new(
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}

/// What it means for a request that there is no connection. Other destinations may have one, unless it took too long to
/// find out.
pub(crate) fn no_connection(error: ConnectError) -> ForwardError {
    let (kind, status) = match &error {
        ConnectError::TimedOut => (
            ForwardErrorKind::RequestTimedOut,
            StatusCode::GATEWAY_TIMEOUT,
        ),
        ConnectError::Saturated => (
            ForwardErrorKind::NoAvailableDestinations,
            StatusCode::SERVICE_UNAVAILABLE,
        ),
        ConnectError::Unsupported(_) => {
            (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        }
        _ => (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY),
    };
    let mut failed = ForwardError::new(kind, status);
    if kind == ForwardErrorKind::Request {
        failed = failed.unsent();
    }
    failed.with_source(Box::new(error) as Box<dyn StdError + Send + Sync>)
}
