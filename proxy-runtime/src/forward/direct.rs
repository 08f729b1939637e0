//! The typed lane's short way: requests to destinations of HTTP/1.1, written straight from their `http` types.
//!
//! What [`Sending`] does for any request and any destination takes a map of fields of its own, a request made of it, and
//! blocks for what both directions share. Most requests need none of that: their heads are written out of the client's map
//! into the buffer that is sent, and a short response that has come whole needs its connection no longer than it takes to
//! look at it.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use proxy_model::compiled::{Destination, DestinationIndex};
use tokio::time::Instant;

use super::request::BodyKind;
use super::send::{Prepared, Sending, broken};
use super::spare::{self, Kind};
use crate::BoxError;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::exchange::Place;
use crate::forward::typed;
use crate::forward::typed::{TypedRequest, response_head};
use crate::head::AddressText;
use crate::http1::{Asked, FieldValue, Framing, Method as RawMethod, OutgoingTarget, RawResponse};
use crate::progress::End;
use crate::progress::HeadTimer;
use crate::progress::OutgoingBody;
use crate::progress::SharedProgress;
use crate::progress::UptakeLimit;
use crate::response::Account;
use crate::response::Download;
use crate::response::ProxyBody;
use crate::response::TrailerRules;
use crate::retry;
use crate::retry::Attempts;
use crate::transform::HeadPlan;
use crate::upstream::{
    ExchangeError, Http1Error, IncomingBody, Lease, Output, RawRoundTrip, Unanswered,
};

/// Bytes of a response that is passed on as a whole: what is copied out of the connection's buffer.
const WHOLE: usize = 8 * 1024 - 1;

/// Fields that a response gets on its way to the client without its map having to grow: what a layer or two add.
const ADDED: usize = 3;

/// A request that is written straight from its `http` types.
#[derive(Clone, Copy)]
pub(super) struct Direct<'a> {
    sending: &'a Sending<'a>,
    plan: &'a HeadPlan,
    /// As it was received.
    target: OutgoingTarget<'a>,
    framing: Framing,
}

/// What both directions of a request share, if both of them are there.
enum Shared {
    Not(SharedProgress),
    Between(Arc<SharedProgress>),
}

/// A request that was sent, or is about to be.
struct Waiting {
    round_trip: RawRoundTrip,
    lease: Lease,
    shared: Shared,
    index: DestinationIndex,
    /// When there was a connection.
    connected_at: Instant,
}

impl<'a> Direct<'a> {
    /// `None` if it is a request for [`Sending`]. What is to be sent has no edits of filters and no wish to switch.
    pub(super) fn of(sending: &'a Sending<'a>, plan: Option<&'a HeadPlan>) -> Option<Self> {
        let plan = plan?;
        if !sending.state.speaks_http1() {
            return None;
        }
        Some(Self {
            target: typed::written_target(sending.head)?,
            framing: typed::framing(sending.head, sending.body_kind),
            sending,
            plan,
        })
    }

    /// Sends the request, and waits for the head of the response, which is put into an empty one: to be moved from one to
    /// the next would be much of what it costs.
    ///
    /// Cancel-safe: dropped, the request is cancelled at the destination.
    pub(super) async fn run<B>(
        &self,
        body: B,
        account: &mut Account,
        into: &mut Response<ProxyBody>,
    ) -> Result<(), ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let sending = self.sending;
        let place = sending.place();
        let coming = {
            let make = |destination: &Destination| self.write(destination);
            let mut waiting = match sending.connect_now(&place, account, &make)? {
                (prepared, Some(lease)) => self.begin(prepared, lease, body)?,
                (prepared, None) => {
                    let connecting = sending.connect_anew(prepared, &place, account, &make);
                    let (prepared, lease) = Box::pin(connecting).await?;
                    self.begin(prepared, lease, body)?
                }
            };
            match waiting.answered(place.due).await {
                Ok(response) => self.pass_on(&response, waiting, account, into)?,
                Err(failed) => {
                    // Boxed, since it is seldom needed.
                    let repeating = self.repeat(failed, waiting, &place, account);
                    let (response, waiting) = Box::pin(repeating).await?;
                    self.pass_on(&response, waiting, account, into)?
                }
            }
        };
        if let Some(mut download) = coming {
            poll_fn(|cx| Poll::Ready(download.begin(cx))).await?;
            *into.body_mut() = ProxyBody::download(download);
        }
        Ok(())
    }

    /// What is to be sent over a connection.
    fn begin<B>(
        &self,
        prepared: Prepared<Output>,
        mut lease: Lease,
        body: B,
    ) -> Result<Waiting, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let sending = self.sending;
        let Prepared {
            picked,
            connected_at,
            head,
            ..
        } = prepared;
        let index = picked.index;
        let shared = Shared::Not(sending.progress(picked, connected_at));
        let (shared, body) = match sending.body_kind {
            BodyKind::Empty => (shared, OutgoingBody::empty()),
            _ => {
                let shared = shared.into_arc();
                let body = sending.body(body, &shared, None);
                (Shared::Between(shared), body)
            }
        };
        Ok(Waiting {
            round_trip: self.round_trip(&mut lease, head, body)?,
            lease,
            shared,
            index,
            connected_at,
        })
    }

    /// The head, for a destination.
    fn write(&self, destination: &Destination) -> Result<Output, ForwardError> {
        let head = self.sending.head;
        let remote = head.connection().remote;
        let remote = remote.map(|remote| AddressText::new(remote.ip()));
        let request = TypedRequest {
            head,
            route: self.sending.route,
            plan: self.plan,
            framing: self.framing,
            remote: remote
                .as_ref()
                .and_then(|remote| FieldValue::new(remote.as_bytes())),
        };
        let mut out = Output::lend();
        let written = request.write_with(self.target, destination, &mut out);
        written.map_err(|_| {
            ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        })?;
        Ok(out)
    }

    fn round_trip(
        &self,
        lease: &mut Lease,
        head: Output,
        body: OutgoingBody,
    ) -> Result<RawRoundTrip, ForwardError> {
        // A cluster of which all destinations are spoken to in HTTP/1.1 has no other connections.
        let connection = lease.raw().ok_or_else(bad_gateway)?;
        let asked = Asked {
            method: RawMethod::of(self.sending.head.method_value()),
            upgrade: false,
        };
        Ok(RawRoundTrip::new(
            connection,
            head,
            self.framing,
            body,
            asked,
        ))
    }

    /// Sends a request again whose attempt has failed, for as long as that may be.
    async fn repeat(
        &self,
        mut failed: Failed,
        mut waiting: Waiting,
        place: &Place<'_>,
        account: &mut Account,
    ) -> Result<(RawResponse, Waiting), ForwardError> {
        let sending = self.sending;
        let attempts = &mut Attempts::first();
        loop {
            let Waiting {
                round_trip,
                lease,
                shared,
                index,
                connected_at,
            } = waiting;
            if let Some(error) = shared.upload.failure() {
                return Err(error);
            }
            let Failed::Sent(error) = &failed else {
                return Err(failed.into_error(&shared));
            };
            let Unanswered { whole, sent, came } = round_trip.into_unanswered(error);
            let Some((head, mut body)) = whole else {
                return Err(failed.into_error(&shared));
            };
            let attempt = retry::Failed {
                over: lease.over(),
                sent,
                came,
                is_idempotent: sending.is_idempotent(),
                is_whole: true,
            };
            let next = place.next(index, attempt, sending.head, attempts, account);
            let Some(next) = next else {
                return Err(failed.into_error(&shared));
            };
            let connection = (lease, connected_at);
            let reconnecting =
                place.reconnect(next, index, connection, sending.head, attempts, account);
            let (moved, mut lease) = reconnecting.await?;
            let connected_at = Instant::now();
            let (index, shared, head) = match moved {
                None => {
                    shared.activity.touch();
                    (index, shared, head)
                }
                Some(picked) => {
                    let index = picked.index;
                    let head = self.write(sending.destination(index))?;
                    let progress = sending.progress(picked, connected_at);
                    (index, shared.moved(progress, &mut body), head)
                }
            };
            waiting = Waiting {
                round_trip: self.round_trip(&mut lease, head, body)?,
                lease,
                shared,
                index,
                connected_at,
            };
            match waiting.answered(place.due).await {
                Ok(response) => return Ok((response, waiting)),
                Err(again) => failed = again,
            }
        }
    }

    fn uptake(&self) -> Duration {
        self.sending.cluster.upstream().activity_timeout()
    }

    /// Makes the client's response of the destination's. Returns the body, if not all of it is there.
    fn pass_on(
        &self,
        raw: &RawResponse,
        waiting: Waiting,
        account: &mut Account,
        response: &mut Response<ProxyBody>,
    ) -> Result<Option<Box<Download>>, ForwardError> {
        let Waiting {
            round_trip,
            mut lease,
            shared,
            ..
        } = waiting;
        let now = Instant::now();
        shared.activity.touch_at(now);
        let status = StatusCode::from_u16(raw.status()).map_err(|_| bad_gateway())?;
        account.answered(status, now, lease.peer());
        let head_length = raw.head_length();
        let input = &mut lease.raw().ok_or_else(bad_gateway)?.input;
        let whole = match raw.framing() {
            // Nobody asked for it, so nobody knows what follows.
            Framing::Tunnel => return Err(bad_gateway()),
            Framing::None => Some(head_length),
            Framing::Length(length) => usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(head_length))
                .filter(|whole| *whole <= WHOLE && *whole <= input.filled().len()),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let whole = whole.filter(|_| round_trip.was_sent());
        // Head and body in one block, where that is all.
        let text = input.take_head(whole.unwrap_or(head_length));
        let head = response_head(raw, &text, round_trip.table(), self.plan, ADDED);
        let (status, fields) = head.ok_or_else(bad_gateway)?;
        let reason = raw.reason().get(&text);
        let reason = match status.canonical_reason().map(str::as_bytes) == Some(reason) {
            true => None,
            false => Some(ReasonPhrase::try_from(reason).map_err(|_| bad_gateway())?),
        };
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        *response.extensions_mut() = spare::extensions(Kind::Response);
        if let Some(reason) = reason {
            response.extensions_mut().insert(reason);
        }
        if whole.is_some() {
            if raw.is_persistent() {
                lease.give_back(now);
            }
            let content = text.slice(head_length..);
            if !content.is_empty() {
                shared.in_flight().metrics().received(content.len() as u64);
            }
            account.limit_uptake(UptakeLimit::new(self.uptake()));
            *response.body_mut() = ProxyBody::text(content);
            return Ok(None);
        }
        let promised = match raw.framing() {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        let incoming = IncomingBody::Http1(round_trip.into_body(raw));
        let progress = shared.into_arc();
        account.limit_uptake(UptakeLimit::of(self.uptake(), &progress));
        let trailers = TrailerRules::default();
        let download = Download::new(incoming, progress, lease, promised, trailers);
        Ok(Some(Box::new(download)))
    }
}

impl Waiting {
    /// Waits for the head of the response, for no longer than the exchange may be idle, nor beyond `deadline`.
    async fn answered(&mut self, deadline: Option<Instant>) -> Result<RawResponse, Failed> {
        let Self {
            round_trip,
            lease,
            shared,
            ..
        } = self;
        let mut timer = pin!(HeadTimer::new(&shared.activity, deadline));
        poll_fn(|cx| {
            let Some(connection) = lease.raw() else {
                return Poll::Ready(Err(Failed::Sent(Http1Error::NoResponse)));
            };
            match round_trip.poll_head(connection, cx) {
                Poll::Ready(answered) => Poll::Ready(answered.map_err(Failed::Sent)),
                Poll::Pending => {
                    if round_trip.take_news() {
                        shared.activity.touch();
                    }
                    timer
                        .as_mut()
                        .poll_expired(cx)
                        .map(|end| Err(Failed::Expired(end)))
                }
            }
        })
        .await
    }
}

/// Why waiting for a response ended without one.
enum Failed {
    Expired(End),
    Sent(Http1Error),
}

impl Failed {
    fn into_error(self, progress: &SharedProgress) -> ForwardError {
        match self {
            Self::Expired(end) => progress.upload.unanswered(end),
            Self::Sent(error) => broken(ExchangeError::Http1(error), progress),
        }
    }
}

fn bad_gateway() -> ForwardError {
    ForwardError::new(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY)
}

impl Shared {
    fn into_arc(self) -> Arc<SharedProgress> {
        match self {
            Self::Not(progress) => Arc::new(progress),
            Self::Between(progress) => progress,
        }
    }

    /// The same at another destination, for a body of which nothing was sent.
    fn moved(self, progress: SharedProgress, body: &mut OutgoingBody) -> Self {
        match self {
            Self::Not(_) => Self::Not(progress),
            Self::Between(_) => {
                let progress = Arc::new(progress);
                body.move_to(&progress);
                Self::Between(progress)
            }
        }
    }
}

impl Deref for Shared {
    type Target = SharedProgress;

    fn deref(&self) -> &SharedProgress {
        match self {
            Self::Not(progress) => progress,
            Self::Between(progress) => progress,
        }
    }
}
