//! A request from the pick of a destination to the head of its response: the typed path's attempts.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Destination, DestinationIndex, Route, RouteTarget};
use tokio::time::Instant;

use super::handshake::Handshake;
use super::request::{BodyKind, OutgoingHead};
use crate::affinity::{Bond, NewKey};
use crate::cluster::{ClusterState, Picked};
use crate::error::ForwardError;
use crate::exchange::{ConnectContext, pick};
use crate::head::HttpHead;
use crate::http1::Method;
use crate::live::InFlight;
use crate::progress::HeadTimer;
use crate::progress::SharedProgress;
use crate::progress::{End, Stage, after};
use crate::response::ExchangeRecorder;
use crate::retry::{self, Attempts};
use crate::transform::{LoopGuard, sent_method};
use crate::upstream::{Answer, ExchangeError, Lease, RoundTrip, SendError, UpstreamPool};

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
    /// The time at which the request began.
    pub(super) started: Instant,
}

/// An attempt at a destination: a request that was sent, or is about to be.
pub(super) struct Attempt {
    pub(super) round_trip: RoundTrip,
    pub(super) lease: Lease,
    pub(super) shared: SharedProgress,
    index: DestinationIndex,
    /// The relation of the destination to the affinity key of the request.
    bond: Bond,
    /// The time at which there was a connection.
    connected_at: Instant,
}

/// A picked destination, and the head that was made for it.
pub(super) struct Prepared {
    picked: Picked,
    /// The time at which there was a connection.
    connected_at: Instant,
    head: Box<OutgoingHead>,
}

/// The reason why waiting for a response ended without one.
pub(super) enum SendFailed {
    Expired(End),
    Sent(SendError),
}

impl Sending<'_> {
    /// Picks a destination, and a connection to it if one is there already.
    pub(super) fn connect_now(
        &self,
        place: &ConnectContext<'_>,
        recorder: &mut ExchangeRecorder,
    ) -> Result<(Prepared, Option<Lease>), ForwardError> {
        let picked = pick(self.state, self.cluster, self.head)?;
        recorder.sent_to(self.state.destination(picked.index));
        let now = Instant::now();
        recorder.picked_at(now);
        let wanted = place.wanted(picked.index)?;
        let head = self.make(self.destination(picked.index), recorder)?;
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
    pub(super) async fn connect(
        &self,
        prepared: Prepared,
        place: &ConnectContext<'_>,
        recorder: &mut ExchangeRecorder,
    ) -> Result<(Prepared, Lease), ForwardError> {
        let Prepared { picked, head, .. } = prepared;
        let index = picked.index;
        let place = &self.bound(place, picked.bond);
        let mut attempts = Attempts::first();
        let connecting = place.connect(picked, self.head, &mut attempts, recorder);
        let (picked, lease) = connecting.await?;
        let head = match picked.index == index {
            true => head,
            false => self.make(self.destination(picked.index), recorder)?,
        };
        let prepared = Prepared {
            picked,
            connected_at: Instant::now(),
            head,
        };
        Ok((prepared, lease))
    }

    /// The first attempt, over this connection.
    pub(super) fn attempt(
        &self,
        prepared: Prepared,
        mut lease: Lease,
    ) -> Result<Attempt, ForwardError> {
        let Prepared {
            picked,
            connected_at,
            head,
        } = prepared;
        let (index, bond) = (picked.index, picked.bond);
        let progress = self.progress(picked, connected_at);
        Ok(Attempt {
            round_trip: self.round_trip(&mut lease, head)?,
            lease,
            shared: progress,
            index,
            bond,
            connected_at,
        })
    }

    fn round_trip(
        &self,
        lease: &mut Lease,
        head: Box<OutgoingHead>,
    ) -> Result<RoundTrip, ForwardError> {
        let (head, ()) = head
            .into_request((), BodyKind::Empty, lease.is_http2())?
            .into_parts();
        let begun = lease.begin(head);
        begun.map_err(|failed| broken(failed.error))
    }

    /// Makes the head for a destination.
    ///
    /// # Errors
    ///
    /// The route's changes make no valid request of it.
    fn make(
        &self,
        destination: &Destination,
        recorder: &mut ExchangeRecorder,
    ) -> Result<Box<OutgoingHead>, ForwardError> {
        let mut head = OutgoingHead::new(self.head, self.route, destination)?;
        if let Some(trace) = recorder.count().trace() {
            trace.readdress_fields(head.headers_mut());
        }
        let version = self.cluster.upstream().version();
        let head = head.guarded(self.loop_guard).in_version(version);
        Ok(Box::new(self.handshake.ask(head)))
    }

    /// Sends a request again whose attempt has failed, for as long as that may be.
    pub(super) async fn repeat(
        &self,
        mut failed: SendFailed,
        mut attempt: Attempt,
        place: &ConnectContext<'_>,
        recorder: &mut ExchangeRecorder,
    ) -> Result<(Answer, Attempt), ForwardError> {
        let attempts = &mut Attempts::first();
        loop {
            let Attempt {
                lease,
                shared,
                index,
                bond,
                connected_at,
                ..
            } = attempt;
            let place = &self.bound(place, bond);
            let failure = match failed {
                SendFailed::Sent(failure) => failure,
                SendFailed::Expired(end) => return Err(end.error(Stage::Done)),
            };
            let SendError { error, sent, came } = failure;
            let attempted = retry::Failed {
                over: lease.over(),
                sent,
                came,
                is_idempotent: self.is_idempotent(),
                // A head can be made again.
                is_whole: true,
            };
            let next = place.next(index, attempted, self.head, attempts, recorder);
            let Some(next) = next else {
                return Err(broken(error));
            };
            let connection = (lease, connected_at);
            let reconnecting =
                place.reconnect(next, index, connection, self.head, attempts, recorder);
            let (moved, mut lease) = reconnecting.await?;
            let connected_at = Instant::now();
            let ((index, bond), shared) = match moved {
                None => {
                    shared.activity.touch();
                    ((index, bond), shared)
                }
                Some(picked) => {
                    let at = (picked.index, picked.bond);
                    (at, self.progress(picked, connected_at))
                }
            };
            let head = self.make(self.destination(index), recorder)?;
            let round_trip = self.round_trip(&mut lease, head)?;
            attempt = Attempt {
                round_trip,
                lease,
                shared,
                index,
                bond,
                connected_at,
            };
            match attempt.answered(place.due).await {
                Ok(answer) => return Ok((answer, attempt)),
                Err(again) => failed = again,
            }
        }
    }

    /// Returns all that is needed to get a connection.
    pub(super) fn place(&self) -> ConnectContext<'_> {
        ConnectContext {
            cluster: self.cluster,
            state: self.state,
            pool: self.pool,
            switch: self.handshake.protocols(),
            is_careful: !self.is_idempotent(),
            is_bound: false,
            due: self.due(),
        }
    }

    /// The time by which the response must have begun: the route's `Timeout`.
    fn due(&self) -> Option<Instant> {
        self.route.timeout().map(|wait| after(self.started, wait))
    }

    /// Returns the place for a request whose destination has this bond.
    fn bound<'p>(&self, place: &ConnectContext<'p>, bond: Bond) -> ConnectContext<'p> {
        ConnectContext {
            is_bound: self.state.is_bound(self.cluster, bond),
            ..*place
        }
    }

    /// Returns the header that gives the client an affinity key after this attempt, if it needs one.
    pub(super) fn new_key(&self, attempt: &Attempt) -> Option<NewKey> {
        if attempt.bond == Bond::None {
            return None;
        }
        let names_cluster = matches!(self.route.target(), RouteTarget::Weighted(_));
        let (index, bond) = (attempt.index, attempt.bond);
        self.state.new_key(self.cluster, index, bond, names_cluster)
    }

    fn is_idempotent(&self) -> bool {
        let sent = sent_method(self.route, self.head.method());
        Method::of(sent.unwrap_or_else(|| self.head.method_value())).is_idempotent()
    }

    /// Makes the progress that both directions share while the request is at a destination.
    fn progress(&self, picked: Picked, connected_at: Instant) -> SharedProgress {
        let destination = Arc::clone(self.state.destination(picked.index));
        // A switch of protocols has no end that a timeout of requests could be about.
        let ends = self.route.timeout_includes_body() && self.handshake.protocols().is_none();
        let end = self.due().filter(|_| ends);
        SharedProgress::new(
            InFlight::new(destination, picked.in_flight),
            self.cluster.upstream().activity_timeout(),
            connected_at,
        )
        .ending_at(end)
    }

    fn destination(&self, index: DestinationIndex) -> &Destination {
        &self.cluster.destinations()[index.0 as usize]
    }
}

impl Attempt {
    /// Sends the request and waits for the head of the response, for no longer than the exchange may be idle, nor
    /// beyond `deadline`.
    pub(super) async fn answered(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Answer, SendFailed> {
        let Self {
            round_trip,
            lease,
            shared,
            ..
        } = self;
        let mut timer = pin!(HeadTimer::new(&shared.activity, deadline));
        poll_fn(|cx| match lease.poll_answer(round_trip, cx) {
            Poll::Ready(answered) => Poll::Ready(answered.map_err(SendFailed::Sent)),
            Poll::Pending => {
                if round_trip.take_news() {
                    shared.activity.touch();
                }
                let expired = timer.as_mut().poll_expired(cx);
                expired.map(|end| Err(SendFailed::Expired(end)))
            }
        })
        .await
    }
}

/// Makes the error of a request that was sent and has no response.
pub(super) fn broken(error: ExchangeError) -> ForwardError {
    let end = match error.is_malformed_response() {
        true => End::Malformed,
        false => End::Closed,
    };
    let mut failed = end.error(Stage::Done);
    if let Some(cause) = error.cause() {
        failed = failed.because(cause);
    }
    failed.with_source(error)
}
