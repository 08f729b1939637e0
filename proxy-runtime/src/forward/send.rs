//! The typed lane's way to any destination, from its pick to the head of its response.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, Response};
use http_body::Body;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Destination, DestinationIndex, Route};
use tokio::time::Instant;

use super::again::{Again, Failure};
use super::handshake::Handshake;
use super::request::{BodyKind, OutgoingHead};
use crate::BoxError;
use crate::cluster::{ClusterState, Picked};
use crate::error::ForwardError;
use crate::exchange::{Place, pick};
use crate::head::HttpHead;
use crate::head::headers;
use crate::http1::Method;
use crate::live::InFlight;
use crate::progress::HeadTimer;
use crate::progress::SharedProgress;
use crate::progress::{Continuation, Gate};
use crate::progress::{End, after};
use crate::progress::{OutgoingBody, UploadLimits};
use crate::response::Account;
use crate::retry::Attempts;
use crate::transform::{LoopGuard, sent_method};
use crate::upstream::{ExchangeError, IncomingBody, Lease, SendError, UpstreamPool};

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
}

/// An attempt at a destination.
struct Attempt {
    index: DestinationIndex,
    lease: Lease,
    /// When there was a connection.
    connected_at: Instant,
    progress: Arc<SharedProgress>,
    is_http2: bool,
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
        let place = self.place();
        let version = self.cluster.upstream().version();
        let make = |destination: &Destination| {
            let head = OutgoingHead::new(self.head, self.route, destination)?;
            Ok(head.guarded(self.loop_guard).in_version(version))
        };
        let connecting = self.connect(&place, account, &make);
        let (prepared, mut lease) = connecting.await?;
        let Prepared {
            picked,
            connected_at,
            head,
        } = prepared;
        let index = picked.index;
        let progress = Arc::new(self.progress(picked, connected_at));
        let is_http2 = lease.is_http2();
        let continuation = self.continuation(is_http2);
        let head = self.handshake.ask(head);
        let body = self.body(body, &progress, continuation.as_ref());
        let mut request = head.into_request(body, self.body_kind, is_http2)?;
        if let Some(continuation) = &continuation {
            request.extensions_mut().insert(Arc::clone(continuation));
        }
        match wait(&mut lease, request, &progress, place.due).await {
            Ok(response) => Ok(Answered {
                response,
                progress,
                lease,
            }),
            Err(failure) => {
                let attempt = Attempt {
                    index,
                    lease,
                    connected_at,
                    progress,
                    is_http2,
                };
                let repeating = self.repeat(failure, attempt, &place, account, &make);
                Box::pin(repeating).await
            }
        }
    }

    /// Sends a request again whose attempt has failed, for as long as that may be.
    async fn repeat(
        &self,
        mut failure: Failure,
        mut attempt: Attempt,
        place: &Place<'_>,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<OutgoingHead, ForwardError>,
    ) -> Result<Answered, ForwardError> {
        let attempts = &mut Attempts::first();
        loop {
            if let Some(error) = attempt.progress.upload.failure() {
                return Err(error);
            }
            let failed =
                failure.attempt(attempt.lease.over(), self.is_idempotent(), self.body_kind);
            let next = place.next(attempt.index, failed, self.head, attempts, account);
            let Some(next) = next else {
                return Err(failure.error);
            };
            let again = Again {
                whole: failure.whole,
                body_kind: self.body_kind,
            };
            let connection = (attempt.lease, attempt.connected_at);
            let reconnecting = place.reconnect(
                next,
                attempt.index,
                connection,
                self.head,
                attempts,
                account,
            );
            let (moved, mut lease) = reconnecting.await?;
            let connected_at = Instant::now();
            let (index, progress) = match moved {
                None => {
                    attempt.progress.activity.touch();
                    (attempt.index, attempt.progress)
                }
                Some(picked) => (picked.index, Arc::new(self.progress(picked, connected_at))),
            };
            let is_http2 = lease.is_http2();
            let fits = index == attempt.index && is_http2 == attempt.is_http2;
            let make = || Ok(self.handshake.ask(make(self.destination(index))?));
            let mut request = again.into_request(fits, is_http2, make)?;
            request.body_mut().move_to(&progress);
            match wait(&mut lease, request, &progress, place.due).await {
                Ok(response) => {
                    return Ok(Answered {
                        response,
                        progress,
                        lease,
                    });
                }
                Err(again) => failure = again,
            }
            attempt = Attempt {
                index,
                lease,
                connected_at,
                progress,
                is_http2,
            };
        }
    }

    /// What it takes to get a connection.
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            cluster: self.cluster,
            state: self.state,
            pool: self.pool,
            switch: self.handshake.protocols(),
            is_careful: !self.is_idempotent() || self.body_kind != BodyKind::Empty,
            due: self.route.timeout().map(|wait| after(self.started, wait)),
        }
    }

    pub(super) fn is_idempotent(&self) -> bool {
        let sent = sent_method(self.route, self.head.method());
        Method::of(sent.unwrap_or_else(|| self.head.method_value())).is_idempotent()
    }

    /// What both directions are to share while the request is at a destination.
    pub(super) fn progress(&self, picked: Picked, connected_at: Instant) -> SharedProgress {
        let destination = Arc::clone(self.state.destination(picked.index));
        SharedProgress::new(
            InFlight::new(destination, picked.in_flight),
            self.cluster.upstream().activity_timeout(),
            connected_at,
        )
    }

    /// Picks a destination and gets hold of a connection to it, for which `make` makes the head.
    async fn connect<H>(
        &self,
        place: &Place<'_>,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Lease), ForwardError> {
        let (prepared, idle) = self.connect_now(place, account, make)?;
        match idle {
            Some(lease) => Ok((prepared, lease)),
            // Boxed, as is what follows a failure: most requests need none of it, and would carry the room for it about.
            None => Box::pin(self.connect_anew(prepared, place, account, make)).await,
        }
    }

    /// Picks a destination, and a connection to it if one is there already.
    pub(super) fn connect_now<H>(
        &self,
        place: &Place<'_>,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Option<Lease>), ForwardError> {
        let picked = pick(self.state, self.cluster, self.head)?;
        account.sent_to(self.state.destination(picked.index));
        let now = Instant::now();
        account.picked_at(now);
        let wanted = place.wanted(picked.index)?;
        let head = make(self.destination(picked.index))?;
        // For a switch there is more to ask of a connection.
        let idle = match place.switch {
            None => self.pool.ready(&wanted, now),
            Some(_) => None,
        };
        let prepared = Prepared {
            picked,
            connected_at: now,
            head,
        };
        Ok((prepared, idle))
    }

    /// Gets hold of a connection where none was there.
    pub(super) async fn connect_anew<H>(
        &self,
        prepared: Prepared<H>,
        place: &Place<'_>,
        account: &mut Account,
        make: &impl Fn(&Destination) -> Result<H, ForwardError>,
    ) -> Result<(Prepared<H>, Lease), ForwardError> {
        let Prepared { picked, head, .. } = prepared;
        let index = picked.index;
        let mut attempts = Attempts::first();
        let connecting = place.connect(picked, self.head, &mut attempts, account);
        let (picked, lease) = connecting.await?;
        let head = match picked.index == index {
            true => head,
            false => make(self.destination(picked.index))?,
        };
        let prepared = Prepared {
            picked,
            connected_at: Instant::now(),
            head,
        };
        Ok((prepared, lease))
    }

    pub(super) fn destination(&self, index: DestinationIndex) -> &Destination {
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
        Ok(Err(failed)) => {
            let SendError {
                error,
                whole,
                sent,
                came,
            } = *failed;
            Err(Failure {
                error: broken(error, progress),
                whole,
                sent,
                came,
            })
        }
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
