//! The typed lane's way to any destination, from its pick to the head of its response.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, Response, StatusCode};
use http_body::Body;
use proxy_model::compiled::{Cluster, Destination, DestinationIndex, Route};
use tokio::time::Instant;

use super::account::Account;
use super::again::Failure;
use super::continuation::{Continuation, Gate};
use super::error::{ForwardError, ForwardErrorKind};
use super::handshake::Handshake;
use super::head::HttpHead;
use super::headers;
use super::outgoing_body::{OutgoingBody, UploadLimits};
use super::request::{BodyKind, OutgoingHead};
use super::shared_progress::SharedProgress;
use super::timeout::HeadTimer;
use crate::BoxError;
use crate::exchange::{End, after, pick, pick_other, within};
use crate::loop_guard::LoopGuard;
use crate::state::{ClusterState, DestinationState, InFlight, Picked};
use crate::upstream::{
    ConnectError, ExchangeError, IncomingBody, Lease, Protocols, UpstreamPool, Wanted, protocol,
};

/// A request on its way to a destination.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) head: &'a HttpHead<'a>,
    pub(super) route: &'a Route,
    pub(super) cluster: &'a Cluster,
    pub(super) state: &'a ClusterState,
    pub(super) pool: &'a UpstreamPool,
    pub(super) handshake: &'a Handshake,
    pub(super) loop_guard: Option<&'a LoopGuard>,
    pub(super) body_kind: BodyKind,
    /// The largest body, in bytes.
    pub(super) body_limit: Option<u64>,
    /// When the request began.
    pub(super) started: Instant,
}

/// A response whose head has come.
pub(super) struct Answered {
    pub(super) response: Response<IncomingBody>,
    pub(super) progress: Arc<SharedProgress>,
    pub(super) lease: Lease,
}

/// A picked destination, and the head that was made for it.
pub(super) struct Prepared<H> {
    pub(super) picked: Picked,
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
            Ok(head.guarded(self.loop_guard).in_version(version))
        };
        let (prepared, mut lease) = self.connect(account, deadline, &make).await?;
        let Prepared {
            picked,
            connected_at,
            head,
            protocols,
        } = prepared;
        let index = picked.index;
        let destination = self.state.destination(index);
        let progress = Arc::new(SharedProgress::new(
            InFlight::new(Arc::clone(destination), picked.in_flight),
            self.cluster.upstream().activity_timeout(),
            connected_at,
        ));
        let is_http2 = lease.is_http2();
        let continuation = self.continuation(is_http2);
        let head = self.handshake.ask(head);
        let body = self.body(body, &progress, continuation.as_ref());
        let mut request = head.into_request(body, self.body_kind, is_http2)?;
        if let Some(continuation) = &continuation {
            request.extensions_mut().insert(Arc::clone(continuation));
        }
        let response = match wait(&mut lease, request, &progress, deadline).await {
            Ok(response) => response,
            Err(failure) => {
                if let Some(error) = progress.upload.failure() {
                    return Err(error);
                }
                let again = failure.again(self.body_kind)?;
                let repeated = async {
                    let replacing = self.replace(lease, connected_at, destination, protocols);
                    let mut lease = within(deadline, replacing).await?;
                    progress.activity.touch();
                    let make = || Ok(self.handshake.ask(make(self.destination(index))?));
                    let request = again.into_request(is_http2, lease.is_http2(), make)?;
                    let answered = wait(&mut lease, request, &progress, deadline).await;
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
            progress,
            lease,
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
        let picked = pick(self.state, self.cluster, self.head)?;
        account.sent_to(self.state.destination(picked.index));
        self.prepare(picked, account, make)
    }

    /// A connection that is there already.
    fn idle_connection<H>(&self, prepared: &Prepared<H>) -> Option<Lease> {
        // For a switch there is more to ask of a connection.
        if self.handshake.protocols().is_some() {
            return None;
        }
        let destination = self.state.destination(prepared.picked.index);
        let wanted = self.wanted(destination, prepared.protocols, false);
        self.pool.ready(&wanted, prepared.connected_at)
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
        let failed = &prepared.picked;
        let Some(other) = pick_other(self.state, self.cluster, self.head, failed, &error) else {
            return Err(error);
        };
        account.failed(error.kind());
        account.sent_to(self.state.destination(other.index));
        let other = self.prepare(other, account, make)?;
        let lease = self.acquire_for(&other).await?;
        Ok((other, lease))
    }

    fn prepare<H>(
        &self,
        picked: Picked,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<Prepared<H>, ForwardError> {
        let now = Instant::now();
        account.picked_at(now);
        let destination = self.destination(picked.index);
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
            connected_at: now,
            protocols,
        })
    }

    async fn acquire_for<H>(&self, prepared: &Prepared<H>) -> Result<Lease, ForwardError> {
        let destination = self.state.destination(prepared.picked.index);
        let wanted = self.wanted(destination, prepared.protocols, false);
        self.prepared(self.pool.acquire(wanted).await).await
    }

    /// Another connection instead of one that failed, of which the request had got hold at `since`.
    pub(super) async fn replace(
        &self,
        failed: Lease,
        since: Instant,
        destination: &Arc<DestinationState>,
        protocols: Protocols,
    ) -> Result<Lease, ForwardError> {
        let wanted = self.wanted(destination, protocols, true);
        self.prepared(self.pool.replace(failed, since, wanted).await)
            .await
    }

    /// A connection over which the destination can be asked for what the client wishes.
    async fn prepared(&self, lease: Result<Lease, ConnectError>) -> Result<Lease, ForwardError> {
        let lease = lease.map_err(no_connection)?;
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

    fn destination(&self, index: DestinationIndex) -> &Destination {
        &self.cluster.destinations()[index.0 as usize]
    }

    /// Whether the destination has to ask for the body first. HTTP/2 has no interim responses here, and needs none: a
    /// destination that does not want the body resets the stream.
    fn continuation(&self, is_http2: bool) -> Option<Arc<Continuation>> {
        let asks = self.body_kind != BodyKind::Empty
            && !is_http2
            && headers::has_token(self.head.headers(), &EXPECT, "100-continue");
        asks.then(Arc::default)
    }

    pub(super) fn body<B>(
        &self,
        body: B,
        progress: &Arc<SharedProgress>,
        continuation: Option<&Arc<Continuation>>,
    ) -> OutgoingBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let promised = match self.body_kind {
            BodyKind::Empty => return OutgoingBody::empty(),
            BodyKind::Length(length) => Some(length),
            BodyKind::Stream => None,
        };
        let allowed = self.body_limit;
        let limits = UploadLimits {
            promised,
            allowed,
            gate: continuation.map(|asked| Gate::new(asked, self.pool.options().continue_timeout)),
        };
        OutgoingBody::new(body, progress, limits)
    }
}

/// Sends a request and waits for the head of its response, for no longer than the exchange may be idle, nor beyond
/// `deadline`.
async fn wait(
    lease: &mut Lease,
    request: Request<OutgoingBody>,
    progress: &SharedProgress,
    deadline: Option<Instant>,
) -> Result<Response<IncomingBody>, Failure> {
    let mut sending = pin!(lease.send(request));
    let mut timer = pin!(HeadTimer::new(&progress.activity, deadline));
    let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
        Poll::Ready(sent) => Poll::Ready(Ok(sent)),
        Poll::Pending => {
            if sending.take_news() {
                progress.activity.touch();
            }
            timer.as_mut().poll_expired(cx).map(Err)
        }
    });
    match sent.await {
        Err(end) => Err(progress.upload.unanswered(end).into()),
        Ok(Ok(response)) => {
            progress.activity.touch();
            Ok(response)
        }
        Ok(Err(failed)) => Err(Failure {
            unprocessed: failed.error.is_unprocessed(),
            error: broken(failed.error, progress),
            unsent: failed.unsent,
        }),
    }
}

/// Why a request that was sent has no response.
pub(super) fn broken(error: ExchangeError, progress: &SharedProgress) -> ForwardError {
    let end = match error.is_malformed_response() {
        true => End::Meaningless,
        false => End::Closed,
    };
    progress.upload.unanswered(end).with_source(error)
}

/// What it means for a request that there is no connection. Other destinations may have one, unless it took too long to
/// find out. So they may where too many requests wait already: each destination has its own limit, and it cost nothing to
/// find out, so that nobody asks more of a cluster than it has.
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
    if kind == ForwardErrorKind::Request || matches!(error, ConnectError::Saturated) {
        failed = failed.unsent();
    }
    failed.with_source(Box::new(error) as Box<dyn StdError + Send + Sync>)
}
